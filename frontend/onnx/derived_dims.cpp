#include "frontend/onnx/derived_dims.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"
#include "frontend/onnx/reader_facts.h"
#include "sylvite/extent.h"

namespace sylvite {
namespace {

/// The name as an axis of `factor` times a symbol and an addend; nothing where it is a plain name, or no such expression.
std::optional<DeclaredInput::Axis> as_multiple(const std::string& name) {
  try {
    const Extent expression = Extent::parse(name);
    if (expression.terms().size() != 1) return std::nullopt;
    const Extent::Term& term = expression.terms()[0];
    const bool is_symbol = term.factors.size() == 1 && term.factors[0].kind == ExtentFactor::Kind::symbol &&
                           term.coefficient > 0;
    if (!is_symbol || term.factors[0].name == name) return std::nullopt;
    return DeclaredInput::Axis{0, term.factors[0].name, term.coefficient, expression.constant()};
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Symbol -> its only size.
using Pins = std::map<std::string, std::int64_t>;

void find_pins(const ReaderFactFinder& finder, const DeclaredInput& input, Pins& pins) {
  const auto rank = static_cast<int>(input.axes.size());
  for (const auto& [axis, extent] : finder.facts_of(input.name).extents) {
    const int place = axis < 0 ? axis + rank : axis;
    if (place < 0 || place >= rank || extent <= 0) continue;
    const std::string& symbol = input.axes[static_cast<std::size_t>(place)].symbol;
    if (!symbol.empty()) pins.try_emplace(symbol, extent);
  }
}

}  // namespace

void pin_dims(const onnx::GraphProto& graph, std::vector<DeclaredInput>& inputs,
              const ImportOptions& options) {
  const auto is_open = [](const DeclaredInput& input) {
    return std::ranges::any_of(input.axes, [](const auto& axis) { return !axis.symbol.empty(); });
  };
  if (std::ranges::none_of(inputs, is_open)) return;
  const ReaderFactFinder finder(graph);
  Pins pins;
  for (const DeclaredInput& input : inputs)
    if (is_open(input) && !options.input_shapes.contains(input.name)) find_pins(finder, input, pins);
  for (DeclaredInput& input : inputs) {
    for (DeclaredInput::Axis& axis : input.axes) {
      const auto pin = pins.find(axis.symbol);
      if (pin != pins.end() && !options.dims.contains(axis.symbol)) axis = {pin->second};
    }
  }
}

void derive_dims(std::vector<DeclaredInput>& inputs, const ImportOptions& options) {
  std::set<std::string> names;
  for (const DeclaredInput& input : inputs)
    for (const DeclaredInput::Axis& axis : input.axes) names.insert(axis.symbol);
  for (DeclaredInput& input : inputs) {
    for (DeclaredInput::Axis& axis : input.axes) {
      if (axis.symbol.empty() || options.dims.contains(axis.symbol)) continue;
      const std::optional<DeclaredInput::Axis> derived = as_multiple(axis.symbol);
      if (derived && names.contains(derived->symbol)) axis = *derived;
    }
  }
}

}  // namespace sylvite
