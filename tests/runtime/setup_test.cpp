#include "runtime/setup.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/error.h"
#include "tests/runtime/test_session.h"

namespace sylvite::setup_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SetupTest, LaterLayersWin) {
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

TEST(SetupTest, RefusesWhatItDoesNotKnow) {
  CompileOptions options;
  options.mode = "fastest";
  EXPECT_THROW((void)resolve_settings(options), UsageError);
  options.mode = "default";
  options.set = {{"tune.bugdet", "5s"}};
  EXPECT_THROW((void)resolve_settings(options), UsageError);
}

TEST(SetupTest, ImportKnobs) {
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

TEST(SetupTest, Tf32OnAProcessorIsF32AndSaid) {
  CompileOptions options;
  options.set = {{"compile.precision", "tf32"}, {"cache.dir", "/tmp"}, {"db.enabled", "false"}};
  const auto setup = make_setup(options);
  EXPECT_EQ(setup->config.precision, Precision::f32) << "so winners of f32 are used";
  EXPECT_THAT(setup->warnings, ElementsAre(HasSubstr("tf32")));
}

}  // namespace
}  // namespace sylvite::setup_test
