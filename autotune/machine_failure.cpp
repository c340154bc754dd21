#include "autotune/machine_failure.h"

#include <algorithm>
#include <array>

namespace sylvite {

namespace {

struct MachineFailure {
  std::string_view text;    ///< stands in the message
  std::string_view advice;  ///< what to do about it
};

constexpr std::string_view free_memory = "free some memory, or lower tune.compile_jobs";
constexpr std::string_view free_disk = "make room on the disk";
constexpr std::string_view find_killer = "see who kills it; the system log tells when memory ran out";

/// Texts of the system, the C++ library and LLVM.
constexpr std::array<MachineFailure, 19> machine_failures = {{
    {"No space left on device", free_disk},
    {"Disk quota exceeded", free_disk},
    {"Read-only file system", "make the folder writable"},
    {"Input/output error", "check the disk"},
    {"File too large", "raise the limit of file sizes (ulimit -f)"},
    {"Too many open files", "raise the limit of open files (ulimit -n)"},
    {"Resource temporarily unavailable", "raise the limit of processes (ulimit -u)"},
    {"IO failure on output stream", free_disk},
    {"temp_directory_path", "set TMPDIR to a writable folder"},
    {"cannot make a temporary file", "set TMPDIR to a writable folder"},
    {"Cannot allocate memory", free_memory},
    {"bad_alloc", free_memory},
    {"ut of memory", free_memory},
    {"OUT_OF_MEMORY", free_memory},
    {"killed by signal 9 ", find_killer},
    {"killed by signal 15 ", find_killer},
    {"killed by signal 1 ", find_killer},
    {"killed by signal 2 ", find_killer},
    {"paused from outside", "see who stops it"},
}};

const MachineFailure* find_machine_failure(std::string_view message) {
  const auto* found = std::ranges::find_if(machine_failures, [&](const MachineFailure& failure) {
    return message.find(failure.text) != std::string_view::npos;
  });
  return found == machine_failures.end() ? nullptr : found;
}

}  // namespace

bool is_machine_failure(std::string_view message) {
  return find_machine_failure(message) != nullptr;
}

bool is_lack_of_memory(std::string_view message) {
  const MachineFailure* failure = find_machine_failure(message);
  return failure != nullptr && failure->advice == free_memory;
}

std::string with_advice(const std::string& message) {
  const MachineFailure* failure = find_machine_failure(message);
  return failure == nullptr ? message : message + "; " + std::string(failure->advice);
}

}  // namespace sylvite
