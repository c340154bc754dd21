#include "lowering/algorithms/algorithm.h"

#include <gtest/gtest.h>

#include "tests/lowering/algorithms/node_cases.h"

namespace sylvite::algorithm_test {
namespace {

TEST(Algorithm, BroadcastsAndCounts) {
  check({f32({2, 1, 5}), f32({3, 1}), f32({})},
        {{Op::add, {0, 1}, {}},
         {Op::mul, {1, 2}, {}},
         {Op::sub, {2, 0}, {}},
         {Op::broadcast_to, {0}, {{"shape", std::vector<std::int64_t>{4, 2, 3, 5}}}},
         {Op::iota, {}, {{"shape", std::vector<std::int64_t>{3, 4}}, {"axis", 1L}, {"dtype", "i64"}}}});
}

TEST(Algorithm, RandomBits) {
  const std::int64_t far = (std::int64_t{7} << 32) + 5;
  std::vector<std::int64_t> indices = {0, 1, -1, far};
  for (std::int64_t i = 4; i < 67; ++i) indices.push_back(i * i);
  const Tensor index = Tensor::of<std::int64_t>(DType::i64, {67}, indices);
  const Tensor narrow = Tensor::of<std::int32_t>(DType::i32, {4}, {0, 1, -1, 77});
  const Tensor seed = Tensor::of<std::int64_t>(DType::i64, {}, {-0x123456789abcdef});
  const NodeCase plain{Op::random_bits, {0, 2}, {}};
  const NodeCase other{Op::random_bits, {0, 2}, {{"stream", std::int64_t{4294967295}}}};
  check({index.type(), narrow.type(), seed.type()}, {plain, other, {Op::random_bits, {1, 2}, {}}},
        {index, narrow, seed}, 0);
}

using Integers = std::vector<std::int64_t>;

TEST(Algorithm, Movement) {
  check(
      {f32({2, 3, 4, 5}), f32({2, 2, 4, 5}), f32({1})},
      {{Op::transpose, {0}, {{"perm", Integers{0, 2, 3, 1}}}},
       {Op::reshape, {0}, {{"shape", Integers{6, 20}}}},
       {Op::reshape, {0}, {{"shape", Integers{2, 12, 1, 5}}}},
       {Op::reshape, {0}, {{"shape", Integers{4, 30}}}},
       {Op::slice,
        {0},
        {{"starts", Integers{0, 2, 3, 1}},
         {"sizes", Integers{2, 2, 2, 4}},
         {"steps", Integers{1, -1, -2, 1}}}},
       {Op::concat, {0, 1, 0}, {{"axis", 1L}}},
       {Op::pad, {0}, {{"low", Integers{0, 1, 2, -1}}, {"high", Integers{1, 0, 0, 3}}}},
       {Op::pad,
        {0, 2},
        {{"low", Integers{0, 0, 1, 0}}, {"high", Integers{0, 0, 1, 0}}, {"interior", Integers{0, 1, 0, 2}}}},
       {Op::pad, {0}, {{"low", Integers{0, 0, 3, 2}}, {"high", Integers{0, 0, 1, 2}}, {"mode", "reflect"}}},
       {Op::pad, {0}, {{"low", Integers{0, 0, 9, 2}}, {"high", Integers{0, 2, 0, 7}}, {"mode", "reflect"}}},
       {Op::pad, {0}, {{"low", Integers{0, 0, 3, 2}}, {"high", Integers{0, 0, 1, 2}}, {"mode", "edge"}}},
       {Op::pad, {0}, {{"low", Integers{0, 0, 3, 2}}, {"high", Integers{0, 0, 1, 2}}, {"mode", "wrap"}}}});
}

TEST(Algorithm, GatherAndScatter) {
  const TensorType indices = of(DType::i64, {2, 3});
  const Tensor tuples = Tensor::of<std::int64_t>(DType::i64, {2, 2}, {1, 3, -2, 0});
  const Tensor along = Tensor::of<std::int64_t>(DType::i64, {2, 3}, {1, -1, 0, 4, 2, -5});
  std::vector<NodeCase> nodes = {{Op::gather, {0, 1}, {{"axis", 1L}}},
                                 {Op::gather, {0, 1}, {{"axis", 0L}}},
                                 {Op::gather_elements, {0, 1}, {{"axis", 1L}}},
                                 {Op::gather_nd, {0, 2}, {}}};
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    nodes.push_back({Op::scatter_elements, {0, 1, 3}, {{"axis", 1L}, {"reduction", reduction}}});
    nodes.push_back({Op::scatter_nd, {0, 2, 4}, {{"reduction", reduction}}});
  }
  const std::vector<TensorType> types = {f32({4, 5}), indices, of(DType::i64, {2, 2}), f32({2, 3}), f32({2})};
  std::vector<Tensor> values = random_inputs(kernel_with(types, nodes));
  values[1] = along;
  values[2] = tuples;
  check(types, nodes, values);
}

TEST(Algorithm, Reductions) {
  std::vector<NodeCase> nodes;
  for (const Op op : {Op::reduce_sum, Op::reduce_max, Op::reduce_min, Op::reduce_prod}) {
    for (const Integers& axes : {Integers{0}, Integers{2}, Integers{0, 2}, Integers{0, 1, 2}})
      nodes.push_back({op, {0}, {{"axes", axes}}});
    nodes.push_back({op, {0}, {{"axes", Integers{1}}, {"keepdims", 0L}}});
  }
  for (const Op op : {Op::arg_max, Op::arg_min}) {
    nodes.push_back({op, {0}, {{"axis", 2L}, {"keepdims", 0L}}});
    nodes.push_back({op, {0}, {{"axis", 0L}, {"select_last", 1L}}});
  }
  check({f32({3, 4, 7})}, nodes);
  check({of(DType::i32, {3, 4, 7})}, nodes);
  const Kernel kernel = kernel_with({f32({3, 4, 7})}, nodes);
  std::vector<Tensor> special = random_inputs(kernel);
  special[0].set_double(5, nan);
  special[0].set_double(40, infinity);
  special[0].set_double(60, -infinity);
  check_candidate(kernel, reference_candidate(kernel), special);
}

TEST(Algorithm, ReductionsOfNothing) {
  check({f32({2, 0})}, {{Op::reduce_sum, {0}, {{"axes", Integers{1}}}},
                        {Op::reduce_prod, {0}, {{"axes", Integers{1}}}},
                        {Op::reduce_max, {0}, {{"axes", Integers{1}}}},
                        {Op::reduce_min, {0}, {{"axes", Integers{1}}}}});
}

TEST(Algorithm, ScansAndOrderings) {
  std::vector<NodeCase> nodes;
  for (const std::int64_t exclusive : {0, 1}) {
    for (const std::int64_t reverse : {0, 1}) {
      nodes.push_back({Op::cumsum, {0}, {{"axis", 1L}, {"exclusive", exclusive}, {"reverse", reverse}}});
      nodes.push_back({Op::cumprod, {0}, {{"axis", 0L}, {"exclusive", exclusive}, {"reverse", reverse}}});
    }
  }
  for (const std::int64_t largest : {0, 1}) {
    nodes.push_back({Op::top_k, {0}, {{"axis", 1L}, {"k", Dims{1}}, {"largest", largest}}});
    nodes.push_back({Op::top_k, {0}, {{"axis", 0L}, {"k", Dims{2}}, {"largest", largest}}});
  }
  check({f32({4, 6})}, nodes);
  check({of(DType::i64, {4, 6})}, nodes);
}

/// Ties keep the order of their indices, NaN is largest, and -0 is 0.
TEST(Algorithm, FewOfManyAreOrderedByMaximaRanksOrAFunctionAndManyByDigits) {
  const auto check_order = [](const TensorType& type, std::int64_t axis, std::int64_t k,
                              const std::vector<Tensor>& values = {}) {
    for (const std::int64_t largest : {0, 1}) {
      const Kernel kernel =
          kernel_with({type}, {{Op::top_k, {0}, {{"axis", axis}, {"k", Dims{k}}, {"largest", largest}}}});
      check_candidate(kernel, reference_candidate(kernel), values, 0);
    }
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8}) {
    check_order(of(dtype, {3, 700}), 1, 30);
    check_order(of(dtype, {700, 2}), 0, 9);
    check_order(of(dtype, {600}), 0, 600);
    check_order(of(dtype, {2, 300}), 1, 200);
    check_order(of(dtype, {2, 90}), 1, 90);
    check_order(of(dtype, {2, 950}), 1, 900);
    check_order(of(dtype, {950, 2}), 0, 850);
    check_order(of(dtype, {3, 700}), 1, 20);
    check_order(of(dtype, {33}), 0, 8);
    check_order(of(dtype, {2, 64}), 1, 1);
  }
  for (const DType dtype : {DType::f32, DType::u8})
    for (const std::int64_t row : {1500, 700}) check_order(of(dtype, {2, row}), 1, 9);  // by strips
  Tensor special(DType::f32, {600});
  const double numbers[] = {0, -0.0, 1, NAN, -1, INFINITY, -INFINITY, 1e-40};
  for (std::int64_t i = 0; i < 600; ++i)
    special.set_double(i, numbers[static_cast<std::size_t>(i * i % 61 % 8)]);
  for (const std::int64_t k : {77, 500, 600}) check_order(f32({600}), 0, k, {special});
  check_order(f32({600}), 0, 8, {special});
  Tensor alike(DType::f32, {1100});
  for (std::int64_t i = 0; i < 1100; ++i) alike.set_double(i, numbers[static_cast<std::size_t>(i % 8)]);
  check_order(f32({1100}), 0, 12, {alike});
  // Elements that come in order, all of which are kept for a while, and some that are alike.
  for (const DType dtype : {DType::f32, DType::i64}) {
    Tensor rising(dtype, {3, 2000});
    for (std::int64_t i = 0; i < rising.size(); ++i)
      rising.set_double(i, static_cast<double>(i < 4000 ? i : i * i % 61));
    for (const std::int64_t k : {11, 50, 300}) check_order(of(dtype, {3, 2000}), 1, k, {rising});
  }
}

