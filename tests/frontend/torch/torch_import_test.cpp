#include "frontend/torch/torch_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/support/torch_cases.h"

namespace sylvite::torch_import_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* layer =
    R"(torch layer(%s0: int, %x: f32[s0,2] strides [1,s0], %w: f32[2,3] parameter, %state: f32[s0,3]) {
  %y: f32[s0,3] = aten.mm.default(%x, %w)  # a product
  %next: f32[s0,3] = aten.add.Tensor(%y, %state)
  %written: f32[s0,3] = aten.copy_.default(%state, %next)
  %turned: f32[3,s0] = aten.permute.default(%y, [1, 0])
  return %y, none, %turned strides [1,3], %written, %x, 2*s0+1
})";

Tensor floats(const Dims& dims, const std::vector<float>& values) {
  return Tensor::of(DType::f32, dims, values);
}

TEST(ImportTorch, SaysWhatEachInputAndOutputIs) {
  const TorchGraph imported = import_torch(layer, {.sizes = {{"s0", 2}}});
  ASSERT_EQ(imported.inputs.size(), 4U);
  EXPECT_TRUE(imported.inputs[0].is_size);
  EXPECT_EQ(imported.inputs[1].graph_input, 0);
  EXPECT_EQ(imported.inputs[1].tensor.strides, (Dims{1, 2}));
  EXPECT_TRUE(imported.inputs[2].is_parameter);
  ASSERT_EQ(imported.outputs.size(), 6U);
  using Kind = TorchOutput::Kind;
  const std::vector<Kind> kinds{Kind::computed, Kind::none,  Kind::computed,
                                Kind::written,  Kind::input, Kind::size};
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(imported.outputs[i].kind, kinds[i]) << i;
  EXPECT_EQ(imported.outputs[3].input, 3);
  EXPECT_EQ(imported.outputs[4].input, 1);
  EXPECT_EQ(imported.outputs[5].size, 5);
  ASSERT_EQ(imported.writes.size(), 1U);
  EXPECT_EQ(imported.writes[0].graph_output, 2);
}

TEST(ImportTorch, TakesAndGivesMemoryInItsOrder) {
  const TorchGraph imported = import_torch(layer, {.sizes = {{"s0", 2}}});
  // x is [[1, 2], [3, 4]], column by column in memory.
  const std::vector<Tensor> results = interpret(
      imported.graph,
      {floats({2, 2}, {1, 3, 2, 4}), floats({2, 3}, {1, 0, 0, 0, 1, 2}), floats({2, 3}, {9, 9, 9, 9, 9, 9})});
  const auto values = [&](std::size_t i) {
    const auto view = results.at(i).view<float>();
    return std::vector<float>(view.begin(), view.end());
  };
  EXPECT_THAT(values(0), ElementsAre(1, 2, 4, 3, 4, 8));
  EXPECT_THAT(values(1), ElementsAre(1, 2, 4, 3, 4, 8));  // the memory of the transpose
  EXPECT_EQ(results[1].dims(), (Dims{2, 3}));
  EXPECT_THAT(values(2), ElementsAre(10, 11, 13, 12, 13, 17));
}

TEST(ImportTorch, TakesInputsAsConstants) {
  TorchImportOptions options{.sizes = {{"s0", 2}}};
  options.constants.emplace("w", floats({2, 3}, {1, 0, 0, 0, 1, 2}));
  const TorchGraph imported = import_torch(layer, options);
  EXPECT_EQ(imported.graph.inputs.size(), 2U);
  EXPECT_EQ(imported.inputs[2].graph_input, -1);
  options.constants.emplace("v", floats({1}, {1}));
  EXPECT_THROW((void)import_torch(layer, options), UsageError);
  options.constants = {{"w", floats({3, 2}, {1, 0, 0, 0, 1, 2})}};
  EXPECT_THROW((void)import_torch(layer, options), UsageError);
}

