#pragma once
// The ways to run a model that must all give what the interpreter gives.

#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "runtime/session.h"
#include "schedules/space.h"
#include "tests/fuzz/expectation.h"
#include "tests/fuzz/model_grower.h"
#include "tests/support/isolated.h"

namespace sylvite::fuzz {

struct EngineOptions {
  std::string cache_folder;  ///< of compiled kernels
  unsigned seed = 0;         ///< what random candidates are drawn from
  std::string budget;        ///< of max-autotune for a model, such as 2s
};

struct EngineNotes {
  std::string text;  ///< what helps to understand a difference, such as the schedules drawn
  int trials = 0;    ///< candidates measured
};

struct Engine {
  std::string_view name;
  std::vector<Tensor> (*run)(const Graph& graph, const std::vector<Tensor>& inputs,
                             const EngineOptions& options, EngineNotes& notes);  ///< outputs of the graph
};
/// For a GPU that need not be there: what is made with it can be planned and interpreted, not run.
[[nodiscard]] std::shared_ptr<const Setup> setup_without_card(CompileOptions options);

/// Passes for a GPU that put zeros into filters, by which what is not finite becomes NaN.
constexpr std::string_view passes_with_zeros = "join_groups,join_pixels,widen_channels,widen_few_channels";

[[nodiscard]] std::span<const Engine> engine_table();
[[nodiscard]] const Engine& find_engine(std::string_view name);  ///< throws UsageError

/// "agrees", with the number of candidates that max-autotune measured; "differs" or "throws", with the engine
/// and the reason.
[[nodiscard]] Outcome check_case(const ModelCase& test, const std::vector<std::string>& engines,
                                 const EngineOptions& options);

/// A random point of a random space that takes the kernel; the heuristic one when many draws are illegal.
[[nodiscard]] Candidate random_candidate(const Kernel& kernel, const Machine& machine, std::mt19937& random);

}  // namespace sylvite::fuzz
