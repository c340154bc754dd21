#include "runtime/program.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "frontend/passes/store_narrow.h"
#include "sylvite/graph_text.h"
#include "tests/runtime/test_session.h"

namespace sylvite::program_test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

Graph relu_product() {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {64, 64}));
  const ValueId w = graph.add_constant(sample_tensor(DType::f32, {64, 256}, 1), "w");
  const ValueId v = graph.add_constant(sample_tensor(DType::f32, {256, 64}, 2), "v");
  const ValueId hidden = graph.add(Op::relu, {graph.add(Op::matmul, {x, w})});
  graph.outputs = {graph.add(Op::matmul, {hidden, v})};
  return graph;
}

/// One program in two threads: each run computes what it should, or is refused.
TEST(ProgramTest, IsForOneThreadAtATime) {
  const TemporaryFolder folder;
  Built built = build_graph(relu_product(), test_options(folder.path()));
  const std::vector<Tensor> given = {sample_tensor(DType::f32, {64, 64}, 1),
                                     sample_tensor(DType::f32, {64, 64}, 2)};
  const std::vector<Tensor> expected = {built.program.run({given[0]})[0], built.program.run({given[1]})[0]};
  std::atomic<int> refused = 0;
  const auto run_often = [&](std::size_t which) {
    for (int i = 0; i < 1000 || (refused == 0 && i < 300'000); ++i) {  // until the threads meet
      try {
        expect_near(built.program.run({given[which]})[0], expected[which], 0);
      } catch (const UsageError&) {
        ++refused;
      }
    }
  };
  {
    const std::jthread other(run_often, 1);
    run_often(0);
  }
  EXPECT_GT(refused, 0);
}

/// The workers of the parent are not in the child, which must not wait for them.
TEST(ProgramTest, RunsInAChildOfAProcessThatRanIt) {
  const TemporaryFolder folder;
  Built built = build_graph(relu_product(), test_options(folder.path()));
  const Tensor given = sample_tensor(DType::f32, {64, 64}, 1);
  const Tensor expected = built.program.run({given})[0];
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const Tensor result = built.program.run({given})[0];
    const bool agrees =
        std::memcmp(result.data(), expected.data(), static_cast<std::size_t>(expected.byte_size())) == 0;
    ::_exit(agrees ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_near(built.program.run({given})[0], expected, 0);
}

TEST(ProgramTest, ConvolutionsMatmulsAndPointwiseWork) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 3, 10, 10}));
  const ValueId w = graph.add_constant(sample_tensor(DType::f32, {20, 3, 3, 3}, 1), "w");
  const ValueId b = graph.add_constant(sample_tensor(DType::f32, {20}, 2), "b");
  const Attributes window{{"strides", std::vector<std::int64_t>{1, 1}},
                          {"pads", std::vector<std::int64_t>{1, 1, 1, 1}},
                          {"dilations", std::vector<std::int64_t>{1, 1}},
                          {"groups", std::int64_t{1}}};
  const ValueId conv = graph.add(Op::relu, {graph.add(Op::conv, {x, w, b}, window)});
  const ValueId flat = graph.add(Op::reshape, {conv}, {{"shape", std::vector<std::int64_t>{1, 2000}}});
  const ValueId dense = graph.add_constant(sample_tensor(DType::f32, {2000, 7}, 3), "dense");
  graph.outputs = {graph.add(Op::matmul, {flat, dense})};
  expect_as_interpreted(graph, {sample_tensor(DType::f32, {1, 3, 10, 10})});
}

// A mean, and two layers of one row by weights in bf16, one of them turned.
TEST(ProgramTest, WideRowsMeetNarrowWeights) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 20, 5, 5}));
  const ValueId mean = graph.add(Op::reduce_sum, {graph.add(Op::relu, {x})},
                                 {{"axes", std::vector<std::int64_t>{2, 3}}, {"keepdims", std::int64_t{0}}});
  const ValueId first = graph.add_constant(sample_tensor(DType::f32, {20, 33}, 1), "first");
  const ValueId bias = graph.add_constant(sample_tensor(DType::f32, {33}, 2), "bias");
  const ValueId second = graph.add_constant(sample_tensor(DType::f32, {40, 33}, 3), "second");
  const ValueId turned = graph.add(Op::transpose, {second}, {{"perm", std::vector<std::int64_t>{1, 0}}});
  const ValueId sum = graph.add(Op::add, {graph.add(Op::matmul, {mean, first}), bias});
  graph.outputs = {graph.add(Op::matmul, {graph.add(Op::relu, {sum}), turned})};
  expect_as_interpreted(store_narrow(graph, DType::bf16, {.mixed_products = true}),
                        {sample_tensor(DType::f32, {1, 20, 5, 5})});
}

