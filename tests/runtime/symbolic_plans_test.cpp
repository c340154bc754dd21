#include "runtime/symbolic_plans.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "runtime/kernel_menu.h"
#include "runtime/open_kernels.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/lowering/sample_graphs.h"
#include "tests/runtime/test_session.h"

namespace sylvite::symbolic_plans_test {
namespace {

Graph graph_at(const Sizes& sizes, Op last = Op::relu) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({sizes[0], sizes[1], 8}));
  graph.outputs = {graph.add(last, {graph.add(Op::matmul, {x, weight(graph, {8, 8})})})};
  return graph;
}

std::shared_ptr<const Plan> plan_at(const Sizes& sizes, Op last = Op::relu) {
  return std::make_shared<const Plan>(lower(graph_at(sizes, last)));
}

ModelSizes model() {
  ModelSizes sizes;
  sizes.symbols = {{"batch", {1, 8, {1}}}, {"length", {1, 512, {64}}}};
  return sizes;
}

TEST(SymbolicPlans, AsksForTheCornersOfWhatMayBeAlike) {
  SymbolicPlans plans(model());
  std::vector<Sizes> asked;
  while (const std::optional<Sizes> wanted = plans.wanted({3, 100})) asked.push_back(*wanted);
  EXPECT_EQ(asked, (std::vector<Sizes>{{2, 16}, {8, 512}, {8, 16}, {2, 512}}));
  EXPECT_EQ(plans.wanted({1, 1}), (Sizes{1, 1}));
  EXPECT_EQ(plans.wanted({1, 1}), std::nullopt);
  EXPECT_EQ(plans.wanted({1, 300}), (Sizes{1, 16}));
}

TEST(SymbolicPlans, TellsOfSizesBetweenOthers) {
  SymbolicPlans plans(model());
  for (const Sizes& sizes : {Sizes{2, 16}, {8, 512}, {3, 100}, {2, 512}, {5, 41}}) {
    plans.learn(sizes, plan_at(sizes));
    EXPECT_EQ(plans.at({4, 77}, true), nullptr) << "too few";
  }
  plans.learn({7, 333}, plan_at({7, 333}));
  const auto found = plans.at({4, 77}, true);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(plan_text(*found), plan_text(*plan_at({4, 77})));
  EXPECT_EQ(plans.at({1, 77}, true), nullptr) << "below all batches";
  EXPECT_EQ(plans.at({4, 15}, true), nullptr) << "below all lengths";
}

TEST(SymbolicPlans, WhatItFindsConfirmedWidensWhatItTellsOf) {
  SymbolicPlans plans(model());
  for (const Sizes& sizes : {Sizes{2, 16}, {6, 112}, {3, 100}, {2, 96}, {5, 41}, {7, 33}})
    plans.learn(sizes, plan_at(sizes));
  EXPECT_EQ(plans.at({8, 200}, true), nullptr) << "beyond all";
  plans.learn({8, 512}, plan_at({8, 512}));
  EXPECT_NE(plans.at({8, 200}, true), nullptr);
}

TEST(SymbolicPlans, TellsOfManySizesThatHaveOneInCommon) {
  SymbolicPlans plans(model());
  for (std::int64_t length = 16; length < 40; ++length) plans.learn({2, length}, plan_at({2, length}));
  EXPECT_EQ(plans.at({4, 30}, true), nullptr);
  for (const Sizes& sizes : {Sizes{8, 39}, {5, 17}}) plans.learn(sizes, plan_at(sizes));
  EXPECT_NE(plans.at({4, 30}, true), nullptr);
}

TEST(SymbolicPlans, SizesThatMorePowersOfTwoDivideAreOthers) {
  SymbolicPlans plans(model());
  for (const Sizes& sizes : {Sizes{2, 17}, {8, 511}, {3, 101}, {2, 511}, {5, 41}, {7, 333}})
    plans.learn(sizes, plan_at(sizes));
  EXPECT_NE(plans.at({4, 77}, true), nullptr);
  EXPECT_EQ(plans.at({4, 78}, true), nullptr) << "passes may treat even lengths in another way";
}

