#include "frontend/torch/torch_import.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "frontend/graph/copy.h"
#include "frontend/graph/loop_builder.h"
#include "frontend/graph/views.h"
#include "frontend/torch/memory_order.h"
#include "frontend/torch/torch_complex.h"
#include "frontend/torch/torch_ops.h"
#include "frontend/torch/torch_text.h"

namespace sylvite {
namespace {

using Kind = TorchLiteral::Kind;

constexpr std::string_view write_op = "aten.copy_.default";
constexpr std::string_view item_op = "getitem";
constexpr std::string_view scan_op = "scan";

[[noreturn]] void rethrow_named(const Error& error, const std::string& prefix) {
  const ErrorCode code = error.code() == ErrorCode::bad_input ? ErrorCode::bad_model : error.code();
  const std::string message = prefix + ": " + error.what();
  if (code == ErrorCode::bad_usage) throw UsageError(message);
  if (code == ErrorCode::unsupported) throw UnsupportedError(message);
  if (code == ErrorCode::bad_model) throw ModelError(message);
  throw InternalError(message);
}

/// What is read, other than to be returned or written over.
std::set<std::string> names_read(const TorchText& text) {
  std::set<std::string> names;
  for (const TorchNode& node : text.nodes)
    for (std::size_t i = node.op == write_op ? 1 : 0; i < node.arguments.size(); ++i)
      collect_names(node.arguments[i].value, names);
  return names;
}

class Importer {
 public:
  Importer(const TorchText& text, const TorchImportOptions& options, std::vector<TorchRefusal>* refusals)
      : text_(text), options_(options), refusals_(refusals), builder_(result_.graph) {}

  TorchGraph run() {
    result_.graph.name = text_.name;
    add_inputs();
    for (const TorchNode& node : text_.nodes) add_node(node);
    builder_.set_node_name("");
    for (const TorchReturned& returned : text_.outputs) result_.outputs.push_back(add_output(returned));
    for (TorchOutput& write : result_.writes)
      give_out(written_values_[write.input], write,
               text_.inputs[static_cast<std::size_t>(write.input)].name + "_written");
    for (const auto& [output, input] : options_.overwrites) add_overwrite(output, input);
    result_.graph = without_dead_nodes(result_.graph);  // what bodies of loops were made of
    return std::move(result_);
  }

 private:
  Dims strides_of(const std::vector<Extent>& strides, const Dims& dims) const {
    if (strides.empty()) return dense_strides(dims);
    if (strides.size() != dims.size())
      throw ModelError("{} strides are given for {} axes", strides.size(), dims.size());
    return sizes_at(strides, options_.sizes);
  }

  void add_inputs() {
    const std::set<std::string> read = names_read(text_);
    for (const TorchTextInput& declared : text_.inputs) {
      try {
        add_input(declared, read.contains(declared.name));
      } catch (const Error& error) {
        rethrow_named(error, fmt::format("line {}: %{}", declared.line, declared.name));
      }
    }
    for (const auto& [name, tensor] : options_.constants)
      if (!inputs_.contains(name)) throw UsageError("the constant '{}' is none of the graph's inputs", name);
  }

  void add_input(const TorchTextInput& declared, bool is_read) {
    TorchInput input;
    input.name = declared.name;
    input.is_parameter = declared.is_parameter;
    input.is_size = declared.type.dtype == "int";
    if (!inputs_.emplace(declared.name, static_cast<int>(result_.inputs.size())).second)
      throw ModelError("the input is given twice");
    TorchValue value{{Sym()}, false};
    if (!input.is_size && !declared.type.dtype.starts_with('c')) {
      input.tensor.type =
          make_type(parse_dtype(declared.type.dtype), sizes_at(declared.type.shape, options_.sizes));
      check_value_size(input.tensor.type);
      const Dims dims = input.tensor.type.dims();
      input.tensor.strides = strides_of(declared.type.strides, dims);
      value.strides = input.tensor.strides;
      value.shape = declared.type.shape;
      if (is_read) value.results[0] = read_input(input);
    }
    scope_.emplace(declared.name, std::move(value));
    result_.inputs.push_back(std::move(input));
  }

