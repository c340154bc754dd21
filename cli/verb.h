#pragma once
// The verbs of the command: one row and one file each, verb_NAME.cpp.

#include <span>
#include <string>
#include <string_view>

namespace sylvite {

/// `arguments` are those after the verb. Returns the exit code; throws Error, whose code is then the exit
/// code.
using VerbFunction = int (*)(std::span<const std::string> arguments);

struct Verb {
  std::string_view name;
  VerbFunction run;
  std::string_view help;  ///< one line; empty hides the verb from the list
};
[[nodiscard]] std::span<const Verb> verb_table();

int verb_compile(std::span<const std::string> arguments);
int verb_run(std::span<const std::string> arguments);
int verb_bench(std::span<const std::string> arguments);
int verb_tune(std::span<const std::string> arguments);
int verb_sweep(std::span<const std::string> arguments);
int verb_explain(std::span<const std::string> arguments);
int verb_export(std::span<const std::string> arguments);
int verb_db(std::span<const std::string> arguments);
int verb_info(std::span<const std::string> arguments);
int verb_cache(std::span<const std::string> arguments);
int verb_lock(std::span<const std::string> arguments);
int verb_schedule(std::span<const std::string> arguments);
int verb_knobs(std::span<const std::string> arguments);
int verb_worker(std::span<const std::string> arguments);

}  // namespace sylvite