/// As the pixels of an image, which layers made smaller by 32 along both sides.
TEST(SymbolicPlans, ProductsThatMorePowersOfTwoDivideAreOthers) {
  ModelSizes images;
  images.symbols = {{"lines", {32, 512, {64}, 32}}, {"columns", {32, 512, {64}, 32}}};
  SymbolicPlans plans(images);
  for (const Sizes& sizes :
       {Sizes{96, 160}, {160, 96}, {160, 224}, {224, 288}, {288, 96}, {96, 352}, {352, 160}})
    plans.learn(sizes, plan_at(sizes));
  for (const Sizes& sizes :
       {Sizes{96, 192}, {192, 96}, {320, 96}, {96, 448}, {288, 192}, {448, 352}, {352, 64}, {64, 288}})
    plans.learn(sizes, plan_at(sizes, Op::exp));
  const auto odd = plans.at({224, 96}, true), even = plans.at({224, 192}, true);
  ASSERT_NE(odd, nullptr);
  ASSERT_NE(even, nullptr);
  EXPECT_EQ(plan_text(*odd), plan_text(*plan_at({224, 96})));
  EXPECT_EQ(plan_text(*even), plan_text(*plan_at({224, 192}, Op::exp)));
}

/// As lowering gives them one weight there.
/// A plan over half of the length, as where pairs of columns become channels.
std::shared_ptr<const Plan> halved_at(const Sizes& sizes) {
  return plan_at({sizes[0], sizes[1] / 2});
}

TEST(SymbolicPlans, TellsOfHalvesWhereSizesAreEven) {
  SymbolicPlans plans(model());
  for (const Sizes& sizes : {Sizes{2, 18}, {8, 510}, {3, 102}, {2, 510}, {5, 42}})
    plans.learn(sizes, halved_at(sizes));
  EXPECT_EQ(plans.at({4, 78}, true), nullptr) << "too few";
  plans.learn({7, 334}, halved_at({7, 334}));
  const auto found = plans.at({4, 78}, true);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(plan_text(*found), plan_text(*halved_at({4, 78})));
  EXPECT_EQ(plans.at({4, 77}, true), nullptr);
  plans.learn({4, 79}, halved_at({4, 79}));
  EXPECT_EQ(plans.at({4, 77}, true), nullptr) << "half of an odd number is no half";
  EXPECT_EQ(plans.at({4, 78}, true), nullptr) << "nor is it known any more";
}

/// Where two sizes are equal, as of square images, one tells the other.
TEST(SymbolicPlans, TellsOfEqualSizes) {
  SymbolicPlans plans(model());
  for (const std::int64_t size : {2, 3, 4, 5, 7}) plans.learn({size, size}, plan_at({size, size}));
  const auto found = plans.at({6, 6}, true);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(plan_text(*found), plan_text(*plan_at({6, 6})));
  EXPECT_EQ(plans.at({6, 7}, true), nullptr) << "these were never equal";
  plans.learn({3, 6}, plan_at({3, 6}));
  const auto of_two = plans.at({4, 6}, true);
  ASSERT_NE(of_two, nullptr);
  EXPECT_EQ(plan_text(*of_two), plan_text(*plan_at({4, 6})));
}

/// As where tables of lines and of columns are one.
TEST(SymbolicPlans, EqualSizesMayHavePlansOfTheirOwn) {
  const auto own_where_equal = [](const Sizes& sizes) {
    return plan_at(sizes, sizes[0] == sizes[1] ? Op::tanh : Op::relu);
  };
  SymbolicPlans plans(model());
  for (const Sizes& sizes : {Sizes{2, 2},
                             {8, 8},
                             {2, 16},
                             {8, 4},
                             {3, 3},
                             {5, 5},
                             {7, 7},
                             {3, 11},
                             {5, 2},
                             {6, 6},
                             {7, 13},
                             {4, 4},
                             {6, 3}})
    plans.learn(sizes, own_where_equal(sizes));
  for (const Sizes& sizes : {Sizes{5, 7}, {5, 5}, {7, 3}}) {
    const auto found = plans.at(sizes, true);
    ASSERT_NE(found, nullptr) << sizes[0] << " " << sizes[1];
    EXPECT_EQ(plan_text(*found), plan_text(*own_where_equal(sizes)));
  }
  plans.learn({5, 5}, plan_at({5, 5}));
  EXPECT_EQ(plans.at({6, 6}, true), nullptr) << "equal sizes have either";
}