TEST(ImportTorch, ReadsMemoryWhereTheTextSaysHowItLies) {
  const std::string head = "torch f(%x: f32[2,3]) {\n  %t: f32[3,2]";
  const std::string rest =
      " = aten.permute.default(%x, [1, 0])\n  %y: f32[6] = aten.as_strided.default(%t, [6], [1])\n  return "
      "%y\n}";
  const TorchGraph imported = import_torch(head + " strides [1,3]" + rest);
  const Tensor result = interpret(imported.graph, {floats({2, 3}, {1, 2, 3, 4, 5, 6})}).at(0);
  EXPECT_THAT(result.view<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THROW((void)import_torch(head + rest), UnsupportedError);
}

TEST(ImportTorch, AsksForANumberForEverySymbol) {
  EXPECT_THROW((void)import_torch(layer), UsageError);
}

TEST(ImportTorch, SumsOfManyHeadsOfQueriesShareKeys) {
  const std::string text =
      R"(torch a(%q: f32[1,4,2,8], %k: f32[1,2,3,8], %v: f32[1,2,3,8], %m: bool[2,3]) {
  %y: f32[1,4,2,8] = sylvite.attention.default(%q, %k, %v, %m, false, none, true)
  %k2: f32[1,2,1,3,8] = aten.unsqueeze.default(%k, 2)
  %k3: f32[1,2,2,3,8] = aten.expand.default(%k2, [1, 2, 2, 3, 8])
  %k4: f32[1,4,3,8] = aten.view.default(%k3, [1, 4, 3, 8])
  %v2: f32[1,2,1,3,8] = aten.unsqueeze.default(%v, 2)
  %v3: f32[1,2,2,3,8] = aten.expand.default(%v2, [1, 2, 2, 3, 8])
  %v4: f32[1,4,3,8] = aten.view.default(%v3, [1, 4, 3, 8])
  %z: f32[1,4,2,8] = sylvite.attention.default(%q, %k4, %v4, %m, false, 0.3535533905932738)
  return %y, %z
})";
  const TorchGraph imported = import_torch(text);
  std::vector<Tensor> inputs;
  for (const ValueId id : imported.graph.inputs) {
    Tensor tensor(imported.graph.type(id).dtype, imported.graph.type(id).dims());
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor.set_double(i, tensor.dtype() == DType::boolean ? 1 : std::sin(static_cast<double>(i)));
    inputs.push_back(tensor);
  }
  const std::vector<Tensor> results = interpret(imported.graph, inputs);
  for (std::int64_t i = 0; i < results[0].size(); ++i)
    EXPECT_NEAR(results[0].as_double(i), results[1].as_double(i), 1e-5);
}

/// As torch does, which computes in f32.
TEST(ImportTorch, HalvesAreDividedByNumbersThatTheyDoNotHold) {
  const TorchGraph imported = import_torch(R"(torch g(%s0: int, %x: bf16[s0], %z: f16[s0]) {
  %a: bf16[s0] = aten.div.Scalar(%x, 1444)
  %b: f16[s0] = aten.div.Tensor(%z, (25000)*(s0))
  return %a, %b
})",
                                           {.sizes = {{"s0", 4}}});
  Tensor x(DType::bf16, {4}), z(DType::f16, {4});
  for (std::int64_t i = 0; i < 4; ++i) {
    x.set_double(i, 1440);
    z.set_double(i, 20000);
  }
  const std::vector<Tensor> results = interpret(imported.graph, {x, z});
  EXPECT_EQ(results[0].as_double(0), 0.99609375);
  EXPECT_NEAR(results[1].as_double(0), 0.2, 1e-4);
}

/// Divisions by powers of two, and numbers that multiply one after the other, are as at other sizes.
TEST(ImportTorch, HalvesMeetFractionsThatAreNotRounded) {
  const TorchGraph imported = import_torch(R"(torch f(%x: f16[2], %s: f32[]) {
  %a: f16[2] = aten.mul.Tensor(%x, 0.1)
  %b: f16[2] = aten.div.Tensor(%x, 0.3)
  %c: f16[2] = aten.mul.Tensor(%s, %x)
  %d: f16[2] = aten.div.Tensor_mode(%x, 0.1, rounding_mode='floor')
  %e: f16[2] = aten.leaky_relu.default(%x, 0.1)
  return %a, %b, %c, %d, %e
})");
  const auto made = [](DType dtype, const Dims& dims, const std::vector<double>& values) {
    Tensor tensor(dtype, dims);
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor.set_double(i, values[static_cast<std::size_t>(i)]);
    return tensor;
  };
  const std::vector<Tensor> found =
      interpret(imported.graph, {made(DType::f16, {2}, {3, -1000}), made(DType::f32, {}, {0.1})});
  const std::vector<std::vector<double>> expected = {
      {0.3, -100}, {10, -1000 / 0.3}, {0.3, -100}, {29, -10000}, {3, -100}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Tensor rounded = made(DType::f16, {2}, expected[i]);
    for (std::int64_t k = 0; k < 2; ++k) EXPECT_EQ(found.at(i).as_double(k), rounded.as_double(k)) << i;
  }
}

