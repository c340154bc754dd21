#pragma once
// A model of the generator with sizes that its file leaves open, as exporters write them: named extents of inputs, and
// shapes that are computed from these.

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "tests/fuzz/model_grower.h"

namespace sylvite::fuzz {

/// Sizes by symbol.
using NamedSizes = std::map<std::string, std::int64_t>;

struct OpenCase {
  ModelCase test;       ///< with the inputs of the sizes that it was grown with
  NamedSizes original;  ///< one to three
};

/// One to three extents of the inputs become symbols wherever they stand. Weights that have them become inputs, and
/// constants that say the shape of a Reshape, an Expand or a ConstantOfShape are computed by Shape, Gather, Mul and Concat
/// where an input tells. Nothing where no input has an extent above one, or where the model is not valid with one more.
[[nodiscard]] std::optional<OpenCase> with_open_sizes(const ModelCase& test, std::mt19937& random);

/// The same model at other sizes: its extents are numbers, and inputs repeat what they held. Not every one is valid.
[[nodiscard]] ModelCase at_sizes(const OpenCase& open, const NamedSizes& sizes);

}  // namespace sylvite::fuzz
