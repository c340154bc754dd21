#pragma once
// Templates' choices, compiled on all cores.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "schedules/cuda/nvrtc.h"
#include "schedules/cuda/template.h"

namespace sylvite::bench {

struct Compiled {
  std::string choice;
  CudaTemplate text;
  CudaObject object;
  double seconds = 0;
};

/// Fills object and seconds of each.
inline void compile(std::vector<Compiled>& all) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t j = next++; j < all.size(); j = next++) {
        const auto start = std::chrono::steady_clock::now();
        all[j].object = cuda::compile_cuda(all[j].text);
        all[j].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sylvite::bench
