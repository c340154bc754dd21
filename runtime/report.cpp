#include "runtime/report.h"

#include <algorithm>

namespace sylvite {

void add_report(CompileReport& total, const CompileReport& more) {
  total.trials += more.trials;
  total.compiled += more.compiled;
  total.loaded_from_cache += more.loaded_from_cache;
  total.import_seconds += more.import_seconds;
  total.compile_seconds += more.compile_seconds;
  total.tune_seconds += more.tune_seconds;
  total.ready_seconds += more.ready_seconds;
  total.weights_seconds += more.weights_seconds;
  total.first_answer_seconds = std::max(total.first_answer_seconds, more.first_answer_seconds);
  for (const std::string& warning : more.warnings) warn(total, warning);
}

void warn(CompileReport& report, const std::string& message) {
  const bool is_known = std::ranges::find(report.warnings, message) != report.warnings.end();
  if (!message.empty() && !is_known) report.warnings.push_back(message);
}

}  // namespace sylvite
