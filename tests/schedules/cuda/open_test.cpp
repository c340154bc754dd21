#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lowering/plan/open_kernel.h"
#include "schedules/compile.h"
#include "schedules/cuda/candidate.h"
#include "schedules/cuda/nvrtc.h"
#include "schedules/machine.h"
#include "schedules/space.h"
#include "tests/support/attention_kernels.h"
#include "tests/support/conv_kernels.h"
#include "tests/support/matmul_kernels.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/sample_card.h"

// Templates whose text serves a range of sizes.

namespace sylvite::open_test {
namespace {

Machine hopper() {
  return with_gpu(detect_machine(1), sample_card());
}

using AtSize = Kernel (*)(std::int64_t size);

Kernel linear(std::int64_t rows) {
  return matmul_kernel({.m = rows, .n = 96, .epilogue = "gelu"});
}
Kernel linear_with_residual(std::int64_t rows) {
  return matmul_kernel({.batch = 3, .m = rows, .n = 128, .k = 96, .epilogue = "residual"});
}
Kernel linear_of_narrow_rows(std::int64_t rows) {
  return matmul_kernel({.m = rows, .n = 91, .k = 40, .epilogue = "bias"});
}
Kernel linear_of_many(std::int64_t batch) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[{0},50,64], %b: bf16[{0},64,64]) {{"
                  " %v: bf16[{0},50,64] = matmul(%a, %b) return %v }}",
                  batch));
}
/// Of queries with so many keys, in the result's rows.
Kernel scores(std::int64_t keys) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[4,201,64], %b: bf16[4,{0},64], %m: bf16[4,201,{0}], %n: bf16[4,1,{0}],"
                  " %c: bf16[4,201,1]) {{"
                  " %t: bf16[4,64,{0}] = transpose(%b) {{perm=[0,2,1]}}"
                  " %v: bf16[4,201,{0}] = matmul(%a, %t) %s: bf16[4,201,{0}] = add(%v, %m)"
                  " %r: bf16[4,201,{0}] = add(%s, %n) %u: bf16[4,201,{0}] = mul(%r, %c) return %u }}",
                  keys));
}
Kernel linear_in_f32(std::int64_t rows) {
  return matmul_kernel({.m = rows, .n = 70, .element = DType::f32, .out = DType::f32, .epilogue = "relu"});
}
Kernel convolution(std::int64_t images) {
  return conv_kernel({.images = images, .epilogue = "residual"});
}
Kernel narrow_convolution(std::int64_t images) {
  return conv_kernel({.images = images, .channels = 12, .filters = 20});
}
Kernel norm(std::int64_t rows) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[3,{0},768], %b: bf16[3,{0},768], %s: bf16[768], %t: bf16[768]) {{"
                  " %x: bf16[3,{0},768] = add(%a, %b) %v: bf16[3,{0},768] = layer_norm(%x, %s, %t) "
                  "{{axis=2}} return %v }}",
                  rows));
}
/// Scores with a mask that heads and queries share, as those of pooling by attention.
Kernel softmax_of_any_rows(std::int64_t columns) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[3,8,50,{0}], %m: bf16[3,1,1,{0}], %c: bf16[3,8,50,1]) {{"
                  " %x: bf16[3,8,50,{0}] = add(%a, %m) %v: bf16[3,8,50,{0}] = softmax(%x) {{axis=3}}"
                  " %y: bf16[3,8,50,{0}] = mul(%v, %c) return %y }}",
                  columns));
}
Kernel norm_of_any_columns(std::int64_t columns) {
  return norm_kernel(fmt::format(
      "graph g(%a: f32[6,40,{0}], %b: f32[6,40,{0}]) {{"
      " %v: f32[6,40,{0}] = layer_norm(%a) {{axis=2}} %y: f32[6,40,{0}] = add(%v, %b) return %y }}",
      columns));
}
/// Extremes, their places and sums.
Kernel folds_of_any_columns(std::int64_t columns) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[6,40,{0}]) {{ %m: bf16[6,40,1] = reduce_max(%a) {{axes=[2], keepdims=1}}"
                  " %p: i64[6,40] = arg_min(%a) {{axis=2, keepdims=0, select_last=1}} %c: f32[6,40,{0}] = "
                  "cast(%a) {{to=\"f32\"}}"
                  " %s: f32[6,40] = reduce_sum(%c) {{axes=[2], keepdims=0}} return %m, %p, %s }}",
                  columns));
}
/// The gradient of a norm by what it reads.
Kernel slopes_of_norm(std::int64_t rows) {
  return norm_kernel(fmt::format(
      "graph g(%g: bf16[3,{0},768], %x: bf16[3,{0},768]) {{ %p: bf16[3,{0},768] = mul(%g, %x)"
      " %s: bf16[3,{0},1] = reduce_sum(%p) {{axes=[2], keepdims=1}} %m: bf16[3,{0},768] = mul(%x, %s)"
      " %r: bf16[3,{0},768] = sub(%g, %m) return %r }}",
      rows));
}
Kernel norm_of_groups(std::int64_t images) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[{0},64,7,7]@c64, %s: bf16[{0},64,1,1]@c64) {{"
                  " %v: bf16[{0},64,7,7]@c64 = layer_norm(%a) {{axis=1, groups=8}}"
                  " %y: bf16[{0},64,7,7]@c64 = mul(%v, %s) return %y }}",
                  images));
}
Kernel norm_of_any_image(std::int64_t lines) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[3,64,{0},{0}]@c64, %s: bf16[3,64,1,1]@c64) {{"
                  " %v: bf16[3,64,{0},{0}]@c64 = layer_norm(%a) {{axis=1, groups=8}}"
                  " %y: bf16[3,64,{0},{0}]@c64 = mul(%v, %s) return %y }}",
                  lines));
}
Kernel attention(std::int64_t rows) {
  return attention_kernel({.queries = rows, .keys = rows, .rows_of_heads = true, .mask = {2, 1, 1, rows}});
}
Kernel causal_attention(std::int64_t rows) {
  return attention_kernel({.queries = rows, .keys = rows, .causal = true, .mask = {}});
}

