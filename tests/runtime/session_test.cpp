#include "runtime/session.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "autotune/sqlite.h"
#include "base/clock.h"
#include "base/error.h"
#include "frontend/passes/quantize_products.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/plan_interpreter.h"
#include "runtime/session_confirm.h"
#include "tests/runtime/test_session.h"

namespace sylvite {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Graph small_graph() {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {4, 8}));
  const ValueId w = graph.add_constant(sample_tensor(DType::f32, {8, 5}, 1), "w");
  graph.outputs = {graph.add(Op::relu, {graph.add(Op::matmul, {x, w})})};
  return graph;
}

Tensor noise(const Dims& dims, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> values(-1.0, 1.0);
  Tensor tensor(DType::f32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, values(generator));
  return tensor;
}

/// The largest difference as a share of the largest magnitude.
double distance(const Tensor& actual, const Tensor& expected) {
  double scale = 0, error = 0;
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    scale = std::max(scale, std::abs(expected.as_double(i)));
    error = std::max(error, std::abs(expected.as_double(i) - actual.as_double(i)));
  }
  return error / scale;
}

/// The kernels' products are of 8 bits, which costs some digits; winners are another key's.
TEST(SessionTest, QuantizesDynamically) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {2, 20, 64}));
  const auto layer = [&](ValueId in, std::int64_t from, std::int64_t to, unsigned seed) {
    const ValueId product = graph.add(Op::matmul, {in, graph.add_constant(noise({from, to}, seed))});
    return graph.add(Op::add, {product, graph.add_constant(noise({to}, seed + 1))});
  };
  graph.outputs = {layer(graph.add(Op::gelu, {layer(x, 64, 96, 1)}), 96, 40, 3)};
  const std::vector<Tensor> inputs = {noise({2, 20, 64}, 5)};
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["compile.precision"] = "int8-dynamic";
  Session session = build_session(graph, options);
  EXPECT_THAT(session.report.warnings, IsEmpty());
  EXPECT_EQ(session.key().precision, "int8-dynamic");
  EXPECT_THAT(session.program->plan().kernels.back().text, HasSubstr("quantized_matmul"));
  const Tensor actual = session.program->run(inputs)[0];
  const double lost = distance(interpret(quantize_products(graph), inputs)[0], interpret(graph, inputs)[0]);
  EXPECT_GT(lost, 1e-3);
  EXPECT_LT(lost, 0.02);
  EXPECT_LT(distance(actual, interpret(graph, inputs)[0]), 0.03) << "with what bf16 costs, where it is used";
}

/// One file of settings serves machines with instructions for bf16 and machines without, where it is slow.
TEST(SessionTest, StoresBf16WhereTheProcessorMultipliesIt) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["compile.precision"] = "bf16";
  Session session = load_graph(small_graph(), options);
  if (session.machine.bf16_products) {
    EXPECT_THAT(session.report.warnings, IsEmpty());
    EXPECT_EQ(session.key().precision, "bf16");
    EXPECT_THAT(session.plan.kernels.back().text, HasSubstr("bf16"));
  } else {
    EXPECT_THAT(session.report.warnings, ElementsAre(HasSubstr("AVX512_BF16")));
    EXPECT_EQ(session.key().precision, "f32");
    EXPECT_THAT(session.plan.kernels.back().text, Not(HasSubstr("bf16")));
  }
}

TEST(SessionTest, QuantizesOnProcessorsOnly) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["compile.precision"] = "int8-dynamic";
  options.set["compile.device"] = "cuda";
  EXPECT_THROW((void)load_graph(small_graph(), options), UnsupportedError);
}

/// Products of one activation are one kernel, as in f32.
TEST(SessionTest, QuantizedProductsOfOneActivationAreMerged) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 5, 64}));
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const ValueId product = graph.add(Op::matmul, {x, graph.add_constant(noise({64, 48}, seed))});
    graph.outputs.push_back(graph.add(Op::transpose, {product}, {{"perm", Dims{0, 2, 1}}}));
  }
  const std::vector<Tensor> inputs = {noise({1, 5, 64}, 9)};
  const Plan plan = lower(quantize_products(graph));
  const auto products = std::count_if(plan.launches.begin(), plan.launches.end(), [&](const Launch& launch) {
    return plan.kernels.at(static_cast<std::size_t>(launch.kernel)).kind == KernelClass::matmul;
  });
  EXPECT_EQ(products, 1);
  const std::vector<Tensor> merged = interpret_plan(plan, inputs);
  const std::vector<Tensor> apart = interpret(quantize_products(graph), inputs);
  for (std::size_t i = 0; i < apart.size(); ++i) EXPECT_EQ(distance(merged.at(i), apart[i]), 0);
}

