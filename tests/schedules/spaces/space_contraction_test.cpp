#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::space_contraction_test {
namespace {

struct GroupedCase {
  std::int64_t channels;  ///< of the input, in a group
  std::int64_t filters;   ///< of a group
  std::int64_t groups;
  std::int64_t width = 9;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  Dims pads = {1, 1, 1, 1};
  DType element = DType::f32;
  bool residual = true;
};

/// relu(conv(x, w, bias) [+ residual]), dense.
Kernel grouped_kernel(const GroupedCase& c) {
  Graph body;
  const ValueId x = body.add_input("x", make_type(c.element, {2, c.channels * c.groups, 7, c.width}));
  const ValueId weight = body.add_input("w", make_type(c.element, {c.filters * c.groups, c.channels, 3, 3}));
  const ValueId bias = body.add_input("bias", make_type(c.element, {c.filters * c.groups}));
  ValueId value = body.add(Op::conv, {x, weight, bias},
                           {{"strides", Dims{c.stride, c.stride}},
                            {"dilations", Dims{c.dilation, c.dilation}},
                            {"pads", c.pads},
                            {"groups", c.groups}});
  std::vector<bool> weights = {false, true, true};
  if (c.residual) {
    value = body.add(Op::add, {value, body.add_input("residual", body.type(value))});
    weights.push_back(false);
  }
  body.outputs = {body.add(Op::relu, {value})};
  return make_kernel(body, weights);
}

std::int64_t first_rows(const GroupedCase& c, const Machine& machine) {
  const Kernel kernel = grouped_kernel(c);
  const BoundSpace space = bound(space_named("contraction"), kernel, machine);
  return named_values(space, space.heuristic).at("rows");
}

/// A tile across groups reads another input in every row.
TEST(GroupedContraction, FirstTilesStayWithinGroups) {
  const Machine machine = fixed_machine("avx512");
  EXPECT_EQ(first_rows({.channels = 56, .filters = 56, .groups = 2, .width = 56}, machine), 14);
  EXPECT_EQ(first_rows({.channels = 56, .filters = 56, .groups = 2, .width = 14}, machine), 28);
  EXPECT_EQ(first_rows({.channels = 40, .filters = 40, .groups = 2, .width = 28}, machine), 20);
  EXPECT_EQ(first_rows({.channels = 8, .filters = 22, .groups = 2, .width = 40}, machine), 11);
  EXPECT_EQ(first_rows({.channels = 8, .filters = 8, .groups = 3}, machine), 8);
  EXPECT_EQ(first_rows({.channels = 8, .filters = 4, .groups = 8}, machine), 8) << "two groups";
  EXPECT_EQ(first_rows({.channels = 8, .filters = 3, .groups = 3}, machine), 3) << "two groups do not divide";
  EXPECT_EQ(first_rows({.channels = 56, .filters = 56, .groups = 2, .width = 56}, fixed_machine("avx2")), 4);
}

TEST(GroupedContraction, OtherConvolutionsKeepTheirTiles) {
  const Machine machine = fixed_machine("avx512");
  EXPECT_EQ(first_rows({.channels = 56, .filters = 56, .groups = 1, .width = 56}, machine), 6);
  EXPECT_EQ(first_rows({.channels = 1, .filters = 1, .groups = 24, .width = 56}, machine), 6);
  EXPECT_EQ(first_rows({.channels = 4, .filters = 37, .groups = 2, .width = 56}, machine), 6)
      << "no tile of it divides a group";
}

TEST(GroupedContraction, AgreesWithTheInterpreter) {
  const Space& space = space_named("contraction");
  for (const GroupedCase& c : {GroupedCase{.channels = 4, .filters = 4, .groups = 4},
                               {.channels = 8, .filters = 8, .groups = 3, .width = 40, .stride = 2},
                               {.channels = 2, .filters = 3, .groups = 3, .pads = {0, 2, 1, 0}},
                               {.channels = 5, .filters = 40, .groups = 2, .width = 28, .dilation = 2},
                               {.channels = 7, .filters = 56, .groups = 2, .width = 33, .residual = false},
                               {.channels = 3, .filters = 37, .groups = 2, .width = 20}}) {
    for (const int threads : {1, 2}) {
      const Machine machine = test_machine(threads);
      const Kernel kernel = grouped_kernel(c);
      const BoundSpace taken = bound(space, kernel, machine);
      check_candidate(kernel, taken.at(taken.heuristic));
      check_candidate(kernel, taken.at(far_point(taken)));
    }
  }
}

TEST(GroupedContraction, OtherElementsAgree) {
  const Machine machine = test_machine(2);
  for (const auto& [element, tolerance] :
       {std::pair(DType::f64, 1e-12), {DType::bf16, 1e-2}, {DType::f16, 2e-3}, {DType::i32, 0.0}}) {
    const Kernel kernel =
        grouped_kernel({.channels = 6, .filters = 10, .groups = 3, .width = 21, .element = element});
    const Candidate candidate = heuristic_candidate(space_named("contraction"), kernel, machine);
    check_candidate(kernel, candidate, {}, tolerance);
  }
}

}  // namespace
}  // namespace sylvite::space_contraction_test
