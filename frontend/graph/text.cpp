#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "frontend/graph/attribute_text.h"
#include "frontend/graph/text_lexer.h"
#include "frontend/ops/op_table.h"
#include "frontend/values/storage.h"
#include "sylvite/graph_text.h"

namespace sylvite {
namespace {

constexpr std::int64_t inline_limit = 16;  // elements of a constant written out

std::string element_text(const Tensor& tensor, std::int64_t i) {
  return with_storage(tensor.dtype(), [&](auto zero) -> std::string {
    using T = decltype(zero);
    const T value = static_cast<const T*>(tensor.data())[i];
    if constexpr (is_float_wrapper<T>) {
      const auto wide = static_cast<float>(value);
      return std::isnan(wide) ? fmt::format("nan({:x})", value.bits) : real_text(wide);
    } else if constexpr (std::is_floating_point_v<T>) {
      return real_text(value);
    } else if constexpr (is_integer_wrapper<T>) {
      return std::to_string(value.number);
    } else {
      return std::to_string(value);
    }
  });
}

std::string constant_text(const Tensor& tensor) {
  if (tensor.size() > inline_limit) {
    const auto* bytes = static_cast<const char*>(tensor.data());
    return "sha256:" + short_hash({bytes, static_cast<std::size_t>(tensor.byte_size())});
  }
  std::string text = "{";
  for (std::int64_t i = 0; i < tensor.size(); ++i) text += (i > 0 ? ", " : "") + element_text(tensor, i);
  return text + "}";
}

template <typename T, typename Write>
std::string list_text(const std::vector<T>& items, Write write) {
  std::string text = "[";
  for (std::size_t i = 0; i < items.size(); ++i) text += (i > 0 ? "," : "") + write(items[i]);
  return text + "]";
}

std::string reference_text(const Graph& graph, ValueId id) {
  return id == no_value ? "_" : "%" + quote_name(graph.value(id).name);
}

std::string references_text(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) text += (i > 0 ? ", " : "") + reference_text(graph, ids[i]);
  return text;
}

/// e.g. %out, %next to %past: the second output is the next value of a state.
std::string returned_text(const Graph& graph) {
  std::string text;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    text += (i > 0 ? ", " : " ") + reference_text(graph, graph.outputs[i]);
    const auto add_input = [&](const std::vector<State>& pairs, std::string_view word) {
      for (const State& pair : pairs)
        if (pair.output == i)
          text += fmt::format(" {} {}", word, reference_text(graph, graph.inputs.at(pair.input)));
    };
    add_input(graph.states, "to");
    add_input(graph.overwrites, "over");
  }
  return text;
}

std::string declarations_text(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i)
    text += (i > 0 ? ", " : "") + reference_text(graph, ids[i]) + ": " + type_text(graph.type(ids[i]));
  return text;
}

std::string node_text(const Graph& graph, const Node& node) {
  std::string text = fmt::format("{} = {}({})", declarations_text(graph, node.outputs), op_info(node.op).name,
                                 references_text(graph, node.inputs));
  if (node.attributes.items().empty()) return text;
  return text + " {" + attributes_text(node.attributes) + "}";
}

std::string symbols_text(const SymbolTable& table) {
  std::string list;
  for (const auto& [name, info] : table)
    list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", quote_name(name), symbol_info_text(info));
  return list.empty() ? "" : "where {" + list + "} ";
}

class Parser {
 public:
  Parser(Lexer& lexer, const ConstantLookup& lookup, int depth = 0)
      : lexer_(lexer), lookup_(lookup), depth_(depth) {}

  Graph parse() {
    lexer_.expect_word("graph");
    graph_.name = lexer_.name();
    parse_inputs();
    parse_symbols();
    lexer_.expect('{');
    while (lexer_.peek() == '%') parse_statement();
    lexer_.expect_word("return");
    while (lexer_.peek() == '%' || !graph_.outputs.empty()) {
      graph_.outputs.push_back(parse_reference());
      if (lexer_.peek() == 't') parse_pair("to", graph_.states);
      if (lexer_.peek() == 'o') parse_pair("over", graph_.overwrites);
      if (!lexer_.accept(',')) break;
    }
    lexer_.expect('}');
    return std::move(graph_);
  }

