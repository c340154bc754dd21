#include "frontend/onnx/derived_dims.h"

#include <optional>
#include <set>
#include <string>

#include "base/error.h"
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

}  // namespace

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
