#include "lowering/algorithms/pointwise_text.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/pointwise_bodies.h"
#include "schedules/cuda/sources.h"
#include "sylvite/graph_text.h"
#include "tests/support/pointwise_ops.h"
#include "tests/support/shell.h"

// Printed functions, compiled as C++ for the CPU, against the interpreter.

namespace sylvite::pointwise_text_test {
namespace {

constexpr const char* cpu_prelude = R"(
#include <cmath>
#include <cstring>
#define DEVICE extern "C" inline __attribute__((used))
#define __expf expf
#define __logf logf
#define __sinf sinf
#define __cosf cosf
#define __fdividef(x, y) ((x) / (y))
inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
DEVICE float tanh_fast(float x) { return tanhf(x); }
DEVICE float round_bf16(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  if (x == x) bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  std::memcpy(&x, &bits, 4);
  return x;
}
DEVICE float round_f16(float x) { return (float)(_Float16)x; }
)";

/// Functions of printed text, loaded into this process.
class Loaded {
 public:
  explicit Loaded(const std::string& functions) {
    const std::string base = testing::TempDir() + "/pointwise_text_" + std::to_string(::getpid()) + "_" +
                             std::to_string(counter_++);
    std::ofstream(base + ".cpp") << cpu_prelude << embedded::cuda_pointwise << functions;
    output_of("c++ -std=c++17 -O1 -shared -fPIC -o " + base + ".so " + base + ".cpp");
    library_ = ::dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  template <typename Function>
  Function* find(const std::string& name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library_, name.c_str()));
  }

 private:
  static inline int counter_ = 0;
  void* library_ = nullptr;
};

const std::vector<double> specials = {0.0,
                                      -0.0,
                                      1.0,
                                      -1.0,
                                      0.5,
                                      -0.5,
                                      1.5,
                                      2.5,
                                      -2.5,
                                      3.7,
                                      -3.7,
                                      20,
                                      -20,
                                      0.001,
                                      1e-30,
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};

struct OpCase {
  Op op;
  Attributes attributes = {};
};

/// x op ... or x op y for all pairs of special values, per case one function.
void check(const std::vector<OpCase>& cases, bool binary, bool fast, double tolerance) {
  std::vector<double> left, right;
  for (const double a : specials) {
    for (const double b : binary ? specials : std::vector<double>{0}) {
      left.push_back(a);
      right.push_back(b);
    }
  }
  const auto count = static_cast<std::int64_t>(left.size());
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {count}));
  const ValueId y = graph.add_input("y", make_type(DType::f32, {count}));
  std::string functions;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<ValueId> inputs = {x};
    if (binary) inputs.push_back(y);
    ValueId out = graph.add(cases[i].op, inputs, cases[i].attributes);
    if (graph.type(out).dtype == DType::boolean) out = graph.add(Op::cast, {out}, {{"to", "f32"}});
    graph.outputs.push_back(out);
    functions += print_pointwise(graph, x, out, "f" + std::to_string(i), fast).function;
  }
  Tensor tensors[2] = {Tensor(DType::f32, {count}), Tensor(DType::f32, {count})};
  for (std::int64_t i = 0; i < count; ++i) {
    tensors[0].set_double(i, left[static_cast<std::size_t>(i)]);
    tensors[1].set_double(i, right[static_cast<std::size_t>(i)]);
  }
  const std::vector<Tensor> wanted = interpret(graph, {tensors[0], tensors[1]});
  const Loaded loaded(functions);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    auto* function = loaded.find<float(float, float)>("f" + std::to_string(i));
    ASSERT_NE(function, nullptr) << functions;
    for (std::int64_t e = 0; e < count; ++e) {
      const auto a = static_cast<float>(tensors[0].as_double(e)),
                 b = static_cast<float>(tensors[1].as_double(e));
      const double got = function(a, b), want = wanted[i].as_double(e);
      const bool same = (std::isnan(got) && std::isnan(want)) || got == want ||
                        std::fabs(got - want) <= tolerance * std::max(1e-3, std::fabs(want));
      EXPECT_TRUE(same) << op_info(cases[i].op).name << "(" << a << ", " << b << ") = " << got << ", not "
                        << want;
    }
  }
}

/// All that has a text over so many floats.
std::vector<OpCase> printed(int operands) {
  std::vector<OpCase> cases;
  for (const Op op : pointwise_ops(operands, DType::f32)) {
    const char* text = pointwise_body(op).text;  // equal texts may lie at two addresses
    if (text == nullptr || std::string_view(text) != not_printed) cases.push_back({op});
  }
  return cases;
}

TEST(PointwiseText, UnaryFunctionsAgreeWithTheInterpreter) {
  std::vector<OpCase> cases = printed(1);
  cases.push_back({Op::gelu, {{"approximate", "tanh"}}});
  for (const char* to : {"bf16", "f16", "bool"}) cases.push_back({Op::cast, {{"to", to}}});
  check(cases, false, false, 2e-5);
}

TEST(PointwiseText, BinaryFunctionsAgreeWithTheInterpreter) {
  std::vector<OpCase> cases = printed(2);
  cases.push_back({Op::mod, {{"fmod", std::int64_t{1}}}});
  check(cases, true, false, 2e-5);
}

