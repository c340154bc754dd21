#include "lowering/plan/open_kernel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "lowering/plan/join_bodies.h"
#include "lowering/plan/run_extents.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::open_kernel_test {
namespace {

using testing::HasSubstr;

/// relu(x @ w) of x[rows,depth].
Kernel product(std::int64_t rows, std::int64_t depth = 8, float scale = 0.5F) {
  Graph body;
  const ValueId x = body.add_input("x", f32({rows, depth}));
  const ValueId w = body.add_input("w", f32({depth, 16}));
  body.outputs = {body.add(Op::mul, {body.add(Op::matmul, {x, w}), scalar(body, scale)})};
  return make_kernel(body, {false, true});
}

/// x[batch,length,8] as rows of eight.
Kernel merged(std::int64_t batch, std::int64_t length) {
  Graph body;
  const ValueId x = body.add_input("x", f32({batch, length, 8}));
  body.outputs = {body.add(Op::relu, {body.add(Op::reshape, {x}, {{"shape", Dims{batch * length, 8}}})})};
  return make_kernel(body, {false});
}

TEST(OpenKernel, ExtentsThatDifferAreSymbols) {
  const std::optional<Kernel> open = generalize(product(20), product(33));
  ASSERT_TRUE(open);
  EXPECT_EQ(open->text,
            "graph kernel(%in0: f32[s0,8], %in1: f32[8,16]) where {s0: 16..@20} {\n"
            "  %c0 = constant f32[] {0.5}\n"
            "  %v0: f32[s0,16] = matmul(%in0, %in1)\n"
            "  %v1: f32[s0,16] = mul(%v0, %c0)\n"
            "  return %v1\n"
            "}\n"
            "weights: in1\n");
  EXPECT_EQ(open->body.type(0).dims(), (Dims{20, 8}));
  EXPECT_EQ(open->sizes, Dims{20});
  EXPECT_EQ(parse_kernel(open->text).text, open->text);
}

TEST(OpenKernel, OtherDifferencesAreOtherKernels) {
  EXPECT_FALSE(generalize(product(20), product(20)));
  EXPECT_FALSE(generalize(product(20), product(33, 8, 0.3F)));
  EXPECT_FALSE(generalize(product(1), product(33))) << "one row is a class by itself";
  EXPECT_FALSE(generalize(product(15), product(16)));
  EXPECT_FALSE(generalize(product(20), merged(4, 5)));
}

TEST(OpenKernel, DimsAreBroadcastAtAllSizesOrAtNone) {
  const auto compared = [](std::int64_t rows) {
    Graph body;
    const ValueId x = body.add_input("x", f32({rows, 8}));
    const ValueId limits = body.add_input("limits", f32({11, 1}));
    body.outputs = {body.add(Op::less, {limits, x})};
    return make_kernel(body, {false, true});
  };
  EXPECT_FALSE(generalize(compared(11), compared(1)));
}

TEST(OpenKernel, CasesHaveTheTextOfTheKernelAndSizesOfTheirOwn) {
  const Kernel open = generalize(product(20), product(33)).value();
  const std::optional<Kernel> found = as_case(open, product(500));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text, open.text);
  EXPECT_EQ(found->id, open.id);
  EXPECT_EQ(found->sizes, Dims{500});
  EXPECT_EQ(found->body.type(0).dims(), (Dims{500, 8}));
  EXPECT_FALSE(as_case(open, product(15))) << "below the range";
  EXPECT_FALSE(as_case(open, product(500, 16)));
  EXPECT_FALSE(as_case(open, product(500, 8, 0.25F)));
}

TEST(OpenKernel, EachPairOfExtentsIsOneSymbol) {
  const Kernel open = generalize(merged(4, 20), merged(5, 22)).value();
  EXPECT_THAT(open.text, HasSubstr("where {s0: 1..@4, s1: 16..@20, s2: 16..@80}"));
  EXPECT_TRUE(as_case(open, merged(2, 100)));
  EXPECT_TRUE(as_case(open, merged(16, 100)));
  EXPECT_FALSE(as_case(open, merged(16, 10)));
}

