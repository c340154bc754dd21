// The runner, over a table of its own.

#include "frontend/graph/pass_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "frontend/graph/rewrite.h"
#include "sylvite/graph_text.h"

namespace sylvite::pass_runner_test {
namespace {

struct Options {
  bool negate = true;
};

Graph negate_output(const Graph& graph) {
  Graph result = graph;
  result.outputs[0] = result.add(Op::neg, {result.outputs[0]});
  return result;
}

/// Not well formed: two values have one name.
Graph name_twice(const Graph& graph) {
  Graph result = graph;
  result.outputs[0] = result.add(Op::neg, {result.outputs[0]});
  result.value(result.outputs[0]).name = result.value(result.inputs[0]).name;
  return result;
}

Graph drop_dead(const Graph& graph) {
  return without_dead_nodes(graph);
}

constexpr std::array<Pass<Options>, 3> table = {{
    {"drop_dead", always, plain<drop_dead>, "what nothing reads"},
    {"negate", [](const Options& options) { return options.negate; }, plain<negate_output>, "-x"},
    {"negate_again", always, plain<negate_output>, "-x"},
}};
constexpr std::array<std::string_view, 3> names = {"drop_dead", "negate", "negate_again"};

Graph one_input() {
  return parse_graph("graph g(%x: f32[4]) {\n  %a: f32[4] = exp(%x)\n  return %a\n}\n");
}

PassOptions without(const std::string& name) {
  PassOptions options;
  options.disabled.insert(name);
  return options;
}

Graph run(PassRunner& runner, const Options& options = {}) {
  return runner.run(std::span<const Pass<Options>>(table), one_input(), options);
}

TEST(PassRunner, AppliesRowsInOrderAndReportsEach) {
  PassRunner runner;
  EXPECT_EQ(run(runner).nodes().size(), 3U);
  ASSERT_EQ(runner.reports().size(), 3U);
  EXPECT_EQ(runner.reports()[0].result, PassResult::unchanged);
  EXPECT_EQ(runner.reports()[1].name, "negate");
  EXPECT_EQ(runner.reports()[1].help, "-x");
  EXPECT_EQ(runner.reports()[1].result, PassResult::changed);
  EXPECT_EQ(runner.reports()[1].nodes_before, 1);
  EXPECT_EQ(runner.reports()[1].nodes_after, 2);
}

TEST(PassRunner, LeavesOutWhatDoesNotApplyAndWhatIsDisabled) {
  PassRunner runner(without("negate_again"), names);
  EXPECT_EQ(run(runner, {.negate = false}).nodes().size(), 1U);
  EXPECT_EQ(runner.reports()[1].result, PassResult::not_applicable);
  EXPECT_EQ(runner.reports()[2].result, PassResult::disabled);
}

/// Negates, and says that it does so only where there is a sine.
constexpr std::array<Pass<Options>, 1> seeker = {
    {{"negate", always, plain<negate_output>, "-x", has<Op::sin>}}};

TEST(PassRunner, LeavesOutPassesThatFindNothing) {
  PassRunner runner;
  EXPECT_EQ(runner.run(std::span<const Pass<Options>>(seeker), one_input(), Options{}).nodes().size(), 1U);
  EXPECT_EQ(runner.reports()[0].result, PassResult::unchanged);
  EXPECT_EQ(runner.reports()[0].nodes_after, 1);
}

TEST(PassRunner, FindsOutWherePassesFindTooLittle) {
  PassOptions options;
  options.check_finds = true;
  PassRunner runner(options, names);
  EXPECT_THROW((void)runner.run(std::span<const Pass<Options>>(seeker), one_input(), Options{}),
               InternalError);
}

TEST(PassRunner, RefusesUnknownNamesWithTheNearest) {
  try {
    const PassRunner runner(without("negatee"), names);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean negate?"));
  }
}

TEST(PassRunner, VerifiesWhatAPassChanged) {
  constexpr std::array<Pass<Options>, 1> broken = {{{"name_twice", always, plain<name_twice>, ""}}};
  PassRunner strict;
  EXPECT_THROW((void)strict.run(std::span<const Pass<Options>>(broken), one_input(), Options{}),
               InternalError);
  PassOptions options;
  options.verify = false;
  PassRunner lax(options, names);
  EXPECT_NO_THROW((void)lax.run(std::span<const Pass<Options>>(broken), one_input(), Options{}));
}

TEST(PassRunner, DumpsTheImportedGraphAndEachChange) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "sylvite_pass_runner";
  std::filesystem::remove_all(folder);
  PassOptions options;
  options.dump_folder = folder.string();
  PassRunner runner(options, names);
  const Graph after = run(runner);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path().filename().string());
  EXPECT_THAT(files,
              testing::UnorderedElementsAre("00-imported.txt", "02-negate.txt", "03-negate_again.txt"));
  std::ifstream last(folder / "03-negate_again.txt");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(last), {}), graph_text(after));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sylvite::pass_runner_test
