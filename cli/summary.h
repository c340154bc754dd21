#pragma once
// A model on one screen: what was imported, where its time goes, how far that is from what the machine can do, and why
// each kernel runs what it runs.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/kernel_story.h"
#include "frontend/onnx/model_facts.h"
#include "runtime/machine_peaks.h"
#include "runtime/roofline.h"

namespace sylvite {

/// A kernel in its place in the model.
struct KernelUse {
  std::size_t kernel = 0;      ///< of the plan
  double each_us = 0;          ///< of a launch, the mean over its launches in a typical run
  std::optional<Bound> bound;  ///< nothing on a GPU
};

struct Summary {
  std::vector<KernelUse> uses;  ///< the one that takes most of the run first
  std::optional<MachinePeaks> peaks;
  double weight_rate = 0;  ///< read_rate of all weights
};

/// `times` of all launches of a run, as profile_program has them.
[[nodiscard]] Summary summarize(const Plan& plan, const std::vector<Choice>& choices,
                                const std::vector<LaunchTime>& times,
                                const std::optional<MachinePeaks>& peaks);

/// At most 45 lines.
[[nodiscard]] std::string summary_text(const Summary& summary, const OpenModel& model,
                                       const Imported& imported, const std::vector<Choice>& choices,
                                       const std::vector<KernelStory>& stories);

/// Adds `imported`, `run` and `peaks` to the report, and times and bounds to its `kernels`.
void add_summary(nlohmann::json& report, const Summary& summary, const OpenModel& model,
                 const Imported& imported, const std::vector<KernelStory>& stories);

}  // namespace sylvite