  Sym read_input(TorchInput& input) {
    const std::vector<std::int64_t> order = memory_order(input.tensor.type.dims(), input.tensor.strides);
    const Dims dims = in_order(input.tensor.type.dims(), order);
    const DType dtype = input.tensor.type.dtype;
    const auto constant = options_.constants.find(input.name);
    if (constant == options_.constants.end()) {
      input.graph_input = static_cast<int>(result_.graph.inputs.size());
      return transpose(builder_.input(input.name, dtype, dims), inverse_order(order));
    }
    if (constant->second.type() != make_type(dtype, dims))
      throw UsageError("the constant is {}, expected {}", constant->second.type().to_string(),
                       make_type(dtype, dims).to_string());
    builder_.raise_budget(constant->second.byte_size());
    return transpose(builder_.constant(constant->second, input.name), inverse_order(order));
  }

  void add_node(const TorchNode& node) {
    if (++node_count_ > options_.max_nodes)
      throw UnsupportedError("the text has more than {} operations", options_.max_nodes);
    if (scope_.contains(node.name)) throw ModelError("line {}: %{} is defined twice", node.line, node.name);
    builder_.set_node_name(node.name);
    TorchValue value{{}, node.is_tuple};
    try {
      value.results = node.op == item_op    ? std::vector<Sym>{item(node, value.imaginary)}
                      : node.op == write_op ? std::vector<Sym>{write(node)}
                      : node.op == scan_op  ? scan(node)
                      : is_complex(node)    ? import_parts(node, value.imaginary)
                                            : import(node);
      check_results(node, value.results);
      check_imaginary(node, value.imaginary);
    } catch (const Error& error) {
      if (refusals_ == nullptr || error.code() == ErrorCode::internal || error.code() == ErrorCode::bad_usage)
        rethrow_named(error, fmt::format("line {}: %{} = {}", node.line, node.name, node.op));
      refusals_->push_back({node.name, node.op, error.what()});
      value.results = stand_ins(node);
      value.imaginary.clear();
    }
    if (node.types.size() == 1) value.shape = node.types[0].shape;
    if (node.types.size() == 1 && !node.types[0].strides.empty())
      value.strides = sizes_at(node.types[0].strides, options_.sizes);
    scope_.emplace(node.name, std::move(value));
  }

  /// Does it take or give complex numbers?
  bool is_complex(const TorchNode& node) const {
    std::set<std::string> names;
    for (const TorchArgument& argument : node.arguments) collect_names(argument.value, names);
    return std::ranges::any_of(node.types,
                               [](const TorchType& type) { return type.dtype.starts_with('c'); }) ||
           std::ranges::any_of(names, [&](const std::string& name) {
             const auto found = scope_.find(name);
             return found != scope_.end() && !found->second.imaginary.empty();
           });
  }

  /// Real parts; the others go to `imaginary` where there are any.
  std::vector<Sym> import_parts(const TorchNode& node, std::vector<Sym>& imaginary) {
    std::vector<Sym> results;
    for (const Complex& value : import_complex(builder_, scope_, node, options_)) {
      results.push_back(value.re);
      imaginary.push_back(value.im);
    }
    if (std::ranges::none_of(imaginary, [](const Sym& each) { return static_cast<bool>(each); }))
      imaginary.clear();
    return results;
  }

  std::vector<Sym> import(const TorchNode& node) {
    const TorchOp* row = find_torch_op(node.op);
    if (row == nullptr) throw UnsupportedError("this operation is not served");
    TorchContext context(builder_, scope_, node, options_, row->schema);
    row->import(context);
    context.check_no_surplus();
    return context.results();
  }

  /// Values of the declared types, so that what reads them can be looked at.
  std::vector<Sym> stand_ins(const TorchNode& node) {
    std::vector<Sym> results;
    for (const TorchType& type : node.types) {
      Sym value;
      if (!type.dtype.empty() && type.dtype != "int" && !type.dtype.starts_with('c')) {
        const TensorType declared = make_type(parse_dtype(type.dtype), sizes_at(type.shape, options_.sizes));
        check_value_size(declared);
        value = builder_.input(node.name, declared.dtype, declared.dims());
      }
      results.push_back(value);
    }
    return results;
  }

  void check_results(const TorchNode& node, const std::vector<Sym>& results) {
    if (results.size() > node.types.size())
      throw ModelError("{} results are declared, {} are computed", node.types.size(), results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const TorchType& type = node.types[i];
      if (!results[i] || type.dtype.empty()) continue;
      const Dims dims = sizes_at(type.shape, options_.sizes);
      if (part_dtype(type.dtype) == dtype_name(results[i].dtype()) && dims == results[i].dims()) continue;
      throw ModelError("{}[{}] is declared, {} is computed", type.dtype, fmt::join(dims, ","),
                       make_type(results[i].dtype(), results[i].dims()).to_string());
    }
  }