void expect_right_results(Session& session) {
  const std::vector<Tensor> inputs = {sample_tensor(DType::f32, {4, 8})};
  expect_near(session.program->run(inputs)[0], interpret(small_graph(), inputs)[0]);
}

TEST(SessionTest, TheSecondRunCompilesNothing) {
  const TemporaryFolder folder;
  const Session first = build_session(small_graph(), test_options(folder.path()));
  EXPECT_GT(first.report.compiled, 0);
  EXPECT_EQ(first.report.loaded_from_cache, 0);
  Session second = build_session(small_graph(), test_options(folder.path()));
  EXPECT_EQ(second.report.compiled, 0);
  EXPECT_EQ(second.report.loaded_from_cache, second.report.unique_kernels);
  EXPECT_GT(second.report.peak_bytes, 0);
  expect_right_results(second);
}

TEST(SessionTest, DamagedObjectsAreCompiledAgain) {
  const TemporaryFolder folder;
  (void)build_session(small_graph(), test_options(folder.path()));
  for (const auto& entry : fs::directory_iterator(folder.path() + "/objects")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(entry.path()) / 2));
    file << "poison";
  }
  Session session = build_session(small_graph(), test_options(folder.path()));
  EXPECT_EQ(session.report.compiled, session.report.unique_kernels);
  EXPECT_THAT(session.report.warnings, Contains(HasSubstr("damaged")));
  expect_right_results(session);
}

TEST(SessionTest, ACacheThatCannotBeUsedIsAWarning) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  std::ofstream(folder.path() + "/file") << "x";
  options.set["cache.dir"] = folder.path() + "/file/objects";
  Session session = build_session(small_graph(), options);
  EXPECT_THAT(session.report.warnings, Contains(HasSubstr("cannot be created")));
  expect_right_results(session);
}

TEST(SessionTest, WorksWithoutWorkersCacheAndDatabase) {
  CompileOptions options;
  options.worker_command = "/nonexistent/sylvite";
  options.set = {{"cache.enabled", "false"}, {"db.enabled", "false"}};
  Session session = build_session(small_graph(), options);
  expect_right_results(session);
}

TEST(SessionTest, ACandidateThatDoesNotCompileIsReplaced) {
  const TemporaryFolder folder;
  Session session = load_graph(small_graph(), test_options(folder.path()));
  choose_candidates(session);
  session.choices[0].candidate.schedule.decisions.push_back({"no_such_stage", -1, "unroll", {"d0"}});
  session.choices[0].origin = Origin::database;
  build_program(session);
  EXPECT_EQ(session.choices[0].origin, Origin::heuristic);
  EXPECT_THAT(session.report.warnings, Contains(HasSubstr("does not compile")));
  expect_right_results(session);
}

TEST(SessionTest, ACandidateThatCannotRunIsReplacedOnEveryStart) {
  const TemporaryFolder folder;
  for (int start = 0; start < 2; ++start) {
    Session session = load_graph(small_graph(), test_options(folder.path()));
    choose_candidates(session);
    Choice& choice = session.choices[0];
    choice.candidate = reference_candidate(session.plan.kernels[0]);
    const std::string output = output_stage(session.plan.kernels[0], session.plan.kernels[0].body.outputs[0]);
    choice.candidate.schedule.decisions.push_back({output, -1, "bound", {"d0", "0", "2"}});
    choice.origin = Origin::database;
    build_program(session);
    EXPECT_THAT(session.report.warnings, Contains(HasSubstr("is replaced")));
    expect_right_results(session);
  }
}

TEST(SessionTest, ReadsStoredWinners) {
  const TemporaryFolder folder;
  const CompileOptions options = test_options(folder.path());
  Session session = load_graph(small_graph(), options);
  Winner winner;
  winner.candidate = reference_candidate(session.plan.kernels[0]);
  winner.median_us = 12;
  winner.origin = origin_search;
  Database database(session_paths(session.config).database);
  database.record_winner(session.plan.kernels[0], session.key(), winner);
  choose_candidates(session);
  EXPECT_EQ(session.choices[0].origin, Origin::database);
  EXPECT_EQ(session.choices[0].candidate, winner.candidate);
  EXPECT_EQ(session.choices[0].median_us, 12);
  build_program(session);
  expect_right_results(session);
}

/// A session of small_graph() whose matmul was chosen by a search: `candidate`.
Session searched_session(const std::string& folder, const Candidate& candidate) {
  Session session = load_graph(small_graph(), test_options(folder));
  choose_candidates(session);
  session.choices[0].candidate = candidate;
  session.choices[0].origin = Origin::search;
  return session;
}

