#include "runtime/lock.h"

#include <gmock/gmock.h>

#include "base/files.h"
#include "tests/runtime/test_session.h"

namespace sylvite::lock_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Graph graph_of(Op op, std::int64_t width = 24) {
  Graph graph;
  graph.outputs = {graph.add(op, {graph.add_input("x", make_type(DType::f32, {4, width}))})};
  return graph;
}

class LockTest : public testing::Test {
 protected:
  LockTest() : options_(test_options(folder_.path())), path_(folder_.path() + "/model.lock") {}

  [[nodiscard]] Imported load(Graph graph) const {
    return load_graph(std::move(graph), make_setup(options_));
  }
  /// Writes the lock of a graph; in it every kernel has its reference schedule.
  void lock(Graph graph) {
    const Imported model = load(std::move(graph));
    const Chosen plain = choose_each(model, [](const Kernel& kernel) -> Choice {
      return {reference_candidate(kernel), Source::reference};
    });
    Lock made = begin_lock(*model.setup);
    add_kernels(made, *model.plan, plain.choices);
    write_file(path_, to_text(made));
  }
  void freeze() { options_.set["compile.frozen"] = path_; }
  /// What is said of the lock when `old` in it is `replacement`.
  [[nodiscard]] std::string refusal_with(const std::string& old, const std::string& replacement) {
    std::string text = read_file(path_);
    const std::size_t at = text.find(old);
    if (at == std::string::npos) return "no " + old;
    text.replace(at, old.size(), replacement);
    const std::string other = folder_.path() + "/other.lock";
    write_file(other, text);
    options_.set["compile.frozen"] = other;
    try {
      (void)make_setup(options_);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  CompileOptions options_;
  std::string path_;
};

TEST_F(LockTest, DecidesWhatRuns) {
  lock(graph_of(Op::exp));
  freeze();
  const Imported model = load(graph_of(Op::exp));
  const Built built = build_program(model, choose_candidates(model));
  EXPECT_EQ(built.choices->at(0).source, Source::lock);
  EXPECT_EQ(built.choices->at(0).candidate, reference_candidate(model.plan->kernels.at(0)));
}

/// Winners are neither read nor stored, and nothing is measured.
TEST_F(LockTest, LeavesTheDatabaseAlone) {
  lock(graph_of(Op::exp));
  freeze();
  options_.set["compile.mode"] = "max-autotune";
  const Imported model = load(graph_of(Op::exp));
  EXPECT_EQ(model.setup->database, "");
  const Chosen chosen = choose_candidates(model);
  EXPECT_EQ(chosen.report.trials, 0);
  EXPECT_EQ(chosen.choices.at(0).source, Source::lock);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/trials.db"));
}

TEST_F(LockTest, HasTheSameTextForTheSameChoices) {
  lock(blocked_outputs());
  const std::string text = read_file(path_);
  EXPECT_EQ(to_text(read_lock(path_)), text);
  EXPECT_TRUE(text.starts_with("sylvite lock 1\n"));
  EXPECT_TRUE(text.ends_with("\n\nend\n"));
}

TEST_F(LockTest, NamesTheKernelThatItLacks) {
  lock(graph_of(Op::exp));
  freeze();
  const Imported model = load(graph_of(Op::exp, 25));
  const std::string& id = model.plan->kernels.at(0).id;
  EXPECT_THAT([&] { (void)choose_candidates(model); },
              ThrowsMessage<UsageError>(testing::AllOf(HasSubstr("kernel " + id + " (pointwise"),
                                                       HasSubstr("is not in the lock " + path_),
                                                       HasSubstr("run `sylvite lock MODEL -o"))));
}

/// A schedule that does not compile is not replaced by another one.
TEST_F(LockTest, AllowsNoOtherSchedule) {
  lock(graph_of(Op::exp));
  std::string text = read_file(path_);
  const std::size_t form = text.find("  form: ");
  text = text.substr(0, text.find('\n', form) + 1) + "  v0.unroll(d9);\n\nend\n";
  write_file(path_, text);
  freeze();
  const Imported model = load(graph_of(Op::exp));
  EXPECT_THAT([&] { (void)build_program(model, choose_candidates(model)); },
              ThrowsMessage<CompileError>(testing::AllOf(
                  HasSubstr("does not compile or run; run `sylvite lock`"), HasSubstr("no loop 'd9'"))));
}

TEST_F(LockTest, IsRefusedWhereItIsForSomethingElse) {
  lock(graph_of(Op::exp));
  EXPECT_THAT(refusal_with("sylvite lock 1\n", "sylvite lock 2\n"),
              HasSubstr("format 2, this Sylvite reads format 1"));
  EXPECT_THAT(refusal_with("target x86", "target arm-64-linux-x86"), HasSubstr("for target 'arm-64"));
  EXPECT_THAT(refusal_with("code ", "code 0"), HasSubstr("for code '0"));
  EXPECT_THAT(refusal_with("versions halide", "versions halide 1, "), HasSubstr("for versions "));
  EXPECT_THAT(refusal_with("threads 2", "threads 3"), HasSubstr("for threads '3', here it is '2'"));
  EXPECT_THAT(refusal_with("precision f32", "precision bf16"), HasSubstr("for precision "));
  EXPECT_EQ(refusal_with("machine ", "machine another "), "") << "the name of a processor decides nothing";
}

TEST_F(LockTest, IsRefusedWhenItIsNoWholeLock) {
  lock(graph_of(Op::exp));
  EXPECT_THAT(refusal_with("sylvite lock", "sylvite look"), HasSubstr("is no lock"));
  EXPECT_THAT(refusal_with("\nend\n", "\n"), HasSubstr("is cut short"));
  EXPECT_THAT(refusal_with("target ", "<<<<<<< HEAD\ntarget "),
              HasSubstr("has no 'target' where it belongs"));
  EXPECT_THAT(refusal_with("\nkernel ", "\n=======\nkernel "), HasSubstr("line 11: expected 'kernel ID'"));
  EXPECT_THAT(refusal_with("  form: ", "  from: "), HasSubstr("a candidate starts with"));
  options_.set["compile.frozen"] = folder_.path() + "/none.lock";
  EXPECT_THROW((void)make_setup(options_), IoError);
}

}  // namespace
}  // namespace sylvite::lock_test
