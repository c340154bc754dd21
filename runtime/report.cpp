#include "runtime/report.h"

#include <algorithm>

namespace sylvite {

void warn(CompileReport& report, const std::string& message) {
  const bool is_known = std::ranges::find(report.warnings, message) != report.warnings.end();
  if (!message.empty() && !is_known) report.warnings.push_back(message);
}

}  // namespace sylvite
