#include "frontend/onnx/tail.h"

#include <onnx-ml.pb.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/initializer_store.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/tensor.h"
#include "frontend/values/same_bytes.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_sizes = 16;         // elements of a value that are sizes
constexpr std::int64_t largest_size = 1 << 17;  // as size_convention has it for lengths
constexpr std::int64_t none_of_sizes = largest_size + 1;
constexpr std::size_t most_rows = 32;  // runs that make a tail anew

bool is_small_element(std::int64_t element) {
  return element >= -largest_size && element <= largest_size;
}

std::string symbol_name(int symbol) {
  return fmt::format("length{}", symbol);
}

std::string sizes_name(const std::string& value) {
  return value + "/sizes";
}

void declare(onnx::ValueInfoProto& input, const std::string& name, DType dtype) {
  input.set_name(name);
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_of_dtype(dtype));
  type.mutable_shape();
}

onnx::NodeProto& add_node(onnx::GraphProto& graph, const char* op, const std::string& output) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name(output);
  node.add_output(output);
  return node;
}

void add_integers(onnx::GraphProto& graph, const std::string& name, const Dims& dims,
                  const std::vector<std::int64_t>& elements) {
  onnx::AttributeProto& value = *add_node(graph, "Constant", name).add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(onnx::TensorProto::INT64);
  for (const std::int64_t extent : dims) value.mutable_t()->add_dims(extent);
  for (const std::int64_t element : elements) value.mutable_t()->add_int64_data(element);
}

/// A node of two operands; its output.
std::string add_binary(onnx::GraphProto& graph, const char* op, const std::string& left,
                       const std::string& right, const std::string& output) {
  onnx::NodeProto& node = add_node(graph, op, output);
  node.add_input(left);
  node.add_input(right);
  return output;
}

/// The elements of `value`, read off the shape of an input that has their codes as extents, and one extent of 0.
void read_sizes_off_shape(onnx::GraphProto& graph, const TailValue& value, std::span<const SizeCode> codes) {
  const std::string carrier = sizes_name(value.name);
  const Dims& dims = value.value.dims();
  std::vector<std::int64_t> places;
  std::vector<std::int64_t> factors;
  std::vector<std::int64_t> shifts;
  for (const SizeCode& code : codes) {
    places.push_back(static_cast<std::int64_t>(places.size()));
    factors.push_back(code.factor);
    shifts.push_back(code.shift);
  }
  add_node(graph, "Shape", carrier + "/shape").add_input(carrier);
  add_integers(graph, carrier + "/places", dims, places);
  std::string elements =
      add_binary(graph, "Gather", carrier + "/shape", carrier + "/places", carrier + "/extents");
  if (std::ranges::count(factors, 1) < std::ssize(factors)) {
    add_integers(graph, carrier + "/factors", dims, factors);
    elements = add_binary(graph, "Mul", elements, carrier + "/factors", carrier + "/products");
  }
  if (std::ranges::count(shifts, 0) < std::ssize(shifts)) {
    add_integers(graph, carrier + "/shifts", dims, shifts);
    elements = add_binary(graph, "Add", elements, carrier + "/shifts", carrier + "/sums");
  }
  onnx::NodeProto& cast = add_node(graph, "Cast", value.name);
  cast.add_input(elements);
  onnx::AttributeProto& to = *cast.add_attribute();
  to.set_name("to");
  to.set_type(onnx::AttributeProto::INT);
  to.set_i(onnx_of_dtype(value.value.dtype()));
}

Tensor carrier_of(const Tensor& value, std::span<const SizeCode> codes) {
  Dims dims;
  for (std::int64_t i = 0; i < value.size(); ++i)
    dims.push_back(codes[static_cast<std::size_t>(i)].extent(value.as_int64(i)));
  dims.push_back(0);
  return {DType::u8, dims};
}

}  // namespace

bool is_few(const Dims& dims) {
  return dims.size() <= 1 && (dims.empty() || dims[0] <= most_sizes);
}