/// Few kinds of numbers, so that most are equal to others: chosen by the steps of a heap, of partitions, with and without an
/// order at the end, of rows that are chosen by maxima and others.
TEST(Algorithm, EqualElementsComeInTheOrderOfTheLibraryWhereThatIsAskedFor) {
  struct Row {
    std::vector<std::int64_t> dims;
    std::int64_t axis, k;
  };
  const Row rows[] = {{{3, 8}, 1, 2},     {{3, 64}, 1, 8},     {{2, 700}, 1, 9}, {{2, 1500}, 1, 20},
                      {{2, 1500}, 1, 40}, {{300}, 0, 300},     {{300}, 0, 200},  {{90, 3}, 0, 1},
                      {{700, 2}, 0, 9},   {{700, 2}, 0, 30},   {{2, 33}, 1, 1},  {{5, 40}, 1, 24},
                      {{1, 1}, 1, 1},     {{2, 17, 3}, 1, 16}, {{6, 16}, 1, 6},  {{9, 32}, 1, 30},
                      {{5, 7}, 1, 7},     {{9, 32}, 1, 3},     {{16}, 0, 5},     {{4, 30}, 1, 20}};
  const DType dtypes[] = {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8};
  std::size_t number = 0;
  for (const Row& row : rows) {
    const DType dtype = dtypes[number % std::size(dtypes)];
    const std::int64_t largest = static_cast<std::int64_t>(number++ / 2 % 2);
    Tensor values(dtype, row.dims);
    for (std::int64_t i = 0; i < values.size(); ++i)
      values.set_double(i, static_cast<double>(i * i % 61 % 7));
    if (is_float(dtype) && values.size() > 9) {
      values.set_double(3, NAN);
      values.set_double(7, -NAN);
      values.set_double(5, -0.0);
    }
    for (const std::int64_t ties : {1, 2, 3}) {
      const Kernel kernel = kernel_with(
          {of(dtype, row.dims)},
          {{Op::top_k, {0}, {{"axis", row.axis}, {"k", Dims{row.k}}, {"largest", largest}, {"ties", ties}}}});
      check_candidate(kernel, reference_candidate(kernel), {values}, 0);
    }
  }
}

