#include "cli/actions.h"

#include <fmt/ranges.h>

#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/output.h"

namespace sylvite {

int run_action(std::string_view verb, std::string_view intro, std::span<const Action> actions,
               std::span<const std::string> arguments) {
  std::vector<std::string_view> names;
  std::string text = fmt::format("usage: sylvite {} ACTION [OPTION ...]\n{}\n\n", verb, intro);
  for (const Action& action : actions) {
    if (!arguments.empty() && action.name == arguments.front()) return action.run(arguments.subspan(1));
    names.push_back(action.name);
    text += fmt::format("  {:<8}{}\n", action.name, action.help);
  }
  if (arguments.empty())
    throw UsageError("an action is missing: {}; see sylvite {} --help", fmt::join(names, ", "), verb);
  if (arguments.front() != "--help" && arguments.front() != "-h") {
    throw UsageError("sylvite {} {}: unknown{}; expected one of {}", verb, arguments.front(),
                     suggestion(arguments.front(), names), fmt::join(names, ", "));
  }
  print("{}\nsylvite {} ACTION --help explains an action.\n", text, verb);
  return 0;
}

}  // namespace sylvite
