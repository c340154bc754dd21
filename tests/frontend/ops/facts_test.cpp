#include "frontend/ops/facts.h"

#include <cmath>

#include "frontend/graph/evaluation_work.h"
#include "frontend/ops/op_table.h"
#include "tests/frontend/ops/run_op.h"
#include "tests/support/pointwise_ops.h"

namespace sylvite::facts_test {
namespace {

/// Pairs of moderate numbers, as two tensors.
std::vector<std::optional<Tensor>> pairs() {
  const std::vector<double> some = {-1000, -20, -3.7, -1, -0.5, -1e-30, 0, 1e-30, 0.3, 1, 2, 7.5, 1000};
  std::vector<double> left, right;
  for (const double a : some) {
    for (const double b : some) {
      left.push_back(a);
      right.push_back(b);
    }
  }
  const auto count = static_cast<std::int64_t>(left.size());
  return {reals({count}, left), reals({count}, right)};
}

/// The result of an operation over pairs, or over the first of each.
std::vector<double> over_pairs(Op op, bool swap = false) {
  std::vector<std::optional<Tensor>> operands = pairs();
  if (swap) std::swap(operands[0], operands[1]);
  operands.resize(static_cast<std::size_t>(op_info(op).min_inputs));
  return values(run(op, operands));
}

TEST(OpFacts, EveryOperationStatesThem) {
  for (const OpInfo& row : op_table()) {
    const OpFacts& facts = row.facts;
    EXPECT_NE(facts.cost, Cost::unstated) << row.name;
    const bool is_window = facts.multiplies() || facts.has(OpTrait::pooling);
    EXPECT_EQ(facts.terms != nullptr, is_window) << row.name;
    const bool folds =
        is_window || facts.has(OpTrait::reduction) || facts.has(OpTrait::scan) || facts.has(OpTrait::scatter);
    if (folds) EXPECT_FALSE(facts.update_stages.empty()) << row.name;
    for (const std::string& stage : facts.update_stages)
      EXPECT_TRUE(stage.empty() || stage.starts_with('_')) << row.name;
    for (const OpTrait trait : {OpTrait::finite, OpTrait::arithmetic})
      if (facts.has(trait)) EXPECT_TRUE(facts.has(OpTrait::pointwise)) << row.name;
    if (facts.has(OpTrait::pointwise)) EXPECT_TRUE(facts.update_stages.empty()) << row.name;
    if (facts.has(OpTrait::commutative)) EXPECT_EQ(row.min_inputs, 2) << row.name;
    if (facts.has(OpTrait::row_norm)) EXPECT_TRUE(facts.has(OpTrait::normalization)) << row.name;
  }
}

TEST(OpFacts, FiniteOperationsAre) {
  for (const int count : {1, 2})
    for (const Op op : pointwise_ops(count, DType::f32))
      if (has_trait(op, OpTrait::finite))
        for (const double value : over_pairs(op)) EXPECT_TRUE(std::isfinite(value)) << op_info(op).name;
  EXPECT_TRUE(has_trait(Op::gelu, OpTrait::finite));
  EXPECT_FALSE(has_trait(Op::exp, OpTrait::finite));
  EXPECT_FALSE(has_trait(Op::div, OpTrait::finite));
}

TEST(OpFacts, CommutativeOperationsAreAndOthersAreNot) {
  for (const Op op : pointwise_ops(2, DType::f32))
    EXPECT_EQ(testing::Matches(testing::Pointwise(testing::NanSensitiveDoubleEq(), over_pairs(op)))(
                  over_pairs(op, true)),
              has_trait(op, OpTrait::commutative))
        << op_info(op).name;
}

TEST(OpFacts, ArithmeticAndParametersMayBeWide) {
  for (const OpInfo& row : op_table()) {
    if (!row.has(OpTrait::arithmetic)) continue;
    for (const std::size_t wide : {0, 1}) {
      std::vector<TensorType> types(2, make_type(DType::bf16, {4}));
      types[wide] = make_type(DType::f32, {4});
      const std::vector<const TensorType*> inputs = {&types[0], &types[1]};
      EXPECT_TRUE(row.facts.may_be_wide(wide)) << row.name;
      Symbols symbols;
      EXPECT_EQ(row.infer(row.op, inputs, {}, symbols).at(0).dtype, DType::bf16) << row.name;
    }
  }
  EXPECT_TRUE(op_info(Op::conv).facts.may_be_wide(2));
  EXPECT_FALSE(op_info(Op::conv).facts.may_be_wide(1));
  EXPECT_FALSE(op_info(Op::batch_norm).facts.may_be_wide(0));
  EXPECT_FALSE(op_info(Op::concat).facts.may_be_wide(40));
}

TEST(OpFacts, CountsTerms) {
  const auto terms = [](Op op, const std::vector<Dims>& inputs, const Attributes& attributes = {}) {
    Graph graph;
    std::vector<ValueId> ids;
    ids.reserve(inputs.size());
    for (const Dims& dims : inputs) ids.push_back(graph.add_input("x", make_type(DType::f32, dims)));
    (void)graph.add(op, ids, attributes);
    const Node& node = graph.nodes().back();
    return std::pair(terms_of(graph, node), products_of(graph, node));
  };
  const Attributes window = {{"strides", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}, {"dilations", Ints{1, 1}}};
  Attributes grouped = window;
  grouped.set("groups", std::int64_t{2});
  Attributes pool = window;
  pool.set("kernel", Ints{2, 3});
  EXPECT_EQ(terms(Op::matmul, {{2, 4, 8}, {8, 16}}), std::pair(8.0, 8.0));
  EXPECT_EQ(terms(Op::conv, {{1, 6, 9, 9}, {4, 3, 2, 5}}, grouped), std::pair(30.0, 30.0));
  EXPECT_EQ(terms(Op::max_pool, {{1, 6, 9, 9}}, pool), std::pair(6.0, 0.0));
  EXPECT_EQ(terms(Op::attention, {{4, 8}, {6, 8}, {6, 8}}), std::pair(12.0, 12.0));
  EXPECT_EQ(terms(Op::attention, {{4, 8}, {6, 8}, {6, 2}}), std::pair(30.0, 30.0));
  EXPECT_EQ(terms(Op::exp, {{4}}), std::pair(1.0, 0.0));
}

}  // namespace
}  // namespace sylvite::facts_test