TEST(Algorithm, Normalizations) {
  check({f32({3, 4, 10}), f32({10}), f32({10}), f32({4, 10}), f32({4})},
        {{Op::softmax, {0}, {{"axis", 2L}}},
         {Op::softmax, {0}, {{"axis", 1L}}},
         {Op::log_softmax, {0}, {{"axis", 2L}}},
         {Op::layer_norm, {0, 1, 2}, {{"axis", 2L}}},
         {Op::layer_norm, {0, 3, -1}, {{"axis", 1L}}},
         {Op::layer_norm, {0}, {{"axis", 1L}, {"groups", 2L}}},
         {Op::layer_norm, {0}, {{"axis", 2L}, {"groups", 5L}}},
         {Op::rms_norm, {0, 1}, {{"axis", 2L}}},
         {Op::batch_norm, {0, 4, 4, 4, 4}, {}}},
        [] {
          std::vector<Tensor> values =
              random_inputs(kernel_with({f32({3, 4, 10}), f32({10}), f32({10}), f32({4, 10}), f32({4})}, {}));
          for (std::int64_t i = 0; i < 4; ++i) values[4].set_double(i, 0.5 + static_cast<double>(i));
          return values;
        }());
}

TEST(Algorithm, SoftmaxOfSpecialRows) {
  const Tensor rows = [] {
    Tensor tensor(DType::f32, {4, 3});
    const std::vector<double> values = {1,   -infinity, 2, -infinity, -infinity, -infinity,
                                        nan, 1,         2, infinity,  0,         1};
    for (std::size_t i = 0; i < values.size(); ++i)
      tensor.set_double(static_cast<std::int64_t>(i), values[i]);
    return tensor;
  }();
  check({f32({4, 3})}, {{Op::softmax, {0}, {{"axis", 1L}}}, {Op::log_softmax, {0}, {{"axis", 1L}}}}, {rows});
}

