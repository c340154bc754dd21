#pragma once
// Machines of fixed make, whatever the host is and has; and the host with some of its make fixed.

#include <Halide.h>

#include <stdexcept>
#include <string>

#include "schedules/machine.h"
#include "tests/support/sample_card.h"

namespace sylvite {

/// avx2, avx512, amx; a100; h200 and, with cuBLASLt, cuDNN and TF32, h200_libraries.
inline Machine fixed_machine(const std::string& name) {
  Machine machine;
  machine.target = "x86-64-linux-avx-avx2-f16c-fma-sse41";
  machine.cpu_name = name;
  machine.vector_floats = 8;
  machine.vector_registers = 16;
  if (name == "avx2") return machine;
  machine.target += "-avx512-avx512_skylake";
  machine.vector_floats = 16;
  machine.vector_registers = 32;
  machine.threads = 2;
  if (name == "avx512") return machine;
  machine.target += "-avx512_cannonlake-avx512_sapphirerapids-avx512_zen4";
  machine.bf16_products = true;
  machine.amx = true;
  machine.l1_bytes = 48 << 10;
  machine.l2_bytes = 2 << 20;
  if (name == "amx") return machine;
  if (name == "a100") return with_gpu(machine, {"NVIDIA A100", 80, 13000, 108, 163 << 10, 40 << 20});
  machine = with_gpu(machine, sample_card());
  if (name == "h200") return machine;
  machine.tf32 = true;
  machine.gpu_tools.cublaslt = 130100;
  machine.gpu_tools.cudnn = 91900;
  if (name == "h200_libraries") return machine;
  throw std::logic_error("no machine " + name);
}

/// The host with registers and caches of fixed make, so that tests choose the same points everywhere.
inline Machine test_machine(int threads) {
  Machine machine = detect_machine(threads);
  machine.l1_bytes = 32 << 10;
  machine.l2_bytes = 1 << 20;
  machine.vector_floats = 16;
  machine.vector_registers = 32;
  return machine;
}

/// The host as if it had AVX2 and no more: sixteen registers of eight floats.
struct NarrowMachine {
  Machine machine;
  Halide::Target target;
};
inline NarrowMachine avx2_machine(int threads) {
  NarrowMachine narrow{test_machine(threads), Halide::get_host_target()};
  for (const auto feature :
       {Halide::Target::AVX512, Halide::Target::AVX512_Skylake, Halide::Target::AVX512_Cannonlake,
        Halide::Target::AVX512_Zen4, Halide::Target::AVX512_Zen5, Halide::Target::AVX512_SapphireRapids,
        Halide::Target::AVX512_KNL}) {
    narrow.target.set_feature(feature, false);
  }
  narrow.target.processor_tune = Halide::Target::ProcessorGeneric;
  narrow.machine.vector_floats = 8;
  narrow.machine.vector_registers = 16;
  return narrow;
}
inline bool has_avx2() {
  return Halide::get_host_target().has_feature(Halide::Target::AVX2);
}

}  // namespace sylvite
