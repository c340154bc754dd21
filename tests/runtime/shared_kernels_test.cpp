#include "runtime/shared_kernels.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/lowering/sample_graphs.h"
#include "tests/runtime/test_session.h"

namespace sylvite::shared_kernels_test {
namespace {

/// The same of matrices of several sizes: a transpose that leaves, and a sum of what is left of each row's mean.
Graph of_sizes(const std::vector<Dims>& sizes) {
  Graph graph;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const ValueId x = graph.add_input("x" + std::to_string(i), f32(sizes[i]));
    graph.outputs.push_back(graph.add(Op::transpose, {x}, {{"perm", Dims{1, 0}}}));
    const Attributes rows{{"axes", Dims{1}}};
    graph.outputs.push_back(
        graph.add(Op::reduce_sum, {graph.add(Op::sub, {x, graph.add(Op::reduce_max, {x}, rows)})}, rows));
  }
  return graph;
}

std::size_t count_of_codes(const Plan& plan) {
  std::set<std::string> texts;
  for (const Kernel& kernel : plan.kernels) texts.insert(kernel.text);
  return texts.size();
}

class SharedKernelsTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::shared_ptr<const sylvite::Setup> setup_ = make_setup(test_options(folder_.path()));
};

TEST_F(SharedKernelsTest, SmallKernelsThatDifferInExtentsAreOne) {
  const std::vector<Dims> sizes = {{32, 48}, {70, 81}, {19, 33}};
  Imported imported = load_graph(of_sizes(sizes), setup_);
  const std::size_t alone = count_of_codes(*imported.plan);
  Chosen chosen = choose_candidates(imported);
  share_small_kernels(imported, chosen);
  EXPECT_EQ(count_of_codes(*imported.plan) * sizes.size(), alone);
  const std::shared_ptr<const Plan> plan = imported.plan;
  Built built = build_program(imported, std::move(chosen));
  EXPECT_EQ(built.report.compiled, static_cast<int>(count_of_codes(*plan)));
  std::vector<Tensor> inputs;
  for (const Dims& dims : sizes) inputs.push_back(sample_tensor(DType::f32, dims));
  const std::vector<Tensor> outputs = built.program.run(inputs), expected = interpret(imported.graph, inputs);
  ASSERT_EQ(outputs.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) expect_near(outputs[i], expected[i], 1e-4);
}

TEST_F(SharedKernelsTest, LargeOnesAndChosenOnesStay) {
  Imported large = load_graph(of_sizes({{800, 900}, {700, 810}}), setup_);
  Chosen chosen = choose_candidates(large);
  const std::size_t alone = count_of_codes(*large.plan);
  share_small_kernels(large, chosen);
  EXPECT_EQ(count_of_codes(*large.plan), alone);
  Imported stored = load_graph(of_sizes({{32, 48}, {70, 81}}), setup_);
  chosen = choose_candidates(stored);
  for (Choice& choice : chosen.choices) choice.source = Source::database;
  const std::size_t before = count_of_codes(*stored.plan);
  share_small_kernels(stored, chosen);
  EXPECT_EQ(count_of_codes(*stored.plan), before);
}

}  // namespace
}  // namespace sylvite::shared_kernels_test