TEST(Algorithm, ProductsOfDepthOne) {
  check_kernel(
      "graph g(%x: f16[2,4,1], %w: f16[1,5]) {\n  %a: f16[2,4,5] = matmul(%x, %w)\n  return %a\n}\n");
  check_kernel("graph g(%x: f64[7,1], %w: f64[1,9]) {\n  %a: f64[7,9] = matmul(%x, %w)\n  return %a\n}\n");
}

TEST(Algorithm, MatmulsAndAttention) {
  check({f32({5, 7}), f32({7, 3}), f32({2, 1, 5, 7}), f32({4, 7, 3})},
        {{Op::matmul, {0, 1}, {}}, {Op::matmul, {2, 3}, {}}, {Op::matmul, {2, 1}, {}}});
  check({f32({2, 3, 4, 8}), f32({2, 3, 6, 8}), f32({2, 3, 6, 5}), of(DType::boolean, {2, 1, 1, 6}),
         f32({4, 6})},
        {{Op::attention, {0, 1, 2}, {}},
         {Op::attention, {0, 1, 2, 4}, {{"scale", 0.3}, {"softcap", 2.0}}},
         {Op::attention, {0, 1, 2}, {{"causal", 1L}}},
         {Op::attention, {0, 1, 2, 3}, {}}});
}