TEST(ImportTorch, ScalesOfHalvesLeaveAttentionToBeSeen) {
  const TorchGraph imported = import_torch(R"(torch f(%q: bf16[2,4,8], %k: bf16[2,8,4]) {
  %s: bf16[2,4,4] = aten.bmm.default(%q, %k)
  %m: bf16[2,4,4] = aten.mul.Tensor(%s, 0.1)
  %w: bf16[2,4,4] = aten._softmax.default(%m, -1, False)
  %y: bf16[2,4,8] = aten.bmm.default(%w, %q)
  return %y
})");
  const Graph graph = run_passes(imported.graph);
  ASSERT_EQ(graph.nodes().back().op, Op::attention);
  EXPECT_DOUBLE_EQ(graph.nodes().back().attributes.real("scale"), 0.1F);
}

TEST(ImportTorch, SizesAreNoNumbersThatPassesFold) {
  const auto structure_at = [](std::int64_t size) {
    const TorchGraph imported = import_torch(R"(torch g(%s0: int, %x: f32[s0,3]) {
  %a: f32[s0,3] = aten.div.Tensor(%x, s0)
  %b: f32[s0,3] = aten.mul.Tensor(%a, 0.5)
  %v: f32[] = aten.var.correction(%b, [0, 1], correction=0)
  return %b, %v
})",
                                             {.sizes = {{"s0", size}}});
    const Graph simple = simplify_algebra(imported.graph);
    std::string ops;
    for (const Node& node : simple.nodes()) ops += fmt::format("{} ", op_info(node.op).name);
    return ops;
  };
  EXPECT_EQ(structure_at(8), structure_at(9));
}

TEST(ImportTorch, SavesRunningStatisticsWhereTheTextSaysSo) {
  const auto import = [](const std::string& saved) {
    return import_torch(fmt::format(R"(torch norm(%x: f32[2,3], %mean: f32[3], %variance: f32[3]) {{
  %n: (f32[2,3], f32[{0}], f32[{0}]) = aten._native_batch_norm_legit_no_training.default(%x, none, none, %mean, %variance, 0.1, 0.0)
  %saved: f32[{0}] = getitem(%n, 1)
  %inverse: f32[{0}] = getitem(%n, 2)
  return %saved, %inverse
}})",
                                    saved));
  };
  const std::vector<Tensor> given{floats({3}, {1, 2, 3}), floats({3}, {1, 4, 16})};
  const std::vector<Tensor> results =
      interpret(import("3").graph, {Tensor(DType::f32, {2, 3}), given[0], given[1]});
  const auto inverse = results.at(1).view<float>();
  EXPECT_THAT(std::vector<float>(inverse.begin(), inverse.end()), ElementsAre(1, 0.5F, 0.25F));
  for (const ValueId output : import("0").graph.outputs)
    EXPECT_EQ(import("0").graph.type(output).dims(), Dims{0});
}

TEST(TorchRefusals, NamesEveryNodeAndGoesOn) {
  const std::string text = R"(torch g(%x: f32[4], %c: c64[4]) {
  %a: i64[2,1] = aten.nonzero.default(%x)
  %b: i64[2] = aten.view.default(%a, [2])
  %d: f32[4] = aten.add.Tensor(%x, 1, alpha=2, out=%x)
  %e: f32[5] = aten.relu.default(%x)
  %f: c64[4] = aten.mul.Tensor(%c, 2)
  %h: f32[5] = aten.neg.default(%e)
  return %b, %d, %h
})";
  std::vector<std::string> lines;
  for (const TorchRefusal& refusal : torch_refusals(text))
    lines.push_back(refusal.node + " | " + refusal.op + " | " + refusal.reason);
  EXPECT_THAT(lines, ElementsAre("a | aten.nonzero.default | this operation is not served",
                                 "d | aten.add.Tensor | the argument 'out' is not known",
                                 "e | aten.relu.default | f32[5] is declared, f32[4] is computed",
                                 HasSubstr("f | aten.mul.Tensor | ")));
  EXPECT_TRUE(torch_refusals(layer, {.sizes = {{"s0", 3}}}).empty());
}

