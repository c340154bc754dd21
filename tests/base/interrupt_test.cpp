#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace sylvite::interrupt_test {
namespace {

TEST(Interrupt, TheFirstSignalIsNotedAndTheSecondActs) {
  ::signal(SIGINT, SIG_DFL);  // shells start what runs in the background with SIGINT ignored
  {
    const InterruptScope scope;
    EXPECT_EQ(interrupt_signal(), 0);
    ASSERT_EQ(::raise(SIGTERM), 0);
    EXPECT_EQ(interrupt_signal(), SIGTERM);
  }
  EXPECT_EQ(interrupt_signal(), SIGTERM) << "for whoever asks later";
  const InterruptScope scope;
  EXPECT_EQ(interrupt_signal(), 0);
  EXPECT_EXIT(
      {
        ::raise(SIGINT);
        ::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(Interrupt, IgnoredSignalsStayIgnored) {
  ::signal(SIGINT, SIG_IGN);
  {
    const InterruptScope scope;
    ASSERT_EQ(::raise(SIGINT), 0);
    EXPECT_EQ(interrupt_signal(), 0);
  }
  ::signal(SIGINT, SIG_DFL);
}

}  // namespace
}  // namespace sylvite::interrupt_test
