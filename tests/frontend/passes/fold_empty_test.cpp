// Values without elements, and what reads them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::fold_empty_test {
namespace {

/// What the nodes are after the pass, where the graph computes the same.
std::vector<Op> folded(const std::string& inputs, const std::string& lines) {
  const Graph before = parse_graph("graph g(" + inputs + ") {\n" + lines + "}\n");
  const Graph after = fold_empty(before);
  verify(after);
  std::vector<Tensor> given;
  for (const ValueId id : before.inputs) {
    Tensor tensor(before.type(id).dtype, before.type(id).dims());
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>(i % 5) - 1.5);
    given.push_back(tensor);
  }
  const std::vector<Tensor> expected = interpret(before, given), found = interpret(after, given);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].dims(), expected[i].dims());
    EXPECT_EQ(values(found[i]), values(expected[i]));
  }
  std::vector<Op> ops;
  for (const Node& node : after.nodes()) ops.push_back(node.op);
  return ops;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FoldEmpty, WorkOnNothingIsNone) {
  EXPECT_THAT(folded("%x: f32[0,8]",
                     "  %y: f32[0,8] = exp(%x)\n  %z: f32[0,8] = softmax(%y) {axis=1}\n  return %z\n"),
              IsEmpty());
}

TEST(FoldEmpty, ConcatsHaveTheOtherParts) {
  const std::string inputs = "%past: f32[2,0,8], %x: f32[2,3,8]";
  EXPECT_THAT(folded(inputs, "  %y: f32[2,3,8] = concat(%past, %x) {axis=1}\n  return %y\n"), IsEmpty());
  EXPECT_THAT(folded(inputs, "  %y: f32[2,6,8] = concat(%x, %past, %x) {axis=1}\n  return %y\n"),
              ElementsAre(Op::concat));
}

TEST(FoldEmpty, FoldsOfNothingAreFilled) {
  for (const char* fold : {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"})
    EXPECT_THAT(folded("%x: f32[4,0]",
                       std::string("  %y: f32[4] = ") + fold + "(%x) {axes=[1], keepdims=0}\n  return %y\n"),
                ElementsAre(Op::broadcast_to));
  EXPECT_THAT(folded("%a: f32[4,0], %b: f32[0,6]", "  %y: f32[4,6] = matmul(%a, %b)\n  return %y\n"),
              ElementsAre(Op::broadcast_to));
  EXPECT_THAT(folded("%q: f32[2,3,8], %k: f32[2,0,8], %v: f32[2,0,4]",
                     "  %y: f32[2,3,4] = attention(%q, %k, %v)\n  return %y\n"),
              ElementsAre(Op::broadcast_to));
}

TEST(FoldEmpty, ConvolutionsOfNoChannelsAreTheirBiases) {
  const std::string attributes =
      " {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1}\n  return %y\n";
  const std::string image = "%x: f32[2,0,5,6], %w: f32[4,0,3,3]";
  EXPECT_THAT(folded(image, "  %y: f32[2,4,5,6] = conv(%x, %w)" + attributes), ElementsAre(Op::broadcast_to));
  EXPECT_THAT(folded(image + ", %b: f32[4]", "  %y: f32[2,4,5,6] = conv(%x, %w, %b)" + attributes),
              ElementsAre(Op::reshape, Op::broadcast_to));
}

TEST(FoldEmpty, BordersStay) {
  EXPECT_THAT(folded("%x: f32[0,2], %value: f32[]",
                     "  %y: f32[2,3] = pad(%x, %value) {high=[1,1], low=[1,0]}\n  return %y\n"),
              ElementsAre(Op::broadcast_to));
  EXPECT_THAT(folded("%x: f32[0,2]", "  %y: f32[2,3] = pad(%x) {high=[1,1], low=[1,0]}\n  return %y\n"),
              ElementsAre(Op::broadcast_to));
}

TEST(FoldEmpty, NothingIsWritten) {
  EXPECT_THAT(folded("%x: f32[4], %indices: i64[0,1], %updates: f32[0]",
                     "  %y: f32[4] = scatter_nd(%x, %indices, %updates) {reduction=\"add\"}\n  return %y\n"),
              IsEmpty());
}

TEST(FoldEmpty, TuplesOfNoneSelectAll) {
  EXPECT_THAT(
      folded("%x: f32[3], %indices: i64[2,0]", "  %y: f32[2,3] = gather_nd(%x, %indices)\n  return %y\n"),
      ElementsAre(Op::gather_nd));
}

TEST(FoldEmpty, LeavesWhatHasElements) {
  EXPECT_THAT(folded("%x: f32[1,8]", "  %y: f32[1,8] = exp(%x)\n  return %y\n"), ElementsAre(Op::exp));
}

}  // namespace
}  // namespace sylvite::fold_empty_test
