#include "base/interrupt.h"

#include <signal.h>

#include <array>
#include <atomic>

namespace sylvite {
namespace {

constexpr std::array<int, 2> noted_signals = {SIGINT, SIGTERM};

std::atomic<int> noted = 0;
static_assert(std::atomic<int>::is_always_lock_free, "handlers may touch nothing else");

std::array<struct sigaction, noted_signals.size()> before;

extern "C" void note_signal(int number) {
  if (noted.exchange(number) == 0) return;
  ::signal(number, SIG_DFL);
  ::raise(number);  // delivered when this handler returns
}

}  // namespace

InterruptScope::InterruptScope() {
  noted = 0;
  struct sigaction action{};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < noted_signals.size(); ++i) {
    ::sigaction(noted_signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) ::sigaction(noted_signals[i], &action, nullptr);
  }
}

InterruptScope::~InterruptScope() {
  for (std::size_t i = 0; i < noted_signals.size(); ++i) ::sigaction(noted_signals[i], &before[i], nullptr);
}

int interrupt_signal() {
  return noted;
}

}  // namespace sylvite