/// The gradient of a layer's weight, whose depth is the rows.
Kernel slopes_of_weight(std::int64_t rows) {
  return norm_kernel(fmt::format(
      "graph g(%x: bf16[{0},512], %g: bf16[{0},384]) {{ %t: bf16[512,{0}] = transpose(%x) {{perm=[1,0]}}"
      " %m: bf16[512,384] = matmul(%t, %g) %r: f32[512,384] = cast(%m) {{to=\"f32\"}} return %r }}",
      rows));
}
Kernel slopes_of_weight_in_f32(std::int64_t rows) {
  return norm_kernel(fmt::format(
      "graph g(%x: f32[{0},256], %g: f32[{0},128]) {{ %t: f32[256,{0}] = transpose(%x) {{perm=[1,0]}}"
      " %m: f32[256,128] = matmul(%t, %g) return %m }}",
      rows));
}
/// The gradient of a table by the rows that were read.
Kernel slopes_of_table(std::int64_t rows) {
  return norm_kernel(
      fmt::format("graph g(%t: f32[1000,96], %i: i64[3,{0},1], %u: f32[3,{0},96]) {{"
                  " %r: f32[1000,96] = scatter_nd(%t, %i, %u) {{reduction=\"add\"}} return %r }}",
                  rows));
}
/// Queries, keys and values lie side by side, heads inside rows.
Kernel slopes_of_attention(std::int64_t rows, int of) {
  return norm_kernel(fmt::format(
      "graph g(%a: bf16[3,{0},12,64], %b: bf16[3,{0},4,64], %s: f32[3,4,{0}], %p: f32[3,4,{0}], %m: "
      "bool[3,1,{0},{0}]) {{"
      " %x: bf16[3,{0},4,64] = slice(%a) {{sizes=[3,{0},4,64], starts=[0,0,0,0], steps=[1,1,1,1]}}"
      " %y: bf16[3,{0},4,64] = slice(%a) {{sizes=[3,{0},4,64], starts=[0,0,4,0], steps=[1,1,1,1]}}"
      " %z: bf16[3,{0},4,64] = slice(%a) {{sizes=[3,{0},4,64], starts=[0,0,8,0], steps=[1,1,1,1]}}"
      " %q: bf16[3,4,{0},64] = transpose(%x) {{perm=[0,2,1,3]}}"
      " %k: bf16[3,4,{0},64] = transpose(%y) {{perm=[0,2,1,3]}}"
      " %v: bf16[3,4,{0},64] = transpose(%z) {{perm=[0,2,1,3]}}"
      " %g: bf16[3,4,{0},64] = transpose(%b) {{perm=[0,2,1,3]}}"
      " %r: bf16[3,4,{0},64] = attention_gradient(%q, %k, %v, %g, %s, %p, %m) {{of={1}, scale=0.125}}"
      " %t: bf16[3,{0},4,64] = transpose(%r) {{perm=[0,2,1,3]}} return %t }}",
      rows, of));
}
Kernel slopes_by_queries(std::int64_t rows) {
  return slopes_of_attention(rows, 0);
}
Kernel slopes_by_keys(std::int64_t rows) {
  return slopes_of_attention(rows, 1);
}
Kernel sums_of_attention(std::int64_t rows) {
  return norm_kernel(
      fmt::format("graph g(%q: bf16[3,4,{0},64], %k: bf16[3,4,{0},64]) {{"
                  " %v: f32[3,4,{0}] = attention_sums(%q, %k) {{causal=1, scale=0.125}} return %v }}",
                  rows));
}