constexpr const char* sums = R"(torch sums(%x: f32[3,2], %start: f32[2], %factor: f32[2]) {
  %made: (f32[2], f32[3,2], none) = scan('trip', [%start], [%x], [%factor])
  %last: f32[2] = getitem(%made, 0)
  %all: f32[3,2] = getitem(%made, 1)
  return %last, %all
}
torch trip(%state: f32[2], %slice: f32[2], %factor: f32[2]) {
  %scaled: f32[2] = aten.mul.Tensor(%slice, %factor)
  %next: f32[2] = aten.add.Tensor(%state, %scaled)
  return %next, %state, none
})";

TEST(ImportTorch, ScansAreLoops) {
  const TorchGraph imported = import_torch(sums);
  EXPECT_EQ(std::ranges::count(imported.graph.nodes(), Op::loop, [](const Node& node) { return node.op; }),
            1);
  const std::vector<Tensor> results = interpret(
      imported.graph, {floats({3, 2}, {1, 2, 3, 4, 5, 6}), floats({2}, {1, 1}), floats({2}, {1, 10})});
  const auto values = [&](std::size_t i) {
    const auto view = results.at(i).view<float>();
    return std::vector<float>(view.begin(), view.end());
  };
  EXPECT_THAT(values(0), ElementsAre(10, 121));
  EXPECT_THAT(values(1), ElementsAre(1, 1, 2, 21, 5, 61));
}

TEST(ImportTorch, BodiesOfScansAreServedOrRefusedAsAWhole) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text = sums;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::vector<TorchRefusal> refusals = torch_refusals(with("aten.mul.Tensor", "aten.nonzero.default"));
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(refusals[0].node, "made");
  EXPECT_THAT(refusals[0].reason, HasSubstr("%scaled = aten.nonzero.default: this operation is not served"));
  const auto error = [&](std::string_view from, std::string_view to) -> std::string {
    try {
      (void)import_torch(with(from, to));
    } catch (const Error& thrown) {
      return thrown.what();
    }
    return "";
  };
  EXPECT_THAT(error("scan('trip'", "scan('other'"), HasSubstr("no graph 'other' stands behind"));
  EXPECT_THAT(error("[%factor])", "[])"), HasSubstr("the body takes 3 values, 2 are given"));
  EXPECT_THAT(error("[%x]", "[]"), HasSubstr("nothing"));
  EXPECT_THAT(error("%slice: f32[2]", "%slice: f32[3]"), HasSubstr("another type than what it is given"));
  EXPECT_THAT(error("%scaled: f32[2] = aten.mul.Tensor(%slice, %factor)",
                    "%scaled: (f32[2]) = scan('trip', [%state], [%factor], [])"),
              HasSubstr("no graph 'trip' stands behind"));
}

struct BadText {
  std::string text;
  std::string message;
};

