#pragma once
// Contenders for one problem on the GPU, timed in turns as CUDA graphs.

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/device.h"

namespace sylvite::bench {

/// Something that computes the problem. It is given one of several sets of tensors in turn, so that what
/// repeats does not find its tensors in the cache.
struct Contender {
  std::string name;
  std::string kind;  ///< contenders of one kind compete for a place in the final
  std::function<void(std::size_t set, cuda::StreamHandle)> run;
  cuda::Graph graph;
  std::vector<double> samples;  ///< microseconds a run

  [[nodiscard]] double median() const {
    std::vector<double> sorted = samples;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }
};

class Race {
 public:
  /// `estimate`: microseconds of a run, about; says how many make a measurable graph.
  Race(std::size_t sets, double estimate)
      : sets_(sets), runs_(std::clamp(static_cast<int>(2000 / estimate), 3, 200)) {}

  /// One graph of runs, in microseconds a run.
  double time_once(Contender& contender) {
    if (contender.graph.is_empty()) {
      contender.graph = cuda::Graph(stream, [&] {
        for (int i = 0; i < runs_; ++i) contender.run(static_cast<std::size_t>(i) % sets_, stream.get());
      });
      contender.graph.launch(stream.get());
    }
    start_.record(stream.get());
    contender.graph.launch(stream.get());
    end_.record(stream.get());
    end_.synchronize();
    return cuda::microseconds_between(start_, end_) / runs_;
  }

  /// Samples of every contender, turn by turn, each turn beginning with another. `pause` between runs lets
  /// the card cool: short bursts run at full clock, work without pauses at the power limit.
  void turns(const std::vector<Contender*>& contenders, int rounds, std::chrono::milliseconds pause) {
    for (Contender* contender : contenders) contender->samples.clear();
    for (int round = -1; round < rounds; ++round) {
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        Contender& contender = *contenders[(i + static_cast<std::size_t>(round + 1)) % contenders.size()];
        if (pause.count() > 0) std::this_thread::sleep_for(pause);
        const double sample = time_once(contender);
        if (round >= 0) contender.samples.push_back(sample);
      }
    }
  }

  cuda::Stream stream;

 private:
  std::size_t sets_;
  int runs_;
  cuda::Event start_, end_;
};

/// The `count` fastest of a kind by their samples.
inline std::vector<Contender*> fastest(std::vector<Contender>& contenders, const std::string& kind,
                                       std::size_t count) {
  std::vector<Contender*> chosen;
  for (Contender& contender : contenders)
    if (contender.kind == kind && !contender.samples.empty()) chosen.push_back(&contender);
  std::sort(chosen.begin(), chosen.end(),
            [](const Contender* a, const Contender* b) { return a->median() < b->median(); });
  if (chosen.size() > count) chosen.resize(count);
  return chosen;
}

}  // namespace sylvite::bench
