#include "schedules/machine.h"

#include <Halide.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/amx.h"
#include "base/error.h"

namespace sylvite {
namespace {

/// "48K" or "1024K" or "2M" as sysfs writes it; `fallback` when the file is absent or odd.
std::int64_t cache_bytes(const std::string& path, std::int64_t fallback) {
  std::ifstream file(path);
  std::int64_t size = 0;
  char unit = 'K';
  if (!(file >> size) || size <= 0) return fallback;
  file >> unit;
  return unit == 'M' ? size << 20 : size << 10;
}

std::string read_cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

/// The host, but for AMX when programs may not use it. Halide has no feature for the rest of that processor.
Halide::Target usable_host() {
  Halide::Target host = Halide::get_host_target();
  if (!host.has_feature(Halide::Target::AVX512_SapphireRapids) || request_amx()) return host;
  host.set_feature(Halide::Target::AVX512_SapphireRapids, false);
  host.set_feature(Halide::Target::AVX512_Zen4);
  return host;
}

}  // namespace

Machine detect_machine(int threads) {
  const Halide::Target host = usable_host();
  Machine machine;
  machine.target = host.to_string();
  machine.vector_floats = std::max(4, host.natural_vector_size<float>());
  machine.vector_registers = host.has_feature(Halide::Target::AVX512) ? 32 : 16;
  machine.bf16_products = has_bf16_instructions(machine.target);
  machine.amx = has_amx(machine.target);
  machine.threads = std::max(1, threads);
  const std::string cache = "/sys/devices/system/cpu/cpu0/cache/";
  machine.l1_bytes = cache_bytes(cache + "index0/size", machine.l1_bytes);
  machine.l2_bytes = cache_bytes(cache + "index2/size", machine.l2_bytes);
  machine.cpu_name = read_cpu_name();
  return machine;
}

std::string Machine::description() const {
  return gpu ? fmt::format("{}, driver {}", gpu->name, gpu->driver) : cpu_name;
}

Machine with_gpu(Machine machine, const Card& card, const GpuTools& tools) {
  constexpr int least_capability = 80;
  if (card.capability < least_capability) {
    throw UnsupportedError("{} has compute capability {}.{}; at least 8.0 is needed", card.name,
                           card.capability / 10, card.capability % 10);
  }
  machine.target = Halide::Target(machine.target)
                       .with_feature(Halide::Target::CUDA)
                       .with_feature(Halide::Target::CUDACapability80)
                       .to_string();
  machine.threads = 1;
  machine.gpu = card;
  machine.gpu_tools = tools;
  return machine;
}

bool has_bf16_instructions(const std::string& target) {
  return Halide::Target(target).features_any_of(
      {Halide::Target::AVX512_Zen4, Halide::Target::AVX512_SapphireRapids});
}

bool has_amx(const std::string& target) {
  return Halide::Target(target).has_feature(Halide::Target::AVX512_SapphireRapids);
}

bool is_gpu_target(const std::string& target) {
  return Halide::Target::validate_target_string(target) &&
         Halide::Target(target).has_feature(Halide::Target::CUDA);
}

}  // namespace sylvite
