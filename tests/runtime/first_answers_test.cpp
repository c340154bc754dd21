#include "runtime/first_answers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>

#include "autotune/worker_pool.h"
#include "runtime/build.h"
#include "runtime/compiled_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite::first_answers_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// relu(x w) v with weights of this width: another kernel for each.
Graph small_graph(std::int64_t width = 16) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {4, 8}));
  const ValueId w = graph.add_constant(sample_tensor(DType::f32, {8, width}, 1), "w");
  const ValueId v = graph.add_constant(sample_tensor(DType::f32, {width, 5}, 2), "v");
  graph.outputs = {graph.add(Op::matmul, {graph.add(Op::relu, {graph.add(Op::matmul, {x, w})}), v})};
  graph.output_names = {"y"};
  return graph;
}

const Tensor x = sample_tensor(DType::f32, {4, 8});

CompileOptions fast_options(const std::string& folder) {
  CompileOptions options = test_options(folder);
  options.set["compile.first_answer"] = "fast";
  return options;
}

/// What stands for the file of a graph.
OpenModel file_of(const Imported& imported) {
  return {imported.setup, "", {}};
}

class FirstAnswersTest : public testing::Test {
 protected:
  [[nodiscard]] Imported imported() const {
    return load_graph(small_graph(), make_setup(fast_options(folder_.path())));
  }
  void expect_right(const std::vector<Tensor>& outputs) const {
    ASSERT_EQ(outputs.size(), 1);
    expect_near(outputs[0], interpret(small_graph(), {x})[0]);
  }

  TemporaryFolder folder_;
};

TEST_F(FirstAnswersTest, RunsAreEvaluatedUntilProgramsAreMade) {
  std::latch may_end(1);
  const Imported model = imported();
  FirstAnswers first(file_of(model), model, 0.25, [&](const std::stop_token&) {
    may_end.wait();
    return Family(build_program(model, choose_candidates(model)));
  });
  expect_right(first.run_tensors({x}));
  EXPECT_GT(first.report().first_answer_seconds, 0.25);
  expect_right(first.run_tensors({x}));
  EXPECT_FALSE(first.is_ready());
  may_end.count_down();
  Family family = first.take();
  expect_right(run_tensors(family.latest(), {x}));
}

TEST_F(FirstAnswersTest, InputsAreCheckedAsByPrograms) {
  CompiledModel model = compile(small_graph(), fast_options(folder_.path()));
  EXPECT_THROW((void)model.run({}), InputError);
  EXPECT_THROW((void)model.run({sample_tensor(DType::f32, {4, 9})}), InputError);
  EXPECT_THROW((void)model.run({sample_tensor(DType::i64, {4, 8})}), InputError);
  expect_right(model.run({x}));
}

TEST_F(FirstAnswersTest, AModelChangesOverToItsProgram) {
  CompiledModel model = compile(small_graph(), fast_options(folder_.path()));
  EXPECT_EQ(model.input_names(), std::vector<std::string>{"x"});
  EXPECT_EQ(model.output_names(), std::vector<std::string>{"y"});
  EXPECT_EQ(model.output_types(), std::vector<TensorType>{make_type(DType::f32, {4, 5})});
  EXPECT_FALSE(model.is_ready());
  expect_right(model.run({x}));
  model.wait();
  EXPECT_TRUE(model.is_ready());
  expect_right(model.run({x}));
  EXPECT_GT(model.report().compiled, 0);
  EXPECT_GT(model.report().first_answer_seconds, 0);
  EXPECT_LT(model.report().first_answer_seconds, model.report().ready_seconds);
  EXPECT_EQ(model.output_names(), std::vector<std::string>{"y"});
}

TEST_F(FirstAnswersTest, WithEverythingInTheCacheProgramsAnswer) {
  (void)compile(small_graph(), test_options(folder_.path()));
  CompiledModel model = compile(small_graph(), fast_options(folder_.path()));
  EXPECT_TRUE(model.is_ready());
  expect_right(model.run({x}));
  EXPECT_EQ(model.report().compiled, 0);
  EXPECT_GT(model.report().loaded_from_cache, 0);
  EXPECT_EQ(model.report().first_answer_seconds, 0);
}

TEST_F(FirstAnswersTest, NarrowPrecisionsAreEvaluatedInF32) {
  CompileOptions options = fast_options(folder_.path());
  options.set["compile.precision"] = "int8-dynamic";
  CompiledModel model = compile(small_graph(), options);
  expect_right(model.run({x}));
}

TEST_F(FirstAnswersTest, FailuresAreThrownByEveryRun) {
  const Imported model = imported();
  CompiledModel compiled(std::make_unique<CompiledModel::Rep>(std::make_unique<FirstAnswers>(
      file_of(model), model, 0,
      [](const std::stop_token&) -> Family { throw CompileError("the compiler is on holiday"); })));
  while (!compiled.is_ready()) std::this_thread::yield();
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT([&] { (void)compiled.run({x}); },
                testing::ThrowsMessage<CompileError>(HasSubstr("on holiday")));
  EXPECT_THROW(compiled.wait(), CompileError);
}

TEST_F(FirstAnswersTest, TheEndOfAModelStopsItsCompilation) {
  const Imported model = imported();
  std::atomic<bool> stopped = false;
  {
    const FirstAnswers first(file_of(model), model, 0, [&](const std::stop_token& stop) -> Family {
      while (!stop.stop_requested()) std::this_thread::yield();
      stopped = true;
      throw Stopped{};
    });
  }
  EXPECT_TRUE(stopped);
}

TEST_F(FirstAnswersTest, CompilationsOfWorkersStop) {
  const Imported model = imported();
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW((void)build_program(model, choose_candidates(model), {}, source.get_token()), Stopped);
}

TEST_F(FirstAnswersTest, ChildrenMadeByForkGoOnEvaluating) {
  CompiledModel model = compile(small_graph(), fast_options(folder_.path()));
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_right = false, is_refused = false;
    {
      CompiledModel mine = std::move(model);
      const double wanted = interpret(small_graph(), {x})[0].as_double(0);
      is_right = std::abs(mine.run({x})[0].as_double(0) - wanted) < 1e-4;
      try {
        mine.wait();
      } catch (const UsageError&) {
        is_refused = true;
      }
    }
    ::_exit(is_right && is_refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_right(model.run({x}));
}

TEST_F(FirstAnswersTest, WhatCannotBeEvaluatedSaysWhy) {
  EXPECT_THAT(refuse_evaluation(imported()), IsEmpty());
  CompileOptions tuning = fast_options(folder_.path());
  tuning.set["tune.enabled"] = "true";
  EXPECT_THAT(refuse_evaluation(load_graph(small_graph(), make_setup(tuning))), HasSubstr("tune.enabled"));
  Graph with_state = small_graph();
  const ValueId state = with_state.add_input("state", make_type(DType::f32, {4, 5}));
  with_state.outputs.push_back(with_state.add(Op::add, {state, with_state.outputs[0]}));
  with_state.states = {{1, 1}};
  const auto setup = make_setup(fast_options(folder_.path()));
  EXPECT_THAT(refuse_evaluation(load_graph(std::move(with_state), setup)), HasSubstr("between runs"));
  Graph slow;
  const ValueId long_one = slow.add_input("x", make_type(DType::f32, {1 << 20, 1 << 14}));
  slow.outputs = {slow.add(Op::cumsum, {long_one}, {{"axis", std::int64_t{0}}})};
  EXPECT_THAT(refuse_evaluation(load_graph(std::move(slow), setup)), HasSubstr("would take"));
}

}  // namespace
}  // namespace sylvite::first_answers_test
