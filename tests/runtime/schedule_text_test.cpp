#include "runtime/schedule_text.h"

#include <gmock/gmock.h>

#include "tests/runtime/test_session.h"

namespace sylvite::schedule_text_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* two =
    "# by hand\n"
    "kernel 0123 matmul fc\n"
    "  form: matmul_panels\n"
    "  v1.split(d0, p, v, 16, TailStrategy::GuardWithIf)  // sixteen\n"
    "    .reorder(v, p, d1)\n"
    "\t.vectorize(v);\n"
    "\n"
    "  v0_fold.compute_at(v1, p);\n"
    "kernel 4567\n"
    "  form: generic\n";

TEST(ScheduleText, ReadsStatementsOverSeveralLines) {
  const std::vector<KernelSchedule> schedules = parse_schedules(two, "mine.txt");
  ASSERT_EQ(schedules.size(), 2);
  EXPECT_EQ(schedules[0].kernel, "0123");
  EXPECT_EQ(schedules[0].name, "matmul fc");
  EXPECT_EQ(schedules[0].candidate.to_string(),
            "form: matmul_panels\n"
            "v1.split(d0, p, v, 16, TailStrategy::GuardWithIf).reorder(v, p, d1).vectorize(v);\n"
            "v0_fold.compute_at(v1, p);\n");
  EXPECT_EQ(schedules[1].candidate.to_string(), "form: generic\n");
  EXPECT_TRUE(parse_schedules("", "mine.txt").empty());
}

/// What is written for the kernels of a plan reads back, long statements too.
TEST(ScheduleText, RoundTrips) {
  const TemporaryFolder folder;
  const Imported model = load_graph(blocked_outputs(), make_setup(test_options(folder.path())));
  const Chosen chosen = choose_candidates(model);
  for (std::size_t i = 0; i < chosen.choices.size(); ++i) {
    const KernelSchedule schedule{model.plan->kernels[i].id, readable_name(*model.plan, i),
                                  chosen.choices[i].candidate};
    const std::vector<KernelSchedule> again = parse_schedules(to_text(schedule), "x");
    ASSERT_EQ(again.size(), 1);
    EXPECT_EQ(again[0].candidate, schedule.candidate) << to_text(schedule);
    EXPECT_EQ(again[0].name, schedule.name);
    for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
      end = to_text(schedule).find('\n', at);
      EXPECT_LT(std::min(end, to_text(schedule).size()) - at, 120);
    }
  }
}

TEST(ScheduleText, NamesTheLineOfWhatItCannotRead) {
  const auto refused = [](const std::string& text, const std::string& problem) {
    EXPECT_THAT([&] { (void)parse_schedules(text, "mine.txt", 10); },
                ThrowsMessage<UsageError>(HasSubstr(problem)))
        << text;
  };
  refused("<<<<<<< HEAD\n", "mine.txt, line 11: expected 'kernel ID'");
  refused("  form: generic\n", "line 11: expected 'kernel ID'");
  refused("kernel 1\n", "line 11: kernel 1: a candidate starts with 'form: NAME'");
  refused("kernel 1\n  form: generic\n  v0.split(;\n", "line 11: kernel 1: schedule line 1: expected a name");
  refused("\nkernel 1\n  form: generic\nkernel 1\n  form: generic\n", "line 14: kernel 1 is there twice");
}

}  // namespace
}  // namespace sylvite::schedule_text_test
