#include "runtime/threads.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/worker_team.h"

namespace sylvite::threads_test {
namespace {

int add_one(void*, int i, std::uint8_t* closure) {
  ++reinterpret_cast<std::atomic<int>*>(closure)[i];
  return 0;
}

std::uint8_t* bytes_of(void* pointer) {
  return static_cast<std::uint8_t*>(pointer);
}

TEST(ParallelForTest, DoesEveryTaskOnce) {
  RunContext context(4);
  for (const double spin : {0.0, 1e-5, 1.0}) {
    std::vector<std::atomic<int>> counts(50);
    with_workers(4, spin, [&] {
      for (int loop = 0; loop < 2000; ++loop)
        ASSERT_EQ(parallel_for(&context, add_one, 10, loop % 40, bytes_of(counts.data())), 0);
    });
    const int total = std::accumulate(counts.begin(), counts.end(), 0);
    EXPECT_EQ(total, 50 * (39 * 40 / 2));
    EXPECT_EQ(counts[9], 0);
    EXPECT_EQ(counts[10], 50 * 39);
    EXPECT_EQ(counts[48], 50);
  }
}

TEST(ParallelForTest, PropagatesTheErrorCode) {
  RunContext context(2);
  const auto task = [](void*, int i, std::uint8_t*) { return i == 7 ? -3 : 0; };
  const auto check = [&] {
    EXPECT_EQ(parallel_for(&context, task, 0, 100, nullptr), -3);
    EXPECT_EQ(parallel_for(&context, task, 8, 100, nullptr), 0);
    EXPECT_EQ(parallel_for(nullptr, task, 0, 100, nullptr), -3);
    EXPECT_EQ(parallel_for(&context, task, 0, 0, nullptr), 0);
  };
  check();
  with_workers(2, 1e-4, check);
}

std::ptrdiff_t threads_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(WithWorkersTest, ThreadsComeWithTheFirstLoopAndEndWithTheirLeader) {
  RunContext context(3);
  std::vector<std::atomic<int>> counts(100);
  const auto share = [&](int count) {
    EXPECT_EQ(parallel_for(&context, add_one, 0, count, bytes_of(counts.data())), 0);
  };
  const std::ptrdiff_t before = threads_of_process();
  std::thread([&] {
    with_workers(3, 1e-4, [&] { share(1); });  // one task is no loop to share
    EXPECT_EQ(threads_of_process(), before + 1);
    for (int run = 0; run < 5; ++run) with_workers(3, 1e-4, [&] { share(100); });
    EXPECT_EQ(threads_of_process(), before + 3);
    with_workers(2, 1e-4, [&] { share(100); });
    share(100);
    EXPECT_EQ(threads_of_process(), before + 4);
  }).join();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (threads_of_process() > before && std::chrono::steady_clock::now() < give_up)
    std::this_thread::yield();
  EXPECT_EQ(threads_of_process(), before);
  EXPECT_EQ(counts[0], 8);
  EXPECT_EQ(counts[99], 7);
}

TEST(WorkerTeamTest, NobodyWaitsForAWorkerThatIsLate) {
  WorkerTeam team(2, 1e-4);
  std::vector<std::atomic<int>> counts(100);
  const ParallelLoop loop{nullptr, add_one, 0, 100, bytes_of(counts.data())};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(team.run(loop), 0);
  std::thread late([&] { team.serve(1); });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(team.run(loop), 0);
  team.stop();
  late.join();
  for (const std::atomic<int>& count : counts) EXPECT_EQ(count, 20);
}

struct Order {
  std::atomic<int> begun = 0;
  std::array<std::atomic<int>, 4> place = {};
};

/// The first task lasts until the third has begun.
int first_waits_for_third(void*, int i, std::uint8_t* closure) {
  auto& order = *reinterpret_cast<Order*>(closure);
  order.place.at(static_cast<std::size_t>(i)) = ++order.begun;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (i == 0 && order.place[2] == 0 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::yield();
  return 0;
}

TEST(ParallelForTest, EachThreadBeginsWithAShareOfItsOwn) {
  RunContext context(2);
  with_workers(2, 1e-4, [&] {
    for (int loop = 0; loop < 100; ++loop) {
      Order order;
      ASSERT_EQ(parallel_for(&context, first_waits_for_third, 0, 4, bytes_of(&order)), 0);
      EXPECT_LT(order.place[2], order.place[1]);
    }
  });
}

struct Places {
  std::atomic<int> begun = 0;
  std::array<std::atomic<int>, 2> processors = {};
};

/// Tells where it runs, and lasts until the other task has begun, too.
int tell_processor(void*, int i, std::uint8_t* closure) {
  auto& places = *reinterpret_cast<Places*>(closure);
  places.processors.at(static_cast<std::size_t>(i)) = ::sched_getcpu();
  ++places.begun;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (places.begun < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  return 0;
}

cpu_set_t only(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return set;
}

TEST(WorkerTeamTest, AWorkerLeavesTheProcessorOfItsLeader) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one processor";
  const int processor = ::sched_getcpu();
  const cpu_set_t here = only(processor);
  ASSERT_EQ(::sched_setaffinity(0, sizeof here, &here), 0);
  for (int round = 0; round < 20; ++round) {
    WorkerTeam team(2, 1e-4);
    std::thread worker([&] {
      EXPECT_EQ(::sched_setaffinity(0, sizeof here, &here), 0);
      EXPECT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
      team.serve(1);
    });
    Places places;
    EXPECT_EQ(team.run({nullptr, tell_processor, 0, 2, bytes_of(&places)}), 0);
    team.stop();
    worker.join();
    EXPECT_EQ(places.processors[0], processor);
    EXPECT_NE(places.processors[1], processor);
  }
  EXPECT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
}

struct Nest {
  void* context;
  std::atomic<int> calls;
};

int inner_task(void*, int, std::uint8_t* closure) {
  ++reinterpret_cast<Nest*>(closure)->calls;
  return 0;
}
int outer_task(void* context, int, std::uint8_t* closure) {
  return parallel_for(context, inner_task, 0, 10, closure);
}

TEST(ParallelForTest, NestedLoopsRunSerially) {
  RunContext context(3);
  Nest nest{&context, 0};
  EXPECT_EQ(parallel_for(&context, outer_task, 0, 10, bytes_of(&nest)), 0);
  with_workers(3, 1e-4, [&] { EXPECT_EQ(parallel_for(&context, outer_task, 0, 10, bytes_of(&nest)), 0); });
  EXPECT_EQ(nest.calls.load(), 200);
}

TEST(WithWorkersTest, ExceptionsPassThroughAndNestingIsHarmless) {
  EXPECT_THROW(with_workers(2, 1e-4, [] { throw std::runtime_error("x"); }), std::runtime_error);
  int runs = 0;
  with_workers(2, 1e-4, [&] { with_workers(2, 1e-4, [&] { ++runs; }); });
  EXPECT_EQ(runs, 1);
}

TEST(RunContextTest, KeepsTheFirstMessage) {
  RunContext context(1);
  report_kernel_error(&context, "first");
  report_kernel_error(&context, "second");
  report_kernel_error(nullptr, "nobody");
  EXPECT_EQ(context.take_error(), "first");
  EXPECT_EQ(context.take_error(), "");
}

}  // namespace
}  // namespace sylvite::threads_test