 private:
  struct Declaration {
    std::string name;
    TensorType type;
  };

  std::string parse_new_name() {
    lexer_.expect('%');
    std::string name = lexer_.name();
    if (ids_.contains(name)) lexer_.fail(fmt::format("%{} is defined twice", name));
    return name;
  }

  ValueId parse_reference() {
    lexer_.expect('%');
    const std::string name = lexer_.name();
    const auto found = ids_.find(name);
    if (found == ids_.end()) lexer_.fail(fmt::format("%{} is not defined above", name));
    return found->second;
  }

  void parse_inputs() {
    lexer_.expect('(');
    while (!lexer_.accept(')')) {
      if (!graph_.inputs.empty()) lexer_.expect(',');
      const std::string name = parse_new_name();
      lexer_.expect(':');
      ids_[name] = graph_.add_input(name, lexer_.type());
    }
  }

  /// The output before is the next value of an input, or is written over it: to %past, over %past
  void parse_pair(std::string_view word, std::vector<State>& pairs) {
    lexer_.expect_word(word);
    const ValueId past = parse_reference();
    const auto found = std::ranges::find(graph_.inputs, past);
    if (found == graph_.inputs.end()) lexer_.fail(fmt::format("what stands behind '{}' is no input", word));
    const auto input = static_cast<std::size_t>(found - graph_.inputs.begin());
    if (std::ranges::find(pairs, input, &State::input) != pairs.end())
      lexer_.fail(fmt::format("an input stands behind '{}' twice", word));
    pairs.push_back({input, graph_.outputs.size() - 1});
  }

  void parse_statement() {
    std::vector<Declaration> results = {{parse_new_name(), {}}};
    if (lexer_.accept('=')) {
      lexer_.expect_word("constant");
      return parse_constant(results[0].name);
    }
    lexer_.expect(':');
    results[0].type = lexer_.type();
    while (lexer_.accept(',')) {
      results.push_back({parse_new_name(), {}});
      lexer_.expect(':');
      results.back().type = lexer_.type();
    }
    lexer_.expect('=');
    parse_node(results);
  }

  void parse_constant(const std::string& name) {
    const TensorType type = lexer_.type();
    std::optional<Tensor> tensor;
    if (lexer_.accept('{')) {
      tensor = parse_elements(type);
    } else {
      lexer_.expect_word("sha256");
      lexer_.expect(':');
      const std::string hash(lexer_.word());
      if (lookup_) tensor = lookup_(type, hash);
      if (!tensor)
        lexer_.fail(fmt::format("the bytes of constant %{} (sha256:{}) are not at hand", name, hash));
      if (tensor->dtype() != type.dtype || make_type(type.dtype, tensor->dims()).shape != type.shape)
        lexer_.fail(fmt::format("constant %{} was found as {}", name, tensor->type().to_string()));
    }
    ids_[name] = graph_.add_constant(std::move(*tensor), name);
    graph_.value(ids_[name]).type = type;
  }

  Tensor parse_elements(const TensorType& type) {
    std::string bytes;
    std::int64_t count = 0;
    while (!lexer_.accept('}')) {
      if (count++ > 0) lexer_.expect(',');
      with_storage(type.dtype, [&](auto zero) { append_element<decltype(zero)>(bytes); });
    }
    if (count_of(type) != count) lexer_.fail(fmt::format("{} elements for {}", count, type.to_string()));
    Tensor tensor(type.dtype, type.dims());
    if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
    return tensor;
  }

  std::int64_t count_of(const TensorType& type) {
    try {
      return type.element_count();
    } catch (const Error& error) {
      lexer_.fail(error.what());
    }
  }

