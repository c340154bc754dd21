// One model at many sizes: results, what is compiled when, shared memory, and sizes that do not fit.

#include "runtime/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <random>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "runtime/equal_weights.h"
#include "sylvite/graph_text.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/runtime/attention_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite::family_test {
namespace {

using testing::HasSubstr;
class FamilyTest : public testing::Test {
 protected:
  void SetUp() override { write_file(path_, attention_model()); }

  [[nodiscard]] CompiledModel compiled(const std::string& dims,
                                       const std::map<std::string, std::string>& more = {}) const {
    CompileOptions options = test_options(folder_.path());
    options.set["import.dims"] = dims;
    for (const auto& [name, value] : more) options.set[name] = value;
    return compile(path_, options);
  }
  void expect_right(CompiledModel& model, std::int64_t batch, std::int64_t sequence) const {
    ImportOptions options;
    options.dims = {{"batch", batch}, {"sequence", sequence}};
    const std::vector<Tensor> inputs = attention_inputs(batch, sequence);
    expect_near(model.run(inputs).at(0), interpret(import_onnx(path_, options), inputs).at(0));
  }
  static std::string refusal(CompiledModel& model, const std::vector<Tensor>& inputs) {
    try {
      (void)model.run(inputs);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/attention.onnx";
};

TEST_F(FamilyTest, SizesHaveTheWeightsThatPassesMade) {
  // Gemm reads its weight transposed, and of two products of one value the weights lie side by side.
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_open_input(graph, "x", attention_width);
  add_output(graph, "y");
  std::vector<float> values(static_cast<std::size_t>(attention_width * attention_width), 0.25F);
  for (const char* name : {"w1", "w2"}) {
    values[0] += 1;
    add_floats(graph, name, {attention_width, attention_width}, values);
  }
  add_node(graph, "Transpose", {"w1"}, {"turned"});
  set_integers(*graph.mutable_node(graph.node_size() - 1), "perm", {1, 0});
  add_node(graph, "MatMul", {"x", "turned"}, {"first"});
  add_node(graph, "MatMul", {"x", "w2"}, {"second"});
  add_node(graph, "Mul", {"first", "second"}, {"y"});
  write_file(path_, model.SerializeAsString());
  CompileOptions options = test_options(folder_.path());
  options.set["import.dims"] = "batch=1..8,sequence=1..64@16";
  const OpenModel open = open_model(path_, make_setup(options), {});
  const Imported first = bind_sizes(open, {2, 16}), second = bind_sizes(open, {3, 17});
  ASSERT_FALSE(first.plan->weights.empty());
  ASSERT_EQ(first.plan->weights.size(), second.plan->weights.size());
  for (std::size_t i = 0; i < first.plan->weights.size(); ++i)
    EXPECT_EQ(first.plan->weights[i].identity(), second.plan->weights[i].identity());
}

TEST_F(FamilyTest, KernelsForManySizesThatDoNotCompileAreReplaced) {
  CompileOptions options = test_options(folder_.path());
  options.set["import.dims"] = "batch=1..8,sequence=1..64@16";
  options.set["log.level"] = "error";
  const OpenModel open = open_model(path_, make_setup(options), {});
  Imported imported = bind_sizes(open, {2, 16});
  ASSERT_NE(imported.for_sizes, nullptr);
  auto broken = std::make_shared<Plan>(*imported.plan);
  for (Kernel& kernel : broken->kernels)
    if (kernel.open) kernel.text = "no kernel";
  imported.plan = broken;
  EXPECT_THROW((void)build_program(imported, choose_candidates(imported)), CompileError);
  Family family(open);
  const Built& built = family.add(imported, [](const Imported& each) { return choose_candidates(each); });
  EXPECT_TRUE(std::ranges::none_of(built.program.plan().kernels,
                                   [](const Kernel& kernel) { return kernel.open != nullptr; }));
}

TEST_F(FamilyTest, IsRightAtEverySizeAndCompilesEachOnce) {
  CompiledModel model = compiled("batch=1..8,sequence=1..64@16");
  EXPECT_EQ(model.report().programs, 1);
  model.wait();
  const int at_load = model.report().compiled;
  EXPECT_GT(at_load, 0);
  expect_right(model, 1, 16);
  EXPECT_EQ(model.report().compiled, at_load) << "the size to be fast at is ready";
  const std::pair<int, int> sizes[] = {{1, 1},  {2, 16}, {1, 64}, {3, 17}, {8, 5},
                                       {4, 33}, {5, 16}, {2, 2},  {1, 31}};
  for (const auto& [batch, sequence] : sizes) expect_right(model, batch, sequence);
  const CompileReport first = model.report();
  EXPECT_EQ(first.programs, 10);
  EXPECT_EQ(first.sizes, 10);
  for (const auto& [batch, sequence] : sizes) expect_right(model, batch, sequence);
  EXPECT_EQ(model.report().compiled, first.compiled);
  EXPECT_EQ(model.report().loaded_from_cache, first.loaded_from_cache);
  EXPECT_EQ(model.report().programs, 10);
  EXPECT_EQ(model.report().import_seconds, first.import_seconds) << "nothing is imported again";
}

TEST_F(FamilyTest, KernelsOfGivenRangesAreCompiledAhead) {
  const auto compiled_by_runs = [&](const std::string& ahead) {
    CompiledModel model = compiled("batch=1..8,sequence=1..64@16",
                                   {{"compile.kernels_ahead", ahead}, {"cache.enabled", "off"}});
    model.wait();
    const int at_load = model.report().compiled;
    for (const auto& [batch, sequence] : {std::pair{1, 1}, {8, 64}, {3, 17}, {2, 2}, {1, 31}, {7, 15}})
      expect_right(model, batch, sequence);
    return model.report().compiled - at_load;
  };
  EXPECT_LE(2 * compiled_by_runs("auto"), compiled_by_runs("off"));
}

TEST_F(FamilyTest, RunsDoNotWaitForWhatIsCompiledAhead) {
  const std::pair<int, int> sizes[] = {{1, 16}, {8, 64}, {1, 16}, {3, 17}, {2, 2}, {7, 15}};
  CompiledModel model = compiled("batch=1..8,sequence=1..64@16", {{"cache.enabled", "off"}});
  const int at_load = model.report().compiled;
  for (const auto& [batch, sequence] : sizes) expect_right(model, batch, sequence);
  model.wait();
  const int ahead = model.report().compiled;
  EXPECT_GT(ahead, at_load);
  for (const auto& [batch, sequence] : sizes) expect_right(model, batch, sequence);
  EXPECT_EQ(model.report().compiled, ahead);
}

/// Where compile.specialize says so.
TEST_F(FamilyTest, SizesThatRunOftenGetKernelsForThemAlone) {
  for (const auto& [specialize, expected] : {std::pair("lazy", 1), {"off", 0}}) {
    CompiledModel model = compiled("batch=1..8,sequence=1..64@16",
                                   {{"compile.specialize", specialize}, {"cache.enabled", "off"}});
    model.wait();
    const int compiled = model.report().compiled;
    const double enough = steady_seconds() + 1.5 * std::max(1.0, model.report().compile_seconds);
    const std::vector<Tensor> inputs = attention_inputs(3, 17);
    while (steady_seconds() < enough) (void)model.run(inputs);
    model.wait();
    EXPECT_EQ(model.report().specialized, expected);
    EXPECT_EQ(model.report().compiled > compiled, expected > 0);
    const int programs = model.report().programs;
    EXPECT_EQ(programs, 2 + expected);
    for (const auto& [batch, sequence] : {std::pair(3, 17), {1, 16}, {3, 17}})
      expect_right(model, batch, sequence);
    EXPECT_EQ(model.report().programs, programs) << "it is kept";
  }
}

/// What is compiled ahead is not there, and is compiled once it is needed; whatever the parent's thread was at.
TEST_F(FamilyTest, ChildrenMadeByForkRunAtOtherSizes) {
  CompiledModel model = compiled("batch=1..8,sequence=1..64@16", {{"cache.enabled", "off"}});
  constexpr int between = 5000;  // microseconds
  std::array<pid_t, 6> children{};
  for (pid_t& child : children) {
    child = ::fork();
    if (child == 0) {
      {
        CompiledModel mine = std::move(model);
        for (const auto& [batch, sequence] : {std::pair(1, 16), {8, 64}, {2, 2}})
          expect_right(mine, batch, sequence);
        mine.wait();
      }
      ::_exit(HasFailure() ? 1 : 0);
    }
    ASSERT_GT(child, 0);
    ::usleep(between);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  expect_right(model, 8, 64);
}

TEST_F(FamilyTest, RunsAtAnySizeAreEvaluatedUntilProgramsAreReady) {
  CompiledModel model = compiled("batch=1..8,sequence=1..64@16+64", {{"compile.first_answer", "fast"}});
  EXPECT_FALSE(model.is_ready());
  EXPECT_THROW((void)model.output_types(), UnsupportedError);
  for (const auto& [batch, sequence] : {std::pair(1, 16), {2, 7}, {8, 64}, {3, 9}, {4, 4}, {2, 7}, {1, 5}})
    expect_right(model, batch, sequence);
  EXPECT_THAT(refusal(model, attention_inputs(9, 16)), HasSubstr("batch"));
  model.wait();
  EXPECT_EQ(model.report().programs, 2);
  EXPECT_GT(model.report().first_answer_seconds, 0);
  for (const auto& [batch, sequence] : {std::pair(1, 16), {2, 7}}) expect_right(model, batch, sequence);
  EXPECT_EQ(model.report().programs, 3);
  CompiledModel again = compiled("batch=1..8,sequence=1..64@16", {{"compile.first_answer", "fast"}});
  again.wait();
  EXPECT_EQ(again.report().compiled, 0) << "all is in the cache";
}

/// With fast first answers, at sizes that come later, too.
TEST_F(FamilyTest, RunsAtNewSizesDoNotWaitForKernels) {
  CompiledModel model = compiled("batch=1..64,sequence=1..512@16",
                                 {{"compile.first_answer", "fast"}, {"compile.kernels_ahead", "off"}});
  model.wait();
  const int at_load = model.report().compiled;
  EXPECT_EQ(model.report().programs, 1);
  expect_right(model, 3, 9);
  EXPECT_EQ(model.report().programs, 1) << "it was evaluated";
  expect_right(model, 64, 1);
  expect_right(model, 1, 16);
  model.wait();
  EXPECT_GT(model.report().compiled, at_load);
  const int compiled_behind = model.report().compiled;
  expect_right(model, 3, 9);
  EXPECT_GE(model.report().programs, 2);
  EXPECT_EQ(model.report().compiled, compiled_behind);
}

TEST_F(FamilyTest, SharesWeightsAndMemoryOfIntermediateValues) {
  constexpr std::int64_t weight_bytes = 2 * attention_width * 8 * attention_width * 4;
  for (const char* precision : {"f32", "int8-dynamic"}) {
    CompiledModel model = compiled("batch=1..8,sequence=1..64@64", {{"compile.precision", precision}});
    const std::int64_t alone = model.report().peak_bytes;
    for (int batch = 1; batch <= 8; ++batch) (void)model.run(attention_inputs(batch, 8));
    EXPECT_EQ(model.report().programs, 9);
    EXPECT_LT(model.report().peak_bytes, alone + weight_bytes) << precision;
  }
}

TEST_F(FamilyTest, RefusesSizesThatDoNotFit) {
  CompiledModel model = compiled("batch=1..4,sequence=8..64%8@16");
  EXPECT_EQ(refusal(model, attention_inputs(5, 16)),
            "input 0 'x': dimension 0 (batch) is 5; it may be 1 to 4 (see --dims)");
  EXPECT_EQ(refusal(model, attention_inputs(1, 17)),
            "input 0 'x': dimension 1 (sequence) is 17; it may be 8 to 64 in steps of 8 (see --dims)");
  EXPECT_EQ(refusal(model, {attention_inputs(1, 16)[0], attention_inputs(1, 24)[1]}),
            "input 1 'mask': dimension 1 (sequence) is 24, but it is 16 in 'x'");
  EXPECT_EQ(refusal(model, {attention_inputs(1, 16)[0]}), "1 inputs given, the model takes 2");
  EXPECT_EQ(refusal(model, {attention_inputs(2, 16)[0], sample_tensor(DType::i64, {2, 16})}),
            "input 1 'mask': got i64[2,16], expected f32[batch,sequence]");
  EXPECT_EQ(model.report().programs, 1);
  expect_right(model, 1, 16);
}

TEST_F(FamilyTest, TypesAreKnownWhereSizesAreFixed) {
  CompiledModel open = compiled("batch=1..4,sequence=8");
  EXPECT_EQ(open.input_names(), (std::vector<std::string>{"x", "mask"}));
  EXPECT_THAT([&] { (void)open.input_types(); },
              testing::ThrowsMessage<UnsupportedError>(HasSubstr("batch is 1..4 (fast at 1)")));
  CompiledModel fixed = compiled("batch=2,sequence=8");
  EXPECT_EQ(fixed.input_types().at(1).dims(), (Dims{2, 8}));
  expect_right(fixed, 2, 8);
  EXPECT_THAT(refusal(fixed, attention_inputs(3, 8)), HasSubstr("got f32[3,8,64], expected f32[2,8,64]"));
}

void expect_same_kernels(const Plan& known, const Plan& imported) {
  ASSERT_EQ(known.kernels.size(), imported.kernels.size());
  for (std::size_t i = 0; i < known.launches.size(); ++i) {
    const Kernel& one = known.kernels.at(static_cast<std::size_t>(known.launches[i].kernel));
    const Kernel& other = imported.kernels.at(static_cast<std::size_t>(imported.launches[i].kernel));
    EXPECT_EQ(one.text, other.text);
    EXPECT_EQ(one.sizes, other.sizes);
    EXPECT_EQ(graph_text(one.body), graph_text(other.body));
  }
}

TEST_F(FamilyTest, SizesBetweenOthersNeedNoImport) {
  CompileOptions options = test_options(folder_.path());
  options.set["import.dims"] = "batch=1..8,sequence=1..64@24";
  const OpenModel open = open_model(path_, make_setup(options));
  OpenModel plain = open;
  plain.menu = nullptr;
  for (const Sizes& sizes : {Sizes{2, 24}, {3, 37}, {7, 50}}) (void)bind_sizes(open, sizes);
  for (const Sizes& sizes : {Sizes{5, 33}, {2, 61}, {8, 16}}) {
    const std::optional<Imported> known = bind_known_sizes(open, sizes);
    ASSERT_TRUE(known) << sizes[0] << " " << sizes[1];
    const Imported imported = bind_sizes(open, sizes);
    EXPECT_EQ(plan_text(*known->plan), plan_text(*imported.plan));
    expect_same_kernels(*known->plan, *imported.plan);
    EXPECT_EQ(known->plan->arena_bytes, bind_sizes(plain, sizes).plan->arena_bytes);
    EXPECT_EQ(known->symbols, imported.symbols);
    EXPECT_EQ(known->report.kernels, imported.report.kernels);
  }
  EXPECT_FALSE(bind_known_sizes(open, {1, 33})) << "a batch of one has kernels of its own";
  EXPECT_FALSE(bind_known_sizes(plain, {5, 33}));
}

TEST_F(FamilyTest, IsRightAtManySizes) {
  CompiledModel model = compiled("batch=1..8,sequence=1..64@24");
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i)
    expect_right(model, 1 + static_cast<int>(random() % 8), 1 + static_cast<int>(random() % 64));
}

TEST_F(FamilyTest, ForgetsTheLeastRecentlyUsed) {
  CompiledModel model = compiled("batch=1..4,sequence=4", {{"compile.sizes_kept", "2"}});
  for (const int batch : {1, 2, 1, 3, 1}) expect_right(model, batch, 4);
  EXPECT_EQ(model.report().programs, 3);
  expect_right(model, 2, 4);
  EXPECT_EQ(model.report().programs, 4);
  EXPECT_EQ(model.report().sizes, 3);
  EXPECT_THROW((void)compiled("batch=1..4@1+2+3,sequence=4", {{"compile.sizes_kept", "2"}}), UsageError);
  EXPECT_THROW((void)compiled("batch=1..4,sequence=4", {{"compile.sizes_kept", "0"}}), UsageError);
}

TEST_F(FamilyTest, ProgramsThatGoBecomeOthers) {
  CompiledModel model = compiled("batch=1..8,sequence=1..64@24", {{"compile.sizes_kept", "3"}});
  std::mt19937 random(5);
  std::vector<std::pair<int, int>> all;
  for (int i = 0; i < 24; ++i)
    all.emplace_back(1 + static_cast<int>(random() % 8), 1 + static_cast<int>(random() % 64));
  for (int round = 0; round < 2; ++round)
    for (const auto& [batch, sequence] : all) expect_right(model, batch, sequence);
  EXPECT_GE(model.report().programs, 40);
}

TEST_F(FamilyTest, BuildsEveryCombinationToBeFastAt) {
  CompiledModel model = compiled("batch=1..4@1+3,sequence=1..16@4+8");
  const int compiled_at_first = model.report().compiled;
  EXPECT_EQ(model.report().programs, 4);
  for (const int batch : {1, 3})
    for (const int sequence : {4, 8}) expect_right(model, batch, sequence);
  EXPECT_EQ(model.report().compiled, compiled_at_first);
  EXPECT_EQ(model.report().programs, 4);
}

TEST_F(FamilyTest, SaysAtWhichSizesAModelCannotBe) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_open_input(graph, "x", 0);
  add_output(graph, "y");
  add_integers(graph, "shape", {2, 6});
  add_node(graph, "Reshape", {"x", "shape"}, {"y"});
  write_file(path_, model.SerializeAsString());
  CompiledModel compiled_at = compiled("batch=1..4@3,sequence=1..16@4");
  EXPECT_THAT([&] { (void)compiled_at.run({sample_tensor(DType::f32, {3, 5})}); },
              testing::ThrowsMessage<Error>(HasSubstr("at batch=3, sequence=5: ")));
  EXPECT_EQ(compiled_at.run({sample_tensor(DType::f32, {2, 6})}).at(0).dims(), (Dims{2, 6}));
}

/// Of 128 positions, as is usual, the model knows 20.
TEST_F(FamilyTest, SizesThatGoByNamesFitTheModel) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_open_input(graph, "x", 2);
  add_output(graph, "y");
  add_floats(graph, "positions", {20, 2}, std::vector<float>(40, 1.0F));
  add_integers(graph, "first", {0}).clear_dims();
  add_integers(graph, "step", {1}).clear_dims();
  add_node(graph, "Shape", {"x"}, {"shape"});
  add_node(graph, "Gather", {"shape", "step"}, {"length"});
  add_node(graph, "Range", {"first", "length", "step"}, {"places"});
  add_node(graph, "Gather", {"positions", "places"}, {"rows"});
  add_node(graph, "Add", {"x", "rows"}, {"y"});
  const std::string path = folder_.path() + "/positions.onnx";
  write_file(path, model.SerializeAsString());
  const OpenModel open = open_model(path, make_setup(test_options(folder_.path())));
  EXPECT_EQ(first_sizes(open.parsed.sizes), (Sizes{1, 16}));
  CompiledModel compiled = compile(path, test_options(folder_.path()));
  EXPECT_EQ(compiled.run({Tensor(DType::f32, {3, 20, 2})}).at(0).as_double(0), 1);
  EXPECT_THROW((void)compiled.run({Tensor(DType::f32, {3, 21, 2})}), Error);
}

TEST_F(FamilyTest, GuessesGrowWhereAModelTakesNoneSoSmall) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_open_input(graph, "x", 0);
  add_output(graph, "y");
  add_integers(graph, "one", {1});
  add_floats(graph, "window", {1, 1, 300}, std::vector<float>(300, 1.0F));
  add_node(graph, "Unsqueeze", {"x", "one"}, {"channels"});
  add_node(graph, "Conv", {"channels", "window"}, {"y"});
  const std::string path = folder_.path() + "/window.onnx";
  write_file(path, model.SerializeAsString());
  const OpenModel open = open_model(path, make_setup(test_options(folder_.path())));
  EXPECT_EQ(first_sizes(open.parsed.sizes), (Sizes{1, 512}));
  CompiledModel compiled = compile(path, test_options(folder_.path()));
  EXPECT_EQ(compiled.run({Tensor(DType::f32, {2, 310})}).at(0).dims(), (Dims{2, 1, 11}));
  EXPECT_THROW((void)compiled.run({Tensor(DType::f32, {1, 128})}), Error);
}