Kernel convolution_of_any_image(std::int64_t lines) {
  return conv_kernel({.lines = lines, .columns = lines + 3});
}
Kernel narrow_convolution_of_any_image(std::int64_t lines) {
  return conv_kernel({.channels = 12, .lines = lines, .columns = lines + 3, .filters = 20, .stride = 2});
}
Kernel wide_groups_of_any_image(std::int64_t lines) {
  return conv_kernel({.channels = 440, .lines = lines, .columns = lines + 4, .filters = 440, .groups = 11});
}
Kernel depthwise(std::int64_t images) {
  return conv_kernel({.images = images, .groups = 64});
}
Kernel depthwise_of_any_image(std::int64_t lines) {
  return conv_kernel({.lines = lines, .columns = lines, .groups = 64});
}
Kernel groups(std::int64_t images) {
  return conv_kernel({.images = images, .groups = 8});
}
Kernel joined(std::int64_t batch) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[{0},1,64], %b: bf16[{0},196,64]) {{"
                  " %v: bf16[{0},197,64] = concat(%a, %b) {{axis=1}} return %v }}",
                  batch));
}

/// Of `count` images of size x size.
Kernel filter_gradient(std::int64_t count, std::int64_t size) {
  return norm_kernel(fmt::format(
      "graph g(%g: bf16[{0},64,{1},{1}]@c64, %x: bf16[{0},64,{1},{1}]@c64) {{"
      " %v: f32[4,9,64,64] = filter_gradient(%g, %x) {{kernel=[3,3], strides=[1,1], pads=[1,1,1,1],"
      " dilations=[1,1], groups=1, parts=4, joined=0}} return %v }}",
      count, size));
}
Kernel filter_gradient_of_images(std::int64_t count) {
  return filter_gradient(count, 40);
}
Kernel filter_gradient_of_any_image(std::int64_t size) {
  return filter_gradient(3, size);
}
Kernel line_gradient_of_any_image(std::int64_t size) {
  return norm_kernel(fmt::format(
      "graph g(%g: bf16[3,64,{0},{0}]@c64, %x: bf16[3,4,{1},{2}]@c4) {{"
      " %v: f32[4,7,64,32] = filter_gradient(%g, %x) {{kernel=[7,8], strides=[2,2], pads=[0,0,0,0],"
      " dilations=[1,1], groups=1, parts=4, joined=1}} return %v }}",
      size, 2 * size + 5, 2 * size + 6));
}
Kernel depthwise_gradient_of_any_image(std::int64_t size) {
  return norm_kernel(fmt::format(
      "graph g(%g: bf16[3,64,{0},{0}]@c64, %x: bf16[3,64,{0},{0}]@c64) {{"
      " %v: f32[4,9,64,1] = filter_gradient(%g, %x) {{kernel=[3,3], strides=[1,1], pads=[1,1,1,1],"
      " dilations=[1,1], groups=64, parts=4, joined=0}} return %v }}",
      size));
}
Kernel pool_gradient_of_any_image(std::int64_t size) {
  return norm_kernel(
      fmt::format("graph g(%g: bf16[3,64,{0},{0}]@c64, %x: bf16[3,64,{1},{1}]@c64) {{"
                  " %v: bf16[3,64,{1},{1}]@c64 = max_pool_gradient(%g, %x) {{kernel=[3,3], strides=[2,2],"
                  " pads=[1,1,1,1], dilations=[1,1]}} return %v }}",
                  size, 2 * size));
}

