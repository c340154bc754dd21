#pragma once
// Trials and winners in SQLite: one file shared by concurrent processes. Schema in docs/database.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lowering/kernel.h"
#include "schedules/candidate.h"

namespace sylvite {

/// How a trial ended. Names are persistent.
enum class Verdict { ok, compile_error, compile_timeout, run_crash, run_timeout, wrong_result, noisy };
[[nodiscard]] std::string_view verdict_name(Verdict verdict);

/// Everything besides the kernel's text that can change which candidate wins.
struct TuningKey {
  std::string target;   ///< Halide target
  std::string machine;  ///< CPU name or GPU and driver
  int threads = 1;
  std::string versions;   ///< Halide and template versions
  std::string precision;  ///< f32, bf16, ...
  [[nodiscard]] std::string to_string() const;
};
[[nodiscard]] TuningKey tuning_key(const Machine& machine, const std::string& precision);

/// What happened to a candidate on real hardware. Every trial is stored, failures too.
struct Trial {
  std::string kernel_id;
  Candidate candidate;
  Verdict verdict = Verdict::ok;
  std::vector<double> samples_us;  ///< microseconds per call
  double median_us = 0;
  double error = 0;      ///< max |a-b| / (atol + rtol*|b|) against the reference schedule; <= 1 passes
  std::string message;   ///< compiler or crash message
  double compile_seconds = 0;
};

struct Winner {
  Candidate candidate;
  double median_us = 0;
  double error = 0;
  std::string origin;  ///< heuristic, search, pinned
};

/// Thread safety: one Database per thread; any number of processes. Never carried across fork.
/// A file that is corrupt, of another schema, or read-only never throws from the constructor: the database opens
/// empty in memory and `warning()` says why. A corrupt file is set aside as FILE.corrupt-N, not deleted.
class Database {
 public:
  explicit Database(const std::string& path);  ///< "" for memory only
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  [[nodiscard]] const std::string& warning() const;
  void record_trial(const Kernel& kernel, const TuningKey& key, const Trial& trial);
  void record_winner(const Kernel& kernel, const TuningKey& key, const Winner& winner);
  [[nodiscard]] std::optional<Winner> find_winner(const Kernel& kernel, const TuningKey& key) const;
  [[nodiscard]] std::vector<Trial> trials(const Kernel& kernel, const TuningKey& key) const;
  /// Why find_winner found nothing: the nearest record and the key fields that differ; "" when no record is near.
  [[nodiscard]] std::string explain_miss(const Kernel& kernel, const TuningKey& key) const;
  [[nodiscard]] std::int64_t trial_count() const;

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sylvite