  template <typename T>
  void append_element(std::string& bytes) {
    const T value = parse_element<T>();
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }

  template <typename T>
  T parse_element() {
    if constexpr (std::is_same_v<T, float>) {
      return lexer_.real32();
    } else if constexpr (std::is_same_v<T, double>) {
      return lexer_.real();
    } else if constexpr (is_float_wrapper<T>) {
      return parse_short_float<T>();
    } else if constexpr (is_integer_wrapper<T>) {
      const std::int64_t value = lexer_.integer();
      if (value < T::low || value > T::high) lexer_.fail("element out of range");
      return T(value);
    } else if constexpr (std::is_signed_v<T>) {
      const std::int64_t value = lexer_.integer();
      if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
        lexer_.fail("element out of range");
      return static_cast<T>(value);
    } else {
      const std::uint64_t value = lexer_.unsigned_integer();
      if (value > std::numeric_limits<T>::max()) lexer_.fail("element out of range");
      return static_cast<T>(value);
    }
  }

  template <typename T>
  T parse_short_float() {
    const auto bits = lexer_.nan(T(std::numeric_limits<double>::quiet_NaN()).bits);
    if (!bits) return T(static_cast<double>(lexer_.real32()));
    T result;
    result.bits = static_cast<decltype(result.bits)>(*bits);
    return result;
  }

  Op parse_op() {
    const std::string_view name = lexer_.word();
    const std::optional<Op> op = find_op(name);
    if (!op) lexer_.fail(fmt::format("no operation is called '{}'", name));
    return *op;
  }

  Attribute parse_attribute(AttributeInfo::Kind kind) {
    using Kind = AttributeInfo::Kind;
    if (kind == Kind::integer) return lexer_.integer();
    if (kind == Kind::real) return lexer_.real();
    if (kind == Kind::string) return lexer_.quoted_string();
    if (kind == Kind::extents) return parse_extents();
    if (kind == Kind::graph) return parse_body();
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    lexer_.expect('[');
    for (bool first = true; !lexer_.accept(']'); first = false) {
      if (!first) lexer_.expect(',');
      if (kind == Kind::integers)
        integers.push_back(lexer_.integer());
      else
        reals.push_back(lexer_.real());
    }
    if (kind == Kind::integers) return integers;
    return reals;
  }

  GraphAttribute parse_body() {
    constexpr int most_depth = 16;
    if (depth_ == most_depth) lexer_.fail(fmt::format("graphs within more than {} graphs", most_depth));
    return {std::make_shared<const Graph>(Parser(lexer_, lookup_, depth_ + 1).parse())};
  }

  std::vector<Extent> parse_extents() {
    std::vector<Extent> extents;
    lexer_.expect('[');
    while (!lexer_.accept(']')) {
      if (!extents.empty()) lexer_.expect(',');
      extents.push_back(lexer_.extent());
    }
    return extents;
  }

  /// where {batch: 1..64@1+8, length: 1..}
  void parse_symbols() {
    if (lexer_.peek() != 'w') return;
    lexer_.expect_word("where");
    lexer_.expect('{');
    SymbolTable& table = graph_.symbols.table;
    while (!lexer_.accept('}')) {
      if (!table.empty()) lexer_.expect(',');
      const std::string name = lexer_.name();
      lexer_.expect(':');
      if (!table.emplace(name, lexer_.symbol_info()).second)
        lexer_.fail(fmt::format("symbol {} is described twice", name));
    }
  }

  Attributes parse_attributes(const OpInfo& info) {
    Attributes attributes;
    if (!lexer_.accept('{')) return attributes;
    for (bool first = true; !lexer_.accept('}'); first = false) {
      if (!first) lexer_.expect(',');
      const std::string name(lexer_.word());
      const AttributeInfo* row = info.find_attribute(name);
      if (row == nullptr) lexer_.fail(fmt::format("{} has no attribute '{}'", info.name, name));
      lexer_.expect('=');
      attributes.set(name, parse_attribute(row->kind));
    }
    return attributes;
  }

