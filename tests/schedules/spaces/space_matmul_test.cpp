#include "base/error.h"
#include "base/rounding.h"
#include "sylvite/graph_text.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::space_matmul_test {
namespace {

/// a times weight, plus a bias, gelu, plus a residual: BERT's heavy kernel.
Kernel dense_kernel(const Dims& a, std::int64_t k, std::int64_t n, bool transposed = false) {
  Graph body;
  const ValueId left = body.add_input("a", make_type(DType::f32, a));
  const ValueId weight = body.add_input("w", make_type(DType::f32, transposed ? Dims{n, k} : Dims{k, n}));
  const ValueId bias = body.add_input("bias", make_type(DType::f32, {n}));
  const ValueId right = transposed ? body.add(Op::transpose, {weight}, {{"perm", Dims{1, 0}}}) : weight;
  const ValueId product = body.add(Op::matmul, {left, right});
  const ValueId residual = body.add_input("residual", body.type(product));
  const ValueId sum = body.add(Op::add, {product, bias});
  const ValueId activated = body.add(Op::gelu, {sum});
  body.outputs = {body.add(Op::add, {activated, residual})};
  return make_kernel(body, {false, true, true, false});
}

void expect_heuristic(const Kernel& kernel, const std::string& name, int threads) {
  const Space& space = space_named(name);
  const Machine machine = test_machine(threads);
  ASSERT_EQ(space.bind(kernel, machine).refusal, "");
  expect_agrees(kernel, heuristic_candidate(space, kernel, machine));
}

TEST(MatmulPanels, TakesWholeTiles) {
  expect_heuristic(dense_kernel({1, 16, 24}, 24, 64), "matmul_panels", 1);
}
TEST(MatmulPanels, TakesOddExtents) {
  expect_heuristic(dense_kernel({1, 13, 7}, 7, 37), "matmul_panels", 2);
}
TEST(MatmulPanels, TakesOneRow) {
  expect_heuristic(dense_kernel({1, 33}, 33, 100), "matmul_panels", 2);
}

/// To wake the other threads would take as long.
TEST(MatmulPanels, ShortProductsAreOneTask) {
  const Machine machine = test_machine(2);
  const auto columns_of_a_task = [&](const Kernel& kernel) {
    const BoundSpace space = bound(space_named("matmul_panels"), kernel, machine);
    const NamedValues values = named_values(space, space.heuristic);
    return values.at("panels") * values.at("panel_groups") * 16;
  };
  EXPECT_GE(columns_of_a_task(dense_kernel({1, 128}, 128, 512)), 512);
  EXPECT_LT(columns_of_a_task(dense_kernel({1, 512}, 512, 2048)), 2048);
}

/// All rows pass a group of panels where a block of such long rows has so few that panels would pass by often.
TEST(MatmulPanels, LongRowsPassByPanels) {
  const auto rows_outer = [](std::int64_t m, std::int64_t k) {
    const Kernel kernel = dense_kernel({m, k}, k, 1024);
    const BoundSpace space = bound(space_named("matmul_panels"), kernel, test_machine(2));
    return named_values(space, space.heuristic).at("rows_outer");
  };
  EXPECT_EQ(rows_outer(150, 12544), 0);
  EXPECT_EQ(rows_outer(128, 768), 1);
  EXPECT_EQ(rows_outer(1, 12544), 1);
}

TEST(MatmulPanels, TakesOneColumn) {
  expect_heuristic(dense_kernel({5, 8}, 8, 1), "matmul_panels", 1);
}
TEST(MatmulPanels, TakesBatches) {
  expect_heuristic(dense_kernel({2, 3, 9, 16}, 16, 48), "matmul_panels", 2);
}
TEST(MatmulPanels, PacksATransposedWeight) {
  expect_heuristic(dense_kernel({11, 20}, 20, 40, true), "matmul_panels", 1);
}

// A sum of f64 takes two registers where one of f32 takes one.
TEST(MatmulPanels, TakesDoubles) {
  const std::string weight =
      "graph g(%a: f64[13,75], %w: f64[75,100], %b: f64[100]) { %v: f64[13,100] = "
      "matmul(%a, %w) %s: f64[13,100] = add(%v, %b) %r: f64[13,100] = relu(%s) return %r }";
  const std::string turned =
      "graph g(%a: f64[2,5,64], %w: f64[37,64]) { %t: f64[64,37] = transpose(%w) "
      "{perm=[1,0]} %v: f64[2,5,37] = matmul(%a, %t) return %v }";
  const std::string both =
      "graph g(%a: f64[2,9,40], %b: f64[2,40,48]) { %v: f64[2,9,48] = matmul(%a, %b) "
      "return %v }";
  for (const std::string& text : {weight, turned, both}) {
    const Graph body = parse_graph(text);
    std::vector<bool> weights(body.inputs.size(), text != both);
    weights[0] = false;
    const Kernel kernel = make_kernel(body, weights);
    const Space& space = space_named(text == both ? "matmul_activations" : "matmul_panels");
    for (const int threads : {1, 2}) {
      const Machine machine = test_machine(threads);
      ASSERT_EQ(spaces_for(kernel, machine).front().name, space.name);
      check_candidate(kernel, heuristic_candidate(space, kernel, machine));
      for (const std::int64_t panels : {1, 2})
        check_candidate(kernel,
                        bound(space, kernel, machine)
                            .at(point_with(space, kernel, machine, {{"rows", 3}, {"panels", panels}})));
    }
  }
}

// A row in f32 by a weight in bf16, as it is and turned: the products are f32's, whatever the processor has.
TEST(MatmulPanels, TakesAWideRowByANarrowWeight) {
  const Space& space = space_named("matmul_panels");
  for (const char* text : {"graph g(%a: f32[1,75], %w: bf16[75,100], %b: f32[100]) { %v: f32[1,100] = "
                           "matmul(%a, %w) %s: f32[1,100] "
                           "= add(%v, %b) %r: f32[1,100] = relu(%s) return %r }",
                           "graph g(%a: f32[1,64], %w: bf16[37,64]) { %t: bf16[64,37] = transpose(%w) "
                           "{perm=[1,0]} %v: f32[1,37] = "
                           "matmul(%a, %t) return %v }"}) {
    const Graph body = parse_graph(text);
    std::vector<bool> weights(body.inputs.size(), true);
    weights[0] = false;
    const Kernel kernel = make_kernel(body, weights);
    for (const int threads : {1, 2}) {
      const Machine machine = test_machine(threads);
      ASSERT_EQ(spaces_for(kernel, machine).front().name, space.name);
      for (const std::int64_t panels : {1, 2, 4}) {
        for (const std::int64_t stream_ahead : {0, 1}) {
          const Point point =
              point_with(space, kernel, machine, {{"panels", panels}, {"stream_ahead", stream_ahead}});
          check_candidate(kernel, bound(space, kernel, machine).at(point));
        }
      }
    }
  }
}

TEST(MatmulPanels, EveryPointAgrees) {
  const Kernel kernel = dense_kernel({1, 21, 12}, 12, 75);
  const Space& space = space_named("matmul_panels");
  for (const int threads : {1, 2}) {
    const Machine machine = test_machine(threads);
    for (const NamedValues& replaced :
         std::vector<NamedValues>{{{"rows", 14}, {"panels", 1}},
                                  {{"rows", 1}, {"panels", 4}},
                                  {{"rows", 5}, {"panels", 3}, {"row_tiles", 2}, {"unroll_k", 4}},
                                  {{"rows", 4}, {"panel_groups", 2}, {"rows_outer", 1}},
                                  {{"rows", 4}, {"panels", 3}, {"unroll_k", 2}, {"stream_ahead", 2}},
                                  {{"rows", 8}, {"row_tiles", 1}, {"stream_ahead", 1}},
                                  {{"copy_a", 1}, {"rows_outer", 0}, {"row_tiles", 1}}}) {
      expect_agrees(kernel, bound(space, kernel, machine).at(point_with(space, kernel, machine, replaced)));
    }
  }
}

TEST(MatmulPanels, SlicesAgree) {
  const Space& space = space_named("matmul_panels");
  const Kernel kernel = dense_kernel({2, 13, 512}, 512, 75);
  for (const int threads : {1, 2}) {
    const Machine machine = test_machine(threads);
    for (const NamedValues& replaced : std::vector<NamedValues>{
             {{"rows", 4}, {"panels", 1}, {"slab", 256}, {"row_tiles", 4}},
             {{"rows", 5}, {"panels", 3}, {"slab", 128}, {"row_tiles", 1}, {"unroll_k", 4}},
             {{"rows", 6}, {"panels", 2}, {"slab", 256}, {"stream_ahead", 1}},
             {{"rows", 6}, {"panel_groups", 2}, {"rows_outer", 1}, {"slab", 128}},
             {{"rows", 6}, {"panels", 2}, {"panel_groups", 2}, {"row_tiles", 2}, {"slab", 256}},
             {{"rows", 1}, {"panels", 1}, {"panel_groups", 3}, {"row_tiles", 5}, {"slab", 256}}}) {
      expect_agrees(kernel, bound(space, kernel, machine).at(point_with(space, kernel, machine, replaced)));
    }
  }
  const Machine machine = test_machine(1);
  const Point copied = point_with(space, kernel, machine, {{"slab", 256}, {"copy_a", 1}});
  EXPECT_THROW((void)bound(space, kernel, machine).at(copied), UnsupportedError);
}

/// Panels of half of the L2 and more: of eight groups three threads have three, three and two, two have four each.
TEST(MatmulPanels, ThreadsShareDeepPanels) {
  const Space& space = space_named("matmul_panels");
  const auto numbers = [&](std::int64_t k, int threads) {
    Machine machine = test_machine(threads);
    machine.l2_bytes = 1 << 20;
    const Kernel kernel = dense_kernel({196, k}, k, 384);
    const BoundSpace taken = bound(space, kernel, machine);
    return named_values(taken, taken.heuristic);
  };
  EXPECT_EQ(numbers(1536, 2).at("slab"), 0) << "they leave room for rows";
  for (const int threads : {1, 2, 3}) {
    const NamedValues found = numbers(12288, threads);
    EXPECT_EQ(found.at("slab"), 256);
    const std::int64_t groups = ceil_div<std::int64_t>(384, 16 * found.at("panels"));
    const std::int64_t tasks = ceil_div(groups, found.at("panel_groups"));
    EXPECT_LE(ceil_div<std::int64_t>(tasks, threads) * found.at("panel_groups"),
              ceil_div<std::int64_t>(groups, threads))
        << threads << " threads, " << groups << " groups";
  }
}

TEST(MatmulPanels, AVX2SlicesWhatTheL1DoesNotHold) {
  const Space& space = space_named("matmul_panels");
  const NarrowMachine narrow = avx2_machine(2);
  const Machine& machine = narrow.machine;
  const auto slab = [&](std::int64_t m, std::int64_t k) {
    const Kernel kernel = dense_kernel({m, k}, k, 96);
    const BoundSpace taken = bound(space, kernel, machine);
    return named_values(taken, taken.heuristic).at("slab");
  };
  EXPECT_EQ(slab(128, 768), 256);
  EXPECT_EQ(slab(128, 960), 192);
  EXPECT_EQ(slab(16, 768), 0) << "too few rows share a slice";
  EXPECT_EQ(slab(128, 64), 0) << "the L1 holds a panel";
  EXPECT_EQ(slab(128, 770), 0) << "no slice divides k";
  if (!has_avx2()) return;
  const Kernel kernel = dense_kernel({100, 512}, 512, 72);
  expect_agrees(kernel, heuristic_candidate(space, kernel, machine), 2e-6, narrow.target);
}

TEST(MatmulPanels, SlicesDeepPanels) {
  const Space& space = space_named("matmul_panels");
  const Machine machine = test_machine(1);
  const std::int64_t deep = machine.l2_bytes / 64 / 256 * 256 + 256;
  const auto slab = [&](std::int64_t m, std::int64_t k) {
    const Kernel kernel = dense_kernel({m, k}, k, 96);
    const BoundSpace taken = bound(space, kernel, machine);
    (void)taken.at(taken.heuristic);
    return named_values(taken, taken.heuristic).at("slab");
  };
  EXPECT_EQ(slab(150, deep), 256);
  EXPECT_EQ(slab(4, deep), 0) << "too few rows share a slice";
  EXPECT_EQ(slab(1000, deep), 256);
  EXPECT_EQ(slab(40, 3 * deep), 256);
  EXPECT_EQ(slab(150, 768), 0) << "the L2 holds a panel and more";
  const Kernel few = dense_kernel({40, 3 * deep}, 3 * deep, 40);
  expect_agrees(few, heuristic_candidate(space, few, machine), 1e-5);
  for (const std::int64_t columns : {40, 320, 330}) {
    const Kernel kernel = dense_kernel({300, deep}, deep, columns);
    expect_agrees(kernel, heuristic_candidate(space, kernel, machine), 1e-5);
  }
}

TEST(MatmulPanels, ReadsAnActivationThroughViews) {
  Graph body;
  const ValueId heads = body.add_input("heads", make_type(DType::f32, {1, 3, 10, 8}));
  const ValueId weight = body.add_input("w", make_type(DType::f32, {24, 32}));
  const ValueId swapped = body.add(Op::transpose, {heads}, {{"perm", Dims{0, 2, 1, 3}}});
  const ValueId rows = body.add(Op::reshape, {swapped}, {{"shape", Dims{1, 10, 24}}});
  body.outputs = {body.add(Op::matmul, {rows, weight})};
  expect_heuristic(make_kernel(body, {false, true}), "matmul_panels", 1);
}

TEST(MatmulPanels, StoresAComputedLeftOperand) {
  Graph body;
  const ValueId a = body.add_input("a", make_type(DType::f32, {9, 20}));
  const ValueId weight = body.add_input("w", make_type(DType::f32, {20, 32}));
  body.outputs = {body.add(Op::matmul, {body.add(Op::exp, {a}), weight})};
  expect_heuristic(make_kernel(body, {false, true}), "matmul_panels", 2);
}

TEST(MatmulPanels, RefusesWithAReason) {
  Graph body;
  const ValueId a = body.add_input("a", make_type(DType::f32, {4, 4}));
  const ValueId b = body.add_input("b", make_type(DType::f32, {4, 4}));
  body.outputs = {body.add(Op::reduce_sum, {body.add(Op::matmul, {a, b})}, {{"axes", Dims{1}}})};
  const Kernel kernel = make_kernel(body, {false, false});
  const Space& space = space_named("matmul_activations");
  EXPECT_EQ(space.bind(kernel, test_machine(1)).refusal, "reduce_sum after the anchor is not pointwise");
}

Kernel scores_kernel(const Dims& a, const Dims& b, bool transposed) {
  Graph body;
  const ValueId left = body.add_input("a", make_type(DType::f32, a));
  ValueId right = body.add_input("b", make_type(DType::f32, b));
  if (transposed) right = body.add(Op::transpose, {right}, {{"perm", Dims{0, 1, 3, 2}}});
  const ValueId product = body.add(Op::matmul, {left, right});
  body.outputs = {body.add(Op::mul, {product, body.add_constant(Tensor::scalar_f32(0.125F))})};
  return make_kernel(body, {false, false});
}

TEST(MatmulActivations, PacksInTheKernel) {
  expect_heuristic(scores_kernel({2, 3, 19, 8}, {2, 3, 21, 8}, true), "matmul_activations", 2);
  expect_heuristic(scores_kernel({2, 3, 40, 8}, {2, 3, 8, 48}, false), "matmul_activations", 1);
}

TEST(MatmulActivations, PacksInBlocksWhatLiesFarApart) {
  const Space& space = space_named("matmul_activations");
  for (const int threads : {1, 2}) {
    Machine machine = test_machine(threads);
    machine.l2_bytes = 16 << 10;
    for (const Kernel& kernel : {scores_kernel({1, 1, 40, 37}, {1, 1, 37, 150}, false),
                                 scores_kernel({2, 3, 33, 48}, {2, 3, 48, 128}, false),
                                 scores_kernel({1, 2, 35, 37}, {1, 2, 150, 37}, true)}) {
      const Candidate candidate = heuristic_candidate(space, kernel, machine);
      EXPECT_NE(candidate.to_string().find("split(k, kk, k, 16"), std::string::npos) << candidate.to_string();
      expect_agrees(kernel, candidate);
    }
  }
}

TEST(MatmulActivations, TakesOneColumn) {
  expect_heuristic(scores_kernel({1, 2, 5, 7}, {1, 2, 7, 1}, false), "matmul_activations", 1);
}

TEST(MatmulActivations, ReadsInPlaceAndBroadcasts) {
  const Kernel kernel = scores_kernel({2, 3, 10, 8}, {1, 3, 8, 32}, false);
  const Space& space = space_named("matmul_activations");
  const Machine machine = test_machine(1);
  expect_agrees(kernel,
                bound(space, kernel, machine).at(point_with(space, kernel, machine, {{"pack_b", 0}})));
}

TEST(MatmulSpaces, HeuristicComesFirstInEveryParameter) {
  const Kernel kernel = dense_kernel({1, 128, 64}, 64, 96);
  const Machine machine = test_machine(2);
  const Space& space = space_named("matmul_panels");
  const BoundSpace taken = bound(space, kernel, machine);
  for (std::size_t i = 0; i < taken.parameters.size(); ++i)
    EXPECT_EQ(taken.parameters[i].values.front(), taken.heuristic.at(i)) << taken.parameters[i].name;
}

/// A step of a recurrent network has no time to fetch weights ahead that are in the L3.
TEST(MatmulSpaces, FetchAheadForRowsEnough) {
  const Machine machine = test_machine(1);
  const std::int64_t n = machine.l2_bytes / 256 / 4 * 2;  // twice the L2
  const Space& space = space_named("matmul_panels");
  for (const std::int64_t rows : {1, 128}) {
    const Kernel kernel = dense_kernel({rows, 256}, 256, n);
    const BoundSpace taken = bound(space, kernel, machine);
    const std::string text = taken.at(taken.heuristic).schedule.to_string();
    EXPECT_EQ(text.find("stream_ahead") != std::string::npos, rows > 1) << text;
  }
}

/// Tiles of two rows would waste the least of 37, but read the panels from the L2 nineteen times with nothing to do meanwhile.
TEST(MatmulSpaces, FewRowsOfATileDoNotReadLongPanelsAgain) {
  Machine machine = test_machine(1);
  machine.l1_bytes = 48 << 10;
  machine.vector_registers = 32;
  machine.vector_floats = 16;
  const auto rows_of_tile = [&](std::int64_t m, std::int64_t k) {
    const Kernel kernel = dense_kernel({m, k}, k, 1024);
    const BoundSpace space = bound(space_named("matmul_panels"), kernel, machine);
    return named_values(space, space.heuristic).at("rows");
  };
  EXPECT_GE(rows_of_tile(37, 256), 4);
  EXPECT_GE(rows_of_tile(19, 1024), 4);
  EXPECT_EQ(rows_of_tile(2, 1024), 2);
}

TEST(MatmulSpaces, CostPrefersTilesThatFillTheRegisters) {
  const Kernel kernel = dense_kernel({1, 128, 64}, 64, 96);
  const Machine machine = test_machine(1);
  const Space& space = space_named("matmul_panels");
  const double best = bound(space, kernel, machine).cost(bound(space, kernel, machine).heuristic);
  EXPECT_LT(
      best,
      bound(space, kernel, machine).cost(point_with(space, kernel, machine, {{"rows", 1}, {"panels", 1}})));
}

}  // namespace
}  // namespace sylvite::space_matmul_test
