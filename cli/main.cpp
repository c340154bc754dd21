#include <fmt/format.h>

#include <csignal>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/version.h"
#include "base/words.h"
#include "cli/output.h"
#include "cli/verb.h"

namespace sylvite {
namespace {

constexpr int signal_exit = 128;  // what a shell adds to a signal's number
constexpr int closed_pipe_exit = signal_exit + SIGPIPE;

std::string overview() {
  std::string text =
      "usage: sylvite VERB [OPTION ...]\n"
      "Compiles ONNX models for the machine at hand, and remembers the fastest schedules it measured.\n\n";
  for (const Verb& verb : verb_table())
    if (!verb.help.empty()) text += fmt::format("  {:<9}{}\n", verb.name, verb.help);
  return text + "\nsylvite VERB --help explains a verb; sylvite --version prints the version.\n";
}

int run_verb(const std::vector<std::string>& words) {
  if (words.empty()) throw UsageError("a verb is missing; see sylvite --help");
  const std::string& name = words.front();
  if (name == "--help" || name == "-h" || name == "help") return print("{}", overview()), 0;
  if (name == "--version") return print("sylvite {}\n", version), 0;
  std::vector<std::string_view> names;
  for (const Verb& verb : verb_table()) {
    if (verb.name == name) return verb.run(std::span(words).subspan(1));
    if (!verb.help.empty()) names.push_back(verb.name);
  }
  throw UsageError("unknown verb '{}'{} (sylvite --help lists all)", name, suggestion(name, names));
}

int fail(ErrorCode code, std::string_view message) {
  print_error(fmt::format("sylvite: error: {}\n", printable(message)));
  return static_cast<int>(code);
}

int guarded_main(const std::vector<std::string>& words) {
  // A reader or a worker that goes away, or a file over its size limit, is an error code where it is written
  // to, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return run_verb(words);
  } catch (const ClosedPipe&) {
    return closed_pipe_exit;
  } catch (const Interrupted& interrupted) {
    return signal_exit + interrupted.signal;
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::io_failure, "out of memory");
  } catch (const std::exception& error) {
    return fail(ErrorCode::internal, fmt::format("{} (not expected here; please report)", error.what()));
  }
}

}  // namespace
}  // namespace sylvite

int main(int argc, char** argv) {
  sylvite::open_standard_descriptors();
  return sylvite::guarded_main({argv + 1, argv + argc});
}