Kernel attention_in_f32(std::int64_t rows) {
  return attention_kernel({.queries = rows,
                           .keys = rows,
                           .element = DType::f32,
                           .rows_of_heads = true,
                           .mask = {2, 1, 1, rows},
                           .mask_type = DType::f32});
}
Kernel turned(std::int64_t batch) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[{0},64,96]) {{"
                  " %v: bf16[{0},96,64] = transpose(%a) {{perm=[0,2,1]}} return %v }}",
                  batch));
}

Kernel turned_of_any_rows(std::int64_t rows) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[2,3,{0},96]) {{"
                  " %v: bf16[2,3,96,{0}] = transpose(%a) {{perm=[0,1,3,2]}} return %v }}",
                  rows));
}
Kernel groups_of_any_image(std::int64_t lines) {
  return conv_kernel({.lines = lines, .columns = lines + 3, .groups = 8, .epilogue = "residual"});
}

/// Over rows of which runs have other numbers.
Kernel means(std::int64_t rows) {
  return norm_kernel(
      fmt::format("graph g(%a: f32[3,{0},40]) {{ %c = constant f32[] {{{1:.9g}}}"
                  " %s: f32[3,1,40] = reduce_sum(%a) {{axes=[1], keepdims=1}}"
                  " %v: f32[3,1,40] = mul(%s, %c) return %v }}",
                  rows, 1.0 / static_cast<double>(rows)));
}

