#include "lowering/plan/open_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "frontend/ops/op_table.h"
#include "sylvite/graph_text.h"

namespace sylvite {
namespace {

enum class Axis : std::uint8_t { any, lines, pixels };  ///< of an image, or any other

SizeClass class_of(Axis axis, std::int64_t extent) {
  if (axis == Axis::pixels) return pixel_class(extent);
  return axis == Axis::lines ? line_class(extent) : size_class(extent);
}

bool has_image(const Graph& body) {
  return std::ranges::any_of(body.values(),
                             [](const Value& value) { return value.type.layout.channel_block != 0; });
}

/// Walks two bodies side by side and gives each pair of extents one expression.
class Generalizer {
 public:
  Generalizer(const Graph& first, const Graph& second, bool on_device)
      : first_(first), second_(second), has_image_(has_image(first)), on_device_(on_device) {}

  /// nullopt: they differ in more than extents.
  [[nodiscard]] std::optional<Graph> body() {
    if (!have_same_structure()) return std::nullopt;
    result_.name = first_.name;
    for (const ValueId input : first_.inputs) {
      const std::optional<TensorType> type = joined_type(input);
      if (!type) return std::nullopt;
      map_[input] = result_.add_input(first_.value(input).name, *type);
    }
    for (std::size_t i = 0; i < first_.nodes().size(); ++i)
      if (!add_node(first_.nodes()[i], second_.nodes()[i])) return std::nullopt;
    for (const ValueId output : first_.outputs) result_.outputs.push_back(mapped(output));
    return std::move(result_);
  }

  [[nodiscard]] std::size_t symbol_count() const { return symbols_.size(); }

 private:
  [[nodiscard]] bool have_same_structure() const {
    return first_.values().size() == second_.values().size() &&
           first_.nodes().size() == second_.nodes().size() && first_.inputs == second_.inputs &&
           first_.outputs == second_.outputs;
  }

  [[nodiscard]] ValueId mapped(ValueId id) {
    if (id == no_value) return no_value;
    if (const auto found = map_.find(id); found != map_.end()) return found->second;
    const ValueId now = result_.add_constant(*first_.value(id).constant, first_.value(id).name);
    result_.value(now).type = first_.type(id);
    return map_[id] = now;
  }

  /// nullopt when no kernel serves both extents.
  [[nodiscard]] std::optional<Extent> joined(std::int64_t a, std::int64_t b, Axis axis) {
    if (a == b) return a;
    const std::tuple key{a, b, axis};
    if (const auto found = symbols_.find(key); found != symbols_.end()) return found->second;
    const auto class_at = [&](std::int64_t extent) {
      return on_device_ ? device_class(extent) : class_of(axis, extent);
    };
    const SizeClass range = class_at(a);
    if (a < 1 || b < 1 || range != class_at(b)) return std::nullopt;
    const std::string name = fmt::format("s{}", symbols_.size());
    result_.symbols.table[name] = {range.low, range.high, {a}};
    return symbols_[key] = Extent::symbol(name);
  }

  [[nodiscard]] Axis axis_at(std::size_t position, std::size_t rank) const {
    if (!has_image_ || position < 2) return Axis::any;
    return position + 1 == rank ? Axis::pixels : Axis::lines;
  }

  [[nodiscard]] std::optional<std::vector<Extent>> joined(const Dims& a, const Dims& b) {
    if (a.size() != b.size()) return std::nullopt;
    std::vector<Extent> result;
    result.reserve(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::optional<Extent> extent = joined(a[i], b[i], axis_at(i, a.size()));
      if (!extent) return std::nullopt;
      result.push_back(std::move(*extent));
    }
    return result;
  }

  [[nodiscard]] std::optional<TensorType> joined_type(ValueId id) {
    TensorType type = first_.type(id);
    const TensorType& other = second_.type(id);
    const std::optional<std::vector<Extent>> shape = joined(type.dims(), other.dims());
    if (!shape || type.dtype != other.dtype || type.layout != other.layout) return std::nullopt;
    if (type.layout.channel_block != 0 && !shape->at(1).is_known()) return std::nullopt;
    type.shape.assign(shape->begin(), shape->end());
    return type;
  }

