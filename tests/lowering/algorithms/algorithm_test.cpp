#include "lowering/algorithms/algorithm.h"

#include <gmock/gmock.h>

#include <limits>

#include "frontend/ops/op_table.h"
#include "tests/support/pointwise_ops.h"
#include "tests/support/run_kernel.h"

namespace sylvite {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

TensorType f32(const Dims& dims, int block = 0) {
  TensorType type = make_type(DType::f32, dims);
  type.layout.channel_block = block;
  return type;
}
TensorType of(DType dtype, const Dims& dims) {
  return make_type(dtype, dims);
}

/// One node to compute, all of a case's nodes reading the same inputs: compiled as one kernel with many
/// outputs.
struct NodeCase {
  Op op;
  std::vector<int> inputs;  ///< indices into the case's inputs; -1 leaves an optional input out
  Attributes attributes;
  int block = 0;  ///< layout of the result
};

Kernel kernel_with(const std::vector<TensorType>& inputs, const std::vector<NodeCase>& nodes) {
  Graph graph;
  for (std::size_t i = 0; i < inputs.size(); ++i) graph.add_input("x" + std::to_string(i), inputs[i]);
  for (const NodeCase& node : nodes) {
    std::vector<ValueId> operands;
    operands.reserve(node.inputs.size());
    for (const int i : node.inputs)
      operands.push_back(i < 0 ? no_value : graph.inputs.at(static_cast<std::size_t>(i)));
    for (const ValueId id : graph.add_node(node.op, operands, node.attributes)) {
      graph.value(id).type.layout.channel_block = node.block;
      graph.outputs.push_back(id);
    }
  }
  return make_kernel(graph, std::vector<bool>(inputs.size(), false));
}

/// Do the rows of the op table name the stages that fold?
void check_update_stages(const Kernel& kernel) {
  const Algorithm algorithm = build_algorithm(kernel, Form::parse("generic"));
  for (const Node& node : kernel.body.nodes()) {
    const std::string value = kernel.body.value(node.outputs.front()).name + "_";
    std::vector<std::string> found;
    for (const auto& [name, stage] : algorithm.stages)
      if (name.starts_with(value) && stage.has_update_definition())
        found.push_back(name.substr(value.size() - 1));
    EXPECT_THAT(found, testing::UnorderedElementsAreArray(update_stages(node.op))) << op_info(node.op).name;
  }
}

void check(const std::vector<TensorType>& inputs, const std::vector<NodeCase>& nodes,
           const std::vector<Tensor>& values = {}, double tolerance = 2e-5) {
  const Kernel kernel = kernel_with(inputs, nodes);
  check_update_stages(kernel);
  check_candidate(kernel, reference_candidate(kernel), values, tolerance);
}

std::vector<NodeCase> each(const std::vector<Op>& ops, const std::vector<int>& inputs) {
  std::vector<NodeCase> nodes;
  nodes.reserve(ops.size());
  for (const Op op : ops) nodes.push_back({op, inputs, {}});
  return nodes;
}

Tensor floats(DType dtype, const std::vector<double>& values) {
  Tensor tensor(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_double(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

const std::vector<double> specials = {0.0, -0.0, 1.0, -1.0, 0.5,   -0.5,  1.5,      2.5,       -2.5,
                                      3.7, -3.7, 20,  -20,  0.001, 1e-30, infinity, -infinity, nan};

TEST(Algorithm, UnaryFloatsAgreeOnSpecialValues) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto count = static_cast<std::int64_t>(specials.size());
    std::vector<NodeCase> nodes = each(pointwise_ops(1, dtype), {0});
    nodes.push_back({Op::gelu, {0}, {{"approximate", "tanh"}}});
    nodes.push_back({Op::cast, {0}, {{"to", "bool"}}});
    nodes.push_back({Op::cast, {0}, {{"to", "bf16"}}});
    nodes.push_back({Op::cast, {0}, {{"to", "f16"}}});
    check({of(dtype, {count})}, nodes, {floats(dtype, specials)}, 1e-5);
  }
}

TEST(Algorithm, BinaryFloatsAgreeOnSpecialValues) {
  std::vector<double> left;
  std::vector<double> right;
  for (const double a : specials) {
    for (const double b : specials) {
      left.push_back(a);
      right.push_back(b);
    }
  }
  const auto count = static_cast<std::int64_t>(left.size());
  for (const DType dtype : {DType::f32, DType::f64}) {
    check({of(dtype, {count}), of(dtype, {count})}, each(pointwise_ops(2, dtype), {0, 1}),
          {floats(dtype, left), floats(dtype, right)});
  }
}

TEST(Algorithm, SixteenBitFloatsComputeInSingle) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    check({of(dtype, {5, 7}), of(dtype, {7})},
          {{Op::add, {0, 1}, {}},
           {Op::mul, {0, 1}, {}},
           {Op::exp, {0}, {}},
           {Op::less, {0, 1}, {}},
           {Op::cast, {0}, {{"to", "f32"}}},
           {Op::reduce_sum, {0}, {{"axes", std::vector<std::int64_t>{1}}}},
           {Op::transpose, {0}, {{"perm", std::vector<std::int64_t>{1, 0}}}}},
          {}, dtype == DType::f16 ? 2e-3 : 2e-2);
  }
}