/// What is walked one by one may be any number: dims ahead of rows in work on elements, batches of products.
TEST(OpenKernel, WalkedDimsHaveNoClasses) {
  const auto scaled_rows = [](std::int64_t images, std::int64_t rows, std::int64_t columns) {
    Graph body;
    const ValueId x = body.add_input("x", f32({images, rows, columns}));
    const ValueId scale = body.add_input("scale", f32({images, rows, 1}));
    body.outputs = {body.add(Op::mul, {x, scale})};
    return make_kernel(body, {false, false});
  };
  const Kernel rows = generalize(scaled_rows(4, 20, 100), scaled_rows(1, 3, 120)).value();
  EXPECT_THAT(rows.text, HasSubstr("where {s0: 1..@4, s1: 1..@20, s2: 16..@100}"));
  EXPECT_FALSE(generalize(scaled_rows(4, 20, 15), scaled_rows(1, 3, 20)));
  const Kernel long_rows = generalize(scaled_rows(4, 20, 64), scaled_rows(1, 3, 64)).value();
  EXPECT_THAT(long_rows.text, HasSubstr("where {s0: 1..@4, s1: 1..@20}"));
  EXPECT_FALSE(generalize(scaled_rows(4, 20, 8), scaled_rows(1, 3, 8))) << "vectors go on in the next row";
  const auto products = [](std::int64_t batch, std::int64_t count) {
    Graph body;
    const ValueId a = body.add_input("a", f32({batch, count, 8}));
    const ValueId b = body.add_input("b", f32({batch, 8, 32}));
    body.outputs = {body.add(Op::matmul, {a, b})};
    return make_kernel(body, {false, false});
  };
  EXPECT_THAT(generalize(products(4, 20), products(1, 30))->text,
              HasSubstr("where {s0: 1..@4, s1: 16..@20}"));
  EXPECT_FALSE(generalize(products(4, 20), products(1, 3)));
}

TensorType blocks(std::int64_t count, std::int64_t lines, std::int64_t pixels) {
  TensorType type = f32({count, 16, lines, pixels});
  type.layout.channel_block = 16;
  return type;
}

/// Pixels and lines of images have classes of their own, images one.
TEST(OpenKernel, ImagesFromTheLeastOnShareAKernel) {
  const auto image = [](std::int64_t count, std::int64_t lines, std::int64_t pixels) {
    Graph body;
    const ValueId x = body.add_input("x", blocks(count, lines, pixels));
    body.outputs = {body.add(Op::max_pool, {x},
                             {{"kernel", Dims{3, 3}},
                              {"strides", Dims{1, 1}},
                              {"pads", Dims{1, 1, 1, 1}},
                              {"dilations", Dims{1, 1}}})};
    body.value(body.outputs[0]).type = blocks(count, lines, pixels);
    return make_kernel(body, {false});
  };
  const std::optional<Kernel> open = generalize(image(4, 4, 4), image(7, 7, 7));
  ASSERT_TRUE(open);
  EXPECT_THAT(open->text, HasSubstr("f32[s0,16,s1,s2]@c16) where {s0: 1..@4, s1: 4..@4, s2: 4..@4}"));
  EXPECT_TRUE(as_case(*open, image(1, 80, 5)));
  EXPECT_TRUE(as_case(*open, image(2, 80, 500)));
  EXPECT_FALSE(as_case(*open, image(2, 80, 3)));
  const std::optional<Kernel> large = generalize(image(4, 40, 20), image(4, 20, 9));
  ASSERT_TRUE(large);
  EXPECT_THAT(large->text, HasSubstr("where {s0: 16..@40, s1: 8..@20}"));
  EXPECT_THAT(generalize(image(4, 3, 4), image(4, 4, 4))->text, HasSubstr("where {s0: 2..@3}"));
  EXPECT_FALSE(generalize(image(4, 1, 4), image(4, 4, 4)));
  EXPECT_TRUE(generalize(image(4, 16, 16), image(4, 80, 90)));
  EXPECT_EQ(pixel_class(1), (SizeClass{1, 1}));
  EXPECT_EQ(pixel_class(15), (SizeClass{8, 15}));
  EXPECT_EQ(line_class(3), (SizeClass{2, 3}));
}

TEST(OpenKernel, ImagesWithoutWindowsAreOfAnySizeFromTwoOn) {
  const auto image = [](std::int64_t lines, std::int64_t pixels) {
    Graph body;
    body.outputs = {body.add(Op::relu, {body.add_input("x", blocks(4, lines, pixels))})};
    return make_kernel(body, {false});
  };
  EXPECT_THAT(generalize(image(40, 20), image(20, 9))->text, HasSubstr("where {s0: 2..@40, s1: 2..@20}"));
  EXPECT_FALSE(generalize(image(40, 1), image(20, 9)));
  const auto rows = [](std::int64_t pixels) {
    Graph body;
    const ValueId x = body.add_input("x", blocks(4, 1, pixels));
    body.outputs = {body.add(Op::to_layout, {x}, {{"block", std::int64_t{0}}})};
    return make_kernel(body, {false});
  };
  EXPECT_THAT(generalize(rows(784), rows(64))->text, HasSubstr("where {s0: 16..@784}")) << "lines of pixels";
}