TEST_F(FamilyTest, HostStepsRunAtEverySize) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_open_input(graph, "x", 0);
  add_output(graph, "y");
  add_node(graph, "Relu", {"x"}, {"positive"});
  add_node(graph, "NonZero", {"positive"}, {"y"});
  write_file(path_, model.SerializeAsString());
  CompiledModel found = compiled("batch=1..4,sequence=1..16@4");
  for (const std::int64_t size : {4, 7, 4}) {
    const Tensor x = sample_tensor(DType::f32, {2, size});
    std::int64_t positive = 0;
    for (std::int64_t i = 0; i < x.size(); ++i) positive += x.as_double(i) > 0 ? 1 : 0;
    EXPECT_EQ(found.run({x}).at(0).dims(), (Dims{2, positive}));
  }
  EXPECT_EQ(found.report().programs, 3);
}

TEST(EqualWeights, FindsTensorsByWhatTheyHold) {
  EqualWeights known;
  const Tensor a = sample_tensor(DType::f32, {100, 7});
  known.add(a);
  EXPECT_EQ(known.find_or(sample_tensor(DType::f32, {100, 7})).data(), a.data());
  EXPECT_NE(known.find_or(sample_tensor(DType::f32, {7, 100})).data(), a.data());
  Tensor other = sample_tensor(DType::f32, {100, 7});
  other.set_double(699, 2);
  EXPECT_EQ(known.find_or(other).data(), other.data());
}

}  // namespace
}  // namespace sylvite::family_test
