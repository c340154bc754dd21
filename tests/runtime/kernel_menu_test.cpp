#include "runtime/kernel_menu.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "lowering/plan/open_kernel.h"
#include "runtime/widest_kernel.h"
#include "schedules/space.h"
#include "tests/lowering/sample_graphs.h"
#include "tests/runtime/test_session.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/sample_card.h"

namespace sylvite::kernel_menu_test {
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

TEST_F(KernelMenuTest, ScattersOfOpenSizesOnACardAreOfEachSize) {
  auto on_card = std::make_shared<sylvite::Setup>(*setup_);
  on_card->machine = with_gpu(on_card->machine, sample_card());
  on_card->config.device = DeviceKind::cuda;
  for (const std::int64_t size : {224, 230, -224, -230}) {
    Graph graph;
    const std::int64_t extent = std::abs(size);
    const ValueId x = graph.add_input("x", f32({3, 1, 1, extent}));
    if (size > 0) {
      const ValueId indices = graph.add_input("indices", make_type(DType::i64, {1, 3}));
      graph.outputs = {graph.add(Op::scatter_nd, {x, indices, graph.add_input("updates", f32({1, extent}))},
                                 {{"reduction", "add"}})};
    } else {
      const ValueId indices = graph.add_input("indices", make_type(DType::i64, {2, 1, 1, extent}));
      graph.outputs = {graph.add(Op::scatter_elements,
                                 {x, indices, graph.add_input("updates", f32({2, 1, 1, extent}))},
                                 {{"axis", std::int64_t{0}}, {"reduction", "none"}})};
    }
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

TEST_F(KernelMenuTest, FewMatricesAndManyRunOneKernel) {
  const auto products = [&](std::int64_t count) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({count, 24, 8}));
    graph.outputs = {graph.add(Op::matmul, {x, graph.add_input("y", f32({count, 8, 40}))})};
    return load_graph(std::move(graph), setup_);
  };
  for (const std::int64_t count : {20, 33}) menu_.learn(*products(count).plan, setup_->machine);
  for (const std::int64_t count : {2, 5, 100}) {
    Imported imported = products(count);
    imported.plan = menu_.apply(imported.plan, setup_->machine);
    ASSERT_NE(imported.plan->kernels.at(0).open, nullptr) << count;
    Built built = build_program(imported, choose_candidates(imported));
    EXPECT_EQ(built.report.compiled, count == 2 ? 1 : 0);
    const std::vector<Tensor> inputs = {sample_tensor(DType::f32, {count, 24, 8}),
                                        sample_tensor(DType::f32, {count, 8, 40})};
    expect_near(built.program.run(inputs)[0], interpret(imported.graph, inputs)[0], 1e-4);
  }
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

TEST_F(KernelMenuTest, ComparesOneSizeAtATimeWhereAnotherMayNotChange) {
  ModelSizes model;
  model.symbols = {{"rows", {1, 600, {20}}}, {"columns", {1, 600, {8}}}};
  const auto lower = [&](const Sizes& sizes) {
    if (sizes[1] != 8) throw ModelError("columns are 8");
    return loaded(sizes[0]).plan;
  };
  const std::shared_ptr<const Plan> plan =
      menu_.serve(model, {20, 8}, loaded(20).plan, setup_->machine, lower);
  EXPECT_NE(plan->kernels[0].open, nullptr);
}

/// On a device kernels are for any rows where ranges are given, which is where others are made ahead. Where nobody named sizes,
/// as in captured graphs, they are for a class.
TEST_F(KernelMenuTest, KernelsOfADeviceAreForAnyRowsWhereRangesAreGiven) {
  const Machine machine = fixed_machine("h200");
  const auto lower = [&](const Sizes& sizes) { return loaded(sizes[0]).plan; };
  for (const bool are_given : {true, false}) {
    ModelSizes model;
    model.symbols = {{"rows", are_given ? SizeRange{1, 600, {20}} : SizeRange{}}};
    KernelMenu menu;
    for (const std::int64_t rows : {20, 30}) (void)menu.serve(model, {rows}, lower({rows}), machine, lower);
    const auto plan = menu.apply(lower({500}), machine);
    for (const Kernel& kernel : plan->kernels) EXPECT_EQ(kernel.open != nullptr, are_given) << kernel.text;
  }
}

/// A softmax has one kernel for all lengths from some on, whatever other sizes the plans before had by chance.
TEST_F(KernelMenuTest, SizesThatAreEqualByChanceStayOpen) {
  ModelSizes model;
  model.symbols = {{"rows", {1, 600, {20}}}, {"columns", {1, 600, {40}}}};
  const auto lower = [&](const Sizes& sizes) {
    Graph graph;
    graph.outputs = {graph.add(Op::softmax, {graph.add_input("x", f32({sizes[0], sizes[1]}))},
                               {{"axis", std::int64_t{1}}})};
    return load_graph(std::move(graph), setup_).plan;
  };
  std::set<std::string> kernels;
  for (const Sizes& sizes : {Sizes{20, 40}, {20, 50}, {33, 50}, {33, 400}}) {
    const auto plan = menu_.serve(model, sizes, lower(sizes), setup_->machine, lower);
    kernels.insert(plan->kernels.at(0).id);
  }
  EXPECT_EQ(kernels.size(), 1U);
  KernelMenu other;  // learns of both sizes apart, though the first plans share one
  (void)other.serve(model, {20, 8}, lower({20, 8}), setup_->machine, lower);
  const auto plan = other.serve(model, {20, 40}, lower({20, 40}), setup_->machine, lower);
  ASSERT_NE(plan->kernels.at(0).open, nullptr);
  EXPECT_EQ(plan->kernels.at(0).sizes.size(), 2U) << plan->kernels[0].text;
}

TEST_F(KernelMenuTest, KernelsOfLargeImagesServeSmallOnes) {
  const auto pooled = [](std::int64_t lines, std::int64_t pixels) {
    Graph body;
    TensorType type = f32({1, 64, lines, pixels});
    type.layout.channel_block = 16;
    const ValueId x = body.add_input("x", type);
    body.outputs = {body.add(Op::max_pool, {x},
                             {{"kernel", Dims{3, 3}},
                              {"strides", Dims{1, 1}},
                              {"pads", Dims{1, 1, 1, 1}},
                              {"dilations", Dims{1, 1}}})};
    body.value(body.outputs[0]).type = type;
    return make_kernel(body, {false});
  };
  const Machine machine = setup_->machine;
  const Kernel first = pooled(64, 80), second = pooled(48, 96);
  const Kernel open = generalize(first, second).value();
  EXPECT_FALSE(as_case(open, pooled(64, 5)));
  const Kernel wide = from_fewest(first, second, open, machine);
  EXPECT_TRUE(as_case(wide, pooled(64, 5))) << wide.text;
  const BoundSpace narrow_space = spaces_for(open, machine).front();
  const BoundSpace wide_space = spaces_for(wide, machine).front();
  ASSERT_TRUE(narrow_space.cost && wide_space.cost);
  EXPECT_LE(wide_space.cost(wide_space.heuristic), 1.02 * narrow_space.cost(narrow_space.heuristic));
}

/// Images of one width alone have another window: their kernel serves all heights.
TEST_F(KernelMenuTest, KernelsOfOneSizeAreOpenInTheOthers) {
  ModelSizes model;
  model.symbols = {{"rows", {1, 600, {20}}}, {"columns", {1, 600, {64}}}};
  const auto lower = [&](const Sizes& sizes) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({sizes[0], sizes[1]}));
    graph.outputs = {sizes[1] == 64 ? graph.add(Op::softmax, {x}, {{"axis", std::int64_t{1}}})
                                    : graph.add(Op::relu, {x})};
    return load_graph(std::move(graph), setup_).plan;
  };
  const auto plan = menu_.serve(model, {20, 64}, lower({20, 64}), setup_->machine, lower);
  ASSERT_NE(plan->kernels.at(0).open, nullptr);
  EXPECT_EQ(plan->kernels.at(0).sizes, Dims{20});
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

/// An image of 64 channels through a window of 3x3 pixels.
Graph image_graph(std::int64_t size) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({1, 64, size, size}));
  const ValueId filter = graph.add_constant(sample_tensor(DType::f32, {64, 64, 3, 3}), "filter");
  const ValueId conv =
      graph.add(Op::conv, {x, filter},
                {{"strides", Dims{2, 2}}, {"pads", Dims{1, 1, 1, 1}}, {"dilations", Dims{1, 1}}});
  graph.outputs = {graph.add(Op::relu, {conv})};
  return graph;
}