struct Case {
  const char* name;
  AtSize at;
  std::int64_t first, second, third;
  const char* form;
};
constexpr Case cases[] = {
    {"linear", linear, 200, 130, 500, "cuda_matmul"},
    {"few rows", linear, 5, 3, 7, "cuda_matmul"},
    {"residual", linear_with_residual, 136, 257, 500, "cuda_matmul"},
    {"narrow rows", linear_of_narrow_rows, 200, 130, 500, "cuda_matmul"},
    {"batches", linear_of_many, 4, 7, 2, "cuda_matmul"},
    {"columns", scores, 133, 251, 501, "cuda_matmul"},
    {"columns and as many rows", scores, 133, 251, 201, "cuda_matmul"},
    {"f32", linear_in_f32, 200, 130, 501, "cuda_matmul"},
    {"convolution", convolution, 40, 50, 100, "cuda_conv"},
    {"narrow convolution", narrow_convolution, 40, 50, 100, "cuda_warps_conv"},
    {"images of any size", convolution_of_any_image, 40, 50, 100, "cuda_conv"},
    {"narrow, of any size", narrow_convolution_of_any_image, 40, 51, 101, "cuda_warps_conv"},
    {"wide groups of any size", wide_groups_of_any_image, 6, 9, 15, "cuda_warps_conv"},
    {"depthwise", depthwise, 40, 50, 100, "cuda_depthwise"},
    {"depthwise of any size", depthwise_of_any_image, 40, 50, 100, "cuda_depthwise"},
    {"groups", groups, 40, 50, 100, "cuda_grouped"},
    {"groups of any size", groups_of_any_image, 40, 50, 100, "cuda_grouped"},
    {"gradient by a filter", filter_gradient_of_images, 40, 50, 100, "cuda_filter_gradient"},
    {"the same of any size", filter_gradient_of_any_image, 40, 51, 101, "cuda_filter_gradient"},
    {"gradient by lines", line_gradient_of_any_image, 40, 51, 101, "cuda_line_gradient"},
    {"gradient by depthwise filters", depthwise_gradient_of_any_image, 40, 51, 101,
     "cuda_depthwise_gradient"},
    {"gradient of a pooling", pool_gradient_of_any_image, 40, 51, 101, "cuda_pool_gradient"},
    {"concat", joined, 40, 50, 100, "cuda_concat"},
    {"norm", norm, 136, 200, 500, "cuda_norm"},
    {"softmax of any rows", softmax_of_any_rows, 200, 131, 256, "cuda_norm"},
    {"norm of any columns", norm_of_any_columns, 1000, 800, 513, "cuda_norm"},
    {"slopes of a norm", slopes_of_norm, 136, 200, 500, "cuda_row_folds"},
    {"folds of any columns", folds_of_any_columns, 1000, 801, 50257, "cuda_row_folds"},
    {"norm of groups", norm_of_groups, 40, 50, 100, "cuda_image_norm"},
    {"norm of images of any size", norm_of_any_image, 40, 50, 100, "cuda_image_norm"},
    {"attention", attention, 130, 333, 500, "cuda_attention"},
    {"means", means, 49, 100, 81, "cuda_columns"},
    {"transpose", turned, 40, 50, 100, "cuda_transpose"},
    {"transpose of any rows", turned_of_any_rows, 41, 51, 101, "cuda_transpose"},
    {"slopes of a weight", slopes_of_weight, 1300, 2000, 777, "cuda_matmul"},
    {"slopes of a weight in f32", slopes_of_weight_in_f32, 1300, 2000, 777, "cuda_warps_matmul"},
    {"slopes of a table", slopes_of_table, 130, 333, 500, "cuda_scatter_rows"},
    {"slopes by queries", slopes_by_queries, 130, 333, 500, "cuda_attention_gradient"},
    {"slopes by keys", slopes_by_keys, 130, 333, 500, "cuda_attention_gradient"},
    {"sums of attention", sums_of_attention, 130, 333, 500, "cuda_attention_gradient"},
    {"attention of few keys", attention, 77, 100, 128, "cuda_attention"},
    {"attention in f32", attention_in_f32, 130, 333, 500, "cuda_attention"},
    {"causal attention", causal_attention, 130, 333, 500, "cuda_attention"},
};

/// Boxes of two images' pixels, behind each other.
Kernel boxes(std::int64_t first, std::int64_t second) {
  return norm_kernel(
      fmt::format("graph g(%a: bf16[2,{0},6], %b: bf16[2,{1},6]) {{ %v: bf16[2,{2},6] = concat(%a, %b) "
                  "{{axis=1}} %s: bf16[2,{2},6] = sigmoid(%v) return %s }}",
                  first, second, first + second));
}

TEST(CudaOpen, ConcatsHaveColumnsOfARun) {
  const Kernel open = generalize(boxes(100, 40), boxes(120, 33), Sharing::on_device).value();
  const Candidate candidate = default_candidate(open, hopper());
  ASSERT_EQ(candidate.form.name, "cuda_concat");
  const CudaTemplate first = cuda_template_of(open, candidate).value();
  const CudaTemplate other = cuda_template_of(as_case(open, boxes(70, 61)).value(), candidate).value();
  EXPECT_EQ(first.source.text, other.source.text);
  EXPECT_THAT(first.source.text, testing::HasSubstr("constexpr int VECTOR = 2,")) << "6 columns a box";
  EXPECT_THAT(first.launch.numbers, testing::ElementsAre(2, 840, 600));
  EXPECT_THAT(other.launch.numbers, testing::ElementsAre(2, 786, 420));
  if (cuda::missing_nvrtc().empty()) EXPECT_NE(cuda::compile_cuda(first).image, "");
}

