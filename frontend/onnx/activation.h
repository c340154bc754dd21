#pragma once
// Activation functions that attributes give by name.

#include <functional>
#include <optional>
#include <string>

#include "frontend/graph/graph_builder.h"

namespace sylvite {

using Activation = std::function<Sym(Sym)>;

/// The function of that name in the operators RNN, GRU and LSTM; without alpha or beta with its defaults.
/// Throws UnsupportedError for other names.
[[nodiscard]] Activation make_activation(const std::string& name, std::optional<double> alpha,
                                         std::optional<double> beta);

}  // namespace sylvite
