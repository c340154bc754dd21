#include "runtime/kernel_menu.h"

#include <gmock/gmock.h>

#include <set>

#include "base/error.h"
#include "tests/lowering/sample_graphs.h"
#include "tests/runtime/test_session.h"
#include "tests/support/sample_card.h"

namespace sylvite {
namespace {

/// Two products of one shape but for the rows, of which one has twice as many.
Graph two_products(std::int64_t rows) {
  Graph graph;
  const Tensor weight = sample_tensor(DType::f32, {8, 16});
  for (const char* name : {"x", "y"}) {
    const std::int64_t count = *name == 'x' ? rows : 2 * rows;
    graph.outputs.push_back(graph.add(Op::matmul, {graph.add_input(name, f32({count, 8})),
                                                   graph.add_constant(weight, std::string(name) + "w")}));
  }
  return graph;
}

class KernelMenuTest : public testing::Test {
 protected:
  [[nodiscard]] Imported loaded(std::int64_t rows) const { return load_graph(two_products(rows), setup_); }

  TemporaryFolder folder_;
  std::shared_ptr<const sylvite::Setup> setup_ = make_setup(test_options(folder_.path()));
  KernelMenu menu_;
};

TEST_F(KernelMenuTest, CasesOfOneKernelInAPlanAreTimedApart) {
  for (const std::int64_t rows : {20, 33}) menu_.learn(*loaded(rows).plan, setup_->machine);
  Imported imported = loaded(50);
  imported.plan = menu_.apply(imported.plan, setup_->machine);
  ASSERT_EQ(imported.plan->kernels.size(), 2U);
  EXPECT_EQ(imported.plan->kernels[0].id, imported.plan->kernels[1].id);
  EXPECT_NE(imported.plan->kernels[0].sizes, imported.plan->kernels[1].sizes);
  Built built = build_program(imported, choose_candidates(imported));
  EXPECT_EQ(built.report.compiled, 1);
  const std::vector<Tensor> inputs = {sample_tensor(DType::f32, {50, 8}),
                                      sample_tensor(DType::f32, {100, 8})};
  std::vector<LaunchTime> times;
  const std::vector<Tensor> outputs = built.program.run(inputs, &times);
  const std::vector<Tensor> expected = interpret(imported.graph, inputs);
  for (std::size_t i = 0; i < expected.size(); ++i) expect_near(outputs[i], expected[i], 1e-4);
  std::set<std::size_t> timed;
  for (const LaunchTime& time : times) timed.insert(time.kernel);
  EXPECT_THAT(timed, testing::ElementsAre(0, 1));
}

/// What Halide makes of a convolution on a GPU needs its extents.
TEST_F(KernelMenuTest, LeavesWhatNeedsNumbersToEachSize) {
  auto on_card = std::make_shared<sylvite::Setup>(*setup_);
  on_card->machine = with_gpu(on_card->machine, sample_card());
  on_card->config.device = DeviceKind::cuda;
  for (const auto& [batch, length] : {std::pair{5, 64}, {5, 66}, {2, 66}, {2, 32}}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({4, batch, length}));
    const ValueId filter = graph.add_input("filter", f32({3, batch, 2}));
    graph.outputs = {graph.add(Op::conv, {x, filter},
                               {{"strides", Dims{1}}, {"pads", Dims{1, 1}}, {"dilations", Dims{1}}})};
    const Imported imported = load_graph(std::move(graph), on_card);
    menu_.learn(*imported.plan, on_card->machine);
    EXPECT_EQ(menu_.apply(imported.plan, on_card->machine)->kernels.size(), imported.plan->kernels.size());
  }
}

TEST_F(KernelMenuTest, ScattersOfOpenSlicesOnACardAreOfEachSize) {
  auto on_card = std::make_shared<sylvite::Setup>(*setup_);
  on_card->machine = with_gpu(on_card->machine, sample_card());
  on_card->config.device = DeviceKind::cuda;
  for (const std::int64_t size : {224, 230}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({3, 1, 1, size}));
    const ValueId indices = graph.add_input("indices", make_type(DType::i64, {1, 3}));
    graph.outputs = {graph.add(Op::scatter_nd, {x, indices, graph.add_input("updates", f32({1, size}))},
                               {{"reduction", "add"}})};
    const Imported imported = load_graph(std::move(graph), on_card);
    menu_.learn(*imported.plan, on_card->machine);
    for (const Kernel& kernel : menu_.apply(imported.plan, on_card->machine)->kernels)
      EXPECT_FALSE(kernel.open) << kernel.text;
  }
}

TEST_F(KernelMenuTest, LearnsAtAnyNumberOfSizes) {
  for (std::int64_t rows = 16; rows < 48; ++rows) menu_.learn(*loaded(rows).plan, setup_->machine);
  EXPECT_NE(menu_.apply(loaded(500).plan, setup_->machine)->kernels[0].open, nullptr);
}

TEST_F(KernelMenuTest, ComparesAtEqualSizesWhereNamesMustAgree) {
  ModelSizes model;
  model.symbols = {{"x_rows", {1, 600, {20}}}, {"y_rows", {1, 600, {20}}}};
  int lowered = 0;
  const auto lower = [&](const Sizes& sizes) {
    ++lowered;
    if (sizes[0] != sizes[1]) throw ModelError("rows differ");
    return loaded(sizes[0]).plan;
  };
  for (const std::int64_t rows : {20, 33, 500}) {
    const auto plan = menu_.serve(model, {rows, rows}, loaded(rows).plan, setup_->machine, lower);
    for (const Kernel& kernel : plan->kernels) EXPECT_NE(kernel.open, nullptr) << rows;
  }
  EXPECT_EQ(lowered, 2) << "what is known is not looked for again";
}

TEST_F(KernelMenuTest, LowersEachSizeOnceThoughNothingIsAlikeThere) {
  ModelSizes model;
  model.symbols = {{"rows", {1, 600, {20}}}};
  int lowered = 0;
  const auto lower = [&](const Sizes& sizes) {
    ++lowered;
    Graph other;
    other.outputs = {other.add(Op::relu, {other.add_input("x", f32({sizes[0], 8}))})};
    return load_graph(other, setup_).plan;
  };
  (void)menu_.serve(model, {20}, loaded(20).plan, setup_->machine, lower);
  EXPECT_EQ(lowered, 1);
}

}  // namespace
}  // namespace sylvite