/// A processor with registers of 16 numbers, whatever this one has.
Machine wide_machine(Machine machine) {
  machine.vector_floats = 16;
  machine.vector_registers = 32;
  machine.threads = 1;
  return machine;
}

/// Tiles that are the fastest for large images would leave much of eight lines to their tails.
class ImageMenuTest : public KernelMenuTest {
 protected:
  /// The convolution's kernel at this size.
  [[nodiscard]] Kernel kernel_at(KernelMenu& menu, std::int64_t size) {
    const auto lower = [&](const Sizes& sizes) {
      ++lowered_;
      return load_graph(image_graph(sizes[0]), setup_).plan;
    };
    const auto plan = load_graph(image_graph(size), setup_).plan;
    const auto served = menu.serve(model_, {size}, plan, machine_, lower);
    return *std::ranges::find(served->kernels, KernelClass::convolution, &Kernel::kind);
  }

  Machine machine_ = wide_machine(setup_->machine);
  ModelSizes model_{{{"size", {16, 640, {112}}}}, {}};
  int lowered_ = 0;
};

TEST_F(ImageMenuTest, HasVariantsThatAreFastAtOtherSizes) {
  KernelMenu menu(setup_);
  const Kernel first = kernel_at(menu, 112);
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const std::int64_t size : {16, 64, 112, 320})
    plans.push_back(load_graph(image_graph(size), setup_).plan);
  const std::vector<VariedKernel> kernels = menu.cases_in(plans, machine_);
  ASSERT_FALSE(kernels.empty());
  for (const VariedKernel& each : kernels) EXPECT_EQ(each.cases.size(), plans.size());
  const auto choose = [&](std::size_t most, bool is_over) {
    return choose_variants(kernels, plans.size(), most, machine_, [&] { return is_over; });
  };
  EXPECT_TRUE(choose(0, false).empty());
  EXPECT_TRUE(choose(8, true).empty());
  const std::vector<ChosenVariant> variants = choose(8, false);
  ASSERT_FALSE(variants.empty());
  EXPECT_LE(variants.size(), 3 * kernels.size());
  menu.add_variants(kernels, variants);
  menu.prefer([&](const std::string& text) {
    return std::ranges::any_of(kernels,
                               [&](const VariedKernel& each) { return each.variants[0].text == text; });
  });
  EXPECT_EQ(kernel_at(menu, 16).id, first.id) << "until others are compiled";
  menu.prefer(nullptr);
  const Kernel small = kernel_at(menu, 16);
  ASSERT_NE(first.open, nullptr);
  ASSERT_NE(small.open, nullptr);
  EXPECT_NE(small.id, first.id);
  const Kernel large = kernel_at(menu, 112);
  EXPECT_NE(large.id, small.id);

  // A process after this one has the same, in whatever order sizes come.
  const int before = lowered_;
  KernelMenu later(setup_);
  (void)kernel_at(later, 112);
  EXPECT_EQ(kernel_at(later, 16).id, small.id);
  EXPECT_EQ(kernel_at(later, 112).id, large.id);
  EXPECT_EQ(lowered_, before);
}