/// A relu of the halves must not let the code generator forget that they may be NaN.
TEST(Algorithm, ConversionsKeepNaNAndInfinity) {
  const std::vector<double> values = {nan,   infinity, -infinity, 0.0,     -0.0,  6e-8, 65504, 65519,
                                      65520, -1e30,    1e300,     -1e-300, 1e-40, 2.5,  -3.25, 448};
  const auto count = static_cast<std::int64_t>(values.size());
  for (const std::string from : {"f16", "bf16", "f32", "f64"}) {
    for (const std::string to : {"f16", "bf16", "f32", "f64"}) {
      const Kernel kernel = kernel_of(fmt::format(
          "graph g(%x: {0}[{2}]) {{\n %y: {0}[{2}] = relu(%x)\n %z: {1}[{2}] = cast(%y) {{to=\"{1}\"}}\n"
          " %n: {1}[{2}] = neg(%z)\n return %n\n}}",
          from, to, count));
      if (from == "f64" && to != "f32" && to != "f64") continue;  // rounded twice
      check_candidate(kernel, reference_candidate(kernel), {floats(parse_dtype(from), values)}, 0);
    }
  }
}

/// Every code of every narrow type to f32 and f16, and back from numbers around every code.
TEST(Algorithm, NarrowTypes) {
  for (const std::string dtype :
       {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u4", "i2", "u2"}) {
    const DType type = parse_dtype(dtype);
    const int codes = 1 << dtype_bits(type);
    Tensor all(type, {codes});
    for (int i = 0; i < codes; ++i)
      static_cast<std::uint8_t*>(all.mutable_data())[i] = static_cast<std::uint8_t>(i);
    if (!is_narrow_float(type))
      for (int i = 0; i < codes; ++i) all.set_int64(i, i);
    std::vector<double> around = {infinity, -infinity, nan, 1e30, -1e30, 1e-30, -1e-30};
    for (int i = 0; i < codes; ++i) {
      const double value = all.as_double(i);
      for (const double factor : {0.93, 1.0, 1.0625, 1.07})
        if (std::abs(value) < 1e30) around.push_back(value * factor);
    }
    if (is_narrow_float(type)) {
      check({all.type()},
            {{Op::cast, {0}, {{"to", std::string("f32")}}}, {Op::cast, {0}, {{"to", std::string("f64")}}}},
            {all}, 0);
    } else {
      check({all.type()},
            {{Op::cast, {0}, {{"to", std::string("f32")}}}, {Op::cast, {0}, {{"to", std::string("i32")}}}},
            {all}, 0);
      around.erase(around.begin(), around.begin() + 5);  // beyond 64 bits nothing is promised
    }
    const Tensor given = floats(DType::f32, around);
    check({given.type()}, {{Op::cast, {0}, {{"to", dtype}}}}, {given}, 0);
  }
}

TEST(Algorithm, BitsReadAsAnotherType) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"f32", "i32"}, {"i32", "f32"}, {"f16", "u16"}, {"u16", "bf16"},  {"f64", "u64"},
      {"i8", "u8"},   {"u8", "bool"}, {"bool", "i8"}, {"u8", "f8e5m2"}, {"f8e4m3fn", "i8"}};
  for (const auto& [from, to] : pairs) {
    Tensor values(parse_dtype(from), {64});
    for (std::int64_t i = 0; i < 64; ++i) values.set_int64(i, i * 7 - 100);
    check({values.type()}, {{Op::bitcast, {0}, {{"to", to}}}}, {values}, 0);
  }
  Tensor nibbles(DType::u4, {16});
  for (std::int64_t i = 0; i < 16; ++i) nibbles.set_int64(i, i);
  check(
      {nibbles.type()},
      {{Op::bitcast, {0}, {{"to", std::string("i4")}}}, {Op::bitcast, {0}, {{"to", std::string("f4e2m1")}}}},
      {nibbles}, 0);
}

