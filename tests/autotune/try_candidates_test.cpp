#include "autotune/try_candidates.h"

#include <gmock/gmock.h>

#include "tests/autotune/sample_kernels.h"

namespace sylvite::try_candidates_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class TryCandidates : public testing::Test {
 protected:
  TryCandidates() {
    TuneOptions workers;
    workers.worker_command = SYLVITE_COMMAND;
    workers.compile_jobs = 1;
    evaluator_ = make_evaluator(workers, machine_);
  }
  std::vector<Trial> run(const std::vector<Candidate>& candidates) {
    return try_candidates(kernel_, machine_, candidates, {.samples = 5, .seconds = 5}, evaluator_);
  }

  const Kernel kernel_ = sample_pointwise();
  const Machine machine_ = detect_machine(1);
  Evaluator evaluator_;
};

TEST_F(TryCandidates, JudgesEachForItself) {
  const Candidate good = default_candidate(kernel_, machine_);
  const Candidate foreign = Candidate::parse("form: generic\nv0.unroll(d9);\n");
  const std::vector<Trial> trials = run({good, foreign, reference_candidate(kernel_)});
  ASSERT_EQ(trials.size(), 3);
  for (const std::size_t i : {0, 2}) {
    EXPECT_EQ(trials[i].verdict, Verdict::ok) << trials[i].message;
    EXPECT_EQ(trials[i].samples_us.size(), 5);
    EXPECT_GT(trials[i].median_us, 0);
    EXPECT_LE(trials[i].error, 1);
  }
  EXPECT_EQ(trials[0].candidate, good);
  EXPECT_EQ(trials[1].verdict, Verdict::compile_error);
  EXPECT_THAT(trials[1].message, HasSubstr("no loop 'd9'"));
  EXPECT_EQ(run({foreign}).at(0).verdict, Verdict::compile_error) << "nothing to measure";
}

TEST_F(TryCandidates, AFailureOfTheMachineIsNoVerdict) {
  const Candidate good = default_candidate(kernel_, machine_);
  evaluator_.measure = [](const MeasureJob& job) {
    return std::vector<Measurement>(job.candidates.size(), {Verdict::noisy, {}, 0, "std::bad_alloc", true});
  };
  EXPECT_THAT([&] { (void)run({good}); }, ThrowsMessage<IoError>(HasSubstr("free some memory")));
  evaluator_.finish_compiling = [](double) {
    const CompileResult failed{Verdict::noisy, "", "No space left on device", 0, true};
    return std::vector<std::optional<CompileResult>>{failed, failed};
  };
  EXPECT_THAT([&] { (void)run({good}); }, ThrowsMessage<IoError>(HasSubstr("make room on the disk")));
}

TEST_F(TryCandidates, NothingIsSaidWithoutAReference) {
  const Candidate good = default_candidate(kernel_, machine_);
  evaluator_.reference = [](const Kernel&) { return Candidate::parse("form: generic\nv0.unroll(d9);\n"); };
  EXPECT_THAT([&] { (void)run({good}); }, ThrowsMessage<CompileError>(HasSubstr("plain reference schedule")));
}

}  // namespace
}  // namespace sylvite::try_candidates_test