bool may_be_sizes(DType dtype, const Dims& dims) {
  return (dtype == DType::i64 || dtype == DType::i32) && is_few(dims);
}

bool are_sizes(const Tensor& value) {
  if (!may_be_sizes(value.dtype(), value.dims())) return false;
  for (std::int64_t i = 0; i < value.size(); ++i)
    if (!is_small_element(value.as_int64(i))) return false;
  return true;
}

TailShape TailShape::of(const Tensor& value) {
  TailShape shape{value.dims()};
  if (may_be_sizes(value.dtype(), value.dims()))
    for (std::int64_t i = 0; i < value.size(); ++i) shape.elements.push_back(value.as_int64(i));
  return shape;
}

std::optional<TailCall> Tail::call(const std::vector<TailValue>& values) {
  if (is_given_up_) return std::nullopt;
  if (first_.empty()) begin(values);
  if (!is_alike(values)) return std::nullopt;
  const std::vector<std::int64_t> row = row_of(values, false);
  if (made_ == nullptr || !fits(values, row)) {
    if (rows_.size() >= most_rows) return std::nullopt;
    rows_.push_back(row);
    for (std::size_t i = 0; i < values.size(); ++i)
      varies_[i] = varies_[i] || (values[i].is_known && !same_bytes(values[i].value, first_[i].value));
    make(values);
  }
  TailCall call{made_, {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (forms_[i] == Form::input) call.inputs.emplace_back(values[i].value);
    if (forms_[i] == Form::sizes) call.inputs.emplace_back(carrier_of(values[i].value, codes_of(slots_[i])));
  }
  return call;
}

void Tail::begin(const std::vector<TailValue>& values) {
  first_ = values;
  std::size_t next = 0;
  for (const TailValue& value : values) {
    const TailShape shape = TailShape::of(value.value);
    slots_.push_back({next, shape.dims.size(), shape.elements.size()});
    next += slots_.back().rank + slots_.back().elements;
  }
  varies_.assign(values.size(), false);
  const std::vector<std::int64_t> other = row_of(values, true);
  if (other == row_of(values, false)) return;
  rows_.push_back(other);
  for (std::size_t i = 0; i < values.size(); ++i)
    varies_[i] = values[i].is_known && values[i].other && *values[i].other != TailShape::of(values[i].value);
}

bool Tail::is_alike(const std::vector<TailValue>& values) const {
  if (values.size() != first_.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_same = values[i].name == first_[i].name &&
                         values[i].value.dtype() == first_[i].value.dtype() &&
                         values[i].value.dims().size() == slots_[i].rank;
    if (!is_same) return false;
  }
  return true;
}

/// Of another run the elements of what is computed are not known: they are taken for those of this one. Elements of a value of
/// another length than at first are no sizes.
std::vector<std::int64_t> Tail::row_of(const std::vector<TailValue>& values, bool is_other) const {
  std::vector<std::int64_t> row;
  for (std::size_t i = 0; i < values.size(); ++i) {
    TailShape shape = TailShape::of(values[i].value);
    if (is_other && values[i].other && values[i].value.size() > 0) {
      shape.dims = values[i].other->dims;
      if (!values[i].other->elements.empty()) shape.elements = values[i].other->elements;
    }
    if (shape.elements.size() != slots_[i].elements) shape.elements.assign(slots_[i].elements, none_of_sizes);
    row.insert(row.end(), shape.dims.begin(), shape.dims.end());
    row.insert(row.end(), shape.elements.begin(), shape.elements.end());
  }
  return row;
}

/// Has the tail as it is these numbers where it has numbers, and one number for each of its symbols?
bool Tail::fits(const std::vector<TailValue>& values, const std::vector<std::int64_t>& row) const {
  std::map<int, std::int64_t> sizes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (forms_[i] == Form::constant) {
      if (!same_bytes(values[i].value, first_[i].value)) return false;
      continue;
    }
    const std::size_t end =
        slots_[i].first + slots_[i].rank + (forms_[i] == Form::sizes ? slots_[i].elements : 0);
    for (std::size_t slot = slots_[i].first; slot < end; ++slot) {
      const std::int64_t extent = codes_[slot].extent(row[slot]);
      const bool is_same = symbols_[slot] < 0
                               ? row[slot] == rows_.back()[slot]
                               : extent > 0 && extent <= largest_size &&
                                     sizes.try_emplace(symbols_[slot], extent).first->second == extent;
      if (!is_same) return false;
    }
  }
  return true;
}