TEST(Algorithm, IntegersOfEveryWidth) {
  for (const DType dtype :
       {DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16, DType::u32, DType::u64}) {
    std::vector<NodeCase> nodes =
        each({Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum, Op::equal, Op::less, Op::greater_equal,
              Op::bitwise_and, Op::bitwise_or, Op::bitwise_xor},
             {0, 1});
    nodes.push_back({Op::div, {0, 2}, {}});
    nodes.push_back({Op::mod, {0, 2}, {}});
    nodes.push_back({Op::mod, {0, 2}, {{"fmod", 1L}}});
    nodes.push_back({Op::abs, {0}, {}});
    nodes.push_back({Op::sign, {0}, {}});
    nodes.push_back({Op::bitwise_not, {0}, {}});
    nodes.push_back({Op::cast, {0}, {{"to", "f32"}}});
    nodes.push_back({Op::cast, {0}, {{"to", "u8"}}});
    if (is_unsigned_integer(dtype)) {
      nodes.push_back({Op::shift_left, {0, 2}, {}});
      nodes.push_back({Op::shift_right, {0, 2}, {}});
    } else {
      nodes.push_back({Op::neg, {0}, {}});
    }
    const TensorType type = of(dtype, {40});
    const Kernel kernel = kernel_with({type, type, type}, nodes);
    std::vector<Tensor> values = random_inputs(kernel);
    for (std::int64_t i = 0; i < 40; ++i)
      if (values[2].as_int64(i) == 0) values[2].set_int64(i, 3);
    check_candidate(kernel, reference_candidate(kernel), values);
  }
}

// By fewer than none or more bits than there are, what is left are bits of the sign.
TEST(Algorithm, ShiftsOfSignedIntegers) {
  const std::vector<std::int64_t> values = {-8, -8, -8, -8, 8, 8, 8, 8, -1, 1, 127, -128};
  const std::vector<std::int64_t> amounts = {0, 1, 100, -1, 0, 1, 100, -1, 7, 7, 6, 7};
  for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64}) {
    Tensor x(dtype, {12});
    Tensor by(dtype, {12});
    for (std::int64_t i = 0; i < 12; ++i) {
      x.set_int64(i, values[static_cast<std::size_t>(i)]);
      by.set_int64(i, amounts[static_cast<std::size_t>(i)]);
    }
    check({x.type(), by.type()}, {{Op::shift_left, {0, 1}, {}}, {Op::shift_right, {0, 1}, {}}}, {x, by}, 0);
  }
}

TEST(Algorithm, Booleans) {
  std::vector<NodeCase> nodes = each({Op::logical_and, Op::logical_or, Op::logical_xor, Op::equal}, {0, 1});
  nodes.push_back({Op::logical_not, {0}, {}});
  nodes.push_back({Op::cast, {0}, {{"to", "f32"}}});
  nodes.push_back({Op::where, {0, 2, 3}, {}});
  nodes.push_back({Op::transpose, {0}, {{"perm", std::vector<std::int64_t>{1, 0}}}});
  check({of(DType::boolean, {3, 9}), of(DType::boolean, {9}), f32({3, 9}), f32({1})}, nodes);
}

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
    nodes.push_back({Op::top_k, {0}, {{"axis", 1L}, {"k", 3L}, {"largest", largest}}});
    nodes.push_back({Op::top_k, {0}, {{"axis", 0L}, {"k", 4L}, {"largest", largest}}});
  }
  check({f32({4, 6})}, nodes);
  check({of(DType::i64, {4, 6})}, nodes);
}

/// Ties keep the order of their indices, NaN is largest, and -0 is 0.
TEST(Algorithm, FewOfManyAreOrderedByMaximaAndManyByDigits) {
  const auto check_order = [](const TensorType& type, std::int64_t axis, std::int64_t k,
                              const std::vector<Tensor>& values = {}) {
    for (const std::int64_t largest : {0, 1}) {
      const Kernel kernel =
          kernel_with({type}, {{Op::top_k, {0}, {{"axis", axis}, {"k", k}, {"largest", largest}}}});
      check_candidate(kernel, reference_candidate(kernel), values, 0);
    }
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8}) {
    check_order(of(dtype, {3, 700}), 1, 30);
    check_order(of(dtype, {700, 2}), 0, 9);
    check_order(of(dtype, {600}), 0, 600);
    check_order(of(dtype, {3, 700}), 1, 20);
    check_order(of(dtype, {33}), 0, 8);
    check_order(of(dtype, {2, 64}), 1, 1);
  }
  for (const DType dtype : {DType::f32, DType::u8}) check_order(of(dtype, {2, 1500}), 1, 9);  // by strips
  Tensor special(DType::f32, {600});
  const double numbers[] = {0, -0.0, 1, NAN, -1, INFINITY, -INFINITY, 1e-40};
  for (std::int64_t i = 0; i < 600; ++i)
    special.set_double(i, numbers[static_cast<std::size_t>(i * i % 61 % 8)]);
  check_order(f32({600}), 0, 77, {special});
  check_order(f32({600}), 0, 8, {special});
  Tensor alike(DType::f32, {1100});
  for (std::int64_t i = 0; i < 1100; ++i) alike.set_double(i, numbers[static_cast<std::size_t>(i % 8)]);
  check_order(f32({1100}), 0, 12, {alike});
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
}  // namespace sylvite