  /// Complex results have imaginary parts, as large as the real ones.
  void check_imaginary(const TorchNode& node, const std::vector<Sym>& imaginary) const {
    for (std::size_t i = 0; i < node.types.size(); ++i) {
      const TorchType& type = node.types[i];
      const bool has_one = i < imaginary.size() && imaginary[i];
      if (type.dtype.starts_with('c') != has_one)
        throw ModelError("{} is declared, and the result has {} imaginary part", type.dtype,
                         has_one ? "an" : "no");
      if (has_one && imaginary[i].dims() != sizes_at(type.shape, options_.sizes))
        throw ModelError("the imaginary part has another shape than {} declares", type.dtype);
    }
  }

  const TorchLiteral& argument(const TorchNode& node, std::size_t i, Kind kind) const {
    if (node.arguments.size() != 2 || node.arguments[i].value.kind != kind)
      throw ModelError("the arguments are not a value and what belongs to it");
    return node.arguments[i].value;
  }

  Sym item(const TorchNode& node, std::vector<Sym>& imaginary) {
    const std::string& name = argument(node, 0, Kind::value).text;
    const std::int64_t index = size_at(argument(node, 1, Kind::integer).integer, options_.sizes);
    const auto found = scope_.find(name);
    if (found == scope_.end()) throw ModelError("the value %{} is not defined before", name);
    const std::vector<Sym>& results = found->second.results;
    if (!found->second.is_tuple || index < 0 || index >= static_cast<std::int64_t>(results.size()))
      throw UnsupportedError("%{} has no result {} here", name, index);
    if (!results[static_cast<std::size_t>(index)])
      throw UnsupportedError("result {} of %{} is not served", index, name);
    const std::vector<Sym>& parts = found->second.imaginary;
    if (!parts.empty() && parts[static_cast<std::size_t>(index)])
      imaginary = {parts[static_cast<std::size_t>(index)]};
    return results[static_cast<std::size_t>(index)];
  }

  // scan('body', [states], [scanned], [more]): a loop, of which another graph of the text is a trip.

  /// Marks the importer while a trip is imported: what cannot be is thrown there.
  class InsideBody {
   public:
    InsideBody(Importer& importer, std::size_t number)
        : importer_(importer),
          scope_(std::exchange(importer.scope_, {})),
          refusals_(std::exchange(importer.refusals_, nullptr)),
          first_body_(std::exchange(importer.first_body_, number + 1)) {}
    ~InsideBody() {
      importer_.scope_ = std::move(scope_);
      importer_.refusals_ = refusals_;
      importer_.first_body_ = first_body_;
    }
    InsideBody(const InsideBody&) = delete;
    InsideBody& operator=(const InsideBody&) = delete;

   private:
    Importer& importer_;
    TorchScope scope_;
    std::vector<TorchRefusal>* refusals_;
    std::size_t first_body_;
  };

  /// A body stands behind the graph that names it, so none is in itself.
  std::size_t body_number(const std::string& name) const {
    for (std::size_t i = first_body_; i < text_.bodies.size(); ++i)
      if (text_.bodies[i].name == name) return i;
    throw ModelError("no graph '{}' stands behind", name);
  }

  const std::vector<TorchLiteral>& list(const TorchNode& node, std::size_t i) const {
    if (node.arguments.size() <= i || node.arguments[i].value.kind != Kind::list)
      throw ModelError("argument {} is no list", i);
    return node.arguments[i].value.items;
  }

  /// Sizes are absent: their expressions stand where they are used.
  std::vector<Sym> values_of(const std::vector<TorchLiteral>& literals) const {
    std::vector<Sym> values;
    values.reserve(literals.size());
    for (const TorchLiteral& literal : literals)
      values.push_back(literal.kind == Kind::integer ? Sym() : one_value(literal));
    return values;
  }

  /// A real tensor that is computed here.
  Sym one_value(const TorchLiteral& literal) const {
    const auto found = scope_.find(literal.text);
    if (literal.kind != Kind::value || found == scope_.end() || found->second.is_tuple ||
        !found->second.results[0])
      throw UnsupportedError("%{} is no tensor that is computed here", literal.text);
    if (!found->second.imaginary.empty()) throw UnsupportedError("complex numbers in a scan are not served");
    return found->second.results[0];
  }

