#pragma once
// Forks of this process at moments from which a child can go on: a child has one thread, and what others were at stays half
// done there, with their locks held, those of libraries (SQLite, LLVM) among them.

namespace sylvite {

/// A fork waits no longer for other threads.
inline constexpr double fork_patience_seconds = 5;

/// As long as one lives, forks of other threads wait; to make one waits for forks. The thread's own forks do not wait for it.
/// May stand inside another of the same thread. For the thread that made it.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
};

/// As long as one lives, forks go through although the thread has a NoFork: for where it waits for others. REQUIRES that no
/// lock is held that a child takes. For the thread that made it.
class ForkPoint {
 public:
  ForkPoint();
  ~ForkPoint();
  ForkPoint(const ForkPoint&) = delete;
  ForkPoint& operator=(const ForkPoint&) = delete;

 private:
  int depth_;
};

}  // namespace sylvite