bool Tail::is_open(std::size_t slot) const {
  return std::ranges::any_of(rows_, [&](const auto& row) { return row[slot] != rows_[0][slot]; });
}

std::optional<SizeCode> Tail::code_of(std::size_t slot) const {
  std::int64_t least = rows_[0][slot];
  std::int64_t most = least;
  for (const std::vector<std::int64_t>& row : rows_) {
    least = std::min(least, row[slot]);
    most = std::max(most, row[slot]);
  }
  if (!is_small_element(least) || !is_small_element(most)) return std::nullopt;
  const bool is_fixed = least == most;
  if (least >= (is_fixed ? 0 : 1)) return SizeCode{1, 0};
  if (least == 0) return SizeCode{1, -1};
  return most < 0 ? std::optional<SizeCode>({-1, 0}) : std::nullopt;
}

std::span<const SizeCode> Tail::codes_of(const Slots& slots) const {
  return std::span(codes_).subspan(slots.first + slots.rank, slots.elements);
}

bool Tail::are_size_slots(const Slots& slots) const {
  const std::size_t begin = slots.first + slots.rank;
  for (std::size_t slot = begin; slot < begin + slots.elements; ++slot)
    if (!code_of(slot)) return false;
  return slots.elements > 0;
}

void Tail::choose_forms() {
  forms_.clear();
  for (std::size_t i = 0; i < first_.size(); ++i) {
    const bool wants_sizes = first_[i].is_known || sizes_wanted_.contains(first_[i].name);
    if (first_[i].is_number || (first_[i].is_known && !varies_[i]))
      forms_.push_back(Form::constant);
    else
      forms_.push_back(wants_sizes && are_size_slots(slots_[i]) ? Form::sizes : Form::input);
  }
}

/// What was equal in all runs is one size.
void Tail::choose_symbols() {
  std::map<std::vector<std::int64_t>, int> known;
  symbols_.assign(rows_[0].size(), -1);
  codes_.assign(rows_[0].size(), {});
  for (std::size_t i = 0; i < first_.size(); ++i) {
    const std::size_t end = slots_[i].first + slots_[i].rank + slots_[i].elements;
    for (std::size_t slot = slots_[i].first; slot < end; ++slot) {
      const bool is_element = slot >= slots_[i].first + slots_[i].rank;
      if (forms_[i] != (is_element ? Form::sizes : Form::input)) continue;
      if (is_element) codes_[slot] = code_of(slot).value();
      if (!is_open(slot)) continue;
      std::vector<std::int64_t> column;
      column.reserve(rows_.size());
      for (const std::vector<std::int64_t>& row : rows_) column.push_back(codes_[slot].extent(row[slot]));
      symbols_[slot] = known.try_emplace(column, static_cast<int>(known.size())).first->second;
    }
  }
}

void Tail::make(const std::vector<TailValue>& values) {
  constexpr int most_rounds = 8;
  for (int round = 0; round < most_rounds; ++round) {
    choose_forms();
    choose_symbols();
    ParsedModel written = this->written(values);
    const std::set<std::string> missing = sizes_missing(written);
    made_ = std::make_shared<const ParsedModel>(std::move(written));
    if (missing.empty()) break;
    sizes_wanted_.insert(missing.begin(), missing.end());
  }
  log_line(LogLevel::info, "tail: {} nodes, {} values, sizes {}", nodes_.size(), values.size(),
           describe(made_->sizes, first_sizes(made_->sizes)));
}