TEST(CudaOpen, OneTextServesARange) {
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const std::optional<Kernel> open =
        generalize(each.at(each.first), each.at(each.second), Sharing::on_device);
    ASSERT_TRUE(open);
    const Candidate candidate = default_candidate(*open, hopper());
    EXPECT_EQ(candidate.form.name, each.form);
    std::string text;
    for (const std::int64_t size : {each.first, each.second, each.third}) {
      const std::optional<Kernel> kernel = as_case(*open, each.at(size));
      ASSERT_TRUE(kernel) << size;
      const CudaTemplate made = cuda_template_of(*kernel, candidate).value();
      const CudaTemplate fixed = cuda_template_of(each.at(size), candidate).value();
      if (text.empty()) text = made.source.text;
      EXPECT_EQ(made.source.text, text) << size;
      EXPECT_EQ(made.launch.shape, fixed.launch.shape) << size;
      EXPECT_EQ(made.launch.maps, fixed.launch.maps) << size;
      EXPECT_EQ(made.launch.pointers, fixed.launch.pointers) << size;
      EXPECT_THAT(fixed.launch.numbers, testing::IsEmpty());
    }
  }
}

TEST(CudaOpen, TextsCompile) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const Kernel open = generalize(each.at(each.first), each.at(each.second), Sharing::on_device).value();
    EXPECT_NE(cuda::compile_cuda(cuda_template_of(open, default_candidate(open, hopper())).value()).image,
              "");
  }
}

/// Spaces of Halide's, too: lines of a mask that are folded, of any length.
TEST(CudaOpen, FoldsOfAnyRowsAreOneKernel) {
  const auto masked = [](std::int64_t keys) {
    return norm_kernel(
        fmt::format("graph g(%a: i32[3,1,{0},{0}]) {{"
                    " %c = constant i32[] {{0}}"
                    " %m: i32[3,1,{0},1] = reduce_max(%a) {{axes=[3], keepdims=1}}"
                    " %v: bool[3,1,{0},1] = equal(%m, %c) return %v }}",
                    keys));
  };
  for (const auto& [first, second, space] :
       {std::tuple(100, 120, "gpu_rows"), std::tuple(20, 31, "gpu_tiles")}) {
    const Kernel open = generalize(masked(first), masked(second), Sharing::on_device).value();
    EXPECT_EQ(spaces_for(open, hopper()).front().name, space);
    EXPECT_EQ(spaces_for(masked(first), hopper()).front().name, space);
    const Machine machine = hopper();
    const Candidate candidate = default_candidate(open, machine);
    EXPECT_EQ(default_candidate(as_case(open, masked(second)).value(), machine), candidate);
    EXPECT_GT(compile_to_object(open, candidate, machine.target).size(), 1000U) << candidate.to_string();
  }
}

/// What lies in memory in steps of an open extent has a text for each size.
TEST(CudaOpen, RefusesTextsThatDependOnSizes) {
  const auto transposed = [](std::int64_t rows) {
    return matmul_kernel({.m = rows, .n = 96, .k = 64, .a_transposed = true});
  };
  const Kernel open = generalize(transposed(136), transposed(256), Sharing::on_device).value();
  const Candidate candidate = default_candidate(transposed(136), hopper());
  const std::optional<Kernel> other = as_case(open, transposed(256));
  ASSERT_TRUE(other);
  if (candidate.form.name == std::string("cuda_warps_matmul"))
    EXPECT_THROW((void)cuda_template_of(*other, candidate), UnsupportedError);
  const auto scores = [](std::int64_t keys) {
    return norm_kernel(
        fmt::format("graph g(%a: bf16[4,64,64], %b: bf16[4,64,{0}]) {{"
                    " %v: bf16[4,64,{0}] = matmul(%a, %b) return %v }}",
                    keys));
  };
  const Kernel of_keys = generalize(scores(136), scores(256), Sharing::on_device).value();
  EXPECT_THROW(
      (void)cuda_template_of(as_case(of_keys, scores(256)).value(), default_candidate(of_keys, hopper())),
      UnsupportedError);
}

/// Longer ones are another kernel's.
TEST(CudaOpen, RowsOfAnyLengthFitIntoRegisters) {
  const Kernel open =
      generalize(norm_of_any_columns(1000), norm_of_any_columns(800), Sharing::on_device).value();
  const Candidate candidate = default_candidate(open, hopper());
  EXPECT_NO_THROW((void)cuda_template_of(as_case(open, norm_of_any_columns(1024)).value(), candidate));
  EXPECT_THROW((void)cuda_template_of(as_case(open, norm_of_any_columns(1025)).value(), candidate),
               UnsupportedError);
  EXPECT_THAT(cuda_template_of(open, candidate).value().launch.numbers, testing::ElementsAre(240, 1000));
}

