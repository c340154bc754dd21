#include "runtime/machine_peaks.h"

#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "runtime/memory.h"
#include "runtime/product_rates.h"

namespace sylvite {
namespace {

/// The rates of all threads at the same time, added up; the best of several turns.
template <typename Rate>
double of_all_threads(int threads, Rate rate) {
  constexpr int turns = 20;
  double best = 0;
  for (int turn = 0; turn < turns; ++turn) {
    std::vector<double> rates(static_cast<std::size_t>(threads));
    std::vector<std::thread> team;
    team.reserve(rates.size());
    for (std::size_t i = 0; i < rates.size(); ++i) team.emplace_back([&, i] { rates[i] = rate(i); });
    for (std::thread& each : team) each.join();
    double sum = 0;
    for (const double each : rates) sum += each;
    best = std::max(best, sum);
  }
  return best;
}

/// Adds up 64 bytes at a time in four chains.
__attribute__((target("avx512f"))) void read_avx512(const std::byte* data, std::size_t bytes) {
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  for (std::size_t i = 0; i + 256 <= bytes; i += 256) {
    a = _mm512_add_epi32(a, _mm512_load_si512(data + i));
    b = _mm512_add_epi32(b, _mm512_load_si512(data + i + 64));
    c = _mm512_add_epi32(c, _mm512_load_si512(data + i + 128));
    d = _mm512_add_epi32(d, _mm512_load_si512(data + i + 192));
  }
  asm volatile("" : : "v"(a), "v"(b), "v"(c), "v"(d));
}

__attribute__((target("avx2"))) void read_avx2(const std::byte* data, std::size_t bytes) {
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  const auto load = [data](std::size_t at) __attribute__((target("avx2"))) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(data + at));
  };
  for (std::size_t i = 0; i + 128 <= bytes; i += 128) {
    a = _mm256_add_epi32(a, load(i));
    b = _mm256_add_epi32(b, load(i + 32));
    c = _mm256_add_epi32(c, load(i + 64));
    d = _mm256_add_epi32(d, load(i + 96));
  }
  asm volatile("" : : "x"(a), "x"(b), "x"(c), "x"(d));
}

/// Bytes a second of reading all of them so often.
double read_rate(const Arena& arena, int rounds) {
  const auto read = __builtin_cpu_supports("avx512f") != 0 ? read_avx512 : read_avx2;
  const double start = steady_seconds();
  for (int round = 0; round < rounds; ++round) read(arena.data(), arena.size());
  return static_cast<double>(arena.size()) * rounds / (steady_seconds() - start);
}

/// Each thread reads a part of its own.
double rate_of_reading(std::int64_t bytes, int threads) {
  constexpr std::int64_t least_bytes_read = 8 << 20;  // in a turn: about a millisecond
  const std::int64_t each = bytes / threads;
  const int rounds = static_cast<int>(std::max<std::int64_t>(2, least_bytes_read / each));
  std::vector<std::unique_ptr<Arena>> parts;
  for (int i = 0; i < threads; ++i) {
    parts.push_back(std::make_unique<Arena>(static_cast<std::size_t>(each)));
    std::memset(parts.back()->data(), 1, parts.back()->size());  // pages of its own
  }
  return of_all_threads(threads, [&](std::size_t i) { return read_rate(*parts[i], rounds); });
}

std::map<DType, double> measure_operations(const Machine& machine) {
  const auto with_all = [&](double (*rate)()) {
    return of_all_threads(machine.threads, [rate](std::size_t) { return rate(); });
  };
  std::map<DType, double> operations{{DType::f32, with_all(fma_rate)}};
  if (__builtin_cpu_supports("avx512vnni") != 0) operations[DType::i8] = with_all(vnni_rate);
  if (machine.bf16_products) operations[DType::bf16] = with_all(bf16_rate);
  if (machine.amx) {
    operations[DType::bf16] = with_all(amx_rate);
    operations[DType::i8] = 2 * operations[DType::bf16];  // as many instructions, each of twice the depth
  }
  return operations;
}

