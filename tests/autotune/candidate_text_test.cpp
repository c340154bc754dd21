#include "autotune/candidate_text.h"

#include <gmock/gmock.h>

namespace sylvite::candidate_text_test {
namespace {

using testing::ElementsAre;

std::string split_by(int q, int i, const std::string& rest = "") {
  return "form: conv_blocked\nv1.split(d3, b, q, " + std::to_string(q) +
         ", TailStrategy::ShiftInwards).split(d1, t, i, " + std::to_string(i) +
         ", TailStrategy::ShiftInwards)" + rest + ".vectorize(d0);\n";
}

TEST(CandidateLabels, NumbersThatDifferAreShown) {
  EXPECT_THAT(candidate_labels({split_by(2, 14), split_by(3, 14), split_by(2, 7)}),
              ElementsAre("conv_blocked i=14 q=2", "conv_blocked i=14 q=3", "conv_blocked i=7 q=2"));
  EXPECT_THAT(candidate_labels({split_by(2, 14), split_by(3, 14)}),
              ElementsAre("conv_blocked q=2", "conv_blocked q=3"));
  EXPECT_THAT(candidate_labels({split_by(2, 14)}), ElementsAre("conv_blocked"));
}

TEST(CandidateLabels, FormsAreComparedAmongThemselves) {
  EXPECT_THAT(candidate_labels({split_by(2, 14), "form: generic\nv1.vectorize(d0, 16);\n",
                                "form: cuda{m=64,n=32}\n", "form: cuda{m=64,n=64}\n"}),
              ElementsAre("conv_blocked", "generic", "cuda{m=64,n=32}", "cuda{m=64,n=64}"));
}

TEST(CandidateLabels, DirectivesFollowWhereNumbersDoNotTell) {
  EXPECT_THAT(candidate_labels({split_by(2, 14, ".unroll(q)"), split_by(2, 14), split_by(3, 14)}),
              ElementsAre("conv_blocked q=2 v1.unroll(q)", "conv_blocked q=2", "conv_blocked q=3"));
  EXPECT_THAT(candidate_labels({split_by(2, 14, ".reorder(d0, q, i, l, b, d4)"),
                                split_by(2, 14, ".reorder(d0, q, i, b, l, d4)")}),
              ElementsAre("conv_blocked v1.reorder(..l,b..)", "conv_blocked v1.reorder(..b,l..)"));
}

TEST(CandidateLabels, StagesAreNamedWhereLoopsAreNot) {
  const auto two = [](int outer, int inner) {
    const std::string tail = ", TailStrategy::RoundUp);\n";
    return "form: generic\nv1.split(d0, a, i, " + std::to_string(outer) + tail + "v0.split(d0, a, i, " +
           std::to_string(inner) + tail;
  };
  EXPECT_THAT(candidate_labels({two(1, 2), two(2, 2), two(1, 4)}),
              ElementsAre("generic v0.i=2 v1.i=1", "generic v0.i=2 v1.i=2", "generic v0.i=4 v1.i=1"));
}

TEST(CandidateLabels, WhatDoesNotParseHasAHash) {
  EXPECT_THAT(candidate_labels({"nonsense\nof two lines"}).front(),
              testing::MatchesRegex("nonsense [0-9a-f]{6}"));
}

}  // namespace
}  // namespace sylvite::candidate_text_test
