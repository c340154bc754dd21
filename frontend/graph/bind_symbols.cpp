#include "frontend/graph/bind_symbols.h"

#include "base/error.h"
#include "frontend/graph/copy.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

std::string range_text(const SymbolInfo& info) {
  return info.high == INT64_MAX ? fmt::format("at least {}", info.low)
                                : fmt::format("{} to {}", info.low, info.high);
}

/// The name of an extent that is a symbol alone; "" for others.
std::string symbol_name(const Extent& extent) {
  if (extent.constant() != 0 || extent.terms().size() != 1) return "";
  const Extent::Term& term = extent.terms()[0];
  const bool is_symbol =
      term.coefficient == 1 && term.factors.size() == 1 && term.factors[0].kind == ExtentFactor::Kind::symbol;
  return is_symbol ? term.factors[0].name : "";
}

void check_range(const std::string& input, std::size_t axis, const std::string& symbol, std::int64_t value,
                 const SymbolTable& table) {
  const auto found = table.find(symbol);
  if (found == table.end()) return;
  if (value < found->second.low || value > found->second.high) {
    throw InputError("input '{}', dimension {}: {} is {}, expected {}", input, axis, symbol, value,
                     range_text(found->second));
  }
}

void read_input(const Graph& graph, ValueId input, const Dims& dims, SymbolValues& binding) {
  const Value& value = graph.value(input);
  if (dims.size() != value.type.shape.size()) {
    throw InputError("input '{}' has {} dimensions, expected {} of {}", value.name, dims.size(),
                     value.type.shape.size(), value.type.to_string());
  }
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const std::string symbol = symbol_name(value.type.shape[axis]);
    if (symbol.empty()) continue;
    check_range(value.name, axis, symbol, dims[axis], graph.symbols.table);
    binding.emplace(symbol, dims[axis]);
  }
}

void check_shape(const Value& value, const Dims& dims, const SymbolValues& binding) {
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const Extent& extent = value.type.shape[axis];
    if (const std::int64_t wanted = extent.at(binding); wanted != dims[axis]) {
      throw InputError("input '{}', dimension {}: the extent is {}, expected {}{}", value.name, axis,
                       dims[axis], extent.is_known() ? "" : extent.to_string() + " = ", wanted);
    }
  }
}

}  // namespace

SymbolValues read_symbols(const Graph& graph, const std::vector<Dims>& input_shapes) {
  SymbolValues binding;
  for (std::size_t i = 0; i < input_shapes.size(); ++i)
    read_input(graph, graph.inputs.at(i), input_shapes[i], binding);
  for (std::size_t i = 0; i < input_shapes.size(); ++i)
    check_shape(graph.value(graph.inputs[i]), input_shapes[i], binding);
  return binding;
}

Graph bind_symbols(const Graph& graph, const SymbolValues& binding) {
  for (const Guard& guard : graph.symbols.guards()) {
    if (guard.holds(binding)) continue;
    throw UnsupportedError("these sizes break an assumption of '{}': {}", guard.origin, guard.to_string());
  }
  GraphCopier copier(graph, binding);
  copier.add_inputs();
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::extents) {
      copier.copy(node);
      continue;
    }
    const Value& value = graph.value(node.outputs[0]);
    const Tensor numbers =
        op_info(Op::extents).evaluate(Op::extents, {}, node.attributes.at(binding), {&value.type, 1}).at(0);
    copier.set(node.outputs[0], copier.graph().add_constant(numbers, value.name));
  }
  return copier.finish();
}

}  // namespace sylvite