  TorchValue body_input(const TorchTextInput& declared, Sym given) const {
    if (!given != (declared.type.dtype == "int"))
      throw ModelError("%{} of the body is {}", declared.name, given ? "a size" : "no size");
    if (given && make_type(parse_dtype(declared.type.dtype), sizes_at(declared.type.shape, options_.sizes)) !=
                     make_type(given.dtype(), given.dims()))
      throw ModelError("%{} of the body has another type than what it is given", declared.name);
    return {{given}, false};
  }

  std::vector<Sym> run_body(std::size_t number, const std::vector<Sym>& given) {
    const TorchText& body = text_.bodies[number];
    if (body.inputs.size() != given.size())
      throw ModelError("the body takes {} values, {} are given", body.inputs.size(), given.size());
    const InsideBody inside(*this, number);
    for (std::size_t i = 0; i < given.size(); ++i)
      scope_.emplace(body.inputs[i].name, body_input(body.inputs[i], given[i]));
    for (const TorchNode& node : body.nodes) add_node(node);
    std::vector<Sym> results;
    results.reserve(body.outputs.size());
    for (const TorchReturned& returned : body.outputs)
      results.push_back(returned.value.kind == Kind::none ? Sym() : one_value(returned.value));
    return results;
  }

  std::vector<Sym> scan(const TorchNode& node) {
    if (node.arguments.size() != 4 || node.arguments[0].value.kind != Kind::string)
      throw ModelError("the arguments are not a body and three lists");
    const std::size_t number = body_number(node.arguments[0].value.text);
    LoopSpec spec;
    spec.given = {values_of(list(node, 1)), values_of(list(node, 2))};
    const std::vector<Sym> more = values_of(list(node, 3));
    for (const Sym& scanned : spec.given.slices)
      if (!scanned || scanned.rank() == 0 || scanned.dim(0) != spec.given.slices[0].dim(0))
        throw ModelError("what is scanned has no axis in common");
    if (spec.given.slices.empty()) throw UnsupportedError("a scan over nothing is not served");
    spec.trips = spec.given.slices[0].dim(0);
    std::vector<bool> is_given;  // of the results of a trip behind the states
    const TripValues made = run_loop(builder_, spec, [&](const TripValues& trip) {
      std::vector<Sym> given = trip.states;
      given.insert(given.end(), trip.slices.begin(), trip.slices.end());
      given.insert(given.end(), more.begin(), more.end());
      return trip_results(run_body(number, given), trip.states, is_given);
    });
    std::vector<Sym> results = made.states;
    auto next = made.slices.begin();
    for (const bool is_one : is_given) results.push_back(is_one ? *next++ : Sym());
    return results;
  }

  /// The next states, which are like those before, and what is stacked.
  static TripValues trip_results(const std::vector<Sym>& results, const std::vector<Sym>& states,
                                 std::vector<bool>& is_given) {
    if (results.size() < states.size()) throw ModelError("a trip gives too few results");
    TripValues made;
    is_given.clear();
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (i < states.size()) {
        if (!results[i] || results[i].dtype() != states[i].dtype() || results[i].dims() != states[i].dims())
          throw ModelError("state {} of a scan has another type behind a trip", i);
        made.states.push_back(results[i]);
        continue;
      }
      is_given.push_back(static_cast<bool>(results[i]));
      if (results[i]) made.slices.push_back(results[i]);
    }
    return made;
  }

  /// aten.copy_(input, value): the last thing that is done to an input.
  Sym write(const TorchNode& node) {
    if (first_body_ > 0) throw UnsupportedError("a body that writes inputs is not served");
    const auto target = inputs_.find(argument(node, 0, Kind::value).text);
    if (target == inputs_.end()) throw UnsupportedError("what is written is no input");
    const int index = target->second;
    if (written_values_.contains(index)) throw ModelError("an input is written twice");
    const TorchTensor& tensor = result_.inputs[static_cast<std::size_t>(index)].tensor;
    const auto found = scope_.find(argument(node, 1, Kind::value).text);
    if (found == scope_.end() || found->second.is_tuple || !found->second.results[0])
      throw UnsupportedError("what is written is no tensor that is computed here");
    const Sym value = broadcast_to(cast(found->second.results[0], tensor.type.dtype), tensor.type.dims());
    written_values_[index] = value;
    writes_[node.name] = index;
    TorchOutput output;
    output.kind = TorchOutput::Kind::written;
    output.tensor = tensor;
    output.input = index;
    result_.writes.push_back(output);
    return value;
  }

