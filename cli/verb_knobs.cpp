#include "base/knobs.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/verb.h"

namespace sylvite {

int verb_knobs(std::span<const std::string> arguments) {
  Options options("knobs", "Prints the table of knobs as Markdown: docs/knobs.md.");
  if (!options.parse(arguments)) return 0;
  print("{}", knobs_markdown());
  return 0;
}

}  // namespace sylvite
