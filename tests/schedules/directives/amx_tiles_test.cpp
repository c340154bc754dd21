#include "schedules/directives/amx_tiles.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "schedules/compile.h"
#include "tests/support/bf16_reference.h"
#include "tests/support/lowered_text.h"

// AMX tiles beside the interpreter in f32 on the same numbers: products of bf16 are exact in f32 and are
// added up in f32, so that only the stored result is rounded, by 2^-9 of itself.

namespace sylvite::amx_tiles_test {
namespace {

using testing::_;
using testing::HasSubstr;
using testing::Pair;

constexpr const char* no_amx = "the processor has no AMX, or the system does not let programs use it";

void expect_agrees(const std::string& text, const Candidate& candidate) {
  const Kernel kernel = kernel_of(text);
  const std::vector<Tensor> inputs = random_inputs(kernel);
  const std::vector<Tensor> expected = interpret_in_f32(text, inputs);
  EXPECT_EQ(Schedule::parse(candidate.schedule.to_string()), candidate.schedule);
  try {
    expect_close(run_candidate(kernel, candidate, inputs), expected, 0x1p-8, text + candidate.to_string());
  } catch (const std::exception& error) {
    ADD_FAILURE() << text << candidate.to_string() << error.what();
  }
}

std::string product(int m, int n, int k) {
  return fmt::format(
      "graph g(%a: bf16[{0},{2}], %w: bf16[{2},{1}]) {{ %v: bf16[{0},{1}] = matmul(%a, %w) return %v }}", m,
      n, k);
}

/// The fold of a product with these numbers of rows and columns, a panel of columns at a time.
Candidate by_hand(int rows, int panels, const std::string& fold) {
  return {
      Form{"matmul_panels", {}},
      Schedule::parse(fmt::format("v0_out.split(d0, p, v, 16, TailStrategy::GuardWithIf);\n"
                                  "v0_out.split(p, g, q, {}, TailStrategy::ShiftInwards);\n"
                                  "v0_out.split(d1, t, i, {}, TailStrategy::ShiftInwards);\n"
                                  "v0_out.reorder(v, q, i, t, g).vectorize(v);\n"
                                  "v0_fold.compute_at(v0_out, t).store_in(MemoryType::Stack);\n"
                                  "v0_fold.bound_extent(v, 16).bound_extent(p, {}).bound_extent(d1, {});\n",
                                  panels, rows, panels, rows) +
                      fold)};
}

/// How often a part stands in Halide's own text of the lowered candidate; and the text.
std::pair<int, std::string> count_lowered(const std::string& part, const std::string& text,
                                          const Candidate& candidate) {
  const std::string lowered = lowered_text(kernel_of(text), candidate, detect_machine(1).target);
  return {count_in(lowered, part), lowered};
}

class AmxTiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!detect_machine(1).amx) GTEST_SKIP() << no_amx;
  }
};

TEST_F(AmxTiles, MakeBlocksOfEveryShape) {
  const std::pair<int, int> shapes[] = {{32, 2}, {16, 4}, {16, 1}, {64, 1}, {16, 6}, {1, 2},
                                        {7, 3},  {21, 2}, {32, 3}, {48, 2}, {40, 2}, {23, 3}};
  for (const auto& [rows, panels] : shapes)
    expect_agrees(product(rows + 3, 16 * panels + 21, 96),
                  by_hand(rows, panels, "v0_fold.update(0).amx_tiles();"));
}

TEST_F(AmxTiles, MakeFoldsOfEveryLength) {
  for (const int k : {2, 6, 32, 34, 64, 80, 208})
    expect_agrees(product(20, 40, k), by_hand(20, 2, "v0_fold.update(0).amx_tiles();"));
}

TEST_F(AmxTiles, FindTheirLoopsInAnyOrder) {
  for (const char* order : {"v, r0, d1, r1, p", "p, v, d1, r0, r1", "r1, d1, r0, v, p"})
    expect_agrees(product(32, 64, 64),
                  by_hand(32, 2, fmt::format("v0_fold.update(0).reorder({}).amx_tiles();", order)));
}

