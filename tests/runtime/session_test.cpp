#include "runtime/session.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "autotune/sqlite.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "frontend/passes/quantize_products.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/plan_interpreter.h"
#include "runtime/session_confirm.h"
#include "schedules/space.h"
#include "tests/runtime/test_session.h"

namespace sylvite::session_test {
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

/// Of one value that lies in blocks, called "features", which leaves twice.
TEST(SessionTest, OutputsHaveTheNamesOfTheModel) {
  Graph graph = blocked_outputs();
  const TemporaryFolder folder;
  const CompiledModel model = compile(graph, test_options(folder.path()));
  EXPECT_THAT(model.input_names(), ElementsAre("x"));
  EXPECT_THAT(model.output_names(), ElementsAre("features", "again", "x_too"));
  EXPECT_EQ(model.output_types().at(1), make_type(DType::f32, {1, 32, 6, 6}));
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
  Built built = build_graph(graph, options);
  EXPECT_THAT(built.report.warnings, IsEmpty());
  EXPECT_EQ(built.setup->key().precision, "int8-dynamic");
  EXPECT_THAT(built.program.plan().kernels.back().text, HasSubstr("quantized_matmul"));
  const Tensor actual = built.program.run(inputs)[0];
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
  const Imported imported = load_graph(small_graph(), make_setup(options));
  if (imported.setup->machine.bf16_products) {
    EXPECT_THAT(imported.report.warnings, IsEmpty());
    EXPECT_EQ(imported.setup->key().precision, "bf16");
    EXPECT_THAT(imported.plan->kernels.back().text, HasSubstr("bf16"));
  } else {
    EXPECT_THAT(imported.report.warnings, ElementsAre(HasSubstr("AVX512_BF16")));
    EXPECT_EQ(imported.setup->key().precision, "f32");
    EXPECT_THAT(imported.plan->kernels.back().text, Not(HasSubstr("bf16")));
  }
}

TEST(SessionTest, AGraphNeedsOutputs) {
  Graph graph = small_graph();
  graph.outputs.clear();
  const TemporaryFolder folder;
  EXPECT_THROW((void)load_graph(std::move(graph), make_setup(test_options(folder.path()))), ModelError);
}

TEST(SessionTest, ErrorsOfAFileNameIt) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/cut.onnx";
  write_file(path, "no model");
  try {
    (void)compile(path, test_options(folder.path()));
    FAIL() << "it was compiled";
  } catch (const ModelError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
}

TEST(SessionTest, QuantizesOnProcessorsOnly) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["compile.precision"] = "int8-dynamic";
  options.set["compile.device"] = "cuda";
  EXPECT_THROW((void)make_setup(options), UnsupportedError);
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

void expect_right_results(Built& built) {
  const std::vector<Tensor> inputs = {sample_tensor(DType::f32, {4, 8})};
  expect_near(built.program.run(inputs)[0], interpret(small_graph(), inputs)[0]);
}

TEST(SessionTest, TheSecondRunCompilesNothing) {
  const TemporaryFolder folder;
  const Built first = build_graph(small_graph(), test_options(folder.path()));
  EXPECT_GT(first.report.compiled, 0);
  EXPECT_EQ(first.report.loaded_from_cache, 0);
  Built second = build_graph(small_graph(), test_options(folder.path()));
  EXPECT_EQ(second.report.compiled, 0);
  EXPECT_EQ(second.report.loaded_from_cache, second.report.unique_kernels);
  EXPECT_GT(second.report.peak_bytes, 0);
  expect_right_results(second);
}

TEST(SessionTest, DamagedObjectsAreCompiledAgain) {
  const TemporaryFolder folder;
  (void)build_graph(small_graph(), test_options(folder.path()));
  for (const auto& entry : fs::directory_iterator(folder.path() + "/objects")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(entry.path()) / 2));
    file << "poison";
  }
  Built built = build_graph(small_graph(), test_options(folder.path()));
  EXPECT_EQ(built.report.compiled, built.report.unique_kernels);
  EXPECT_THAT(built.report.warnings, Contains(HasSubstr("damaged")));
  expect_right_results(built);
}

TEST(SessionTest, ACacheThatCannotBeUsedIsAWarning) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  std::ofstream(folder.path() + "/file") << "x";
  options.set["cache.dir"] = folder.path() + "/file/objects";
  Built built = build_graph(small_graph(), options);
  EXPECT_THAT(built.report.warnings, Contains(HasSubstr("cannot be created")));
  expect_right_results(built);
}