TEST(CudaOpen, WhatIsKnownStaysInTheText) {
  const auto numbers = [](AtSize at) {
    const Kernel open = generalize(at(40), at(50), Sharing::on_device).value();
    return cuda_template_of(open, default_candidate(open, hopper())).value().launch.numbers;
  };
  EXPECT_THAT(numbers(depthwise), testing::ElementsAre(40));
  EXPECT_THAT(numbers(convolution), testing::ElementsAre(40 * 12 * 9));
  EXPECT_THAT(numbers(depthwise_of_any_image), testing::SizeIs(6));
}

/// What a device makes has no classes but that of one.
TEST(CudaOpen, ElementsAreMadeOfAnyExtents) {
  const auto pooled = [](std::int64_t lines) {
    return norm_kernel(
        fmt::format("graph g(%a: bf16[2,64,{0},{0}]@c64) {{"
                    " %v: bf16[2,64,{1},{1}]@c64 = max_pool(%a) {{kernel=[2,2], strides=[2,2],"
                    " dilations=[1,1], pads=[0,0,0,0]}} return %v }}",
                    lines, lines / 2));
  };
  const std::optional<Kernel> open = generalize(pooled(20), pooled(300), Sharing::on_device);
  ASSERT_TRUE(open);
  const Candidate candidate = default_candidate(*open, hopper());
  for (const std::int64_t lines : {4, 40, 1000}) {
    const std::optional<Kernel> kernel = as_case(*open, pooled(lines));
    ASSERT_TRUE(kernel) << lines;
    EXPECT_EQ(default_candidate(*kernel, hopper()), candidate);
    EXPECT_NO_THROW((void)cuda_template_of(*kernel, candidate)) << lines;
  }
  EXPECT_TRUE(as_case(generalize(linear(20), linear(300), Sharing::on_device).value(), linear(4000)));
  EXPECT_FALSE(generalize(linear(20), linear(300), Sharing::of_device_class));
}

/// A block takes all keys where they are few in any run.
TEST(CudaOpen, FewKeysAreOneBlock) {
  const Kernel few = generalize(attention(77), attention(100), Sharing::on_device).value();
  const Kernel many = generalize(attention(130), attention(333), Sharing::on_device).value();
  EXPECT_FALSE(generalize(attention(77), attention(333), Sharing::on_device)) << "keys have classes";
  EXPECT_EQ(default_candidate(few, hopper()).form.at("whole_keys"), 1);
  EXPECT_EQ(default_candidate(few, hopper()).form.at("block"), 128);
  EXPECT_EQ(default_candidate(many, hopper()).form.at("whole_keys"), 0);
}

TEST(CudaOpen, WindowsReadAnyExtents) {
  const auto image = [](std::int64_t lines, std::int64_t columns) {
    return conv_kernel({.lines = lines, .columns = columns, .pads = {0, 0, 0, 0}});
  };
  const std::optional<Kernel> open = generalize(image(102, 92), image(112, 122), Sharing::on_device);
  ASSERT_TRUE(open);
  EXPECT_TRUE(as_case(*open, image(130, 130)));
  EXPECT_TRUE(as_case(*open, image(131, 130)));
  const Kernel in_class = generalize(image(102, 92), image(112, 122), Sharing::of_device_class).value();
  EXPECT_TRUE(as_case(in_class, image(130, 130)));
  EXPECT_FALSE(as_case(in_class, image(131, 130))) << "129 lines are made";
}

TEST(CudaOpen, ClassesOfExtents) {
  EXPECT_EQ(device_class(1), (SizeClass{1, 1}));
  EXPECT_EQ(device_class(2), (SizeClass{2, 8}));
  EXPECT_EQ(device_class(8), (SizeClass{2, 8}));
  EXPECT_EQ(device_class(9), (SizeClass{9, 32}));
  EXPECT_EQ(device_class(500), (SizeClass{129, 512}));
  EXPECT_EQ(device_class(512), (SizeClass{129, 512}));
  EXPECT_EQ(device_class(513), (SizeClass{513, 2048}));
}

}  // namespace
}  // namespace sylvite::open_test
