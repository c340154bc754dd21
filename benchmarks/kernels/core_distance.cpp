// How far two processors are from each other: how long a word takes there and back, and how fast one reads what the other
// has just written, beside what it wrote itself. Those of one L3 are near; on others, kernels that divide a value otherwise
// than the kernel that made it take longer.
// usage: core_distance [PROCESSOR PROCESSOR]. The least of many turns.

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int round_trips = 2000, reads = 50;
constexpr std::size_t words = (512 << 10) / sizeof(std::int64_t);  // fit the L2

void stay_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) != 0) {
    fmt::print(stderr, "core_distance: there is no processor {} for this process\n", processor);
    std::exit(2);
  }
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Whose turn it is: odd numbers are the other's.
std::atomic<int> turn = 0;
std::vector<std::int64_t> buffer(words, 1);
std::atomic<std::int64_t> sum = 0;  ///< so that reads are made

void await(int number) {
  while (turn.load(std::memory_order_acquire) != number) {
  }
}

void answer(int processor) {
  stay_on(processor);
  for (int i = 0; i < round_trips + reads; ++i) {
    await(2 * i + 1);
    if (i >= round_trips) std::ranges::fill(buffer, i);
    turn.store(2 * i + 2, std::memory_order_release);
  }
}

void ask(int i) {
  turn.store(2 * i + 1, std::memory_order_release);
  await(2 * i + 2);
}

/// A word of each line.
double seconds_of_read() {
  constexpr std::size_t line = 64 / sizeof(std::int64_t);
  const double start = seconds_now();
  std::int64_t total = 0;
  for (std::size_t i = 0; i < words; i += line) total += buffer[i];
  sum.store(total, std::memory_order_relaxed);
  return seconds_now() - start;
}

}  // namespace

int main(int count, char** words_given) {
  const int first = count > 2 ? std::atoi(words_given[1]) : 0;
  const int second = count > 2 ? std::atoi(words_given[2]) : 1;
  stay_on(first);
  std::thread other(answer, second);
  double trip = 1, far_read = 1, own_read = 1;
  for (int i = 0; i < round_trips; ++i) {
    const double start = seconds_now();
    ask(i);
    trip = std::min(trip, seconds_now() - start);
  }
  for (int i = 0; i < reads; ++i) {
    ask(round_trips + i);
    far_read = std::min(far_read, seconds_of_read());
    std::ranges::fill(buffer, i);
    own_read = std::min(own_read, seconds_of_read());
  }
  other.join();
  constexpr double giga = sizeof(std::int64_t) * words * 1e-9;
  fmt::print(
      "processors {} and {}: {:.0f} ns there and back; reads {:.0f} GB/s of what the other wrote, {:.0f} of "
      "its own\n",
      first, second, trip * 1e9, giga / far_read, giga / own_read);
  return 0;
}
