#pragma once
// The LSTM, for the operators that differ in how they store its weights.

#include <functional>

#include "frontend/onnx/import_context.h"

namespace sylvite {

/// W [directions, gates * hidden, inputs] and R [directions, gates * hidden, hidden].
struct RecurrentWeights {
  Sym w, r;
  std::function<Sym(Sym)> prepare;  ///< what becomes of a factor before they multiply it; empty: nothing
};

/// The node as an LSTM with these weights; all other inputs are where LSTM has them. Gates in the order i, o,
/// f, c; peepholes in the order i, o, f.
void lstm(ImportContext& c, const RecurrentWeights& weights);

}  // namespace sylvite