/// What was seen at one size each, in plans that have another size in common, is compared when a plan brings both apart.
TEST_F(KernelMenuTest, ComparesKernelsThatItKnowsAtSizesOfTheirOwn) {
  ModelSizes model;
  model.symbols = {{"batch", {1, 4, {1}}}, {"size", {16, 640, {112}}}};
  const auto plan_at = [&](const Sizes& sizes) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({sizes[0], 8, sizes[1]}));
    const ValueId mean = graph.add(Op::reduce_sum, {x}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{0}}});
    const ValueId w = graph.add_constant(sample_tensor(DType::f32, {8, 16}), "w");
    graph.outputs = {graph.add(Op::matmul, {mean, w})};
    return load_graph(std::move(graph), setup_).plan;
  };
  const auto is_open_at = [&](const Sizes& sizes) {
    const auto served = menu_.serve(model, sizes, plan_at(sizes), setup_->machine, plan_at);
    return std::ranges::find(served->kernels, KernelClass::matmul, &Kernel::kind)->open != nullptr;
  };
  (void)is_open_at({1, 112});
  (void)is_open_at({2, 112});
  EXPECT_TRUE(is_open_at({4, 112}));
  EXPECT_TRUE(is_open_at({3, 200}));
}

TEST_F(ImageMenuTest, RunsTakeWhatIsCompiled) {
  KernelMenu menu(setup_);
  const Kernel first = kernel_at(menu, 112);
  menu.end_variants([&](const std::string& text) { return text == first.text; });
  EXPECT_EQ(kernel_at(menu, 16).id, first.id) << "the one that is fast at the least sizes is not compiled";
  KernelMenu later(setup_);
  EXPECT_EQ(kernel_at(later, 112).id, first.id);
  later.end_variants([](const std::string&) { return false; });
  EXPECT_EQ(kernel_at(later, 16).id, first.id) << "what processes before this one had stays";
}

TEST_F(KernelMenuTest, KernelsForSmallImagesComputeAllSizes) {
  ModelSizes model;
  model.symbols = {{"size", {16, 640, {56}}}};
  const auto lower = [&](const Sizes& sizes) { return load_graph(image_graph(sizes[0]), setup_).plan; };
  KernelMenu menu(setup_);
  (void)menu.serve(model, {56}, lower({56}), setup_->machine, lower);
  for (const std::int64_t size : {16, 20, 34, 56, 112}) {
    Imported imported = load_graph(image_graph(size), setup_);
    imported.plan = menu.apply(imported.plan, setup_->machine);
    ASSERT_NE(imported.plan->kernels.at(0).open, nullptr) << size;
    Built built = build_program(imported, choose_candidates(imported));
    const std::vector<Tensor> inputs = {sample_tensor(DType::f32, {1, 64, size, size})};
    expect_near(built.program.run(inputs)[0], interpret(imported.graph, inputs)[0], 1e-3);
  }
}

TEST_F(KernelMenuTest, LearnsAnewWhereWhatWasKeptCannotBeRead) {
  ModelSizes model;
  model.symbols = {{"rows", {16, 600, {20}}}};
  const auto lower = [&](const Sizes& sizes) { return loaded(sizes[0]).plan; };
  const MenuFile file(*setup_, model, *lower({20}));
  for (const OpenTexts& kept : {OpenTexts{{"nonsense"}}, OpenTexts{{"graph"}, {"", ""}}}) {
    file.store(kept);
    KernelMenu menu(setup_);
    EXPECT_NE(menu.serve(model, {20}, lower({20}), setup_->machine, lower)->kernels[0].open, nullptr);
  }
}

}  // namespace
}  // namespace sylvite::kernel_menu_test