TEST(ImportTorch, SaysWhatIsWrong) {
  const std::vector<BadText> cases = {
      {"", "line 1: expected 'torch'"},
      {"torch f(", "expected '%', got the end of the text"},
      {"torch f(%x: f32[2]) {\n  return %y\n}", "line 2: return: the value %y is not defined"},
      {"torch f(%x: f33[2]) {\n  return %x\n}", "'f33' is no element type"},
      {"torch f(%x: f32[2], %x: f32[2]) {\n  return %x\n}", "given twice"},
      {"torch f(%x: f32[-2]) {\n  %y: f32[2] = aten.relu.default(%x)\n  return %y\n}", "line 1: %x"},
      {"torch f(%x: f32[99999999999,99999999999]) {\n  %y: f32[2] = aten.relu.default(%x)\n  return %y\n}",
       "line 1: %x"},
      {"torch f(%x: f32[2] strides [1,1]) {\n  return %x\n}", "line 1: 2 strides are given for 1 axes"},
      {"torch f(%x: f32[2,2] strides [4,1]) {\n  %y: f32[2,2] = aten.relu.default(%x)\n  return %y\n}",
       "leave gaps or overlap"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.relu.default(%x, %x)\n  return %y\n}",
       "line 2: %y = aten.relu.default: it has more than 1 arguments"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.relu.default()\n  return %y\n}",
       "the argument 'self' is missing"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.relu.default(2)\n  return %y\n}", "line 2"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.relu.default(%z)\n  return %y\n}",
       "the value %z is not defined before"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.relu.default(%x)\n  %y: f32[2] = aten.relu.default(%x)\n  "
       "return %y\n}",
       "line 3: %y is defined twice"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.view.default(%x, [[[[[[[[[[2]]]]]]]]]])\n  return %y\n}",
       "lists nest deeper"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.gelu.default(%x, approximate='tanh)\n  return %y\n}",
       "line 2: a string has no end"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.relu.default(%x)\n  return %y", "got the end of the text"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.relu.default(%x)\n  return %y\n} more",
       "line 4: expected 'torch', got 'more'"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = getitem(%x, 0)\n  return %y\n}", "%x has no result 0 here"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = getitem()\n  return %y\n}", "line 2"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.copy_.default(%z, %x)\n  return %y\n}",
       "what is written is no input"},
      {"torch f(%x: f32[2]) {\n  %y: f32[3000000000,3000000000] = aten.expand.default(%x, [1])\n  return "
       "%y\n}",
       "line 2"},
      {"torch f(%x: f32[1]) {\n  %y: f32[3000000000,3000000] = aten.expand.default(%x, [1])\n  return %y\n}",
       "line 2"},
      {"torch f() {\n  %y: i64[4,1] = aten.tril_indices.default(1000000, 1000000)\n  return %y\n}", "line 2"},
      {"torch f(%x: f32[2]) {\n  %y: f32[s0*s1*s2] = aten.relu.default(%x)\n  return %y\n}", "s0"},
      {"torch f(%x: f32[2]) {\n  %y: f32[2] = aten.pow.Tensor_Scalar(%x, 9999999999999999999999)\n  return "
       "%y\n}",
       "line 2"},
  };
  for (const BadText& bad : cases) {
    try {
      (void)import_torch(bad.text);
      ADD_FAILURE() << "taken: " << bad.text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad.message)) << bad.text;
      EXPECT_NE(error.code(), ErrorCode::internal) << bad.text << ": " << error.what();
    }
  }
}

/// Texts that are cut off, or of which a character is another, end in an error of the model or are taken.
TEST(ImportTorch, TakesNoHarmFromDamagedText) {
  for (const std::string& family : torch_families) {
    const std::vector<TorchCase> cases = torch_cases(family);
    for (std::size_t i = 0; i < cases.size(); i += 3) {
      const std::string text = cases[i].text.substr(cases[i].text.find("\ntorch ") + 1);
      std::uint32_t state = 12345;
      for (int round = 0; round < 60; ++round) {
        state = state * 1664525U + 1013904223U;
        std::string damaged = text;
        const std::size_t at = (state >> 8) % text.size();
        constexpr std::string_view characters = "%[](),=-9 x\n#'.:e";
        if (round % 3 == 0)
          damaged.resize(at);
        else
          damaged[at] = characters[(state >> 3) % characters.size()];
        try {
          (void)import_torch(damaged);
        } catch (const Error& error) {
          EXPECT_NE(error.code(), ErrorCode::internal) << damaged << "\n" << error.what();
        }
      }
    }
  }
}

/// The gradients of a convolution as a graph of few small whole numbers, in the form that is asked for.
std::vector<Tensor> convolution_gradients(const std::string& text, GradientKernels gradients) {
  const TorchGraph imported = import_torch(text, {.gradients = gradients});
  std::vector<Tensor> inputs;
  for (const ValueId id : imported.graph.inputs) {
    Tensor& input = inputs.emplace_back(imported.graph.type(id).dtype, imported.graph.type(id).dims());
    for (std::int64_t i = 0; i < input.size(); ++i) input.set_double(i, static_cast<double>(i * 5 % 7) - 3);
  }
  return interpret(imported.graph, inputs);
}

