#pragma once
// A session takes one model through the stages; each makes a value from the one before and leaves that as it is. The C++
// interface and every verb of the command are short programs over these functions:
//
//   const auto setup = make_setup(options);                  settings and machine, for any number of models
//   const Imported model = load_model("resnet50.onnx", setup);     import, passes, lowering
//   Chosen chosen = choose_candidates(model);                database or heuristic; measures in max-autotune
//   Built built = build_program(model, std::move(chosen));   objects from the cache or compiled; loads, packs
//   outputs = run_tensors(built, inputs);                    needs `built` alone

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/tuner.h"
#include "base/knobs.h"
#include "frontend/graph/pass_runner.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/model_facts.h"
#include "frontend/values/size_facts.h"
#include "lowering/plan/plan.h"
#include "runtime/program.h"
#include "runtime/setup.h"
#include "runtime/state_room.h"
#include "schedules/candidate.h"
#include "schedules/machine.h"
#include "sylvite/graph.h"
#include "sylvite/sylvite.h"

namespace sylvite {

class KernelMenu;
class MadeWeights;
class SymbolicPlans;
class Tails;
struct TorchFile;

/// A model's file, read; its sizes may be open. Copies share it.
struct OpenModel {
  std::shared_ptr<const Setup> setup;
  std::string path;
  ParsedModel parsed;                         ///< of an ONNX file
  double seconds = 0;                         ///< spent on reading it
  std::shared_ptr<KernelMenu> menu = {};      ///< kernels for many sizes; nullptr where each size has its own
  std::shared_ptr<SymbolicPlans> plans = {};  ///< likewise: plans at sizes that were met
  std::shared_ptr<MadeWeights> made = {};     ///< what imports made of weights; nullptr where there is one
  std::shared_ptr<const TorchFile> torch = {};  ///< instead, of a captured PyTorch graph
  ModelFacts facts = {};
  std::shared_ptr<Tails> tails =
      {};  ///< what runs behind steps on the host; nullptr where these are done one by one
};

/// A model as a plan of kernels. Copies share the plan and the weights.
struct Imported {
  std::shared_ptr<const Setup> setup;
  std::string path;                      ///< "" for a graph made in C++
  std::vector<std::string> symbols;      ///< names of open sizes; see ModelSizes
  Sizes sizes;                           ///< what they are here
  Graph graph;                           ///< as captured, before passes
  std::shared_ptr<const HostPart> host;  ///< what surrounds the graph; nullptr when it is the whole model
  std::optional<StateRoom> room;         ///< where states grow
  Graph transformed;                     ///< after passes
  std::vector<PassReport> passes;
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const Plan> for_sizes =
      {};                             ///< the plan with kernels for these sizes alone; nullptr: it is that
  SizeFacts facts = {};               ///< what the import decided by the sizes
  std::shared_ptr<Tails> tails = {};  ///< the model's
  CompileReport report;               ///< so far
};

/// `import` is completed by the import.* knobs. Throws what parse_model throws.
[[nodiscard]] OpenModel open_model(const std::string& onnx_path, const std::shared_ptr<const Setup>& setup,
                                   const ImportOptions& import = {});
/// The same of one that is parsed.
[[nodiscard]] OpenModel open_model(const ParsedModel& parsed, const std::shared_ptr<const Setup>& setup);
/// The model at these sizes: imported anew, with the same weights, and with kernels of the model's menu. Throws what import_onnx, run_passes and lower throw;
/// the message says at which sizes.
[[nodiscard]] Imported bind_sizes(const OpenModel& model, const Sizes& sizes);
/// The same of what plans at other sizes tell, without an import and without graphs; nullopt where they do not tell.
[[nodiscard]] std::optional<Imported> bind_known_sizes(const OpenModel& model, const Sizes& sizes);
/// Both, for the first size to be fast at of each symbol.
[[nodiscard]] Imported load_model(const std::string& onnx_path, const std::shared_ptr<const Setup>& setup,
                                  const ImportOptions& import = {});
/// The same for a graph made in C++.
[[nodiscard]] Imported load_graph(Graph graph, const std::shared_ptr<const Setup>& setup);

/// What the model takes and gives, in order, without states.
[[nodiscard]] std::vector<ModelPort> input_ports(const Imported& imported);
[[nodiscard]] std::vector<ModelPort> output_ports(const Imported& imported);

/// How a kernel's candidate was chosen. Names are shown by `explain`.
enum class Source {
  heuristic,  ///< the first space that takes the kernel; nothing measured
  database,   ///< a winner stored by an earlier run
  search,     ///< measured now
  reference,  ///< the plain schedule, because no other candidate compiled
  pinned,     ///< the stored winner, which a person pinned
  lock,       ///< what the lock says (runtime/lock.h); nothing takes its place
};
[[nodiscard]] std::string_view source_name(Source source);

/// What one kernel of the plan runs.
struct Choice {
  Candidate candidate;
  Source source = Source::heuristic;
  double median_us = 0;     ///< as measured when it won; 0 when never measured
  std::string why = {};     ///< one line for `explain`; may be empty
  std::string symbol = {};  ///< C symbol and object cache key
  std::string object = {};  ///< the compiled kernel, once known
};

/// What the kernels of a plan run.
struct Chosen {
  std::vector<Choice> choices;  ///< one per unique kernel, in plan order
  CompileReport report;         ///< so far
  bool has_untried = false;     ///< an object that no program has run yet was compiled ahead
};

/// How these settings let candidates be compiled, measured and searched.
[[nodiscard]] TuneOptions tune_options(const Setup& setup);

/// Stored winners first, heuristics for the rest. With tune.enabled, kernels without a winner are tuned within
/// tune.budget and the results stored. With a lock, what it says. A database that cannot be used is a warning.
[[nodiscard]] Chosen choose_candidates(const Imported& imported, const ProgressCallback& progress = {});
/// The settings for what is made while a model runs: nothing is measured.
[[nodiscard]] std::shared_ptr<const Setup> without_tuning(const std::shared_ptr<const Setup>& setup);
/// A Chooser of stored winners where there are any, else heuristics, with such settings.
[[nodiscard]] Chosen choose_known(const Imported& imported);
/// What `choose` says for each kernel.
[[nodiscard]] Chosen choose_each(const Imported& imported,
                                 const std::function<Choice(const Kernel&)>& choose);

/// A model ready to run. Thread safety: one thread at a time. Movable.
struct Built {
  std::shared_ptr<const Setup> setup;
  std::shared_ptr<const HostPart> host;                ///< as in Imported
  std::optional<StateRoom> room;                       ///< likewise
  std::shared_ptr<const std::vector<Choice>> choices;  ///< what runs: all have symbols and objects
  Program program;
  CompileReport report;
  std::shared_ptr<Tails> tails = {};  ///< as in Imported
};

/// Gets every kernel's object from the cache, compiling those missing in worker processes, and loads them. A
/// candidate that does not compile, or that reports an error in a first run on zeros, made only when something was
/// compiled, is replaced by the heuristic one, then by the reference, each with a warning. Throws CompileError
/// when even the reference does not compile, or one of a lock, and Stopped soon after `stop` asks for it.
[[nodiscard]] Built build_program(const Imported& imported, Chosen chosen, const Relatives& relatives = {},
                                  const std::stop_token& stop = {});

/// A model of tensors of numbers only, its graph run by `run_graph`, host steps with so many threads; throws InputError
/// for others. `host` may be nullptr.
[[nodiscard]] std::vector<Tensor> run_model_tensors(const HostPart* host, const std::vector<Tensor>& inputs,
                                                    const GraphRunner& run_graph, int threads,
                                                    const TailRunner& run_tail = {});
/// The same of any values.
[[nodiscard]] std::vector<HostValue> run_model_values(const HostPart* host,
                                                      const std::vector<HostValue>& inputs,
                                                      const GraphRunner& run_graph, int threads,
                                                      const TailRunner& run_tail = {});

/// One run of the whole model: the program, and the host steps if there are any.
[[nodiscard]] std::vector<HostValue> run_values(Built& built, const std::vector<HostValue>& inputs);
/// The same for a model that takes and gives tensors of numbers only; throws InputError for others.
[[nodiscard]] std::vector<Tensor> run_tensors(Built& built, const std::vector<Tensor>& inputs);

}  // namespace sylvite