double soon(double seconds) {
  return steady_seconds() + seconds;
}

TEST(ConfirmTest, AWinnerThatIsSlowerInTheModelGivesWay) {
  const TemporaryFolder folder;
  const Graph graph = small_graph();
  Session plain = load_graph(graph, test_options(folder.path()));
  const Kernel kernel = plain.plan.kernels[0];
  // The plain schedule, doing everything many times over: slower than the default on any machine.
  Candidate slow = reference_candidate(kernel);
  slow.schedule.decisions.push_back({output_stage(kernel, kernel.body.outputs[0]), -1, "parallel", {"d0"}});
  slow.schedule.decisions.push_back({output_stage(kernel, kernel.body.outputs[0]), -1, "parallel", {"d1"}});
  Session session = searched_session(folder.path(), slow);
  Database database(session_paths(session.config).database);
  const Candidate wanted = default_candidate(kernel, session.machine);
  Trial trial;
  trial.kernel_id = kernel.id;
  trial.candidate = wanted;
  trial.samples_us = {3};
  trial.median_us = 3;
  database.record_trial(kernel, session.key(), trial);
  database.record_winner(kernel, session.key(), {slow, 1, 0, std::string(origin_search), 7});
  confirm_winners(session, database, soon(-1));  // only compiles, which may take longer than the race
  ASSERT_EQ(session.choices[0].candidate, slow);
  confirm_winners(session, database, soon(3));
  EXPECT_EQ(session.choices[0].candidate, wanted);
  EXPECT_EQ(session.choices[0].origin, Origin::heuristic);
  EXPECT_THAT(session.choices[0].why, HasSubstr("whole model"));
  const std::optional<Winner> stored = database.find_winner(kernel, session.key());
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->candidate, wanted);
  EXPECT_EQ(stored->origin, origin_heuristic);
  EXPECT_EQ(stored->median_us, 3);
  EXPECT_EQ(stored->budget_seconds, 7);
  EXPECT_EQ(
      database.connection().integer("SELECT count(*) FROM races WHERE scope = 'model' AND result = 'lost'"),
      1);
  build_program(session);
  expect_right_results(session);
}

TEST(ConfirmTest, WithoutTimeNothingChanges) {
  const TemporaryFolder folder;
  Session plain = load_graph(small_graph(), test_options(folder.path()));
  const Candidate other = reference_candidate(plain.plan.kernels[0]);
  Session session = searched_session(folder.path(), other);
  Database database("");
  confirm_winners(session, database, soon(-1));
  EXPECT_EQ(session.choices[0].candidate, other);
  EXPECT_EQ(database.connection().integer("SELECT count(*) FROM races"), 0);
}

TEST(SettingsTest, LaterLayersWin) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/mine.ini";
  std::ofstream(file) << "[compile]\nmode = max-autotune\nthreads = 3\n[tune]\nbudget = 5s\n";
  CompileOptions options;
  options.config_files = {file};
  options.set = {{"compile.threads", "4"}};
  const CompileConfig config = resolve_settings(options).config();
  EXPECT_EQ(config.mode, Mode::max_autotune);
  EXPECT_TRUE(config.tune_enabled);
  EXPECT_EQ(config.tune_budget.count(), 5);
  EXPECT_EQ(config.threads, 4);
}

TEST(SettingsTest, RefusesWhatItDoesNotKnow) {
  CompileOptions options;
  options.mode = "fastest";
  EXPECT_THROW((void)resolve_settings(options), UsageError);
  options.mode = "default";
  options.set = {{"tune.bugdet", "5s"}};
  EXPECT_THROW((void)resolve_settings(options), UsageError);
}

TEST(SettingsTest, ImportKnobs) {
  CompileOptions options;
  options.set = {{"import.random_weights", "7"},
                 {"import.dims", "batch=2, sequence=128"},
                 {"import.shapes", "image=1x3x8x8,scalar="}};
  const ImportOptions import = import_options(resolve_settings(options).config(), {});
  EXPECT_TRUE(import.random_weights);
  EXPECT_EQ(import.seed, 7U);
  EXPECT_EQ(import.dims.at("sequence"), 128);
  EXPECT_EQ(import.input_shapes.at("image"), (Dims{1, 3, 8, 8}));
  EXPECT_THAT(import.input_shapes.at("scalar"), IsEmpty());
  for (const char* bad : {"image", "=1x2", "image=1xa", "image=-1", "image=1x"}) {
    options.set["import.shapes"] = bad;
    EXPECT_THROW((void)import_options(resolve_settings(options).config(), {}), UsageError) << bad;
  }
}

}  // namespace
}  // namespace sylvite
