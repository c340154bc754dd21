#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::space_attention_test {
namespace {

struct AttentionCase {
  std::int64_t rows;
  std::int64_t positions;
  std::int64_t depth;
  std::int64_t columns;
  bool causal = false;
  double softcap = 0;
  bool additive_mask = false;
  bool boolean_mask = false;
};

/// Heads read through a transpose, as models have them: [2, L, 3, D] -> [2, 3, L, D], and back after.
Kernel attention_kernel(const AttentionCase& c) {
  Graph body;
  const auto heads = [&](const char* name, std::int64_t length, std::int64_t depth) {
    const ValueId in = body.add_input(name, make_type(DType::f32, {2, length, 3, depth}));
    return body.add(Op::transpose, {in}, {{"perm", Dims{0, 2, 1, 3}}});
  };
  std::vector<ValueId> inputs = {heads("q", c.rows, c.depth), heads("k", c.positions, c.depth),
                                 heads("v", c.positions, c.columns)};
  if (c.additive_mask)
    inputs.push_back(body.add_input("mask", make_type(DType::f32, {1, 1, c.rows, c.positions})));
  if (c.boolean_mask) {
    // true somewhere in every row: a row that sees nothing has no value.
    const ValueId seen = body.add(
        Op::iota, {},
        {{"shape", Dims{2, 1, 1, c.positions}}, {"axis", std::int64_t{3}}, {"dtype", std::string("i64")}});
    inputs.push_back(body.add(Op::less, {seen, body.add_constant(Tensor::scalar_i64(c.positions - 2))}));
  }
  const ValueId out =
      body.add(Op::attention, inputs, {{"causal", std::int64_t{c.causal}}, {"softcap", c.softcap}});
  body.outputs = {body.add(Op::transpose, {out}, {{"perm", Dims{0, 2, 1, 3}}})};
  return make_kernel(body, std::vector<bool>(c.additive_mask ? 4 : 3, false));
}

void expect_heuristic(const AttentionCase& c, int threads) {
  const Kernel kernel = attention_kernel(c);
  const Space& space = space_named("attention_rows");
  const Machine machine = test_machine(threads);
  ASSERT_EQ(space.bind(kernel, machine).refusal, "");
  expect_agrees(kernel, heuristic_candidate(space, kernel, machine), 1e-5);
}

TEST(AttentionRows, WholePanels) {
  expect_heuristic({.rows = 32, .positions = 32, .depth = 16, .columns = 32}, 1);
}
TEST(AttentionRows, OddExtents) {
  expect_heuristic({.rows = 13, .positions = 21, .depth = 5, .columns = 9}, 2);
}
TEST(AttentionRows, OneRow) {
  expect_heuristic({.rows = 1, .positions = 40, .depth = 8, .columns = 16}, 1);
}
TEST(AttentionRows, Causal) {
  expect_heuristic({.rows = 19, .positions = 19, .depth = 8, .columns = 16, .causal = true}, 1);
}
// 64 rows in blocks of 16: conditions on the row once confused bounds inference.
TEST(AttentionRows, CausalInBlocks) {
  expect_heuristic({.rows = 64, .positions = 64, .depth = 8, .columns = 16, .causal = true}, 1);
}
TEST(AttentionRows, AdditiveMask) {
  expect_heuristic({.rows = 10, .positions = 18, .depth = 8, .columns = 16, .additive_mask = true}, 2);
}
TEST(AttentionRows, BooleanMaskAndSoftcap) {
  expect_heuristic(
      {.rows = 10, .positions = 32, .depth = 8, .columns = 16, .softcap = 0.5, .boolean_mask = true}, 1);
}

TEST(AttentionRows, EveryPointAgrees) {
  const Kernel kernel = attention_kernel({.rows = 23, .positions = 37, .depth = 8, .columns = 40});
  const Space& space = space_named("attention_rows");
  for (const int threads : {1, 2}) {
    const Machine machine = test_machine(threads);
    for (const NamedValues& replaced : std::vector<NamedValues>{
             {{"rows", 4}, {"row_tiles", 4}, {"key_panels", 3}, {"keys_once", 1}},
             {{"rows", 12}, {"row_tiles", 1}, {"key_panels", 1}, {"value_panels", 1}, {"keys_once", 0}},
             {{"rows", 1}, {"row_tiles", 16}, {"value_panels", 3}, {"pack_values", 1}}}) {
      expect_agrees(kernel, bound(space, kernel, machine).at(point_with(space, kernel, machine, replaced)),
                    1e-5);
    }
  }
}

/// Tiles of two rows left AVX2 eight sums that wait for one another. Many rows get packed values.
TEST(AttentionRows, TilesOfEightLanesFillTheRegisters) {
  const Space& space = space_named("attention_rows");
  for (const int threads : {1, 2}) {
    const auto [machine, target] = avx2_machine(threads);
    for (const std::int64_t rows : {21, 64}) {
      const Kernel kernel = attention_kernel({.rows = rows, .positions = 37, .depth = 8, .columns = 40});
      const BoundSpace taken = bound(space, kernel, machine);
      const NamedValues point = named_values(taken, taken.heuristic);
      EXPECT_GE(point.at("rows"), 5);
      EXPECT_EQ(point.at("key_panels"), 1);
      EXPECT_EQ(point.at("value_panels"), 1);
      EXPECT_EQ(point.at("pack_values"), rows == 64);
      if (has_avx2()) expect_agrees(kernel, taken.at(taken.heuristic), 1e-5, target);
    }
  }
}

TEST(AttentionRows, TwoDimensional) {
  Graph body;
  const ValueId q = body.add_input("q", make_type(DType::f32, {9, 8}));
  const ValueId k = body.add_input("k", make_type(DType::f32, {20, 8}));
  const ValueId v = body.add_input("v", make_type(DType::f32, {20, 16}));
  body.outputs = {body.add(Op::attention, {q, k, v})};
  const Kernel kernel = make_kernel(body, {false, false, false});
  const Space& space = space_named("attention_rows");
  for (const int threads : {1, 2}) {
    const Machine machine = test_machine(threads);
    expect_agrees(kernel, heuristic_candidate(space, kernel, machine), 1e-5);
  }
}

}  // namespace
}  // namespace sylvite::space_attention_test