void expect_same_gradients(const std::string& text, GradientKernels gradients) {
  const Tensor wanted = convolution_gradients(text, GradientKernels::none).at(0);
  const Tensor got = convolution_gradients(text, gradients).at(0);
  ASSERT_EQ(got.dims(), wanted.dims());
  for (std::int64_t i = 0; i < wanted.size(); ++i)
    ASSERT_EQ(got.as_double(i), wanted.as_double(i)) << text << i;
}

TEST(ImportTorch, GradientsInBlocksAreThoseOfOthers) {
  const char* texts[] = {
      R"(torch g(%g: f32[2,9,5,4], %x: f32[2,3,9,8], %w: f32[9,3,3,3]) {
  %y: (none, f32[9,3,3,3], none) = aten.convolution_backward.default(%g, %x, %w, [0], [2, 2], [1, 1], [1, 1], false, [0, 0], 1, [false, true, false])
  %1: f32[9,3,3,3] = getitem(%y, 1)
  return %1
})",
      // Each channel by itself, dilated.
      R"(torch g(%g: f32[2,8,5,6], %x: f32[2,8,9,8], %w: f32[8,1,3,2]) {
  %y: (none, f32[8,1,3,2], none) = aten.convolution_backward.default(%g, %x, %w, [0], [1, 1], [0, 0], [2, 2], false, [0, 0], 8, [false, true, false])
  %1: f32[8,1,3,2] = getitem(%y, 1)
  return %1
})",
      // Of a signal.
      R"(torch g(%g: f32[2,8,7], %x: f32[2,3,15], %w: f32[8,3,3]) {
  %y: (none, f32[8,3,3], none) = aten.convolution_backward.default(%g, %x, %w, [0], [2], [0], [1], false, [0], 1, [false, true, false])
  %1: f32[8,3,3] = getitem(%y, 1)
  return %1
})",
      // Windows side by side.
      R"(torch g(%g: f32[2,8,3,2], %x: f32[2,3,48,32], %w: f32[8,3,16,16]) {
  %y: (none, f32[8,3,16,16], none) = aten.convolution_backward.default(%g, %x, %w, [0], [16, 16], [0, 0], [1, 1], false, [0, 0], 1, [false, true, false])
  %1: f32[8,3,16,16] = getitem(%y, 1)
  return %1
})"};
  for (const char* text : texts) expect_same_gradients(text, GradientKernels::blocks);
}

TEST(ImportTorch, GradientsForTemplatesAreThoseOfOthers) {
  const char* texts[] = {
      // Phases of a window with strides side by side, with a rest, and with gaps between them.
      R"(torch g(%g: f32[2,4,5,4], %x: f32[2,3,9,8], %w: f32[4,3,3,3]) {
  %y: (f32[2,3,9,8], none, none) = aten.convolution_backward.default(%g, %x, %w, [0], [2, 2], [1, 1], [1, 1], false, [0, 0], 1, [true, false, false])
  %0: f32[2,3,9,8] = getitem(%y, 0)
  return %0
})",
      R"(torch g(%g: f32[2,4,3,4], %x: f32[2,3,8,8], %w: f32[4,3,1,1]) {
  %y: (f32[2,3,8,8], none, none) = aten.convolution_backward.default(%g, %x, %w, [0], [3, 2], [0, 0], [1, 1], false, [0, 0], 1, [true, false, false])
  %0: f32[2,3,8,8] = getitem(%y, 0)
  return %0
})",
      // A filter of few channels whose windows lie side by side.
      R"(torch g(%g: bf16[2,5,3,2], %x: bf16[2,3,12,8], %w: bf16[5,3,4,4]) {
  %y: (none, bf16[5,3,4,4], none) = aten.convolution_backward.default(%g, %x, %w, [0], [4, 4], [0, 0], [1, 1], false, [0, 0], 1, [false, true, false])
  %1: bf16[5,3,4,4] = getitem(%y, 1)
  return %1
})"};
  for (const char* text : texts) expect_same_gradients(text, GradientKernels::templates);
}

}  // namespace
}  // namespace sylvite::torch_import_test
