#pragma once
// Work over the elements of a large tensor, in a few threads.

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace sylvite {

/// Calls body(begin, end) for parts that cover [0, count): one for every megabyte of `bytes`, at most one per
/// core. Weights are prepared and results compared outside the thread pool of programs; short-lived threads
/// are simplest.
template <typename Body>
void for_parts(std::int64_t count, std::int64_t bytes, const Body& body) {
  constexpr std::int64_t bytes_worth_a_thread = 1 << 20;
  const std::int64_t cores = std::max<std::int64_t>(std::thread::hardware_concurrency(), 1);
  const std::int64_t parts =
      std::max<std::int64_t>(1, std::min({bytes / bytes_worth_a_thread, cores, count}));
  std::vector<std::jthread> helpers;
  for (std::int64_t part = 1; part < parts; ++part)
    helpers.emplace_back([&, part] { body(count * part / parts, count * (part + 1) / parts); });
  body(std::int64_t{0}, count / parts);
}

}  // namespace sylvite
