#pragma once
// Attributes as text, as graph_text writes them.

#include <string>

#include "sylvite/attributes.h"

namespace sylvite {

[[nodiscard]] std::string attribute_text(const Attribute& attribute);
/// e.g. axis=1, keep_dims=0; "" for none.
[[nodiscard]] std::string attributes_text(const Attributes& attributes);

}  // namespace sylvite
