#pragma once
// A Program: loaded kernels, packed weights, an arena, and the launches in order.

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "lowering/plan/plan.h"
#include "runtime/bindings.h"
#include "runtime/cuda/device_program.h"
#include "runtime/overwrite.h"
#include "runtime/profile.h"
#include "runtime/threads.h"
#include "schedules/candidate.h"

namespace sylvite {

/// One kernel of a plan, ready to be loaded.
struct CompiledKernel {
  Candidate candidate;  ///< says how the kernel wants its weights packed
  std::string symbol;   ///< see symbol_name
  std::string object;   ///< see compile_to_object; may be empty where a relative has loaded it
};

/// A kernel reported an error: a schedule whose bounds do not hold, or memory that ran out.
class KernelError : public InternalError {
 public:
  KernelError(std::size_t kernel, const std::string& message) : InternalError(message), kernel_(kernel) {}
  [[nodiscard]] std::size_t kernel() const { return kernel_; }  ///< index into Plan::kernels

 private:
  std::size_t kernel_;
};

/// How a program runs.
struct ProgramOptions {
  int threads = 1;
  double spin_seconds = default_spin_seconds;  ///< how idle time of threads is spent: see with_workers
  bool on_device = false;                      ///< its kernels were compiled for the GPU
  bool use_graph = false;                      ///< on the device: replay runs as one CUDA graph
  std::size_t streams = 1;                     ///< of the graph, at most; see DeviceProgram
};

class Program;
struct ProgramCode;

/// Compiled kernels by symbol.
using Objects = std::unordered_map<std::string, std::string>;

/// Programs that have weights in common with a new one; they must live while it is made.
struct Relatives {
  std::vector<const Program*> programs;
  /// They never run at the same time: the new one also shares the memory of intermediate values, and their states.
  bool take_turns = false;
  /// The new one also shares the kernels that they have loaded, of which it needs no objects.
  bool share_code = true;
  const Objects* ahead = nullptr;  ///< what was compiled before a program needs it
};

/// What a program launches on the device, as data.
struct DeviceNotes {
  std::vector<NotedLaunches> launches;  ///< per launch of the plan
  std::size_t scratch_bytes = 0;
};

/// Owns everything needed to run. Thread safety: one thread at a time; a run while another thread's goes on throws
/// UsageError and does nothing. Different programs are independent. Movable.
class Program {
 public:
  /// `kernels[i]` implements plan->kernels[i]; the plan is shared. Links the objects, packs the weights, allocates
  /// the arena.
  /// Weights that `relatives` have in the same packing are not packed again.
  /// Throws IoError when an object does not load. Touches no device.
  Program(std::shared_ptr<const Plan> plan, const std::vector<CompiledKernel>& kernels,
          const ProgramOptions& options, const Relatives& relatives = {});
  /// One of that code at other sizes, on the CPU: `bindings`, with weights packed, say what these change, and `make_plan` what
  /// `plan` is to be. States are those of `relatives`, which must have some where the plan has.
  Program(std::shared_ptr<const ProgramCode> code, Bindings bindings,
          std::function<std::shared_ptr<const Plan>()> make_plan, const Relatives& relatives);
  /// It is one at other sizes from now on: `change` is given its bindings, of which it changes numbers and weights of its own, as
  /// ProgramNumbers does, and `make_plan` is as above. Where `change` returns false or throws, the program is not to be run again.
  /// REQUIRES a program made from code, on the CPU, without loops.
  [[nodiscard]] bool rebind(const std::function<bool(Bindings&)>& change,
                            std::function<std::shared_ptr<const Plan>()> make_plan);
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;

  /// On a device: uploads the weights, which else the first run does. Throws CudaError when memory runs out.
  void upload_weights();
  /// On a device: the same, and loads the kernels, which check their bounds then. Throws as `run` for a kernel that
  /// reports an error.
  void prepare();

  /// Inputs and results in graph order. Inputs that are 64-byte aligned are read in place. Results may share
  /// bytes with inputs or weights where the graph returns those. Throws InputError naming the input whose
  /// dtype or shape differs, KernelError when a kernel reports an error. `profile`, if given, gets one
  /// entry per launch.
  [[nodiscard]] std::vector<Tensor> run(const std::vector<Tensor>& inputs,
                                        std::vector<LaunchTime>* profile = nullptr);
  /// The same on the CPU into memory of the caller: `places` has an address for each result, nullptr for those that get
  /// memory as in a run. `results` gets these, and tensors without elements for the others. REQUIRES of results with a place
  /// that they have own memory (see has_own_memory), and that it is 64-byte aligned; may_write_over where it is an input's, and
  /// that no other input shares it.
  void run_at(const std::vector<Tensor>& inputs, const std::vector<void*>& places,
              std::vector<Tensor>& results);
  /// See may_overwrite.
  [[nodiscard]] bool may_write_over(const Overwrite& places) const;

  /// Copies of the values that stay between runs, in the plan's order; zero before the first run. A run that throws
  /// KernelError may have changed them.
  [[nodiscard]] std::vector<Tensor> states() const;
  /// The first element of one of them, an integer of 64 bits.
  [[nodiscard]] std::int64_t state_integer(std::size_t number) const;
  /// Throws InputError naming the state whose type differs; then nothing has changed.
  void set_states(const std::vector<Tensor>& values);

  /// See DeviceProgram::run_on. Throws UsageError when the program is on the CPU.
  void run_on(cuda::StreamHandle stream, const DeviceArguments& arguments);
  /// See DeviceProgram::run_in_turns. Throws likewise.
  void run_in_turns(cuda::StreamHandle stream, const std::vector<cuda::DevicePointer>& inputs,
                    const RunMemory& memory);
  /// For DeviceArguments::work, or for RunMemory's; 0 on the CPU. Throws as `prepare`.
  [[nodiscard]] std::size_t work_bytes(bool in_turns = false);
  /// For the exporter; needs no device. REQUIRES ProgramOptions::on_device.
  [[nodiscard]] DeviceNotes device_notes();

  /// Microseconds on the device for one run without copies, the mean of `times` in a row on the inputs of the
  /// last run; 0 when the program is not on a device. REQUIRES a run.
  [[nodiscard]] double time_on_device(int times);

  /// Is the kernel of this name in the process, so that relatives need no object of it?
  [[nodiscard]] bool has_loaded(const std::string& symbol) const;
  [[nodiscard]] int threads() const;       ///< on the CPU
  [[nodiscard]] const Plan& plan() const;  ///< made by the first that asks
  /// That of the first program of the code: equal but for sizes, and for weights that are tables of them.
  [[nodiscard]] const Plan& plan_alike() const;
  [[nodiscard]] const std::shared_ptr<const ProgramCode>& code() const;
  [[nodiscard]] const Bindings& bindings() const;  ///< weights packed
  /// Of programs that take turns: weights as packed, states, and intermediate values and results of the run that has most; on a
  /// device, once weights are there, its memory for one run.
  [[nodiscard]] static std::int64_t peak_bytes(const std::vector<const Program*>& programs);
  [[nodiscard]] double weights_seconds()
      const;  ///< time spent packing weights, and bringing them to a device

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sylvite