  [[nodiscard]] std::optional<Attributes> joined_attributes(const Node& a, const Node& b) {
    Attributes result = a.attributes;
    if (a.attributes.items().size() != b.attributes.items().size()) return std::nullopt;
    for (const auto& [name, value] : a.attributes.items()) {
      const auto other = b.attributes.items().find(name);
      if (other == b.attributes.items().end()) return std::nullopt;
      if (value == other->second) continue;
      const AttributeInfo* row = op_info(a.op).find_attribute(name);
      if (row == nullptr || row->kind != AttributeInfo::Kind::extents) return std::nullopt;
      std::optional<std::vector<Extent>> extents =
          joined(a.attributes.integers(name), b.attributes.integers(name));
      if (!extents) return std::nullopt;
      result.set(name, std::move(*extents));
    }
    return result;
  }

  [[nodiscard]] bool add_node(const Node& a, const Node& b) {
    if (a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs) return false;
    for (const ValueId id : a.inputs)
      if (id != no_value && !is_same_constant(id)) return false;
    std::vector<Value> outputs;
    for (const ValueId id : a.outputs) {
      std::optional<TensorType> type = joined_type(id);
      if (!type) return false;
      outputs.push_back({first_.value(id).name, std::move(*type), std::nullopt, no_node});
    }
    std::optional<Attributes> attributes = joined_attributes(a, b);
    if (!attributes) return false;
    std::vector<ValueId> inputs;
    inputs.reserve(a.inputs.size());
    for (const ValueId id : a.inputs) inputs.push_back(mapped(id));
    const std::vector<ValueId> added =
        result_.add_known_node({a.op, std::move(inputs), {}, std::move(*attributes), ""}, std::move(outputs));
    for (std::size_t i = 0; i < added.size(); ++i) map_[a.outputs[i]] = added[i];
    return true;
  }

  [[nodiscard]] bool is_same_constant(ValueId id) const {
    const std::optional<Tensor>& a = first_.value(id).constant;
    const std::optional<Tensor>& b = second_.value(id).constant;
    if (!a || !b) return a.has_value() == b.has_value();
    return a->type() == b->type() &&
           std::memcmp(a->data(), b->data(), static_cast<std::size_t>(a->byte_size())) == 0;
  }

  const Graph& first_;
  const Graph& second_;
  bool has_image_;
  bool on_device_;
  Graph result_;
  std::map<ValueId, ValueId> map_;
  std::map<std::tuple<std::int64_t, std::int64_t, Axis>, Extent> symbols_;
};

/// An extent of an open kernel is a number or one symbol: reads the symbol's value off a case.
class CaseReader {
 public:
  explicit CaseReader(const SymbolTable& table) : table_(table) {}

  [[nodiscard]] bool read(const std::vector<Extent>& open, const Dims& dims) {
    if (open.size() != dims.size()) return false;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (open[i].is_known() ? open[i].constant() == dims[i] : read_symbol(open[i], dims[i])) continue;
      return false;
    }
    return true;
  }
  [[nodiscard]] const SymbolValues& values() const { return values_; }

 private:
  [[nodiscard]] bool read_symbol(const Extent& symbol, std::int64_t value) {
    const std::string& name = symbol.terms()[0].factors[0].name;
    const SymbolInfo& info = table_.at(name);
    if (value < info.low || value > info.high) return false;
    return values_.emplace(name, value).first->second == value;
  }