  TorchOutput add_output(const TorchReturned& returned) {
    try {
      return output_of(returned);
    } catch (const Error& error) {
      if (refusals_ != nullptr && error.code() == ErrorCode::unsupported) {
        refusals_->push_back({returned.value.text, "return", error.what()});
        return {};
      }
      rethrow_named(error, fmt::format("line {}: return", returned.line));
    }
  }

  TorchOutput output_of(const TorchReturned& returned) {
    TorchOutput output;
    if (returned.value.kind == Kind::none) return output;
    if (returned.value.kind == Kind::integer) {
      output.kind = TorchOutput::Kind::size;
      output.size = size_at(returned.value.integer, options_.sizes);
      return output;
    }
    const std::string& name = returned.value.text;
    const auto input = inputs_.find(name);
    const auto write = writes_.find(name);
    if (input != inputs_.end() || write != writes_.end()) {
      output.kind = write != writes_.end() ? TorchOutput::Kind::written : TorchOutput::Kind::input;
      output.input = write != writes_.end() ? write->second : input->second;
      output.tensor = result_.inputs[static_cast<std::size_t>(output.input)].tensor;
      return output;
    }
    const auto found = scope_.find(name);
    if (found == scope_.end()) throw ModelError("the value %{} is not defined", name);
    if (found->second.is_tuple || !found->second.results[0])
      throw UnsupportedError("%{} is no tensor that is computed here", name);
    if (!found->second.imaginary.empty()) throw UnsupportedError("complex results of a graph are not served");
    const Sym value = found->second.results[0];
    output.kind = TorchOutput::Kind::computed;
    output.tensor = {make_type(value.dtype(), value.dims()), strides_of(returned.strides, value.dims())};
    give_out(value, output, name);
    return output;
  }

  void give_out(Sym value, TorchOutput& output, const std::string& name) {
    const std::vector<std::int64_t> order = memory_order(value.dims(), output.tensor.strides);
    const Sym stored = transpose(value, order);
    Graph& graph = result_.graph;
    output.graph_output = static_cast<int>(graph.outputs.size());
    const bool is_taken = std::ranges::find(graph.output_names, name) != graph.output_names.end();
    graph.outputs.push_back(stored.id());
    graph.output_names.push_back(is_taken ? fmt::format("{}_{}", name, output.graph_output) : name);
  }

  void add_overwrite(std::size_t number, const std::string& name) {
    const auto found = inputs_.find(name);
    if (number >= result_.outputs.size() || found == inputs_.end())
      throw UsageError("there is no output {}, or no input '{}', to write over", number, name);
    const TorchOutput& output = result_.outputs[number];
    const TorchInput& input = result_.inputs[static_cast<std::size_t>(found->second)];
    if (output.kind != TorchOutput::Kind::computed || input.graph_input < 0) return;
    if (output.tensor.type != input.tensor.type || output.tensor.strides != input.tensor.strides) return;
    result_.graph.overwrites.push_back(
        {static_cast<std::size_t>(input.graph_input), static_cast<std::size_t>(output.graph_output)});
  }

  const TorchText& text_;
  const TorchImportOptions& options_;
  std::vector<TorchRefusal>* refusals_;  ///< nullptr: the first one is thrown
  TorchGraph result_;
  GraphBuilder builder_;
  TorchScope scope_;
  std::map<std::string, int> inputs_;  ///< by name
  std::map<std::string, int> writes_;  ///< names of copy_ nodes -> the inputs that they write
  std::map<int, Sym> written_values_;  ///< by input
  std::size_t first_body_ = 0;         ///< of the text's bodies, the first that may be named
  std::int64_t node_count_ = 0;        ///< imported so far, with those of trips
};

}  // namespace

TorchGraph import_torch(std::string_view text, const TorchImportOptions& options) {
  const TorchText read = read_torch_text(text);
  return Importer(read, options, nullptr).run();
}

std::vector<TorchRefusal> torch_refusals(std::string_view text, const TorchImportOptions& options) {
  const TorchText read = read_torch_text(text);
  std::vector<TorchRefusal> refusals;
  (void)Importer(read, options, &refusals).run();
  return refusals;
}

}  // namespace sylvite
