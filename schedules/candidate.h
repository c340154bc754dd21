#pragma once
// Candidates: the ordered choices for a kernel. First is the heuristic default, last the reference.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/algorithms/form.h"
#include "lowering/plan/kernel.h"
#include "schedules/schedule.h"

namespace sylvite {

/// What can be measured, stored, replayed and edited by hand. Text: "form: ..." on the first line, then the
/// schedule.
struct Candidate {
  Form form;
  Schedule schedule;

  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] static Candidate parse(std::string_view text);
  bool operator==(const Candidate&) const = default;
};

/// A GPU that kernels run on, as its driver describes it.
struct Gpu {
  std::string name;     ///< e.g. NVIDIA H200
  int capability = 80;  ///< 10 * major + minor
  int driver = 0;       ///< CUDA version of the driver, e.g. 13000
  int multiprocessors = 1;
  std::int64_t shared_bytes = 48 << 10;  ///< shared memory of one block, at most
  std::int64_t l2_bytes = 1 << 20;
  std::int64_t cublaslt =
      0;                   ///< version of cuBLASLt when it may be used, e.g. 130100; knob schedules.cublaslt
  std::int64_t cudnn = 0;  ///< the same of cuDNN, e.g. 91900; knob schedules.cudnn
};

/// The machine a schedule is made for. Read once by detect_machine; part of the tuning key.
struct Machine {
  std::string target;      ///< Halide target string, e.g. x86-64-linux-avx-avx2-...
  int vector_floats = 16;  ///< f32 lanes of a vector register
  int vector_registers = 32;
  bool bf16_products = false;  ///< the processor adds products of bf16 pairs to f32 (AVX512_BF16)
  bool amx = false;            ///< ... or in tiles (AMX), which the system lets this process use
  int threads = 1;             ///< threads a program will run with
  bool winograd = true;        ///< convolutions may be Winograd's; knob schedules.winograd
  bool tf32 = false;           ///< products of f32 may be made in TF32; knob compile.precision
  std::int64_t l1_bytes = 32 << 10;
  std::int64_t l2_bytes = 1 << 20;
  std::string cpu_name;
  std::optional<Gpu> gpu;  ///< where kernels run; absent: on the CPU

  [[nodiscard]] std::string description() const;  ///< of what runs the kernels: part of the tuning key
};
[[nodiscard]] Machine detect_machine(int threads);  ///< the CPU
/// The same host with kernels on the GPU. Throws UnsupportedError for a GPU older than capability 8.0.
[[nodiscard]] Machine with_gpu(Machine machine, const Gpu& gpu);
/// Whether kernels of a Machine::target run on a GPU.
[[nodiscard]] bool is_gpu_target(const std::string& target);

/// The processor of a target adds products of bf16 pairs to f32 and rounds to bf16 (AVX512_BF16).
[[nodiscard]] bool has_bf16_instructions(const std::string& target);

/// The processor of a target multiplies tiles of bf16 (AMX). detect_machine leaves it out of the target where
/// the system does not let programs use it.
[[nodiscard]] bool has_amx(const std::string& target);

/// A space refused for a kernel, and the reason, for `explain`.
struct Refusal {
  std::string space;
  std::string reason;
};

/// One tunable number or choice of a space, with its values in the order to try.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> values;
};
using Point = std::map<std::string, std::int64_t>;

/// A schedule space: which kernels it takes, its parameters, and the candidate at each point. Spaces are rows
/// of a table (space_table), best first, the reference last; no class hierarchy.
struct Space {
  std::string name;
  /// Empty when the space takes the kernel, else why not.
  std::string (*refuses)(const Kernel&, const Machine&);
  std::vector<Parameter> (*parameters)(const Kernel&, const Machine&);
  /// The no-measurement choice: good enough for default mode.
  Point (*heuristic)(const Kernel&, const Machine&);
  /// REQUIRES refuses() empty. Throws UnsupportedError for a point that makes no legal schedule.
  Candidate (*at)(const Kernel&, const Machine&, const Point&);
  /// Estimated run time in seconds at a point, for ranking only. May be nullptr.
  double (*cost)(const Kernel&, const Machine&, const Point&);
};

[[nodiscard]] const std::vector<Space>& space_table();      ///< for the CPU
[[nodiscard]] const std::vector<Space>& gpu_space_table();  ///< for machines with a GPU

/// The first space that takes the kernel, at its heuristic point: what default mode runs.
[[nodiscard]] Candidate default_candidate(const Kernel& kernel, const Machine& machine);
/// The plain schedule: generic form, stages with updates at root, no vectors, no threads. Always legal; the
/// oracle of every trial.
[[nodiscard]] Candidate reference_candidate(const Kernel& kernel);
/// The same on the GPU, if the machine has one: a thread per element.
[[nodiscard]] Candidate reference_candidate(const Kernel& kernel, const Machine& machine);
/// Spaces that take the kernel, in table order; `refusals`, if given, gets the others.
[[nodiscard]] std::vector<const Space*> spaces_for(const Kernel& kernel, const Machine& machine,
                                                   std::vector<Refusal>* refusals = nullptr);

}  // namespace sylvite