TEST(PointwiseText, TruthValuesComeAsNumbers) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {3}));
  const ValueId mask = graph.add_input("mask", make_type(DType::boolean, {3}));
  const ValueId zero = graph.add_constant(Tensor(DType::f32, {}));
  const ValueId out = graph.add(Op::where, {graph.add(Op::logical_not, {mask}), x, zero});
  graph.outputs = {out};
  const PointwiseText text = print_pointwise(graph, x, out, "hidden", false);
  ASSERT_EQ(text.operands.size(), 1U);
  EXPECT_EQ(text.operands[0].dtype, DType::boolean);
  const Loaded loaded(text.function);
  auto* hidden = loaded.find<float(float, float)>("hidden");
  ASSERT_NE(hidden, nullptr) << text.function;
  EXPECT_EQ(hidden(2.5F, 1.F), 0.F);
  EXPECT_EQ(hidden(2.5F, 0.F), 2.5F);
}

TEST(PointwiseText, FastFunctionsStayCloseToTheInterpreter) {
  check({{Op::gelu},
         {Op::gelu, {{"approximate", "tanh"}}},
         {Op::tanh},
         {Op::erf},
         {Op::sigmoid},
         {Op::silu},
         {Op::rsqrt}},
        false, true, 2e-2);
}

TEST(PointwiseText, GeluForTf32IsNear) {
  const Loaded loaded("");
  auto* near = loaded.find<float(float)>("gelu_near");
  ASSERT_NE(near, nullptr);
  for (int i = -2000; i <= 2000; ++i) {
    const float x = 0.01F * static_cast<float>(i);
    const double wanted = 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
    EXPECT_NEAR(near(x), wanted, 3e-5 * std::max(1.0, std::fabs(double{x})));
  }
}

TEST(PointwiseText, ReadsOperandsWhereTheyLie) {
  const Graph graph =
      parse_graph(R"(graph g(%x: f32[4,6,8], %bias: f32[8], %rows: bf16[6,1], %all: f32[4,6,8]) {
    %c = constant f32[] {2.5}
    %a: f32[4,6,8] = add(%x, %bias)
    %b: f32[4,6,8] = mul(%a, %c)
    %r: f32[6,1] = cast(%rows) {to="f32"}
    %d: f32[4,6,8] = sub(%b, %r)
    %e: f32[4,6,8] = maximum(%d, %all)
    return %e
  })");
  const PointwiseText text = print_pointwise(graph, graph.inputs[0], graph.outputs[0], "f", false);
  ASSERT_EQ(text.operands.size(), 3U);
  EXPECT_EQ(text.operands[0].strides, (Dims{0, 0, 1}));
  EXPECT_EQ(text.operands[1].strides, (Dims{0, 1, 0}));
  EXPECT_EQ(text.operands[1].dtype, DType::bf16);
  EXPECT_EQ(text.operands[2].strides, (Dims{48, 8, 1}));
  EXPECT_EQ(text.function,
            "DEVICE float f(float root, float in1_0, float in2_1, float in3_2) {\n"
            "  const float a = root + in1_0;\n"
            "  const float b = a * 0x1.4p+1f;\n"
            "  const float r = (float)in2_1;\n"
            "  const float d = b - r;\n"
            "  const float e = nan_max(d, in3_2);\n"
            "  return e;\n"
            "}\n");
}

TEST(PointwiseText, ReadsViewsThatLeaveRowsTogether) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[6,8], %both: f32[6,20]) {
    %part: f32[6,8] = slice(%both) {starts=[0,12], sizes=[6,8], steps=[1,1]}
    %a: f32[6,8] = mul(%x, %part)
    return %a
  })");
  const PointwiseText text = print_pointwise(graph, graph.inputs[0], graph.outputs[0], "f", false);
  ASSERT_EQ(text.operands.size(), 1U);
  EXPECT_EQ(text.operands[0].strides, (Dims{20, 1}));
  EXPECT_EQ(text.operands[0].offset, 12);
  EXPECT_EQ(text.operands[0].first("a.part"), "(a.part + 12ll)");
  const Graph turned = parse_graph(R"(graph g(%x: f32[6,8], %turned: f32[8,6]) {
    %t: f32[6,8] = transpose(%turned) {perm=[1,0]}
    %a: f32[6,8] = mul(%x, %t)
    return %a
  })");
  EXPECT_THAT([&] { (void)print_pointwise(turned, turned.inputs[0], turned.outputs[0], "f", false); },
              testing::ThrowsMessage<UnsupportedError>(testing::HasSubstr("lie apart")));
}

TEST(PointwiseText, ReadsPartsOfImagesWhoseChannelsLieInnermost) {
  const Graph graph = parse_graph(R"(graph g(%x: bf16[2,8,3,5]@c8, %all: bf16[6,24,3,5]@c24) {
    %part: bf16[2,8,3,5]@c8 = slice(%all) {starts=[1,16,0,0], sizes=[2,8,3,5], steps=[3,1,1,1]}
    %a: bf16[2,8,3,5]@c8 = mul(%x, %part)
    return %a
  })");
  const PointwiseText text = print_pointwise(graph, graph.inputs[0], graph.outputs[0], "f", false);
  ASSERT_EQ(text.operands.size(), 1U);
  EXPECT_EQ(text.operands[0].strides, (Dims{3 * 24 * 3 * 5, 1, 24 * 5, 24}));
  EXPECT_EQ(text.operands[0].offset, 24 * 3 * 5 + 16);
}

TEST(PointwiseText, RefusesWhatIsNoPointwiseWorkOnFloats) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[4,8], %i: i64[4,8]) {
    %t: f32[4,8] = cast(%i) {to="f32"}
    %a: f32[4,8] = add(%x, %t)
    return %a
  })");
  EXPECT_THAT([&] { (void)print_pointwise(graph, graph.inputs[0], graph.outputs[0], "f", false); },
              testing::ThrowsMessage<UnsupportedError>(testing::HasSubstr("i64")));
}

}  // namespace
}  // namespace sylvite::pointwise_text_test