TEST_F(AmxTiles, GoThroughFoldsInParts) {
  expect_agrees(
      product(32, 64, 128),
      by_hand(32, 2, "v0_fold.update(0).split(r1, r2, r1, 8, TailStrategy::GuardWithIf).amx_tiles();"));
  expect_agrees(product(32, 64, 128),
                by_hand(32, 2,
                        "v0_fold.update(0).split(r1, r2, r1, 16, TailStrategy::GuardWithIf)"
                        ".reorder(r0, r2, r1, v, p, d1).amx_tiles();"));
}

// The loop of r2 holds the copy of the operand, too: tiles start with what earlier iterations left.
TEST_F(AmxTiles, AddToWhatIsThere) {
  expect_agrees(product(32, 32, 128),
                by_hand(32, 2,
                        "v0_fold.update(0).split(r1, r2, r1, 16, TailStrategy::GuardWithIf)"
                        ".reorder(r0, r1, v, p, d1, r2).amx_tiles();\n"
                        "v0_a.compute_at(v0_fold, r2);"));
}

constexpr const char* overlapped = "v0_fold.update(0).amx_tiles();\nv0_fold.overlap_epilogue();";

// More rows than steps and fewer, blocks that overlap the one before, and one block alone.
TEST_F(AmxTiles, LeaveTheirEpilogueToTheNextBlock) {
  for (const int k : {32, 96, 800})
    for (const auto& [m, n] : {std::pair(64, 96), {70, 75}, {32, 96}, {64, 32}, {32, 32}})
      expect_agrees(product(m, n, k), by_hand(32, 2, overlapped));
  expect_agrees(product(40, 64, 128),
                by_hand(23, 2,
                        std::string("v0_fold.update(0).split(r1, r2, r1, 16, TailStrategy::GuardWithIf);\n") +
                            overlapped));
}

TEST_F(AmxTiles, LeaveTheirEpilogueOnlyWhereLoopsAllowIt) {
  const auto shares = [](int n, const std::string& fold) {
    return count_lowered("for (epilogue", product(64, n, 64), by_hand(32, 2, fold));
  };
  EXPECT_THAT(shares(96, overlapped), Pair(1, _));
  EXPECT_THAT(shares(96, "v0_fold.update(0).amx_tiles();"), Pair(0, _));
  // The loop of tiles holds a copy of the left operand, too.
  EXPECT_THAT(shares(32, std::string(overlapped) + "\nv0_a.compute_at(v0_out, t);"), Pair(0, _));
}

// All steps, a part of them, none; with a share of the epilogue in each and without; blocks of every shape.
TEST_F(AmxTiles, UnrollTheirSteps) {
  const std::string plain = "v0_fold.update(0).amx_tiles();";
  for (const int copies : {1, 4, 7, 72}) {
    const std::string unrolled = fmt::format("\nv0_fold.unroll_steps({});", copies);
    for (const int k : {32, 96, 800}) {
      expect_agrees(product(70, 75, k), by_hand(32, 2, overlapped + unrolled));
      for (const auto& [rows, panels] : {std::pair(64, 1), {48, 2}, {16, 4}, {23, 3}})
        expect_agrees(product(67, 96, k), by_hand(rows, panels, plain + unrolled));
    }
    expect_agrees(product(40, 64, 256),
                  by_hand(23, 2,
                          "v0_fold.update(0).split(r1, r2, r1, 16, TailStrategy::GuardWithIf);\n" +
                              std::string(overlapped) + unrolled));
  }
}

TEST_F(AmxTiles, UnrollNoMoreStepsThanAsked) {
  const auto products = [](int copies) {
    return count_lowered("tile_matmul", product(64, 96, 96),
                         by_hand(32, 2, fmt::format("{}\nv0_fold.unroll_steps({});", overlapped, copies)));
  };
  EXPECT_THAT(products(2), Pair(4, _));
  EXPECT_THAT(products(3), Pair(12, _));
}