/// x[1,rows,8] with rows ahead and behind.
Kernel padded(std::int64_t rows, std::int64_t low, std::int64_t high) {
  Graph body;
  const ValueId x = body.add_input("x", f32({1, rows, 8}));
  body.outputs = {body.add(Op::pad, {x}, {{"low", Dims{0, low, 0}}, {"high", Dims{0, high, 0}}})};
  return make_kernel(body, {false});
}

TEST(OpenKernel, BordersMayBeAnyNumber) {
  const std::optional<Kernel> open = generalize(padded(20, 1, 0), padded(37, 1, 3));
  ASSERT_TRUE(open);
  EXPECT_THAT(open->text, HasSubstr("where {s0: 16..@20, s1: 0..@0, s2: 0..@1, s3: 16..@21}"));
  EXPECT_EQ(parse_kernel(open->text).text, open->text);
  EXPECT_TRUE(as_case(*open, padded(50, 1, 2)));
  EXPECT_TRUE(as_case(*open, padded(50, 2, 2))) << "though it was equal in both";
  EXPECT_FALSE(generalize(padded(20, 1, 0), padded(37, 1, -3))) << "that cuts off";
}

/// The mean of each channel of x[1,16,lines,pixels], times `scale`.
Kernel mean(std::int64_t lines, std::int64_t pixels, float scale = 1) {
  Graph body;
  const ValueId x = body.add_input("x", f32({1, 16, lines, pixels}));
  const ValueId sum = body.add(Op::reduce_sum, {x}, {{"axes", Dims{2, 3}}});
  const float part = scale * static_cast<float>(1.0 / static_cast<double>(lines * pixels));
  body.outputs = {body.add(Op::mul, {sum, scalar(body, part)})};
  return make_kernel(body, {false});
}

/// What is equal at two sizes need not be at others: each edge along an axis that is cut is a number of its own.
TEST(OpenKernel, EdgesMayBeAnyNumber) {
  const auto crop = [](int lines, int columns, int line, int column) {
    return parse_kernel(fmt::format(
        "graph kernel(%in0: f32[2,8,{},{}]) {{\n  %v0: f32[2,8,{},{}] = slice(%in0) "
        "{{sizes=[2,8,{},{}], starts=[0,0,{},{}], steps=[1,1,1,1]}}\n  return %v0\n}}\nweights:\n",
        lines + 4, columns + 4, lines, columns, lines, columns, line, column));
  };
  const auto open = generalize(crop(40, 70, 1, 1), crop(52, 90, 1, 1));
  ASSERT_TRUE(open);
  EXPECT_TRUE(as_case(*open, crop(33, 66, 2, 0)));
  EXPECT_TRUE(as_case(*open, crop(33, 66, 0, 3)));
  const auto pad = [](int lines, int columns, int more) {
    return parse_kernel(
        fmt::format("graph kernel(%in0: f32[2,8,{},{}]) {{\n  %v0: f32[2,8,{},{}] = pad(%in0) "
                    "{{high=[0,0,0,{}], interior=[], low=[0,0,0,0], mode=\"constant\"}}\n  return "
                    "%v0\n}}\nweights:\n",
                    lines, columns, lines, columns + more, more));
  };
  const auto padded = generalize(pad(40, 70, 3), pad(52, 90, 3));
  ASSERT_TRUE(padded);
  EXPECT_TRUE(as_case(*padded, pad(33, 66, 1)));
}

TEST(OpenKernel, ConstantsThatCountAreSizes) {
  const std::optional<Kernel> open = generalize(mean(20, 30), mean(17, 33));
  ASSERT_TRUE(open);
  EXPECT_THAT(open->text, HasSubstr("where {s0: 16..@20, s1: 16..@30, s2: 1..@600}"));
  EXPECT_THAT(open->text,
              HasSubstr("%c0: f32[] = extents() {dtype=\"f32\", inverse=1, rank=0, values=[s2]}"));
  EXPECT_EQ(graph_text(open->body), graph_text(mean(20, 30).body)) << "a constant at its sizes";
  EXPECT_EQ(parse_kernel(open->text).text, open->text);
  const std::optional<Kernel> found = as_case(*open, mean(70, 41));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sizes, (Dims{70, 41, 2870}));
  EXPECT_EQ(graph_text(found->body), graph_text(mean(70, 41).body));
  EXPECT_FALSE(as_case(*open, mean(70, 41, 0.3F))) << "it is one over no number";
}

