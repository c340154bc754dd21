#pragma once
// Models whose sizes are open, run at five combinations of sizes one after another, each beside an import at these sizes.

#include <string>
#include <string_view>

#include "tests/fuzz/engines.h"

namespace sylvite::fuzz {

/// What checks a case by more than one run of its graph; see Engine.
struct SizeCheck {
  std::string_view name;
  /// "" when the answers at all sizes are right, and for a model that has no size to open; else the first difference. `notes`
  /// counts combinations that were compared.
  std::string (*run)(const ModelCase& test, const EngineOptions& options, EngineNotes& notes);
};

/// nullptr for another name.
[[nodiscard]] const SizeCheck* find_size_check(std::string_view name);

}  // namespace sylvite::fuzz
