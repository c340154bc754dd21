#pragma once
// Programs of what follows steps on the host (frontend/onnx/tail.h): each tail is a model whose sizes are open, and has a family.

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/session.h"

namespace sylvite {

class Family;

/// Thread safety: one thread at a time.
class Tails {
 public:
  explicit Tails(const std::shared_ptr<const Setup>& setup);
  ~Tails();
  Tails(const Tails&) = delete;
  Tails& operator=(const Tails&) = delete;

  /// The tail's outputs. What it needs is compiled when it is first run, or at sizes that need other kernels, by a thread of its
  /// own: stored winners where there are any, else heuristics. There are no outputs until it is ready, but with compile.first_answer = best, which waits. Throws
  /// what compiling and running throw.
  [[nodiscard]] std::optional<std::vector<HostValue>> run(const std::shared_ptr<const ParsedModel>& tail,
                                                          const std::vector<HostValue>& inputs);
  [[nodiscard]] std::size_t size() const { return members_.size(); }
  /// Until what runs began to compile is there, also for tails of tails. What compiling throws, the next run throws.
  void wait();
  [[nodiscard]] bool is_compiling() const;
  /// Ends what is compiled, soon. REQUIRES that no run follows.
  void stop();

 private:
  struct Member;

  std::shared_ptr<const Setup> setup_;
  std::map<std::shared_ptr<const ParsedModel>, std::unique_ptr<Member>> members_;
};

}  // namespace sylvite