const Attributes window_2d = {{"strides", Integers{2, 1}},
                              {"pads", Integers{1, 0, 1, 2}},
                              {"dilations", Integers{1, 2}},
                              {"groups", 1L}};

TEST(Algorithm, Convolutions) {
  check({f32({2, 4, 7, 9}), f32({6, 4, 3, 2}), f32({6}), f32({6, 2, 3, 2}), f32({4, 1, 3, 2}), f32({2, 4, 9}),
         f32({3, 4, 3})},
        {{Op::conv, {0, 1, 2}, window_2d},
         {Op::conv,
          {0, 3},
          {{"strides", Integers{1, 1}},
           {"pads", Integers{0, 0, 0, 0}},
           {"dilations", Integers{1, 1}},
           {"groups", 2L}}},
         {Op::conv,
          {0, 4},
          {{"strides", Integers{1, 1}},
           {"pads", Integers{1, 1, 1, 1}},
           {"dilations", Integers{1, 1}},
           {"groups", 4L}}},
         {Op::conv,
          {5, 6},
          {{"strides", Integers{1}}, {"pads", Integers{1, 1}}, {"dilations", Integers{1}}, {"groups", 1L}}}});
}

TEST(Algorithm, Pools) {
  std::vector<NodeCase> nodes;
  for (const std::int64_t padding : {0, 1}) {
    nodes.push_back({Op::avg_pool,
                     {0},
                     {{"kernel", Integers{3, 2}},
                      {"strides", Integers{2, 1}},
                      {"pads", Integers{1, 0, 1, 1}},
                      {"dilations", Integers{1, 2}},
                      {"count_include_pad", padding}}});
  }
  nodes.push_back({Op::max_pool,
                   {0},
                   {{"kernel", Integers{3, 2}},
                    {"strides", Integers{2, 1}},
                    {"pads", Integers{1, 0, 1, 1}},
                    {"dilations", Integers{1, 2}}}});
  check({f32({1, 3, 7, 9})}, nodes);
  const Kernel kernel = kernel_with({f32({1, 3, 7, 9})}, nodes);
  std::vector<Tensor> special = random_inputs(kernel);
  special[0].set_double(20, nan);
  special[0].set_double(120, -infinity);
  check_candidate(kernel, reference_candidate(kernel), special);
}

TEST(Algorithm, BlockedLayouts) {
  // Channels that fill the blocks, and channels that do not.
  for (const std::int64_t channels : {8, 6}) {
    const Integers pads = {1, 1, 1, 1};
    check({f32({1, channels, 5, 6}, 4), f32({channels, channels, 3, 3}), f32({1, channels, 5, 6}),
           f32({channels, 1, 1}), f32({1, channels, 1, 1}, 4)},
          {{Op::add, {0, 2}, {}, 4},
           {Op::mul, {0, 3}, {}, 4},
           {Op::mul, {0, 4}, {}, 4},
           {Op::relu, {0}, {}, 0},
           {Op::to_layout, {2}, {{"block", 4L}}, 4},
           {Op::reduce_sum, {0}, {{"axes", Integers{2, 3}}}, 4},
           {Op::reduce_max, {0}, {{"axes", Integers{1}}}},
           {Op::softmax, {0}, {{"axis", 1L}}, 4},
           {Op::conv,
            {0, 1},
            {{"strides", Integers{1, 1}}, {"pads", pads}, {"dilations", Integers{1, 1}}, {"groups", 1L}},
            4},
           {Op::max_pool,
            {0},
            {{"kernel", Integers{3, 3}},
             {"strides", Integers{2, 2}},
             {"pads", pads},
             {"dilations", Integers{1, 1}}},
            4},
           {Op::concat, {0, 0}, {{"axis", 1L}}, 4},
           {Op::transpose, {0}, {{"perm", Integers{0, 2, 3, 1}}}, 0}});
  }
}

}  // namespace
}  // namespace sylvite::algorithm_test
