#pragma once
// What operators of other domains have and this importer does not serve is refused by name.

#include <initializer_list>
#include <string>

#include "frontend/onnx/import_context.h"

namespace sylvite {

/// Throws UnsupportedError for each of these integer attributes that is given and is not 0.
void refuse_attributes(ImportContext& c, std::initializer_list<std::string> names);
/// Throws UnsupportedError when input i is given. `name`: what the operator calls it.
void refuse_input(ImportContext& c, int i, const std::string& name);

}  // namespace sylvite
