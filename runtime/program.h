#pragma once
// A Program: loaded kernels, packed weights, an arena, and the launches in order.

#include <memory>
#include <string>
#include <vector>

#include "lowering/plan.h"
#include "runtime/object_cache.h"
#include "schedules/candidate.h"

namespace sylvite {

/// Time of one launch in one run, for profiles.
struct LaunchTime {
  std::string name;
  std::string kernel_id;
  double start_us = 0;  ///< since the start of the run
  double duration_us = 0;
};

/// Owns everything needed to run. Thread safety: run() may be called from one thread at a time.
class Program {
 public:
  /// `objects[i]` is the object code of plan.kernels[i] compiled as candidates[i]; see compile_to_object.
  Program(Plan plan, const std::vector<Candidate>& candidates, const std::vector<std::string>& objects,
          const Machine& machine);
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;

  /// Inputs in graph order; throws InputError naming the input when dtype or shape differ.
  [[nodiscard]] std::vector<Tensor> run(const std::vector<Tensor>& inputs,
                                        std::vector<LaunchTime>* profile = nullptr);
  [[nodiscard]] const Plan& plan() const;
  [[nodiscard]] std::int64_t peak_bytes() const;  ///< arena plus weights

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sylvite