  void parse_node(const std::vector<Declaration>& results) {
    const Op op = parse_op();
    std::vector<ValueId> inputs;
    lexer_.expect('(');
    while (!lexer_.accept(')')) {
      if (!inputs.empty()) lexer_.expect(',');
      if (lexer_.peek() == '%') {
        inputs.push_back(parse_reference());
      } else {
        lexer_.expect_word("_");
        inputs.push_back(no_value);
      }
    }
    Attributes attributes = parse_attributes(op_info(op));
    std::vector<ValueId> outputs;
    try {
      outputs = graph_.add_node(op, std::move(inputs), std::move(attributes));
    } catch (const Error& error) {
      lexer_.fail(error.what());
    }
    if (outputs.size() != results.size()) {
      lexer_.fail(
          fmt::format("{} gives {} values, not {}", op_info(op).name, outputs.size(), results.size()));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) define(outputs[i], results[i]);
  }

  /// Names a node's output; the written layout stands, because lowering chooses layouts.
  void define(ValueId id, const Declaration& written) {
    TensorType& type = graph_.value(id).type;
    if (type.dtype != written.type.dtype || !graph_.symbols.equal(type.shape, written.type.shape))
      lexer_.fail(fmt::format("%{} is {}, not {}", written.name, type.to_string(), written.type.to_string()));
    if (ids_.contains(written.name)) lexer_.fail(fmt::format("%{} is defined twice", written.name));
    type = written.type;
    graph_.rename(id, written.name);
    ids_[written.name] = id;
  }

  Lexer& lexer_;
  const ConstantLookup& lookup_;
  int depth_;  ///< how many graphs this one stands in
  Graph graph_;
  std::map<std::string, ValueId> ids_;
};

}  // namespace

std::string attribute_text(const Attribute& attribute) {
  const auto integer = [](std::int64_t value) { return std::to_string(value); };
  const auto real = [](double value) { return real_text(value); };
  struct Writer {
    decltype(integer)& write_integer;
    decltype(real)& write_real;
    std::string operator()(std::int64_t value) const { return write_integer(value); }
    std::string operator()(double value) const { return write_real(value); }
    std::string operator()(const std::string& value) const { return quote_string(value); }
    std::string operator()(const std::vector<std::int64_t>& values) const {
      return list_text(values, write_integer);
    }
    std::string operator()(const std::vector<double>& values) const { return list_text(values, write_real); }
    std::string operator()(const std::vector<Extent>& values) const {
      return list_text(values, [](const Extent& value) { return value.to_string(); });
    }
    std::string operator()(const GraphAttribute& value) const { return graph_text(*value.graph); }
  };
  return std::visit(Writer{integer, real}, attribute);
}

std::string attributes_text(const Attributes& attributes) {
  std::string list;
  for (const auto& [name, value] : attributes.items())
    list += fmt::format("{}{}={}", list.empty() ? "" : ", ", name, attribute_text(value));
  return list;
}

std::string graph_text(const Graph& graph) {
  std::string text = fmt::format("graph {}({}) {}{{\n", quote_name(graph.name),
                                 declarations_text(graph, graph.inputs), symbols_text(graph.symbols.table));
  for (const Value& value : graph.values()) {
    if (!value.constant) continue;
    text += fmt::format("  %{} = constant {} {}\n", quote_name(value.name), type_text(value.type),
                        constant_text(*value.constant));
  }
  for (const Node& node : graph.nodes()) text += "  " + node_text(graph, node) + "\n";
  return text + "  return" + returned_text(graph) + "\n}\n";
}

Graph parse_graph(std::string_view text, const ConstantLookup& lookup) {
  Lexer lexer(text);
  Graph graph = Parser(lexer, lookup).parse();
  if (lexer.peek() != '\0') lexer.fail("text after the end of the graph");
  return graph;
}

}  // namespace sylvite
