// What 16 bits would spoil stays f32 on a GPU: angles of positions, against the interpreter in f32.

#include "sylvite/graph_text.h"
#include "tests/gpu/gpu_test.h"
#include "tests/runtime/test_session.h"

namespace sylvite {
namespace {

constexpr std::int64_t rows = 96;

/// Two halves of each row turned by the angles of its position; the angles as products of rows or of columns and rows.
Graph rotary(const char* angles) {
  return parse_graph(fmt::format(R"(graph rotary(%x: f32[96,8], %p: i64[96,1]) {{
    %f: f32[96,1] = cast(%p) {{to="f32"}}
    %rates = constant f32[1,4] {{1.0, 0.37, 0.1, 0.013}}
    %a: f32[96,4] = {}(%f, %rates)
    %angles: f32[96,8] = concat(%a, %a) {{axis=1}}
    %c: f32[96,8] = cos(%angles)
    %s: f32[96,8] = sin(%angles)
    %u: f32[96,4] = slice(%x) {{sizes=[96,4], starts=[0,0], steps=[1,1]}}
    %v: f32[96,4] = slice(%x) {{sizes=[96,4], starts=[0,4], steps=[1,1]}}
    %n: f32[96,4] = neg(%v)
    %t: f32[96,8] = concat(%n, %u) {{axis=1}}
    %xc: f32[96,8] = mul(%x, %c)
    %ts: f32[96,8] = mul(%t, %s)
    %y: f32[96,8] = add(%xc, %ts)
    return %y
  }})",
                                 angles));
}

class GpuNarrow : public GpuTest, public testing::WithParamInterface<const char*> {
 protected:
  TemporaryFolder folder_;
};

TEST_P(GpuNarrow, PositionsTurnBySoManyAngles) {
  std::vector<Tensor> inputs = {sample_tensor(DType::f32, {rows, 8}), Tensor(DType::i64, {rows, 1})};
  for (std::int64_t i = 0; i < rows; ++i) inputs[1].set_int64(i, i < 90 ? 1950 + i : 32700 + 11 * i);
  for (const char* angles : {"mul", "matmul"}) {
    SCOPED_TRACE(angles);
    CompileOptions options = test_options(folder_.path());
    options.set["compile.device"] = "cuda";
    options.set["compile.precision"] = GetParam();
    Built built = build_graph(rotary(angles), options);
    expect_near(built.program.run(inputs).at(0), interpret(rotary(angles), inputs).at(0), 0.02);
  }
}

INSTANTIATE_TEST_SUITE_P(, GpuNarrow, testing::Values("f32", "bf16", "f16"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sylvite
