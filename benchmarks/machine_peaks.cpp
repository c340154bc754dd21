// What the machine can do, as JSON: multiply-adds by element, and bytes read from the L2 and from where a
// working set of so many bytes lies; all threads at once, the best of several turns.
// usage: machine_peaks [THREADS [WORKING-SET-BYTES]]

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/fma_peak.h"
#include "runtime/memory.h"
#include "schedules/machine.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

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

double read_rate_of(int threads, std::int64_t bytes_each, int rounds) {
  std::vector<std::unique_ptr<Arena>> sets;
  for (int i = 0; i < threads; ++i) {
    sets.push_back(std::make_unique<Arena>(static_cast<std::size_t>(bytes_each)));
    std::memset(sets.back()->data(), 1, sets.back()->size());  // pages of its own
  }
  return of_all_threads(threads, [&](std::size_t i) { return read_rate(*sets[i], rounds); });
}

}  // namespace

int main(int count, char** arguments) try {
  const int threads = count > 1 ? std::stoi(arguments[1]) : 1;
  constexpr std::int64_t far_away = 512 << 20;  // beyond all caches
  const std::int64_t working_set = count > 2 ? std::stoll(arguments[2]) : far_away;
  const Machine machine = detect_machine(threads);
  const auto with_all = [&](double (*rate)()) {
    return of_all_threads(threads, [rate](std::size_t) { return rate(); });
  };
  nlohmann::json peaks;
  peaks["f32"] = with_all(bench::fma_rate);
  if (machine.bf16_products) peaks["bf16"] = with_all(bench::bf16_rate);
  if (machine.amx) {
    peaks["bf16"] = with_all(bench::amx_rate);
    peaks["i8"] = 2 * peaks["bf16"].get<double>();  // as many instructions, each of twice the depth
  }
  peaks["l2_bytes"] = read_rate_of(threads, machine.l2_bytes / 2, 100);
  peaks["far_bytes"] = read_rate_of(threads, working_set / threads, 2);
  peaks["threads"] = threads;
  peaks["working_set"] = working_set;
  peaks["cpu"] = machine.cpu_name;
  fmt::print("{}\n", peaks.dump(1));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "machine_peaks: {}\n", error.what());
  return 1;
}