void Tail::write_value(const TailValue& value, std::size_t i, onnx::GraphProto& graph,
                       ImportOptions& options) const {
  const bool is_sizes = forms_[i] == Form::sizes;
  onnx::ValueInfoProto& input = *graph.add_input();
  declare(input, is_sizes ? sizes_name(value.name) : value.name, is_sizes ? DType::u8 : value.value.dtype());
  auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
  const std::size_t begin = slots_[i].first + (is_sizes ? slots_[i].rank : 0);
  const std::size_t count = is_sizes ? slots_[i].elements : slots_[i].rank;
  for (std::size_t slot = begin; slot < begin + count; ++slot) {
    const std::int64_t size = codes_[slot].extent(rows_.back()[slot]);
    const int symbol = forms_[i] == Form::constant ? -1 : symbols_[slot];
    if (symbol < 0) {
      shape.add_dim()->set_dim_value(size);
      continue;
    }
    shape.add_dim()->set_dim_param(symbol_name(symbol));
    options.dims[symbol_name(symbol)] = SizeRange(1, SizeRange::open, {size});
  }
  if (is_sizes) shape.add_dim()->set_dim_value(0);
  if (is_sizes) read_sizes_off_shape(graph, value, codes_of(slots_[i]));
  if (forms_[i] == Form::constant) options.bound_inputs[value.name] = value.value;
}

ParsedModel Tail::written(const std::vector<TailValue>& values) const {
  const onnx::ModelProto& whole = *model_.proto;
  onnx::ModelProto proto;
  proto.set_ir_version(whole.ir_version());
  *proto.mutable_opset_import() = whole.opset_import();
  *proto.mutable_functions() = whole.functions();
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.set_name(whole.graph().name());
  ImportOptions options;
  options.max_nodes = model_.options.max_nodes;
  options.host_bytes = model_.options.host_bytes;
  options.host_work = model_.options.host_work;
  options.follow_links = model_.options.follow_links;
  for (std::size_t i = 0; i < values.size(); ++i) write_value(values[i], i, graph, options);
  for (const onnx::NodeProto* node : nodes_) *graph.add_node() = *node;
  for (const std::string& output : outputs_) graph.add_output()->set_name(output);
  return parse_model_proto(std::move(proto), model_.folder, options, model_.tails_before + 1);
}

std::set<std::string> Tail::sizes_missing(const ParsedModel& model) const {
  const ImportOptions options = options_at(model, first_sizes(model.sizes));
  OnnxGraphImporter importer(model.proto, model.folder, options, OnnxStage::first, model.initializers);
  std::vector<DeferredNode> deferred;
  std::vector<HostHandover> handovers;
  std::vector<ModelPort> inputs;
  (void)importer.import_first(deferred, handovers, inputs);
  std::map<std::string, const onnx::NodeProto*> producers;
  for (const onnx::NodeProto* node : nodes_)
    for (const std::string& output : node->output()) producers[output] = node;
  std::set<std::string> met;
  std::vector<std::string> left;
  for (const DeferredNode& node : deferred)
    if (!node.size.empty()) left.push_back(node.size);
  std::set<std::string> missing;
  while (!left.empty()) {
    const std::string name = left.back();
    left.pop_back();
    if (!met.insert(name).second) continue;
    for (std::size_t i = 0; i < first_.size(); ++i)
      if (first_[i].name == name && forms_[i] == Form::input && !sizes_wanted_.contains(name) &&
          are_size_slots(slots_[i]))
        missing.insert(name);
    const auto producer = producers.find(name);
    if (producer == producers.end()) continue;
    if (producer->second->op_type() == "Shape" || producer->second->op_type() == "Size") continue;
    left.insert(left.end(), producer->second->input().begin(), producer->second->input().end());
  }
  return missing;
}

bool TailStore::is_met_again(const std::string& name, const Tensor& value) {
  constexpr std::size_t most = 8;
  const std::scoped_lock lock(mutex_);
  std::vector<Tensor>& met = numbers_[name];
  if (std::ranges::any_of(met, [&](const Tensor& each) { return same_bytes(each, value); })) return true;
  if (met.size() < most) met.push_back(value);
  return false;
}

}  // namespace sylvite