/// Ahead of a fold they are nodes of the open kernel, which has more of these than its cases.
TEST(OpenKernel, WorkAheadOfTheAnchorMayCount) {
  const auto furthest = [](std::int64_t rows, std::int64_t columns, float middle) {
    Graph body;
    const ValueId x = body.add_input("x", f32({rows, columns}));
    const ValueId apart = body.add(Op::sub, {x, scalar(body, middle)});
    const ValueId scaled = body.add(Op::mul, {apart, scalar(body, static_cast<float>(rows))});
    body.outputs = {body.add(Op::reduce_max, {scaled}, {{"axes", Dims{1}}})};
    return make_kernel(body, {false});
  };
  const std::optional<Kernel> open = generalize(furthest(40, 64, 6.5F), furthest(52, 64, 7.0F));
  ASSERT_TRUE(open);
  EXPECT_THAT(open->text, HasSubstr("extents() {dtype=\"f32\", half=1, inverse=0, rank=0, values=[s"));
  EXPECT_EQ(open->open->node(open_anchor(*open)).op, Op::reduce_max);
  EXPECT_EQ(parse_kernel(open->text).text, open->text);
  const std::optional<Kernel> found = as_case(*open, furthest(70, 64, 11.5F));
  ASSERT_TRUE(found);
  EXPECT_EQ(graph_text(found->body), graph_text(furthest(70, 64, 11.5F).body));
  EXPECT_FALSE(as_case(*open, furthest(70, 64, 11.25F))) << "it is half of no number";
}

TEST(OpenKernel, ConstantsAreSizesOnlyWhereTheyAreExactlyThat) {
  const auto extent = [](const Tensor& constant) {
    const std::optional<ConstantExtent> found = constant_extent(constant);
    if (!found) return std::string("none");
    const std::string number = std::to_string(found->extent);
    return found->form == CountForm::inverse ? "1/" + number
           : found->form == CountForm::half  ? number + "/2"
                                             : number;
  };
  EXPECT_EQ(extent(Tensor::scalar_f32(49)), "49");
  EXPECT_EQ(extent(Tensor::scalar_i64(512)), "512");
  EXPECT_EQ(extent(Tensor::scalar_f32(1.0F / 49)), "1/49");
  EXPECT_EQ(extent(Tensor::scalar_f32(std::nextafter(1.0F / 49, 1.0F))), "none");
  EXPECT_EQ(extent(Tensor::scalar_f32(6.5F)), "13/2");
  EXPECT_EQ(extent(Tensor::scalar_f32(0.5F)), "1/2") << "one over two";
  EXPECT_EQ(extent(Tensor::scalar_f32(6.25F)), "none");
  EXPECT_EQ(extent(Tensor::scalar_f32(0)), "none");
  EXPECT_EQ(extent(Tensor::scalar_f32(-4)), "none");
  EXPECT_EQ(extent(Tensor::scalar_f32(NAN)), "none");
  EXPECT_EQ(extent(Tensor::scalar_f32(1e20F)), "none");
}

TEST(OpenKernel, CasesOfAnotherSizeThanTheHintsGoBackToThem) {
  const Kernel open = generalize(product(20), product(33)).value();
  const Kernel again = at_hints(as_case(open, product(500)).value());
  EXPECT_EQ(again.sizes, open.sizes);
  EXPECT_EQ(again.body.type(0), open.body.type(0));
}

TEST(OpenKernel, SkeletonsTellStructures) {
  EXPECT_EQ(skeleton(product(20)), skeleton(product(500, 32)));
  EXPECT_NE(skeleton(product(20)), skeleton(merged(4, 5)));
}

TEST(RunExtents, KnowTheLeastAndWhatDivides) {
  const Kernel open = generalize(merged(4, 20), merged(5, 22)).value();
  const std::vector<RunExtent> loops = run_extents(open, open.body.inputs[0]);
  ASSERT_EQ(loops.size(), 3U);
  EXPECT_FALSE(loops[0].is_open);
  EXPECT_EQ(loops[1].extent, 20);
  EXPECT_EQ(loops[1].least, 16);
  EXPECT_FALSE(loops[1].is_multiple_of(2));
  const RunExtent fused = loops[0].fused_with(loops[1]);
  EXPECT_EQ(fused.extent, 160);
  EXPECT_TRUE(fused.is_open && fused.is_multiple_of(8));
  EXPECT_TRUE(fused.steps(4).is_multiple_of(2));
  EXPECT_EQ(fused.steps(4).least, 32);
  EXPECT_EQ(least_extent(open, open.body.inputs[0], 0), 1);
  EXPECT_FALSE(only_batches_are_open(open));
  EXPECT_TRUE(only_batches_are_open(generalize(product(20), product(33)).value()));
}

}  // namespace
}  // namespace sylvite::open_kernel_test