TEST(SessionTest, WorksWithoutWorkersCacheAndDatabase) {
  CompileOptions options;
  options.worker_command = "/nonexistent/sylvite";
  options.set = {{"cache.enabled", "false"}, {"db.enabled", "false"}};
  Built built = build_graph(small_graph(), options);
  expect_right_results(built);
}

TEST(SessionTest, WithoutTheCommandItSaysThatCompilingIsSlow) {
  const TemporaryFolder folder;
  const auto setup = std::make_shared<sylvite::Setup>(*make_setup(test_options(folder.path())));
  setup->worker_command.clear();
  setup->compile_jobs = 2;
  Graph graph = small_graph();
  graph.outputs = {graph.add(Op::softmax, {graph.outputs[0]}, {{"axis", std::int64_t{1}}})};
  const Imported imported = load_graph(std::move(graph), setup);
  ASSERT_GT(imported.plan->kernels.size(), 1);
  const Built built = build_program(imported, choose_candidates(imported));
  EXPECT_THAT(built.report.warnings, Contains(HasSubstr("one by one in this process")));
}

TEST(SessionTest, ACandidateThatDoesNotCompileIsReplaced) {
  const TemporaryFolder folder;
  const Imported imported = load_graph(small_graph(), make_setup(test_options(folder.path())));
  Chosen chosen = choose_candidates(imported);
  chosen.choices[0].candidate.schedule.decisions.push_back({"no_such_stage", -1, "unroll", {"d0"}});
  chosen.choices[0].source = Source::database;
  Built built = build_program(imported, chosen);
  EXPECT_EQ(built.choices->at(0).source, Source::heuristic);
  EXPECT_THAT(built.report.warnings, Contains(HasSubstr("does not compile")));
  expect_right_results(built);
}

TEST(SessionTest, ACandidateThatCannotRunIsReplacedOnEveryStart) {
  const TemporaryFolder folder;
  for (int start = 0; start < 2; ++start) {
    const Imported imported = load_graph(small_graph(), make_setup(test_options(folder.path())));
    const Kernel& kernel = imported.plan->kernels[0];
    Chosen chosen = choose_candidates(imported);
    Choice& choice = chosen.choices[0];
    choice.candidate = reference_candidate(kernel);
    const std::string output = output_stage(kernel, kernel.body.outputs[0]);
    choice.candidate.schedule.decisions.push_back({output, -1, "bound", {"d0", "0", "2"}});
    choice.source = Source::database;
    Built built = build_program(imported, chosen);
    EXPECT_THAT(built.report.warnings, Contains(HasSubstr("is replaced")));
    expect_right_results(built);
  }
}

TEST(SessionTest, ReadsStoredWinners) {
  const TemporaryFolder folder;
  const Imported imported = load_graph(small_graph(), make_setup(test_options(folder.path())));
  Winner winner;
  winner.candidate = reference_candidate(imported.plan->kernels[0]);
  winner.median_us = 12;
  winner.origin = origin_search;
  Database database(imported.setup->database);
  database.record_winner(imported.plan->kernels[0], imported.setup->key(), winner);
  const Chosen chosen = choose_candidates(imported);
  EXPECT_EQ(chosen.choices[0].source, Source::database);
  EXPECT_EQ(chosen.choices[0].candidate, winner.candidate);
  EXPECT_EQ(chosen.choices[0].median_us, 12);
  Built built = build_program(imported, chosen);
  expect_right_results(built);
}

/// Stages are values: of one imported model, programs with different choices run side by side, also when the stages before
/// are gone.
TEST(SessionTest, OneModelIsBuiltMoreThanOnce) {
  const TemporaryFolder folder;
  const auto build_twice = [&] {
    const Imported imported = load_graph(small_graph(), make_setup(test_options(folder.path())));
    const Chosen reference = choose_each(imported, [](const Kernel& kernel) {
      return Choice{reference_candidate(kernel), Source::reference};
    });
    std::vector<Built> built;
    built.push_back(build_program(imported, choose_candidates(imported)));
    built.push_back(build_program(imported, reference));
    EXPECT_EQ(&built[0].program.plan(), imported.plan.get());
    EXPECT_EQ(&built[1].program.plan(), imported.plan.get());
    EXPECT_EQ(built[1].report.compiled, built[1].report.unique_kernels) << "a report is of one program";
    return built;
  };
  std::vector<Built> built = build_twice();
  for (Built& each : built) expect_right_results(each);
}