// By the template, whose images are blocked, and in general form, whose filters have two outputs a channel.
// What a fused kernel does not store it need not round to bf16.
TEST(ProgramTest, WideFiltersMeetNarrowImages) {
  for (const std::int64_t filters : {40, 80}) {
    Graph graph;
    const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 40, 9, 7}));
    const ValueId w = graph.add_constant(sample_tensor(DType::f32, {filters, 1, 3, 3}, 1), "w");
    const ValueId b = graph.add_constant(sample_tensor(DType::f32, {filters}, 2), "b");
    const ValueId product = graph.add(Op::conv, {graph.add(Op::relu, {x}), w, b},
                                      {{"strides", Dims{1, 1}},
                                       {"dilations", Dims{1, 1}},
                                       {"pads", Dims{1, 1, 1, 1}},
                                       {"groups", std::int64_t{40}}});
    graph.outputs = {graph.add(Op::relu, {product})};
    expect_as_interpreted(store_narrow(graph, DType::bf16, {.mixed_products = true}),
                          {sample_tensor(DType::f32, {1, 40, 9, 7})}, 0x1p-8);
  }
}

TEST(ProgramTest, WinogradFiltersAreTransformedOnLoading) {
  const TemporaryFolder folder;
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 16, 11, 9}));
  const ValueId w = graph.add_constant(sample_tensor(DType::f32, {40, 16, 3, 3}, 1), "w");
  const ValueId b = graph.add_constant(sample_tensor(DType::f32, {40}, 2), "b");
  const ValueId product = graph.add(Op::conv, {x, w, b},
                                    {{"strides", Dims{1, 1}},
                                     {"dilations", Dims{1, 1}},
                                     {"pads", Dims{1, 1, 1, 1}},
                                     {"groups", std::int64_t{1}}});
  graph.outputs = {graph.add(Op::relu, {product})};
  const Imported imported = load_graph(graph, make_setup(test_options(folder.path())));
  Chosen chosen = choose_candidates(imported);
  ASSERT_EQ(choose_space(imported, chosen, "conv_winograd"), 1);
  Built built = build_program(imported, chosen);
  EXPECT_THAT(built.report.warnings, testing::IsEmpty());
  const Tensor image = sample_tensor(DType::f32, {1, 16, 11, 9});
  const Tensor expected = interpret(graph, {image})[0];
  expect_near(built.program.run({image})[0], expected);
}

TEST(ProgramTest, OutputsMayBeInputsWeightsViewsAndEachOther) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {2, 3}));
  const ValueId constant = graph.add_constant(sample_tensor(DType::f32, {4}, 1), "c");
  const ValueId view = graph.add(Op::reshape, {x}, {{"shape", std::vector<std::int64_t>{6}}});
  const ValueId doubled = graph.add(Op::add, {x, x});
  const ValueId flat = graph.add(Op::reshape, {doubled}, {{"shape", std::vector<std::int64_t>{3, 2}}});
  graph.outputs = {x, constant, view, doubled, doubled, flat};
  expect_as_interpreted(graph, {sample_tensor(DType::f32, {2, 3})});
}

TEST(ProgramTest, ScalarsAndEmptyTensors) {
  Graph graph;
  const ValueId s = graph.add_input("s", make_type(DType::f32, {}));
  const ValueId e = graph.add_input("e", make_type(DType::f32, {0, 3}));
  const ValueId full = graph.add_input("full", make_type(DType::f32, {2, 3}));
  graph.outputs = {graph.add(Op::exp, {s}), graph.add(Op::neg, {e}),
                   graph.add(Op::concat, {e, full}, {{"axis", std::int64_t{0}}})};
  expect_as_interpreted(
      graph, {Tensor::scalar_f32(0.5F), Tensor(DType::f32, {0, 3}), sample_tensor(DType::f32, {2, 3})});
}

TEST(ProgramTest, IntegersAndBooleans) {
  Graph graph;
  const ValueId a = graph.add_input("a", make_type(DType::i64, {5}));
  const ValueId b = graph.add_input("b", make_type(DType::i64, {5}));
  const ValueId less = graph.add(Op::less, {a, b});
  graph.outputs = {less, graph.add(Op::where, {less, a, b})};
  expect_as_interpreted(graph, {sample_tensor(DType::i64, {5}), sample_tensor(DType::i64, {5}, 3)});
}

