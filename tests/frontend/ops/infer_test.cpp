#include "frontend/ops/infer.h"

#include "frontend/ops/absent_attributes.h"
#include "frontend/ops/op_table.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::infer_test {
namespace {

/// The output type of one node over inputs of the given types, written as in the text form.
std::string infer(Op op, const std::vector<std::optional<TensorType>>& inputs, Attributes attributes = {}) {
  Graph graph;
  std::vector<ValueId> ids;
  ids.reserve(inputs.size());
  for (const std::optional<TensorType>& type : inputs)
    ids.push_back(type ? graph.add_input("x", *type) : no_value);
  return graph.type(graph.add_node(op, ids, std::move(attributes)).at(0)).to_string();
}

TensorType f32(const Dims& dims, int block = 0) {
  TensorType type = make_type(DType::f32, dims);
  type.layout.channel_block = block;
  return type;
}
TensorType i64(const Dims& dims) {
  return make_type(DType::i64, dims);
}
TensorType boolean(const Dims& dims) {
  return make_type(DType::boolean, dims);
}
TensorType symbolic(const std::string& name, std::int64_t last) {
  return {DType::f32, {Extent::symbol(name), last}, {}};
}

void refuse(Op op, const std::vector<std::optional<TensorType>>& inputs, Attributes attributes = {}) {
  EXPECT_THROW((void)infer(op, inputs, std::move(attributes)), Error) << op_info(op).name;
}

constexpr std::int64_t zero = 0;
constexpr std::int64_t one = 1;

TEST(OpTable, HasARowForEveryOperation) {
  EXPECT_EQ(op_table().size(), static_cast<std::size_t>(Op::count_));
  for (const OpInfo& row : op_table()) {
    EXPECT_EQ(find_op(row.name), row.op);
    EXPECT_EQ(&op_info(row.op), &row);
    EXPECT_NE(row.infer, nullptr);
    EXPECT_EQ(row.evaluate == nullptr, row.op == Op::loop) << row.name;  // the interpreter runs its body
    EXPECT_FALSE(row.help.empty());
    EXPECT_LE(row.min_inputs, row.max_inputs);
    for (const AttributeInfo& attribute : row.attributes) {
      EXPECT_FALSE(attribute.help.empty()) << row.name << "." << attribute.name;
      EXPECT_EQ(row.find_attribute(attribute.name), &attribute);
      if (!attribute.fallback || may_be_absent(attribute)) continue;
      EXPECT_EQ(attribute.fallback->index(), static_cast<std::size_t>(attribute.kind));
    }
  }
  EXPECT_EQ(find_op("no_such_operation"), std::nullopt);
  EXPECT_EQ(op_info(Op::add).find_attribute("axis"), nullptr);
}

TEST(OpTable, TraitsMatchTheFamilies) {
  EXPECT_TRUE(has_trait(Op::relu, OpTrait::pointwise));
  EXPECT_TRUE(has_trait(Op::where, OpTrait::pointwise));
  EXPECT_TRUE(has_trait(Op::transpose, OpTrait::view));
  EXPECT_FALSE(has_trait(Op::pad, OpTrait::view));
  EXPECT_TRUE(has_trait(Op::gather, OpTrait::gather));
}

TEST(InferPointwise, BroadcastsAndKeepsLayouts) {
  EXPECT_EQ(infer(Op::add, {f32({2, 1}), f32({3})}), "f32[2,3]");
  EXPECT_EQ(infer(Op::add, {f32({0, 1}), f32({3})}), "f32[0,3]");
  EXPECT_EQ(infer(Op::less, {f32({2}), f32({})}), "bool[2]");
  EXPECT_EQ(infer(Op::add, {f32({1, 16, 4, 4}, 16), f32({1, 16, 1, 1})}), "f32[1,16,4,4]@c16");
  EXPECT_EQ(infer(Op::add, {f32({1, 16, 1, 1}, 16), f32({1, 16, 4, 4})}), "f32[1,16,4,4]");
  EXPECT_EQ(infer(Op::relu, {f32({1, 16, 4, 4}, 8)}), "f32[1,16,4,4]@c8");
  EXPECT_EQ(infer(Op::cast, {f32({1, 16, 4, 4}, 8)}, {{"to", "i8"}}), "i8[1,16,4,4]@c8");
  EXPECT_EQ(infer(Op::where, {boolean({2}), i64({3, 1}), i64({})}), "i64[3,2]");
}

TEST(InferPointwise, CarriesSymbols) {
  EXPECT_EQ(infer(Op::add, {symbolic("N", 4), f32({4})}), "f32[N,4]");
  EXPECT_EQ(infer(Op::add, {symbolic("N", 4), symbolic("N", 1)}), "f32[N,4]");
  EXPECT_EQ(infer(Op::matmul, {symbolic("N", 4), f32({4, 5})}), "f32[N,5]");
  EXPECT_EQ(infer(Op::matmul, {f32({1, 4}), make_type(DType::bf16, {4, 5})}), "f32[1,5]");
  EXPECT_EQ(infer(Op::add, {symbolic("N", 4), symbolic("M", 4)}), "f32[N,4]");  // where N is M
  EXPECT_EQ(infer(Op::add, {symbolic("N", 4), f32({2, 4})}), "f32[2,4]");
  refuse(Op::add, {symbolic("N", 4), symbolic("N", 3)});
}

TEST(InferPointwise, RefusesOtherTypes) {
  refuse(Op::add, {f32({2}), f32({3})});
  refuse(Op::add, {f32({2}), i64({2})});
  refuse(Op::add, {boolean({2}), boolean({2})});
  refuse(Op::exp, {i64({2})});
  refuse(Op::relu, {boolean({2})});
  refuse(Op::logical_not, {f32({2})});
  refuse(Op::logical_and, {boolean({2}), f32({2})});
  refuse(Op::bitwise_not, {boolean({2})});
  refuse(Op::bitwise_and, {f32({2}), f32({2})});
  refuse(Op::is_nan, {i64({2})});
  refuse(Op::less, {boolean({2}), boolean({2})});
  refuse(Op::where, {f32({2}), f32({2}), f32({2})});
  refuse(Op::cast, {f32({2})}, {{"to", "f8"}});
  refuse(Op::gelu, {f32({2})}, {{"approximate", "fast"}});
  refuse(Op::round, {f32({2}), f32({})});
  refuse(Op::round, {f32({2})}, {{"to", "u8"}});
  refuse(Op::round, {f32({2}), f32({})}, {{"to", "i32"}});
  refuse(Op::round, {i64({2}), f32({})}, {{"to", "u8"}});
  refuse(Op::round, {f32({2}), i64({})}, {{"to", "u8"}});
  refuse(Op::round, {f32({2}), f32({}), f32({})}, {{"to", "u8"}});
}

TEST(InferMovement, ChecksShapes) {
  refuse(Op::iota, {}, {{"shape", Ints{2}}, {"axis", one}, {"dtype", "i64"}});
  refuse(Op::iota, {}, {{"shape", Ints{2}}, {"axis", zero}, {"dtype", "bool"}});
  refuse(Op::iota, {}, {{"shape", Ints{-2}}, {"axis", zero}, {"dtype", "i64"}});
  refuse(Op::iota, {},
         {{"shape", Ints{std::int64_t{1} << 40, std::int64_t{1} << 40}}, {"axis", zero}, {"dtype", "i64"}});
  refuse(Op::reshape, {f32({2, 3})}, {{"shape", Ints{4}}});
  refuse(Op::reshape, {f32({2, 3})}, {{"shape", Ints{-1}}});
  EXPECT_EQ(infer(Op::reshape, {symbolic("N", 3)}, {{"shape", Ints{3}}}), "f32[3]");  // where N is 1
  refuse(Op::transpose, {f32({2, 3})}, {{"perm", Ints{0}}});
  refuse(Op::transpose, {f32({2, 3})}, {{"perm", Ints{0, 0}}});
  refuse(Op::transpose, {f32({2, 3})}, {{"perm", Ints{0, 2}}});
  refuse(Op::broadcast_to, {f32({2, 3})}, {{"shape", Ints{3}}});
  refuse(Op::broadcast_to, {f32({2, 3})}, {{"shape", Ints{4, 3}}});
  EXPECT_EQ(infer(Op::broadcast_to, {f32({1})}, {{"shape", Ints{0}}}), "f32[0]");
}

TEST(InferMovement, ChecksSlices) {
  const auto attributes = [](std::int64_t start, std::int64_t size, std::int64_t step) {
    return Attributes{{"starts", Ints{start}}, {"sizes", Ints{size}}, {"steps", Ints{step}}};
  };
  EXPECT_EQ(infer(Op::slice, {f32({5})}, attributes(1, 2, 3)), "f32[2]");
  EXPECT_EQ(infer(Op::slice, {f32({5})}, attributes(4, 5, -1)), "f32[5]");
  EXPECT_EQ(infer(Op::slice, {f32({0})}, attributes(0, 0, 1)), "f32[0]");
  refuse(Op::slice, {f32({5})}, attributes(1, 2, 4));
  refuse(Op::slice, {f32({5})}, attributes(4, 6, -1));
  refuse(Op::slice, {f32({5})}, attributes(5, 1, 1));
  refuse(Op::slice, {f32({5})}, attributes(-1, 1, 1));
  refuse(Op::slice, {f32({5})}, attributes(0, 1, 0));
  refuse(Op::slice, {f32({5})}, attributes(0, -1, 1));
  refuse(Op::slice, {f32({5})}, attributes(0, std::numeric_limits<std::int64_t>::max(), 1 << 20));
  refuse(Op::slice, {f32({5})}, attributes(0, 1, std::numeric_limits<std::int64_t>::min()));
}

TEST(InferMovement, ChecksPadsAndConcats) {
  const auto pad = [](std::int64_t low, std::int64_t high, const char* mode) {
    return Attributes{{"low", Ints{low}}, {"high", Ints{high}}, {"mode", mode}};
  };
  EXPECT_EQ(infer(Op::pad, {f32({3})}, pad(1, -2, "constant")), "f32[2]");
  refuse(Op::pad, {f32({3})}, pad(-2, -2, "constant"));
  refuse(Op::pad, {f32({3})}, pad(1, 1, "mirror"));
  refuse(Op::pad, {f32({0})}, pad(1, 1, "edge"));
  refuse(Op::pad, {f32({3, 3})}, pad(1, 1, "edge"));
  refuse(Op::pad, {f32({3}), i64({})}, pad(1, 1, "constant"));
  refuse(Op::pad, {f32({3}), f32({2})}, pad(1, 1, "constant"));
  refuse(Op::pad, {f32({3})}, pad(std::numeric_limits<std::int64_t>::max(), 1, "constant"));
  Attributes interior = pad(0, 0, "edge");
  interior.set("interior", Ints{1});
  refuse(Op::pad, {f32({3})}, interior);
  EXPECT_EQ(infer(Op::concat, {f32({1, 16, 2}, 16), f32({1, 8, 2})}, {{"axis", one}}), "f32[1,24,2]@c16");
  refuse(Op::concat, {}, {{"axis", zero}});
  refuse(Op::concat, {f32({2}), f32({2, 1})}, {{"axis", zero}});
  refuse(Op::concat, {f32({2, 2}), f32({2, 3})}, {{"axis", zero}});
  refuse(Op::concat, {f32({2}), i64({2})}, {{"axis", zero}});
  refuse(Op::concat, {f32({2})}, {{"axis", std::int64_t{-1}}});
  EXPECT_EQ(infer(Op::to_layout, {f32({1, 3, 2})}, {{"block", std::int64_t{16}}}), "f32[1,3,2]@c16");
  EXPECT_EQ(infer(Op::to_layout, {f32({1, 6400, 2})}, {{"block", std::int64_t{6400}}}),
            "f32[1,6400,2]@c6400");
  refuse(Op::to_layout, {f32({1, 3, 2})}, {{"block", std::int64_t{6400}}});
  refuse(Op::to_layout, {f32({3})}, {{"block", std::int64_t{16}}});
  refuse(Op::to_layout, {f32({3, 3})}, {{"block", std::int64_t{-1}}});
}

TEST(InferGather, ChecksIndices) {
  EXPECT_EQ(infer(Op::gather, {f32({5, 6, 7}), i64({2, 3})}, {{"axis", one}}), "f32[5,2,3,7]");
  refuse(Op::gather, {f32({5}), f32({2})}, {{"axis", zero}});
  refuse(Op::gather, {f32({0}), i64({2})}, {{"axis", zero}});
  refuse(Op::gather, {f32({}), i64({2})}, {{"axis", zero}});
  refuse(Op::gather_elements, {f32({2, 2}), i64({2})}, {{"axis", zero}});
  refuse(Op::gather_elements, {f32({2, 2}), i64({2, 3})}, {{"axis", zero}});
  EXPECT_EQ(infer(Op::gather_elements, {f32({2, 2}), i64({5, 1})}, {{"axis", zero}}), "f32[5,1]");
  EXPECT_EQ(infer(Op::gather_nd, {f32({2, 3, 4}), i64({5, 2})}), "f32[5,4]");
  EXPECT_EQ(infer(Op::gather_nd, {f32({2, 3, 4}), i64({2, 1})}, {{"batch_dims", one}}), "f32[2,4]");
  refuse(Op::gather_nd, {f32({2, 3}), i64({5, 3})});
  refuse(Op::gather_nd, {f32({2, 3}), i64({})});
  refuse(Op::gather_nd, {f32({2, 3}), i64({3, 1})}, {{"batch_dims", one}});
  refuse(Op::gather_nd, {f32({2, 3}), i64({2, 1})}, {{"batch_dims", std::int64_t{-1}}});
  const Attributes axis = {{"axis", zero}};
  refuse(Op::scatter_elements, {f32({3}), i64({2}), f32({3})}, axis);
  refuse(Op::scatter_elements, {f32({3}), i64({2}), i64({2})}, axis);
  refuse(Op::scatter_elements, {f32({3}), i64({2}), f32({2})}, {{"axis", zero}, {"reduction", "mean"}});
  refuse(Op::scatter_nd, {f32({3}), i64({2, 1}), f32({3})});
  refuse(Op::scatter_nd, {f32({0}), i64({2, 1}), f32({2})});
}

TEST(Infer, ScalarsAreNotAbsent) {
  const TensorType scalar = f32({});
  refuse(Op::pad, {i64({3}), scalar}, {{"low", Ints{1}}, {"high", Ints{1}}});
  refuse(Op::layer_norm, {make_type(DType::f64, {2, 3}), scalar}, {{"axis", one}});
  refuse(Op::conv, {f32({1, 4, 8}), f32({6, 4, 3}), scalar},
         {{"strides", Ints{1}}, {"pads", Ints{0, 0}}, {"dilations", Ints{1}}});
  EXPECT_EQ(infer(Op::layer_norm, {f32({2, 3}), scalar}, {{"axis", one}}), "f32[2,3]");
  EXPECT_EQ(infer(Op::layer_norm, {f32({2, 3}), std::nullopt, scalar}, {{"axis", one}}), "f32[2,3]");
  refuse(Op::concat, {f32({2}), std::nullopt, f32({2})}, {{"axis", zero}});
}

TEST(Infer, NormsOfGroupsTakeWholeOnes) {
  EXPECT_EQ(infer(Op::layer_norm, {f32({2, 6, 5})}, {{"axis", one}, {"groups", std::int64_t{3}}}),
            "f32[2,6,5]");
  refuse(Op::layer_norm, {f32({2, 6, 5})}, {{"axis", one}, {"groups", std::int64_t{4}}});
  refuse(Op::layer_norm, {f32({2, 6, 5})}, {{"axis", one}, {"groups", zero}});
  refuse(Op::layer_norm, {f32({2, 6, 5}), f32({6, 5})}, {{"axis", one}, {"groups", one}});
}

TEST(Infer, MessagesNameTheFlagForUnknownExtents) {
  const auto message = [](auto&& ask) -> std::string {
    try {
      ask();
    } catch (const UnsupportedError& error) {
      return error.what();
    }
    return "";
  };
  const TensorType unknown{DType::f32, {Extent(1), Extent(4), Extent::symbol("N")}, {}};
  EXPECT_THAT(message([&] { (void)unknown.dims(); }), testing::EndsWith("with --dims"));
  const Attributes window = {{"strides", Ints{1}}, {"pads", Ints{0, 0}}, {"dilations", Ints{1}}};
  EXPECT_THAT(message([&] { (void)infer(Op::conv, {f32({1, 4, 8}), unknown}, window); }),
              testing::EndsWith("with --dims"));
}

TEST(InferReduction, ChecksAxes) {
  const auto reduce = [](const Ints& axes, std::int64_t keepdims) {
    return Attributes{{"axes", axes}, {"keepdims", keepdims}};
  };
  EXPECT_EQ(infer(Op::reduce_sum, {f32({2, 16, 4, 4}, 16)}, reduce({2, 3}, 1)), "f32[2,16,1,1]@c16");
  EXPECT_EQ(infer(Op::reduce_sum, {f32({2, 16, 4, 4}, 16)}, reduce({1}, 1)), "f32[2,1,4,4]");
  EXPECT_EQ(infer(Op::reduce_sum, {f32({2, 16, 4, 4}, 16)}, reduce({2, 3}, 0)), "f32[2,16]");
  EXPECT_EQ(infer(Op::arg_max, {symbolic("N", 3)}, {{"axis", one}}), "i64[N,1]");
  refuse(Op::reduce_sum, {f32({2})}, reduce({1}, 1));
  refuse(Op::reduce_sum, {f32({2, 2})}, reduce({1, 0}, 1));
  refuse(Op::reduce_sum, {f32({2, 2})}, reduce({0, 0}, 1));
  refuse(Op::reduce_sum, {f32({2})}, reduce({0}, 2));
  refuse(Op::reduce_sum, {boolean({2})}, reduce({0}, 1));
  refuse(Op::arg_max, {f32({0})}, {{"axis", zero}});
  refuse(Op::cumsum, {f32({})}, {{"axis", zero}});
  refuse(Op::top_k, {f32({2})}, {{"axis", zero}, {"k", Dims{3}}});
  refuse(Op::top_k, {f32({2})}, {{"axis", zero}, {"k", Dims{-1}}});
  refuse(Op::softmax, {i64({2})}, {{"axis", zero}});
  refuse(Op::layer_norm, {f32({2, 3}), f32({2})}, {{"axis", one}});
  refuse(Op::batch_norm, {f32({3}), f32({3}), f32({3}), f32({3}), f32({3})});
  refuse(Op::batch_norm, {f32({2, 3}), f32({3}), f32({3}), f32({3}), f32({2})});
}

TEST(InferContraction, ChecksOperands) {
  refuse(Op::matmul, {f32({2, 3}), f32({2, 3})});
  refuse(Op::matmul, {f32({3}), f32({3, 2})});
  refuse(Op::matmul, {f32({2, 2, 3}), f32({3, 3, 2})});
  refuse(Op::matmul, {f32({2, 2}), i64({2, 2})});
  refuse(Op::matmul, {make_type(DType::bf16, {2, 2}), f32({2, 2})});
  refuse(Op::attention, {f32({2, 3}), f32({2, 4}), f32({2, 3})});
  refuse(Op::attention, {f32({2, 3}), f32({2, 3}), f32({3, 3})});
  refuse(Op::attention, {f32({2, 3}), f32({2, 3}), f32({2, 3}), f32({3, 2})});
  EXPECT_EQ(infer(Op::attention, {f32({4, 1, 2, 3}), f32({5, 7, 3}), f32({7, 9})}), "f32[4,5,2,9]");
}

// Beside data in bf16 filters of one channel may be f32, nothing else.
TEST(InferWindow, ChecksTypesOfFilters) {
  const auto by_groups = [](std::int64_t groups) {
    return Attributes{{"strides", Ints{1}}, {"pads", Ints{0, 0}}, {"dilations", Ints{1}}, {"groups", groups}};
  };
  const TensorType narrow = make_type(DType::bf16, {1, 4, 8});
  EXPECT_EQ(infer(Op::conv, {narrow, f32({4, 1, 3})}, by_groups(4)), "bf16[1,4,6]");
  refuse(Op::conv, {narrow, f32({6, 4, 3})}, by_groups(1));
  refuse(Op::conv, {narrow, f32({4, 2, 3})}, by_groups(2));
  refuse(Op::conv, {f32({1, 4, 8}), make_type(DType::bf16, {4, 1, 3})}, by_groups(4));
}

TEST(InferWindow, ChecksWindows) {
  const auto attributes = [](std::int64_t stride, std::int64_t pad, std::int64_t dilation) {
    return Attributes{{"strides", Ints{stride}}, {"pads", Ints{pad, pad}}, {"dilations", Ints{dilation}}};
  };
  const TensorType x = f32({1, 4, 8}, 4);
  const TensorType w = f32({6, 4, 3});
  EXPECT_EQ(infer(Op::conv, {x, w}, attributes(2, 1, 1)), "f32[1,6,4]@c4");
  EXPECT_EQ(
      infer(Op::conv, {TensorType{DType::f32, {Extent::symbol("N"), 4, 8}, {}}, w}, attributes(1, 0, 1)),
      "f32[N,6,6]");
  refuse(Op::conv, {x, w}, attributes(0, 1, 1));
  refuse(Op::conv, {x, w}, attributes(1, -1, 1));
  refuse(Op::conv, {x, w}, attributes(1, 0, 4));
  refuse(Op::conv, {x, w}, attributes(1, 0, std::numeric_limits<std::int64_t>::max()));
  refuse(Op::conv, {x, f32({6, 3, 3})}, attributes(1, 0, 1));
  refuse(Op::conv, {x, f32({6, 4, 3, 3})}, attributes(1, 0, 1));
  refuse(Op::conv, {x, f32({6, 4, 0})}, attributes(1, 0, 1));
  refuse(Op::conv, {x, w, f32({5})}, attributes(1, 0, 1));
  refuse(Op::conv, {f32({4, 8}), f32({6, 4})}, attributes(1, 0, 1));
  Attributes grouped = attributes(1, 0, 1);
  grouped.set("groups", zero);
  refuse(Op::conv, {x, w}, grouped);
  grouped.set("groups", std::int64_t{4});
  refuse(Op::conv, {x, f32({6, 1, 3})}, grouped);
  Attributes pool = attributes(2, 0, 1);
  pool.set("kernel", Ints{2});
  EXPECT_EQ(infer(Op::max_pool, {x}, pool), "f32[1,4,4]@c4");
  refuse(Op::avg_pool, {make_type(DType::i8, {1, 1, 8})}, pool);
  pool.set("kernel", Ints{9});
  refuse(Op::max_pool, {x}, pool);
  pool.set("kernel", Ints{0});
  refuse(Op::max_pool, {x}, pool);
}

}  // namespace
}  // namespace sylvite::infer_test
