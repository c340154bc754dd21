#pragma once
// Verbs that consist of actions: sylvite db top, sylvite cache prune.

#include <span>
#include <string>
#include <string_view>

namespace sylvite {

struct Action {
  std::string_view name;
  int (*run)(std::span<const std::string> arguments);  ///< of the words behind the action
  std::string_view help;                               ///< one line
};

/// Runs the action that the first argument names, or prints the verb's help. Throws UsageError, with the nearest name, for
/// another one, and where it is missing.
[[nodiscard]] int run_action(std::string_view verb, std::string_view intro, std::span<const Action> actions,
                             std::span<const std::string> arguments);

}  // namespace sylvite
