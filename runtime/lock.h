#pragma once
// A lock: what every kernel of a model runs, in a file for version control. Compiled with one (knob compile.frozen),
// a model is the same everywhere, whatever the database holds. The format is described in docs/formats.md.

#include <map>
#include <string>

#include "runtime/schedule_text.h"
#include "runtime/session.h"

namespace sylvite {

struct Lock {
  std::string path;  ///< of the file it was read from
  TuningKey key;
  std::string mode;  ///< for people, like key.machine: these two may differ where it is used
  std::string code;  ///< code_id of what made it
  std::map<std::string, KernelSchedule> kernels;  ///< by id
};

/// One without kernels, for what is compiled with the setup.
[[nodiscard]] Lock begin_lock(const Setup& setup);
/// What the kernels of the plan run; those that are known already stay as they are.
void add_kernels(Lock& lock, const Plan& plan, const std::vector<Choice>& choices);

/// The same text for the same choices, sorted by kernel.
[[nodiscard]] std::string to_text(const Lock& lock);

/// Throws IoError when the file cannot be read, UsageError when it is no whole lock of this format.
[[nodiscard]] Lock read_lock(const std::string& path);

/// Throws UsageError when the lock was made for another target, number of threads, precision, or other code.
void check_lock(const Lock& lock, const Setup& setup);

/// What the lock says for each kernel of the plan. Throws UsageError that names the first one that it lacks. REQUIRES
/// imported.setup->lock.
[[nodiscard]] Chosen choose_locked(const Imported& imported);

/// Throws UsageError when the setup has a lock: `what` measures, or reads or stores winners.
void refuse_lock(const Setup& setup, std::string_view what);

}  // namespace sylvite
