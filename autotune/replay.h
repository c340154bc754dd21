#pragma once
// Stored winners, timed again: after an upgrade of Halide, of a driver or of the system, which of them moved?

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/database.h"
#include "autotune/evaluator.h"

namespace sylvite {

/// A winner that was measured when it was stored.
struct ReplayTask {
  Kernel kernel;
  TuningKey stored_key;  ///< the key to replay under, or one of other versions
  Winner winner;
  std::vector<double> stored_us;  ///< samples of its trial; may be empty
};

/// The winners of this machine, threads and precision, of kernels whose id begins with `kernel_prefix`: those under `key`
/// itself, and where there is none the one stored last under other versions. Winners without a time are left out, and
/// kernels that this version writes otherwise. Throws SqliteError.
[[nodiscard]] std::vector<ReplayTask> replay_tasks(const Database& database, const TuningKey& key,
                                                   const std::string& kernel_prefix = "");
/// The keys that winners are stored under.
[[nodiscard]] std::vector<TuningKey> winner_keys(const Database& database);

/// What became of a winner. Names are persistent.
enum class Movement {
  held,     ///< within the noise of both measurements
  faster,   ///< beyond it
  slower,   ///< beyond it
  beaten,   ///< clearly slower than the default schedule, side by side
  failed,   ///< does not compile or run any more, or is wrong
  unknown,  ///< the machine failed
};
[[nodiscard]] std::string_view movement_name(Movement movement);

struct Replayed {
  std::string kernel_id;
  Movement movement = Movement::unknown;
  double ratio = 0;  ///< time now over the stored one; 0 without a time now
  double machine_ratio =
      1;            ///< what all winners have in common of it: the machine is busy, or slower than then
  double band = 0;  ///< what ratio / machine_ratio may differ from 1 by without meaning anything
  double default_ratio =
      0;  ///< time of the default schedule over the winner's; 0 when it is the winner, or has none
  std::string message;            ///< why, of what failed or is unknown
  std::optional<Trial> winner;    ///< measured now
  std::optional<Trial> fallback;  ///< the default schedule, likewise
};

struct ReplayOptions {
  int compile_jobs = 2;
  double compile_timeout = 30;  ///< seconds for one candidate
};

/// Each winner beside the default schedule, in several rounds over all of them, so that a busy minute does not pass for a
/// change; the round that went fastest counts. What all have in common is taken for the machine's. `progress` is called with
/// the share that is done. What an interruption leaves out is unknown. Stores nothing.
[[nodiscard]] std::vector<Replayed> replay(const std::vector<ReplayTask>& tasks, const Machine& machine,
                                           const ReplayOptions& options, Evaluator& evaluator,
                                           const std::function<void(double)>& progress = {});

/// Stores what was found under `key`: times and verdicts in place of those that are there, and default schedules as winners
/// where they beat the stored one, or that failed. A winner of other versions, and a default schedule, is searched again when
/// the kernel is tuned next.
void store_replay(const std::vector<ReplayTask>& tasks, const std::vector<Replayed>& results,
                  const TuningKey& key, Database& database);

}  // namespace sylvite