TEST(SymbolicPlans, TablesMayBeEqualAtSomeSizes) {
  const auto gathering = [](const Sizes& sizes) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({64, 1024, 8}));
    const auto table = [](std::int64_t size) {
      Tensor indices(DType::i64, {size});
      for (std::int64_t i = 0; i < size; ++i)
        indices.mutable_view<std::int64_t>()[static_cast<std::size_t>(i)] = i;
      return indices;
    };
    const ValueId rows = graph.add_constant(table(sizes[0]));
    const ValueId other = graph.add_constant(table(sizes[1]));
    const ValueId columns = sizes[0] == sizes[1] ? rows : other;
    const ValueId y = graph.add(Op::gather, {x, rows}, {{"axis", std::int64_t{0}}});
    graph.outputs = {graph.add(Op::gather,
                               {graph.add(Op::softmax, {y}, {{"axis", std::int64_t{2}}}), columns},
                               {{"axis", std::int64_t{1}}})};
    return std::make_shared<const Plan>(lower(graph));
  };
  SymbolicPlans plans(model());
  for (const Sizes& sizes : {Sizes{2, 16}, {8, 512}, {3, 100}, {2, 512}, {7, 7}, {5, 41}, {7, 333}, {2, 2}})
    plans.learn(sizes, gathering(sizes));
  for (const Sizes& sizes : {Sizes{4, 77}, {5, 5}}) {
    const auto found = plans.at(sizes, true);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->launches.size(), gathering(sizes)->launches.size());
    for (const Tensor& table : found->weights)
      for (std::int64_t i = 0; i < table.size(); ++i)
        EXPECT_EQ(table.view<std::int64_t>()[static_cast<std::size_t>(i)], i);
  }
}

TEST(SymbolicPlans, SizesForWhichAnImportDecidesOtherwiseAreOthers) {
  const auto facts = [](const Sizes& sizes) {
    const auto remainder = [](const Dims& all) { return Dims{all[0] % 3}; };
    return SizeFacts{{"remainder", {sizes[1]}, remainder(Dims{sizes[1]}), remainder}};
  };
  SymbolicPlans plans(model());
  for (const Sizes& sizes : {Sizes{2, 18}, {8, 510}, {3, 99}, {2, 510}, {5, 42}, {7, 333}})
    plans.learn(sizes, plan_at(sizes), facts(sizes));
  EXPECT_NE(plans.at({4, 75}, true), nullptr);
  EXPECT_EQ(plans.at({4, 77}, true), nullptr) << "no sample leaves 2";
  for (const Sizes& sizes : {Sizes{2, 20}, {8, 500}}) plans.learn(sizes, plan_at(sizes), facts(sizes));
  EXPECT_NE(plans.at({4, 75}, true), nullptr) << "those that leave 2 say nothing of it";
}

/// Of a row and of a column a transpose is a view: plans of both tell nothing of what has several of each.
TEST(SymbolicPlans, SizesOfOneTellOfTheirOwnKindAlone) {
  ModelSizes rectangles;
  rectangles.symbols = {{"lines", {1, 64, {1}}}, {"columns", {1, 64, {1}}}};
  const auto plan_of = [](const Sizes& sizes) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({sizes[0], sizes[1]}));
    const ValueId turned = sizes[0] == 1 || sizes[1] == 1
                               ? reshape(graph, x, {sizes[1], sizes[0]})
                               : graph.add(Op::transpose, {x}, {{"perm", Dims{1, 0}}});
    graph.outputs = {graph.add(Op::relu, {turned})};
    return std::make_shared<const Plan>(lower(graph));
  };
  SymbolicPlans plans(rectangles);
  for (const Sizes& sizes : {Sizes{1, 41}, {41, 1}, {1, 33}, {33, 1}, {1, 57}, {57, 1}, {1, 11}, {11, 1}})
    plans.learn(sizes, plan_of(sizes));
  EXPECT_EQ(plans.at({5, 7}, true), nullptr);
}

