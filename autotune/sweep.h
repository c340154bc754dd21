#pragma once
// A sweep: models x modes x precisions x threads from an INI file, each tuned with a budget; what is done is
// remembered, so that a sweep that was killed goes on where it stopped.
//
//   [sweep]
//   models = resnet50.onnx, bert.onnx     relative to the file
//   modes = max-autotune                  default: max-autotune
//   precisions = f32                      default: f32
//   threads = 1, 2                        default: 0, all cores
//   budget = 60s                          of each item; default: what the mode says
//   name = nightly                        default: the file's name without its ending
//   [import]
//   random_weights = 1                    any knob, for every item

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/database.h"
#include "base/error.h"

namespace sylvite {

/// One compilation. `settings` are knobs: what the item stands for, and those of the file.
struct SweepItem {
  std::string model;  ///< path
  std::map<std::string, std::string> settings;

  /// "model mode=... precision=... threads=... budget=... key=value...": what the database knows it by.
  [[nodiscard]] std::string to_string() const;
};

struct SweepPlan {
  std::string name;
  std::vector<SweepItem> items;  ///< no two equal
};

/// Throws IoError when the file cannot be read, UsageError naming the key for an unknown key (with the
/// nearest known one), a wrong value, or a missing `models`.
[[nodiscard]] SweepPlan read_sweep(const std::string& path);
/// The same from text; model paths are relative to `folder`.
[[nodiscard]] SweepPlan parse_sweep(std::string_view text, const std::string& name,
                                    const std::string& folder);

enum class SweepState { pending, running, done, failed, stopped };
[[nodiscard]] std::string_view sweep_state_name(SweepState state);

struct SweepStatus {
  SweepState state = SweepState::pending;  ///< stopped: stored as running, by a process that is gone
  std::string message;                     ///< why it failed, or who runs it
  double seconds = 0;
};
/// What the database knows of each item, in plan order.
[[nodiscard]] std::vector<SweepStatus> sweep_status(const SweepPlan& plan, const Database& database);
/// Forgets the states of a sweep's items (not their trials).
void reset_sweep(const SweepPlan& plan, Database& database);

struct SweepReport {
  int done = 0;     ///< in this run
  int skipped = 0;  ///< done before
  int failed = 0;
  int elsewhere = 0;                ///< another process runs them, or failed at them meanwhile
  ErrorCode code = ErrorCode::ok;   ///< of the first item that failed
  std::vector<std::string> errors;  ///< "item: message"
};

/// Runs every item that is not done, in order; one that throws is stored as failed, and the next one runs.
/// Failed items are tried again by the next run. Items are claimed: processes of one machine that run the same sweep at
/// the same time share its items.
SweepReport run_sweep(const SweepPlan& plan, Database& database,
                      const std::function<void(std::size_t index, const SweepItem&)>& run_item);

}  // namespace sylvite