TEST_F(AmxTiles, SayWhatDoesNotFit) {
  const auto refusal = [](const std::string& text, const Candidate& candidate) -> std::string {
    try {
      (void)run_candidate(kernel_of(text), candidate, random_inputs(kernel_of(text)));
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  const auto refusal_of = [&](int rows, int panels, const std::string& fold) {
    return refusal(product(64, 64, 64), by_hand(rows, panels, fold));
  };
  EXPECT_THAT(refusal_of(64, 2, "v0_fold.update(0).amx_tiles();"),
              HasSubstr("amx_tiles: 4 x 2 tiles of v0_fold"));
  EXPECT_THAT(refusal_of(16, 2, "v0_fold.update(0).atomic().vectorize(r0).amx_tiles();"),
              HasSubstr("no sum of products of two stored bf16"));
  EXPECT_THAT(refusal_of(16, 2, "v0_fold.amx_tiles();"), HasSubstr("write .update(0)"));
  EXPECT_THAT(
      refusal_of(16, 2, "v0_fold.update(0).split(r1, r2, r1, 5, TailStrategy::GuardWithIf).amx_tiles();"),
      HasSubstr("amx_tiles: "));
}

// Needs no AMX. With AddressSanitizer this is about the frames of Halide's that the refusal crosses.
TEST(AmxSpace, RefusalsLeaveTheCompiler) {
  const Kernel kernel = kernel_of(product(64, 64, 64));
  const Candidate candidate = by_hand(64, 2, "v0_fold.update(0).amx_tiles();");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(
        [&] {
          (void)compile_to_object(kernel, candidate, "x86-64-linux-avx-avx2-fma-avx512_sapphirerapids");
        },
        testing::ThrowsMessage<CompileError>(HasSubstr("amx_tiles: 4 x 2 tiles of v0_fold")));
  }
}

struct SpaceCase {
  const char* space;
  const char* text;
};

const SpaceCase cases[] = {
    {"matmul_amx",
     R"(graph g(%a: bf16[16,32], %w: bf16[32,64], %b: bf16[64]) { %v: bf16[16,64] = matmul(%a, %w) %s: bf16[16,64] = add(%v, %b) %r: bf16[16,64] = gelu(%s) return %r })"},
    {"matmul_amx",
     R"(graph g(%a: bf16[70,96], %w: bf16[96,150], %b: bf16[150], %c: bf16[70,150]) { %v: bf16[70,150] = matmul(%a, %w) %s: bf16[70,150] = add(%v, %b) %r: bf16[70,150] = add(%s, %c) return %r })"},
    {"matmul_amx",
     R"(graph g(%a: bf16[2,7,48], %w: bf16[48,41]) { %v: bf16[2,7,41] = matmul(%a, %w) return %v })"},
    {"matmul_amx",
     R"(graph g(%a: bf16[39,64], %w: bf16[35,64]) { %t: bf16[64,35] = transpose(%w) {perm=[1,0]} %v: bf16[39,35] = matmul(%a, %t) return %v })"},
    {"matmul_amx",
     R"(graph g(%a: bf16[33,32], %w: bf16[32,16]) { %x: bf16[33,32] = relu(%a) %v: bf16[33,16] = matmul(%x, %w) return %v })"},
    {"matmul_amx",
     R"(graph g(%a: bf16[2,64], %w: bf16[64,50]) { %v: bf16[2,50] = matmul(%a, %w) return %v })"},
    {"matmul_amx_activations",
     R"(graph g(%a: bf16[3,39,32], %b: bf16[3,32,37]) { %v: bf16[3,39,37] = matmul(%a, %b) return %v })"},
    {"matmul_amx_activations",
     R"(graph g(%a: bf16[2,20,3,16], %b: bf16[2,18,3,16]) { %q: bf16[2,3,20,16] = transpose(%a) {perm=[0,2,1,3]} %k: bf16[2,3,16,18] = transpose(%b) {perm=[0,2,3,1]} %v: bf16[2,3,20,18] = matmul(%q, %k) return %v })"},
    {"matmul_amx_activations",
     R"(graph g(%a: bf16[2,20,32], %b: bf16[32,18]) { %x: bf16[40,32] = reshape(%a) {shape=[40,32]} %v: bf16[40,18] = matmul(%x, %b) return %v })"},
    {"attention_rows",
     R"(graph g(%a: bf16[2,23,3,64], %b: bf16[2,37,3,64], %c: bf16[2,37,3,40]) { %q: bf16[2,3,23,64] = transpose(%a) {perm=[0,2,1,3]} %k: bf16[2,3,37,64] = transpose(%b) {perm=[0,2,1,3]} %v: bf16[2,3,37,40] = transpose(%c) {perm=[0,2,1,3]} %r: bf16[2,3,23,40] = attention(%q, %k, %v) {causal=0} return %r })"},
    {"attention_rows",
     R"(graph g(%q: bf16[3,64,32], %k: bf16[3,64,32], %v: bf16[3,64,32]) { %r: bf16[3,64,32] = attention(%q, %k, %v) {causal=1} return %r })"},
};

TEST_F(AmxTiles, MakeTheProductsOfTheirSpaces) {
  for (const SpaceCase& one : cases) {
    const Kernel kernel = kernel_of(one.text);
    for (const int threads : {1, 2}) {
      const Machine machine = detect_machine(threads);
      const std::vector<BoundSpace> spaces = spaces_for(kernel, machine);
      const auto space = std::ranges::find(spaces, one.space, &BoundSpace::name);
      ASSERT_NE(space, spaces.end()) << one.space << one.text;
      const Point heuristic = space->heuristic;
      EXPECT_THAT(space->at(heuristic).to_string(), HasSubstr("amx_tiles"));
      std::vector<Point> points = {heuristic};
      for (const Parameter& parameter : space->parameters) {
        if (threads > 1) continue;
        points.push_back(point_with(*space, {{parameter.name, parameter.values.back()}}));
      }
      for (const Point& point : points) {
        try {
          expect_agrees(one.text, space->at(point));
        } catch (const UnsupportedError&) {
          continue;
        }
      }
    }
  }
}

TEST(AmxSpace, RefusesWithAReason) {
  Machine machine = detect_machine(1);
  const auto refusal = [&](const std::string& text) {
    std::vector<Refusal> refusals;
    (void)spaces_for(kernel_of(text), machine, &refusals);
    for (const Refusal& each : refusals)
      if (each.space == "matmul_amx") return each.reason;
    return std::string();
  };
  machine.amx = true;
  EXPECT_EQ(refusal(product(32, 32, 64)), "");
  EXPECT_EQ(refusal(product(32, 32, 62)), "its k = 62 is no multiple of a depth from 16 to 32");
  EXPECT_EQ(refusal(product(1, 32, 64)), "one row leaves tiles empty");
  EXPECT_EQ(refusal(in_f32(product(32, 32, 64))), "AMX multiplies bf16 and i8");
  machine.amx = false;
  EXPECT_EQ(refusal(product(32, 32, 64)), no_amx);
}

TEST_F(AmxTiles, AreFetchedAhead) {
  Candidate candidate = by_hand(16, 2, "v0_fold.update(0).amx_tiles();\n");
  candidate.schedule.decisions.push_back({"v0_out", -1, "stream_ahead", {"t", "in1", "1"}});
  // Two panels of 128 x 16 are 128 lines; four tiles of rows of four steps each share them.
  EXPECT_THAT(count_lowered("prefetch", product(64, 64, 128), candidate), Pair(8, _));
}

// Without AMX in the target the directive is refused, and not silently another program.
TEST(AmxSpace, NeedsATargetWithAmx) {
  Algorithm algorithm = build_algorithm(kernel_of(product(16, 32, 32)), Form{"matmul_panels", {}});
  const Candidate candidate = by_hand(16, 2, "v0_fold.update(0).amx_tiles();");
  candidate.schedule.apply(algorithm);
  Halide::Pipeline pipeline(algorithm.outputs);
  try {
    add_own_passes(candidate.schedule, algorithm, "x86-64-linux-avx-avx2-fma", pipeline);
    FAIL();
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the target x86-64-linux-avx-avx2-fma has no AMX"));
  }
}

}  // namespace
}  // namespace sylvite::amx_tiles_test
