#pragma once
// What happens to a model's bytes before anything is compiled, for bytes that nobody vouches for.

#include <string>
#include <string_view>

namespace sylvite::fuzz {

/// Import, passes and lowering to a plan; a tiny model is also run by both interpreters. Returns "" or why
/// the model was refused. What a model can do wrong never throws; InternalError and everything else that is
/// thrown is a bug of ours.
[[nodiscard]] std::string try_model(std::string_view bytes);

}  // namespace sylvite::fuzz
