#include "tests/frontend/ops/run_op.h"

namespace sylvite::evaluate_movement_test {
namespace {

using testing::ElementsAre;

Tensor pad(const Tensor& x, const Ints& low, const Ints& high, const char* mode, const Ints& interior = {},
           const std::optional<Tensor>& value = std::nullopt) {
  return run(Op::pad, {x, value}, {{"low", low}, {"high", high}, {"interior", interior}, {"mode", mode}});
}

TEST(EvaluateMovement, CountsAlongAnAxis) {
  const Tensor rows = run(Op::iota, {}, {{"shape", Ints{2, 3}}, {"axis", std::int64_t{0}}, {"dtype", "i32"}});
  EXPECT_EQ(rows.to_int64s(), (Ints{0, 0, 0, 1, 1, 1}));
  const Tensor columns =
      run(Op::iota, {}, {{"shape", Ints{2, 3}}, {"axis", std::int64_t{1}}, {"dtype", "f32"}});
  EXPECT_THAT(values(columns), ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(EvaluateMovement, ReshapesTransposesAndBroadcasts) {
  EXPECT_EQ(run(Op::reshape, {counting({2, 3})}, {{"shape", Ints{3, 2}}}).dims(), (Dims{3, 2}));
  const Tensor turned = run(Op::transpose, {counting({2, 3})}, {{"perm", Ints{1, 0}}});
  EXPECT_EQ(turned.dims(), (Dims{3, 2}));
  EXPECT_EQ(turned.to_int64s(), (Ints{0, 3, 1, 4, 2, 5}));
  const Tensor cube = run(Op::transpose, {counting({2, 2, 2}, DType::u8)}, {{"perm", Ints{2, 0, 1}}});
  EXPECT_EQ(cube.to_int64s(), (Ints{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(run(Op::transpose, {counting({})}, {{"perm", Ints{}}}).to_int64s(), (Ints{0}));
  const Tensor wide = run(Op::broadcast_to, {counting({2, 1}, DType::i16)}, {{"shape", Ints{2, 2, 3}}});
  EXPECT_EQ(wide.to_int64s(), (Ints{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
}

TEST(EvaluateMovement, Slices) {
  const auto slice = [](const Tensor& x, const Ints& starts, const Ints& sizes, const Ints& steps) {
    return run(Op::slice, {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
  };
  EXPECT_EQ(slice(counting({3, 4}), {1, 0}, {2, 2}, {1, 2}).to_int64s(), (Ints{4, 6, 8, 10}));
  EXPECT_EQ(slice(counting({5}), {4}, {3}, {-2}).to_int64s(), (Ints{4, 2, 0}));
  EXPECT_EQ(slice(counting({3, 4}), {2, 3}, {3, 1}, {-1, 1}).to_int64s(), (Ints{11, 7, 3}));
  EXPECT_EQ(slice(counting({5}), {5}, {0}, {1}).dims(), (Dims{0}));
}

TEST(EvaluateMovement, PadsWithAConstant) {
  EXPECT_EQ(pad(counting({2}), {1}, {2}, "constant").to_int64s(), (Ints{0, 0, 1, 0, 0}));
  EXPECT_EQ(pad(counting({2}), {1}, {1}, "constant", {}, reals({1}, {9})).to_int64s(), (Ints{9, 0, 1, 9}));
  EXPECT_EQ(pad(counting({2, 2}, DType::i64), {1, 0}, {0, 1}, "constant", {}, ints({1}, {9})).to_int64s(),
            (Ints{9, 9, 9, 0, 1, 9, 2, 3, 9}));
  EXPECT_EQ(pad(counting({3}), {0}, {1}, "constant", {1}, reals({1}, {9})).to_int64s(),
            (Ints{0, 9, 1, 9, 2, 9}));
  EXPECT_EQ(pad(counting({0}), {1}, {1}, "constant").to_int64s(), (Ints{0, 0}));
  EXPECT_EQ(pad(counting({}), {}, {}, "constant").to_int64s(), (Ints{0}));
}

TEST(EvaluateMovement, NegativePaddingCutsOff) {
  EXPECT_EQ(pad(counting({5}), {-1}, {-2}, "constant").to_int64s(), (Ints{1, 2}));
  EXPECT_EQ(pad(counting({5}), {-2}, {1}, "constant").to_int64s(), (Ints{2, 3, 4, 0}));
  EXPECT_EQ(pad(counting({3}), {-1}, {0}, "constant", {1}, reals({1}, {9})).to_int64s(), (Ints{9, 1, 9, 2}));
  EXPECT_EQ(pad(counting({3}), {-3}, {2}, "constant").to_int64s(), (Ints{0, 0}));
  EXPECT_EQ(pad(counting({3}), {-5}, {4}, "constant", {}, reals({1}, {9})).to_int64s(), (Ints{9, 9}));
  EXPECT_EQ(pad(counting({5}), {-1}, {-1}, "edge").to_int64s(), (Ints{1, 2, 3}));
}

TEST(EvaluateMovement, PadsByRepeating) {
  EXPECT_EQ(pad(counting({3}), {2}, {2}, "edge").to_int64s(), (Ints{0, 0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(pad(counting({3}), {2}, {2}, "reflect").to_int64s(), (Ints{2, 1, 0, 1, 2, 1, 0}));
  EXPECT_EQ(pad(counting({3}), {5}, {0}, "reflect").to_int64s(), (Ints{1, 0, 1, 2, 1, 0, 1, 2}));
  EXPECT_EQ(pad(counting({1}), {1}, {1}, "reflect").to_int64s(), (Ints{0, 0, 0}));
  EXPECT_EQ(pad(counting({3}), {4}, {1}, "wrap").to_int64s(), (Ints{2, 0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(pad(counting({2, 2}), {1, 1}, {0, 0}, "edge").to_int64s(), (Ints{0, 0, 1, 0, 0, 1, 2, 2, 3}));
}

TEST(EvaluateMovement, Concatenates) {
  const Tensor joined =
      run(Op::concat, {counting({2, 1}), counting({2, 2}), counting({2, 0})}, {{"axis", std::int64_t{1}}});
  EXPECT_EQ(joined.dims(), (Dims{2, 3}));
  EXPECT_EQ(joined.to_int64s(), (Ints{0, 0, 1, 1, 2, 3}));
}

TEST(EvaluateMovement, LayoutsDoNotChangeValues) {
  const Tensor x = counting({1, 3, 2});
  EXPECT_EQ(run(Op::to_layout, {x}, {{"block", std::int64_t{16}}}).to_int64s(), x.to_int64s());
}

TEST(EvaluateMovement, Gathers) {
  const Tensor picked =
      run(Op::gather, {counting({3, 2}), ints({2, 2}, {2, 0, -1, 9})}, {{"axis", std::int64_t{0}}});
  EXPECT_EQ(picked.dims(), (Dims{2, 2, 2}));
  EXPECT_EQ(picked.to_int64s(), (Ints{4, 5, 0, 1, 4, 5, 4, 5}));
  const Tensor column =
      run(Op::gather, {counting({2, 3}, DType::u8), ints({}, {-9}, DType::i32)}, {{"axis", std::int64_t{1}}});
  EXPECT_EQ(column.to_int64s(), (Ints{0, 3}));
  EXPECT_EQ(run(Op::gather, {counting({0, 3}), ints({0}, {})}, {{"axis", std::int64_t{0}}}).dims(),
            (Dims{0, 3}));
}

TEST(EvaluateMovement, GathersElements) {
  const Tensor x = counting({3, 3});
  EXPECT_EQ(run(Op::gather_elements, {x, ints({2, 3}, {1, 2, 0, 2, 0, 0})}, {{"axis", std::int64_t{0}}})
                .to_int64s(),
            (Ints{3, 7, 2, 6, 1, 2}));
  EXPECT_EQ(run(Op::gather_elements, {x, ints({2, 1}, {-1, 1})}, {{"axis", std::int64_t{1}}}).to_int64s(),
            (Ints{2, 4}));
}

TEST(EvaluateMovement, GathersTuples) {
  const Tensor x = counting({2, 2, 2});
  EXPECT_EQ(run(Op::gather_nd, {x, ints({2, 2}, {0, 1, 1, -2})}).to_int64s(), (Ints{2, 3, 4, 5}));
  EXPECT_EQ(run(Op::gather_nd, {x, ints({2, 1}, {1, 0})}, {{"batch_dims", std::int64_t{1}}}).to_int64s(),
            (Ints{2, 3, 4, 5}));
  EXPECT_EQ(run(Op::gather_nd, {x, ints({1, 3}, {1, 0, 1})}).to_int64s(), (Ints{5}));
  EXPECT_EQ(run(Op::gather_nd, {x, ints({0, 3}, {})}).dims(), (Dims{0}));
}

TEST(EvaluateMovement, ScattersElements) {
  const auto scatter = [](const char* reduction, DType dtype) {
    return run(Op::scatter_elements,
               {ints({1, 4}, {1, 2, 3, 4}, dtype), ints({1, 3}, {1, 1, -1}), ints({1, 3}, {5, 6, 2}, dtype)},
               {{"axis", std::int64_t{1}}, {"reduction", reduction}})
        .to_int64s();
  };
  for (DType dtype : {DType::f32, DType::i8, DType::u64, DType::bf16}) {
    EXPECT_EQ(scatter("none", dtype), (Ints{1, 6, 3, 2}));
    EXPECT_EQ(scatter("add", dtype), (Ints{1, 13, 3, 6}));
    EXPECT_EQ(scatter("mul", dtype), (Ints{1, 60, 3, 8}));
    EXPECT_EQ(scatter("max", dtype), (Ints{1, 6, 3, 4}));
    EXPECT_EQ(scatter("min", dtype), (Ints{1, 2, 3, 2}));
  }
  const Tensor wrapped =
      run(Op::scatter_elements, {ints({1}, {127}, DType::i8), ints({1}, {0}), ints({1}, {1}, DType::i8)},
          {{"axis", std::int64_t{0}}, {"reduction", "add"}});
  EXPECT_EQ(wrapped.to_int64s(), (Ints{-128}));
}

TEST(EvaluateMovement, ScattersSlices) {
  const Tensor result =
      run(Op::scatter_nd, {counting({3, 2}), ints({2, 1}, {0, -1}), reals({2, 2}, {7, 8, 9, 10})});
  EXPECT_EQ(result.to_int64s(), (Ints{7, 8, 2, 3, 9, 10}));
  const Tensor summed =
      run(Op::scatter_nd, {counting({2, 2}), ints({2, 2}, {0, 1, 0, 1}), reals({2}, {7, 8})},
          {{"reduction", "add"}});
  EXPECT_EQ(summed.to_int64s(), (Ints{0, 16, 2, 3}));
  EXPECT_EQ(run(Op::scatter_nd, {counting({2}), ints({0, 1}, {}), reals({0}, {})}).to_int64s(), (Ints{0, 1}));
}

}  // namespace
}  // namespace sylvite::evaluate_movement_test
