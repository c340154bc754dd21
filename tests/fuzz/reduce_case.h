#pragma once
// Delta debugging: a smaller model that fails in the same way.

#include <functional>

#include "tests/fuzz/model_grower.h"

namespace sylvite::fuzz {

/// Tries smaller and smaller models: without outputs, with inputs in place of nodes, without nodes, with
/// smaller extents. `still_fails` says whether a model is interesting; it must hold for `failing`. Takes at
/// most `most_tries` calls of it.
[[nodiscard]] ModelCase reduce_case(const ModelCase& failing,
                                    const std::function<bool(const ModelCase&)>& still_fails,
                                    int most_tries = 300);

}  // namespace sylvite::fuzz