/// A model of small_graph() whose matmul was chosen by a search: `candidate`.
std::pair<Imported, Chosen> searched(const std::string& folder, const Candidate& candidate) {
  Imported imported = load_graph(small_graph(), make_setup(test_options(folder)));
  Chosen chosen = choose_candidates(imported);
  chosen.choices[0].candidate = candidate;
  chosen.choices[0].source = Source::search;
  return {std::move(imported), std::move(chosen)};
}

double soon(double seconds) {
  return steady_seconds() + seconds;
}

TEST(ConfirmTest, AWinnerThatIsSlowerInTheModelGivesWay) {
  const TemporaryFolder folder;
  const Graph graph = small_graph();
  const Imported plain = load_graph(graph, make_setup(test_options(folder.path())));
  const Kernel kernel = plain.plan->kernels[0];
  // The plain schedule, doing everything many times over: slower than the default on any machine.
  Candidate slow = reference_candidate(kernel);
  slow.schedule.decisions.push_back({output_stage(kernel, kernel.body.outputs[0]), -1, "parallel", {"d0"}});
  slow.schedule.decisions.push_back({output_stage(kernel, kernel.body.outputs[0]), -1, "parallel", {"d1"}});
  auto [imported, chosen] = searched(folder.path(), slow);
  const TuningKey key = imported.setup->key();
  Database database(imported.setup->database);
  const Candidate wanted = default_candidate(kernel, imported.setup->machine);
  Trial trial;
  trial.kernel_id = kernel.id;
  trial.candidate = wanted;
  trial.samples_us = {3};
  trial.median_us = 3;
  database.record_trial(kernel, key, trial);
  database.record_winner(kernel, key, {slow, 1, 0, std::string(origin_search), 7});
  confirm_winners(imported, chosen, database,
                  soon(-1));  // only compiles, which may take longer than the race
  ASSERT_EQ(chosen.choices[0].candidate, slow);
  confirm_winners(imported, chosen, database, soon(3));
  EXPECT_EQ(chosen.choices[0].candidate, wanted);
  EXPECT_EQ(chosen.choices[0].source, Source::heuristic);
  EXPECT_THAT(chosen.choices[0].why, HasSubstr("whole model"));
  const std::optional<Winner> stored = database.find_winner(kernel, key);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->candidate, wanted);
  EXPECT_EQ(stored->origin, origin_heuristic);
  EXPECT_EQ(stored->median_us, 3);
  EXPECT_EQ(stored->budget_seconds, 7);
  EXPECT_EQ(
      database.connection().integer("SELECT count(*) FROM races WHERE scope = 'model' AND result = 'lost'"),
      1);
  Built built = build_program(imported, chosen);
  expect_right_results(built);
}

/// However slow it is in the model.
TEST(ConfirmTest, APinIsNotChallenged) {
  const TemporaryFolder folder;
  const Imported plain = load_graph(small_graph(), make_setup(test_options(folder.path())));
  const Candidate pinned = reference_candidate(plain.plan->kernels[0]);
  auto [imported, chosen] = searched(folder.path(), pinned);
  chosen.choices[0].source = Source::pinned;
  Database database("");
  confirm_winners(imported, chosen, database, soon(3));
  EXPECT_EQ(chosen.choices[0].candidate, pinned);
  EXPECT_EQ(database.connection().integer("SELECT count(*) FROM races"), 0);
}

TEST(ConfirmTest, WithoutTimeNothingChanges) {
  const TemporaryFolder folder;
  const Imported plain = load_graph(small_graph(), make_setup(test_options(folder.path())));
  const Candidate other = reference_candidate(plain.plan->kernels[0]);
  auto [imported, chosen] = searched(folder.path(), other);
  Database database("");
  confirm_winners(imported, chosen, database, soon(-1));
  EXPECT_EQ(chosen.choices[0].candidate, other);
  EXPECT_EQ(database.connection().integer("SELECT count(*) FROM races"), 0);
}

}  // namespace
}  // namespace sylvite::session_test
