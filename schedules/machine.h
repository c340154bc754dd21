#pragma once
// What schedules are made for: a processor, or a GPU beside it.

#include <cstdint>
#include <optional>
#include <string>

#include "schedules/card.h"

namespace sylvite {

/// What kernels of a GPU may be made with, beside its driver.
struct GpuTools {
  std::int64_t cublaslt = 0;     ///< version of cuBLASLt if it may be used; knob schedules.cublaslt
  std::int64_t cudnn = 0;        ///< the same of cuDNN, e.g. 91900; knob schedules.cudnn
  bool hopper = true;            ///< Hopper's own instructions may be used; knob schedules.hopper
  std::string missing_compiler;  ///< why CUDA C++ cannot be compiled; empty if it can
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
  std::optional<Card> gpu;  ///< where kernels run; absent: on the CPU
  GpuTools gpu_tools;       ///< nothing without a GPU

  [[nodiscard]] std::string description() const;  ///< of what runs the kernels: part of the tuning key
};
[[nodiscard]] Machine detect_machine(int threads);  ///< the CPU
/// The same host with kernels on the GPU. Throws UnsupportedError for a GPU older than capability 8.0.
[[nodiscard]] Machine with_gpu(Machine machine, const Card& card, const GpuTools& tools = {});
/// Whether kernels of a Machine::target run on a GPU; false for a text that is no target.
[[nodiscard]] bool is_gpu_target(const std::string& target);

/// The processor of a target adds products of bf16 pairs to f32 and rounds to bf16 (AVX512_BF16).
[[nodiscard]] bool has_bf16_instructions(const std::string& target);

/// The processor of a target multiplies tiles of bf16 (AMX). detect_machine leaves it out of the target where
/// the system does not let programs use it.
[[nodiscard]] bool has_amx(const std::string& target);

}  // namespace sylvite