class ProgramErrorsTest : public testing::Test {
 protected:
  ProgramErrorsTest() {
    Graph graph;
    const ValueId x = graph.add_input("image", make_type(DType::f32, {2, 3}));
    graph.outputs = {graph.add(Op::relu, {x})};
    built_.emplace(build_graph(std::move(graph), test_options(folder_.path())));
  }
  std::string message_for(const std::vector<Tensor>& inputs) {
    try {
      (void)built_->program.run(inputs);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder_;
  std::optional<Built> built_;
};

TEST_F(ProgramErrorsTest, WrongInputsAreNamed) {
  EXPECT_THAT(message_for({}), HasSubstr("0 inputs given"));
  EXPECT_THAT(message_for({Tensor(DType::f32, {3, 2})}),
              HasSubstr("'image': got f32[3,2], expected f32[2,3]"));
  EXPECT_THAT(message_for({Tensor(DType::f64, {2, 3})}), HasSubstr("f64"));
}

TEST_F(ProgramErrorsTest, InputsMayLieAtAnyAddress) {
  const std::vector<float> values = {0, 1, -2, 3, -4, 5, -6, 7};
  for (const std::size_t offset : {4, 5, 6, 7}) {  // in bytes
    std::vector<std::byte> bytes(40);
    std::memcpy(bytes.data() + offset, values.data() + 1, 24);
    const Tensor unaligned(DType::f32, {2, 3}, nullptr, bytes.data() + offset);
    const std::vector<Tensor> outputs = built_->program.run({unaligned});
    EXPECT_THAT(outputs[0].view<float>(), testing::ElementsAre(1, 0, 3, 0, 5, 0));
  }
}

/// Vectors that begin anywhere: products, sums, an image in blocks, a transpose.
TEST(ProgramInputs, AreReadInPlace) {
  const TemporaryFolder folder;
  Graph graph = parse_graph(
      "graph g(%x: f32[1,32,24,40], %w: f32[32,32,3,3], %m: f32[40,48]) {\n"
      "%c: f32[1,32,24,40] = conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}\n"
      "%p: f32[1,32,24,48] = matmul(%x, %m)\n%s: f32[1,32,24] = reduce_sum(%x) {axes=[3], keepdims=0}\n"
      "%t: f32[40,48] = tanh(%m) %u: f32[48,40] = transpose(%t) {perm=[1,0]}\n"
      "return %c, %p, %s, %u }");
  std::vector<Tensor> inputs;
  inputs.reserve(graph.inputs.size());
  for (const ValueId id : graph.inputs)
    inputs.push_back(sample_tensor(DType::f32, graph.type(id).dims(), static_cast<int>(id)));
  const std::vector<Tensor> expected = interpret(graph, inputs);
  Built built = build_graph(std::move(graph), test_options(folder.path()));
  for (const std::size_t shift : {1, 4, 8}) {
    std::vector<std::vector<float>> rooms;
    std::vector<Tensor> shifted;
    for (const Tensor& input : inputs) {
      std::vector<float>& room = rooms.emplace_back(static_cast<std::size_t>(input.size()) + 16);
      std::memcpy(room.data() + shift, input.data(), static_cast<std::size_t>(input.byte_size()));
      shifted.emplace_back(DType::f32, input.dims(), nullptr, room.data() + shift);
    }
    const std::vector<Tensor> outputs = built.program.run(shifted);
    for (std::size_t i = 0; i < expected.size(); ++i) expect_near(outputs.at(i), expected[i]);
  }
}

TEST_F(ProgramErrorsTest, ResultsOutliveTheProgramAndLaterRuns) {
  const Tensor ones = Tensor::of<float>(DType::f32, {2, 3}, {1, 1, 1, 1, 1, 1});
  const Tensor twos = Tensor::of<float>(DType::f32, {2, 3}, {2, 2, 2, 2, 2, 2});
  const std::vector<Tensor> first = built_->program.run({ones});
  const std::vector<Tensor> second = built_->program.run({twos});
  built_.reset();
  EXPECT_EQ(first[0].view<float>()[5], 1);
  EXPECT_EQ(second[0].view<float>()[5], 2);
}

TEST_F(ProgramErrorsTest, ProfilesEveryLaunch) {
  std::vector<LaunchTime> profile;
  (void)built_->program.run({Tensor(DType::f32, {2, 3})}, &profile);
  ASSERT_THAT(profile, SizeIs(built_->program.plan().launches.size()));
  EXPECT_GT(profile[0].duration_us, 0);
  EXPECT_THAT(chrome_trace({profile, profile}), HasSubstr(R"("kernel": ")" + profile[0].kernel_id));
}

}  // namespace
}  // namespace sylvite::program_test