bool is_rate(double value) {
  return std::isfinite(value) && value > 0;
}

bool are_plausible(const MachinePeaks& peaks) {
  return is_rate(peaks.l2_rate) && peaks.operations.contains(DType::f32) && !peaks.readings.empty() &&
         std::ranges::all_of(peaks.operations, [](const auto& each) { return is_rate(each.second); }) &&
         std::ranges::all_of(peaks.readings, [](const auto& each) { return is_rate(each.rate); }) &&
         std::ranges::is_sorted(peaks.readings, {}, &MachinePeaks::Reading::bytes);
}

std::optional<MachinePeaks> kept_peaks(const std::string& path, const Machine& machine) {
  try {
    std::optional<MachinePeaks> peaks = read_peaks(read_file(path));
    if (peaks && peaks->cpu == machine.cpu_name && peaks->threads == machine.threads) return peaks;
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): measured now
  }
  return std::nullopt;
}

}  // namespace

MachinePeaks measure_peaks(const Machine& machine) {
  constexpr std::int64_t working_sets[] = {1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20};
  MachinePeaks peaks;
  peaks.cpu = machine.cpu_name;
  peaks.threads = machine.threads;
  peaks.operations = measure_operations(machine);
  peaks.l2_rate = rate_of_reading(machine.l2_bytes / 2 * machine.threads, machine.threads);
  for (const std::int64_t bytes : working_sets)
    peaks.readings.push_back({bytes, rate_of_reading(bytes, machine.threads)});
  return peaks;
}

MachinePeaks better_of(const MachinePeaks& one, const MachinePeaks& other) {
  MachinePeaks best = one;
  for (const auto& [dtype, rate] : other.operations)
    best.operations[dtype] = std::max(best.operations[dtype], rate);
  best.l2_rate = std::max(one.l2_rate, other.l2_rate);
  for (std::size_t i = 0; i < std::min(one.readings.size(), other.readings.size()); ++i)
    best.readings[i].rate = std::max(one.readings[i].rate, other.readings[i].rate);
  return best;
}

MachinePeaks peaks_of(const Machine& machine, const std::string& folder, bool again) {
  const std::string name =
      short_hash(fmt::format("{} {} {}", machine.cpu_name, machine.target, machine.threads));
  const std::string path = fmt::format("{}/peaks-{}.json", folder, name);
  const std::optional<MachinePeaks> kept = folder.empty() ? std::nullopt : kept_peaks(path, machine);
  if (kept && !again) return *kept;
  MachinePeaks peaks = measure_peaks(machine);
  if (kept) peaks = better_of(peaks, *kept);
  try {
    if (!folder.empty()) write_file(path, peaks_text(peaks));
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): measured again next time
  }
  return peaks;
}

std::string peaks_text(const MachinePeaks& peaks) {
  nlohmann::json json = {{"cpu", peaks.cpu}, {"threads", peaks.threads}, {"l2_rate", peaks.l2_rate}};
  for (const auto& [dtype, rate] : peaks.operations)
    json["operations"][std::string(dtype_name(dtype))] = rate;
  for (const auto& [bytes, rate] : peaks.readings) json["readings"].push_back({bytes, rate});
  return json.dump(1) + "\n";
}

std::optional<MachinePeaks> read_peaks(const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    MachinePeaks peaks;
    peaks.cpu = json.at("cpu");
    peaks.threads = json.at("threads");
    peaks.l2_rate = json.at("l2_rate");
    for (const DType dtype : {DType::f32, DType::bf16, DType::i8})
      if (const auto rate = json.at("operations").find(dtype_name(dtype));
          rate != json.at("operations").end())
        peaks.operations[dtype] = *rate;
    for (const nlohmann::json& reading : json.at("readings"))
      peaks.readings.push_back({reading.at(0), reading.at(1)});
    if (are_plausible(peaks)) return peaks;
  } catch (const nlohmann::json::exception&) {  // NOLINT(bugprone-empty-catch): a damaged file holds none
  }
  return std::nullopt;
}

}  // namespace sylvite
