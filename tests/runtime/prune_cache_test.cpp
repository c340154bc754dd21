#include "runtime/prune_cache.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/files.h"
#include "runtime/object_cache.h"
#include "tests/runtime/test_session.h"

namespace sylvite::prune_cache_test {
namespace {

namespace fs = std::filesystem;

class PruneCache : public testing::Test {
 protected:
  PruneCache() : cache_(folder()) {
    for (const auto& [symbol, hours] :
         {std::pair{"old", 50}, std::pair{"middle", 20}, std::pair{"young", 0}}) {
      cache_.store(symbol, std::string(1000, 'x'));
      age(path_of(symbol), hours);
    }
    write_file(folder() + "/notes.txt", "not ours");
  }
  [[nodiscard]] std::string folder() const { return root_.path() + "/objects"; }
  [[nodiscard]] std::string path_of(const std::string& symbol) const {
    return folder() + "/" + symbol + ".obj";
  }
  static void age(const std::string& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  [[nodiscard]] std::vector<std::string> left() const {
    std::vector<std::string> symbols;
    for (const CacheEntry& entry : cache_entries(folder())) symbols.push_back(entry.symbol);
    return symbols;
  }

  TemporaryFolder root_;
  ObjectCache cache_;
};

TEST_F(PruneCache, ListsTheLongestIdleFirst) {
  EXPECT_THAT(left(), testing::ElementsAre("old", "middle", "young"));
  EXPECT_GT(cache_entries(folder())[0].idle_seconds, 49 * 3600);
  EXPECT_GT(cache_entries(folder())[0].bytes, 1000);
  EXPECT_TRUE(cache_entries(folder() + "/none").empty());
}

TEST_F(PruneCache, LoadingIsUse) {
  EXPECT_TRUE(cache_.load("old"));
  EXPECT_EQ(left().front(), "middle");
}

TEST_F(PruneCache, RemovesByAgeAndBySize) {
  EXPECT_EQ(prune_cache(folder(), {}).size(), 0);
  EXPECT_EQ(prune_cache(folder(), {.idle_seconds = 30 * 3600.0}).size(), 1);
  EXPECT_THAT(left(), testing::ElementsAre("middle", "young"));
  EXPECT_EQ(prune_cache(folder(), {.bytes = 1500}).size(), 1);
  EXPECT_THAT(left(), testing::ElementsAre("young"));
  EXPECT_TRUE(cache_.load("young"));
  EXPECT_TRUE(fs::exists(folder() + "/notes.txt"));
}

TEST_F(PruneCache, LeavesWhatIsInUseHoweverSmallTheLimit) {
  EXPECT_EQ(prune_cache(folder(), {.bytes = 0, .symbols_in_use = {"old"}, .seconds_in_use = 600}).size(), 1);
  EXPECT_THAT(left(), testing::ElementsAre("old", "young"));
}

/// cache.limit, when a session has compiled something.
TEST_F(PruneCache, ASessionKeepsToTheLimit) {
  const auto compile_within = [&](const std::string& limit) {
    CompileOptions options = test_options(root_.path());
    options.set["cache.limit"] = limit;
    Graph graph;
    graph.outputs = {graph.add(Op::exp, {graph.add_input("x", make_type(DType::f32, {4, 24}))})};
    return build_graph(std::move(graph), options).choices->front().symbol;
  };
  const std::string symbol = compile_within("none");
  EXPECT_THAT(left(), testing::IsSupersetOf({"old", "middle", "young"}));
  cache_.remove(symbol);
  EXPECT_EQ(compile_within("1kB"), symbol);
  EXPECT_THAT(left(), testing::UnorderedElementsAre("young", symbol)) << "in use, or used a moment ago";
  age(path_of("young"), 10);
  EXPECT_EQ(compile_within("1kB"), symbol);
  EXPECT_THAT(left(), testing::UnorderedElementsAre("young", symbol)) << "nothing was stored";
}

TEST_F(PruneCache, RemovesWhatWritersLeftBehindOnceItIsOld) {
  write_file(folder() + "/a.obj.1.0.tmp", "half");
  write_file(folder() + "/b.obj.1.0.tmp", "half");
  age(folder() + "/b.obj.1.0.tmp", 2);
  EXPECT_EQ(prune_cache(folder(), {.bytes = 1 << 20}).size(), 1);
  EXPECT_TRUE(fs::exists(folder() + "/a.obj.1.0.tmp"));
}

}  // namespace
}  // namespace sylvite::prune_cache_test
