#include "frontend/store_as_bf16.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/parts.h"

namespace sylvite {
namespace {

constexpr float largest_bf16 = 3.3895313892515355e38F;

/// Rounded to nearest even; finite numbers stay finite, and NaNs NaNs.
std::uint16_t rounded(float x) {
  const auto bits =
      std::bit_cast<std::uint32_t>(std::isfinite(x) ? std::clamp(x, -largest_bf16, largest_bf16) : x);
  if (x != x) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

Tensor rounded(const Tensor& tensor) {
  Tensor result(DType::bf16, tensor.dims());
  const auto* from = static_cast<const float*>(tensor.data());
  auto* to = static_cast<std::uint16_t*>(result.mutable_data());
  for_parts(tensor.size(), tensor.byte_size(), [&](std::int64_t begin, std::int64_t end) {
    std::transform(from + begin, from + end, to + begin, [](float x) { return rounded(x); });
  });
  return result;
}

ValueId cast(Graph& graph, ValueId id, DType to) {
  return graph.add(Op::cast, {id}, {{"to", std::string(dtype_name(to))}});
}

class Converter {
 public:
  explicit Converter(const Graph& source) : source_(source) {
    result_.name = source.name;
    for (const ValueId id : source.inputs) {
      const ValueId in = result_.add_input(source.value(id).name, source.type(id));
      map_[id] = source.type(id).dtype == DType::f32 ? cast(result_, in, DType::bf16) : in;
    }
  }

  Graph convert() {
    for (const Node& node : source_.nodes()) add(node);
    for (const ValueId id : source_.outputs) {
      const bool was_f32 = source_.type(id).dtype == DType::f32;
      const ValueId now = mapped(id);
      result_.outputs.push_back(was_f32 ? cast(result_, now, DType::f32) : now);
    }
    for (std::size_t i = 0; i < source_.outputs.size(); ++i)
      result_.output_names.push_back(source_.output_name(i));
    return std::move(result_);
  }

 private:
  ValueId mapped(ValueId id) {
    if (id == no_value) return no_value;
    if (const auto found = map_.find(id); found != map_.end()) return found->second;
    const Tensor& constant = *source_.value(id).constant;
    const Tensor stored = constant.dtype() == DType::f32 ? rounded(constant) : constant;
    return map_[id] = result_.add_constant(stored, source_.value(id).name);
  }

  /// Types follow from the inputs, except where an attribute says them: those that count convert afterwards.
  void add(const Node& node) {
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(mapped(id));
    Attributes attributes = node.attributes;
    if (node.op == Op::cast) {
      if (attributes.string("to") == "f32") attributes.set("to", std::string("bf16"));
      if (attributes.string("to") == dtype_name(result_.type(inputs[0]).dtype)) {
        map_[node.outputs[0]] = inputs[0];
        return;
      }
    }
    std::vector<ValueId> outputs = result_.add_node(node.op, inputs, attributes, node.name);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (result_.type(outputs[i]).dtype == DType::f32) outputs[i] = cast(result_, outputs[i], DType::bf16);
      result_.rename(outputs[i], source_.value(node.outputs[i]).name);
      map_[node.outputs[i]] = outputs[i];
    }
  }

  const Graph& source_;
  Graph result_;
  std::map<ValueId, ValueId> map_;
};

}  // namespace

Graph store_as_bf16(const Graph& graph) {
  return Converter(graph).convert();
}

}  // namespace sylvite
