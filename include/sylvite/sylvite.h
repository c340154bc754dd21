#pragma once
// Sylvite's C++ interface: load a model, compile it, run it.
//
//   sylvite::CompileOptions options;
//   options.mode = "max-autotune";
//   auto model = sylvite::compile("resnet50.onnx", options);
//   auto outputs = model.run({image});
//
// Link with Sylvite::sylvite (find_package(Sylvite)).

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sylvite/device_tensor.h"
#include "sylvite/error.h"
#include "sylvite/graph.h"
#include "sylvite/host_value.h"
#include "sylvite/import.h"
#include "sylvite/tensor.h"

namespace sylvite {

struct CompileOptions {
  std::string mode = "default";            ///< default, reduce-overhead or max-autotune: a file in configs/
  std::vector<std::string> config_files;   ///< read after the mode's file; later wins
  std::map<std::string, std::string> set;  ///< knob name -> value; wins over files. See docs/knobs.md
  ImportOptions import;
  /// The `sylvite` command, whose worker processes compile and measure kernels. "" looks beside the running
  /// program or this library, and in bin/ next to that; without it kernels are compiled one by one in this
  /// process, with a warning, and nothing is measured.
  std::string worker_command;
};

/// Counts and times of one compilation, and of nothing else; where sizes are open, of those that runs asked for, too.
/// See "The report of --json" in docs/formats.md.
struct CompileReport {
  int programs =
      1;  ///< made: one for each combination of sizes that was met, and again when it had been forgotten
  int sizes = 1;        ///< combinations of sizes that were met
  int specialized = 0;  ///< of them, those that got kernels for them alone (compile.specialize)
  int kernels = 0;      ///< launches in the program
  int unique_kernels = 0;
  int trials = 0;             ///< measurements made now
  int compiled = 0;           ///< objects compiled now, trials included
  int loaded_from_cache = 0;  ///< objects found in the object cache
  double import_seconds = 0;
  double compile_seconds = 0;
  double tune_seconds = 0;
  double ready_seconds = 0;  ///< from the call until the program could run, weight reading excluded
  /// From the call until a run could start, and the first run, which was evaluated (compile.first_answer = fast); 0 where
  /// programs answered from the first run on.
  double first_answer_seconds = 0;
  double weights_seconds = 0;  ///< reading and packing weights
  std::int64_t peak_bytes = 0;
  std::int64_t sum_of_values_bytes = 0;
  std::vector<std::string> warnings;
};

/// A model ready to run. Movable; for one thread at a time: a run while another thread's goes on throws UsageError. A
/// child made by fork has none of the worker threads: models run there too, with one thread. Where the model's sizes
/// are ranges (CompileOptions::import), a run at a combination of sizes that was not met before imports the model and
/// compiles what is missing; compile() does so for the sizes to be fast at. Runs throw InputError for sizes out of
/// range.
class CompiledModel {
 public:
  CompiledModel(CompiledModel&&) noexcept;
  CompiledModel& operator=(CompiledModel&&) noexcept;
  ~CompiledModel();

  /// For models whose inputs and outputs are tensors of numbers; throws InputError for others.
  [[nodiscard]] std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  /// For models compiled for a GPU (compile.device=cuda): reads and writes the caller's device memory,
  /// without a copy, and queues the work on `stream` (a CUstream or cudaStream_t; null is the default stream)
  /// without waiting for it. The memory must stay until the work is done. Runs of one model must be ordered
  /// among themselves: on one stream, or by events. Throws InputError for tensors of another type, UsageError
  /// for a model on the CPU, UnsupportedError for one with host steps.
  void run_on_device(const std::vector<DeviceTensor>& inputs, const std::vector<DeviceTensor>& outputs,
                     void* stream = nullptr);
  /// For every model: strings, sequences and optionals too.
  [[nodiscard]] std::vector<HostValue> run_values(const std::vector<HostValue>& inputs);
  // Values that stay between runs (ImportOptions::states, Graph::states). They are zero at first. A run that throws once
  // it has begun to compute may have changed them.

  [[nodiscard]] std::vector<std::string> state_names() const;
  /// A copy of the value that the next run finds. Throws UsageError for a name that is no state's.
  [[nodiscard]] Tensor state(const std::string& name) const;
  /// Throws UsageError for a name that is no state's, InputError for a tensor of another type.
  void set_state(const std::string& name, const Tensor& value);
  void reset_state();  ///< all to zero
  /// All to a file, and back. Reading throws IoError for a file that is damaged or no such file, InputError for the
  /// states of another model; then nothing has changed.
  void save_state(const std::string& path) const;
  void load_state(const std::string& path);
  /// What is not compiled but run by the importer at every run. Empty for most models.
  [[nodiscard]] std::vector<HostStep> host_steps() const;
  /// So far: counts and times of compiling are there once it is ready.
  [[nodiscard]] const CompileReport& report() const;
  [[nodiscard]] std::vector<std::string> input_names() const;
  [[nodiscard]] std::vector<std::string> output_names() const;
  /// Throws UnsupportedError when a type is not known before the run: where sizes are ranges, or with host steps.
  [[nodiscard]] std::vector<TensorType> input_types() const;
  /// The same.
  [[nodiscard]] std::vector<TensorType> output_types() const;

  /// With compile.first_answer = fast runs are evaluated until the program is ready, which the next run takes from then on.
  /// True also where compiling failed: the next run throws why.
  [[nodiscard]] bool is_ready() const;
  void wait();  ///< until it is ready; throws what compiling throws

  struct Rep;  ///< for the command line, which shows more than this interface; see runtime/session.h
  explicit CompiledModel(std::unique_ptr<Rep> rep);
  [[nodiscard]] Rep& rep() { return *rep_; }

 private:
  std::unique_ptr<Rep> rep_;
};

/// Throws Error: see sylvite/error.h for the kinds.
[[nodiscard]] CompiledModel compile(const std::string& onnx_path, const CompileOptions& options = {});
/// The same for a graph built in C++ (sylvite/graph.h); options.import is not used.
[[nodiscard]] CompiledModel compile(Graph graph, const CompileOptions& options = {});

}  // namespace sylvite