TEST(SymbolicPlans, SaysNothingWhereTheModelHasOtherPlansNearby) {
  SymbolicPlans plans(model());
  for (const Sizes& sizes : {Sizes{2, 16}, {8, 512}, {3, 100}, {2, 512}, {5, 41}, {7, 333}})
    plans.learn(sizes, plan_at(sizes));
  for (const Sizes& sizes : {Sizes{2, 64}, {8, 99}}) plans.learn(sizes, plan_at(sizes, Op::exp));
  EXPECT_NE(plans.at({4, 200}, true), nullptr);
  EXPECT_EQ(plans.at({4, 77}, true), nullptr) << "between those of the other structure, too";
}

/// As a front end has it that makes graphs of its own at each size.
TEST(SymbolicPlans, LearnFromGraphsThatNameNoSizes) {
  const TemporaryFolder folder;
  OpenModel open;
  open.setup = make_setup(test_options(folder.path()));
  open.parsed.sizes = model();
  open.menu = std::make_shared<KernelMenu>(open.setup);
  open.plans = std::make_shared<SymbolicPlans>(model());
  const auto import_at = [&](const Sizes& sizes) { return load_graph(graph_at(sizes), open.setup); };
  for (const Sizes& sizes : {Sizes{2, 16}, {8, 512}, {3, 100}, {5, 41}}) {
    Imported imported = import_at(sizes);
    imported.sizes = sizes;
    take_open_kernels(open, imported, import_at);
  }
  EXPECT_TRUE(bind_known_sizes(open, {4, 77}).has_value());
}

/// Pixels, each worked on by itself, behind three convolutions that halve images.
std::string halved_images() {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 16, 1, 1});
  name_axis(*graph.mutable_input(0), 2, "lines");
  name_axis(*graph.mutable_input(0), 3, "columns");
  add_floats(graph, "filter", {16, 16, 3, 3}, std::vector<float>(2304, 0.01F));
  add_floats(graph, "weights", {32, 16, 1, 1}, std::vector<float>(512, 0.1F));
  std::string from = "x";
  for (const char* to : {"half", "quarter", "eighth"}) {
    onnx::NodeProto& node = add_node(graph, "Conv", {from, "filter"}, {to});
    set_integers(node, "pads", {1, 1, 1, 1});
    set_integers(node, "strides", {2, 2});
    from = to;
  }
  add_node(graph, "Conv", {from, "weights"}, {"y"});
  add_output(graph, "y");
  return model.SerializeAsString();
}

/// At lines that 16 divides, twice their number over 16 is that over 8.
TEST(SymbolicPlans, KernelsThatMatchAtTheSamplesAloneAreMatchedAnew) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["import.dims"] = "lines=64..320,columns=64..320";
  const std::string path = folder.file("model.onnx");
  write_file(path, halved_images());
  const OpenModel open = open_model(path, make_setup(options));
  for (const Sizes& sizes :
       {Sizes{224, 224}, {64, 65}, {64, 64}, {128, 224}, {320, 320}, {224, 128}, {320, 64}})
    (void)bind_told_sizes(open, sizes);
  int imports = 0;
  for (const Sizes& sizes : {Sizes{218, 293},
                             {312, 112},
                             {196, 166},
                             {131, 255},
                             {87, 208},
                             {213, 272},
                             {216, 195},
                             {289, 319},
                             {250, 312},
                             {140, 173},
                             {295, 231},
                             {295, 311},
                             {106, 284},
                             {297, 139}}) {
    if (bind_known_sizes(open, sizes)) continue;
    (void)bind_sizes(open, sizes);
    ++imports;
  }
  EXPECT_LE(imports, 6);
}

}  // namespace
}  // namespace sylvite::symbolic_plans_test