  const SymbolTable& table_;
  SymbolValues values_;
};

bool read_case(const Graph& open, const Graph& body, CaseReader& reader) {
  if (open.values().size() != body.values().size() || open.nodes().size() != body.nodes().size())
    return false;
  for (std::size_t i = 0; i < body.values().size(); ++i)
    if (!reader.read(open.values()[i].type.shape, body.values()[i].type.dims())) return false;
  for (std::size_t i = 0; i < body.nodes().size(); ++i) {
    for (const auto& [name, value] : open.nodes()[i].attributes.items()) {
      if (!std::holds_alternative<std::vector<Extent>>(value)) continue;
      const Attributes& attributes = body.nodes()[i].attributes;
      if (!attributes.has(name) ||
          !reader.read(std::get<std::vector<Extent>>(value), attributes.integers(name)))
        return false;
    }
  }
  return true;
}

/// Beyond these, kernels are compiled for buffers that 32 bits do not address.
bool is_too_large(const Graph& body) {
  return std::ranges::any_of(body.values(), [](const Value& value) {
    return value.type.byte_size() > std::numeric_limits<std::int32_t>::max();
  });
}

/// Do both multiply by weights of different shapes? Then they are different layers, not one at different sizes.
bool have_other_weights(const Kernel& first, const Kernel& second) {
  if (first.kind != KernelClass::matmul && first.kind != KernelClass::convolution) return false;
  if (first.anchor != second.anchor || first.kind != second.kind) return true;
  ValueId id = first.body.node(first.anchor).inputs.at(1);
  for (NodeId node = first.body.value(id).producer; node != no_node; node = first.body.value(id).producer) {
    if (!has_trait(first.body.node(node).op, OpTrait::view)) return false;
    id = first.body.node(node).inputs[0];
  }
  const auto& inputs = first.body.inputs;
  const auto number = static_cast<std::size_t>(std::ranges::find(inputs, id) - inputs.begin());
  return number < inputs.size() && first.input_is_weight[number] &&
         first.body.type(id) != second.body.type(second.body.inputs.at(number));
}

}  // namespace

SizeClass size_class(std::int64_t extent) {
  constexpr std::int64_t whole_tile = 16;
  if (extent < 2) return {extent, extent};
  return extent < whole_tile ? SizeClass{2, whole_tile - 1} : SizeClass{whole_tile, INT64_MAX};
}

SizeClass pixel_class(std::int64_t extent) {
  const SizeClass range = size_class(extent);
  if (range.low != 2) return range;
  return extent < 4 ? SizeClass{2, 3} : extent < 8 ? SizeClass{4, 7} : SizeClass{8, range.high};
}

SizeClass line_class(std::int64_t extent) {
  const SizeClass range = size_class(extent);
  if (range.low != 2) return range;
  return extent < 4 ? SizeClass{2, 3} : SizeClass{4, range.high};
}

SizeClass device_class(std::int64_t extent) {
  constexpr std::int64_t width = 4;
  if (extent < 2) return {extent, extent};
  std::int64_t low = 2;
  while (extent / width >= low) low *= width;
  return {low, low * width - 1};
}

std::optional<Kernel> generalize(const Kernel& first, const Kernel& second, bool on_device) {
  if (first.input_is_weight != second.input_is_weight ||
      first.body.inputs.size() != second.body.inputs.size() || have_other_weights(first, second))
    return std::nullopt;
  Generalizer generalizer(first.body, second.body, on_device);
  const std::optional<Graph> body = generalizer.body();
  if (!body || generalizer.symbol_count() == 0) return std::nullopt;
  return make_kernel(*body, first.input_is_weight);
}

std::optional<Kernel> as_case(const Kernel& open, const Kernel& kernel) {
  CaseReader reader(open.open->symbols.table);
  if (is_too_large(kernel.body) || !read_case(*open.open, kernel.body, reader)) return std::nullopt;
  Kernel result = with_sizes(open, reader.values());
  // The walk above compares extents; this compares all the rest.
  const bool is_equal =
      open.input_is_weight == kernel.input_is_weight && graph_text(result.body) == graph_text(kernel.body);
  return is_equal ? std::optional(std::move(result)) : std::nullopt;
}

std::string skeleton(const Kernel& kernel) {
  std::string text;
  for (const ValueId input : kernel.body.inputs) {
    const TensorType& type = kernel.body.type(input);
    text += fmt::format("{}:{}:{} ", dtype_name(type.dtype), type.rank(), type.layout.channel_block);
  }
  for (const Node& node : kernel.body.nodes()) {
    text += op_info(node.op).name;
    for (const ValueId input : node.inputs) text += fmt::format(" {}", input);
    for (const ValueId output : node.outputs) text += fmt::format(":{}", kernel.body.type(output).rank());
    text += '\n';
  }
  return text;
}

}  // namespace sylvite
