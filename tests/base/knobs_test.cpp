#include "base/knobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/files.h"

namespace sylvite {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

TEST(Knobs, NamesAndFlagsAreUniqueAndSectionsContiguous) {
  std::set<std::string_view> seen;
  std::set<std::string_view> sections;
  std::string_view section;
  for (const Knob& knob : knob_table()) {
    EXPECT_TRUE(seen.insert(knob.name).second) << knob.name;
    if (!knob.flag.empty()) EXPECT_TRUE(seen.insert(knob.flag).second) << knob.flag;
    const std::string_view own = knob.name.substr(0, knob.name.find('.'));
    if (own != section) EXPECT_TRUE(sections.insert(own).second) << knob.name;
    section = own;
  }
}

TEST(Knobs, DefaultsAreValidValues) {
  for (const Knob& knob : knob_table()) {
    Settings settings;
    EXPECT_NO_THROW(settings.set(std::string(knob.name), std::string(knob.fallback))) << knob.name;
  }
}

TEST(Settings, StartsAtDefaultsAndTakesValues) {
  Settings settings;
  EXPECT_EQ(settings.string("compile.mode"), "default");
  EXPECT_DOUBLE_EQ(settings.real("tune.budget"), 60);
  settings.set("tune.budget", "5m");
  settings.set("passes.disable", "fold_constants, remove_noops ,");
  EXPECT_DOUBLE_EQ(settings.real("tune.budget"), 300);
  EXPECT_THAT(settings.list("passes.disable"), ElementsAre("fold_constants", "remove_noops"));
}

TEST(Settings, RefusesUnknownKeysWithTheNearestName) {
  Settings settings;
  EXPECT_THAT(message_of([&] { settings.set("tune.buget", "1s"); }), HasSubstr("did you mean tune.budget?"));
  EXPECT_THAT(message_of([&] { settings.set("budget", "1s"); }), HasSubstr("did you mean tune.budget?"));
  EXPECT_THAT(message_of([&] { settings.set("zzzzzzzzzzzz", "1"); }),
              HasSubstr("unknown key 'zzzzzzzzzzzz' ("));
}

TEST(Settings, RefusesValuesOfTheWrongType) {
  Settings settings;
  EXPECT_THAT(message_of([&] { settings.set("compile.threads", "two"); }),
              HasSubstr("compile.threads = 'two'"));
  EXPECT_THAT(message_of([&] { settings.set("tune.enabled", "maybe"); }), HasSubstr("true or false"));
  EXPECT_THAT(message_of([&] { settings.set("tune.budget", "5 parsecs"); }), HasSubstr("duration"));
  EXPECT_THAT(message_of([&] { settings.set("tune.budget", "-5s"); }), HasSubstr("at least 0"));
  EXPECT_THAT(message_of([&] { settings.set("compile.mode", "max-autotun"); }),
              HasSubstr("did you mean max-autotune?"));
  EXPECT_THAT(message_of([&] { settings.set("cache.dir", "a#b"); }), HasSubstr("'#'"));
}

TEST(Settings, ReadsIniAndNamesTheFileInErrors) {
  Settings settings;
  settings.read_ini_text("# comment\n[tune]\nbudget = 2m\nenabled = yes\n", "a.ini");
  EXPECT_DOUBLE_EQ(settings.real("tune.budget"), 120);
  EXPECT_TRUE(settings.boolean("tune.enabled"));
  EXPECT_THAT(message_of([&] { settings.read_ini_text("[tune]\nbugdet = 1\n", "b.ini"); }),
              HasSubstr("b.ini: unknown key 'tune.bugdet'; did you mean tune.budget?"));
  EXPECT_THAT(message_of([&] { settings.read_ini_text("[tune\nx\n", "c.ini"); }), HasSubstr("c.ini: "));
  EXPECT_THROW(settings.read_ini("/nonexistent/d.ini"), IoError);
}

TEST(Settings, IniRoundTrips) {
  Settings settings;
  settings.set("tune.budget", "90s");
  settings.set("passes.disable", "a,b");
  Settings again;
  again.read_ini_text(settings.to_ini(), "dump");
  EXPECT_EQ(again.to_ini(), settings.to_ini());
}

TEST(Settings, EveryBuiltInModeReads) {
  for (const char* mode : {"default", "reduce-overhead", "max-autotune"}) {
    Settings settings;
    EXPECT_NO_THROW(settings.read_ini_text(mode_ini(mode), mode));
  }
  EXPECT_THAT(message_of([] { (void)mode_ini("maxautotune"); }), HasSubstr("did you mean max-autotune?"));
}

TEST(ParseDuration, KnowsItsUnits) {
  EXPECT_DOUBLE_EQ(parse_duration("250ms", "x"), 0.25);
  EXPECT_DOUBLE_EQ(parse_duration("90", "x"), 90);
  EXPECT_DOUBLE_EQ(parse_duration("1.5h", "x"), 5400);
  EXPECT_THROW((void)parse_duration("", "x"), UsageError);
  EXPECT_THROW((void)parse_duration("nan", "x"), UsageError);
}

TEST(KnobsPage, IsUpToDate) {
  EXPECT_EQ(read_file(std::string(SYLVITE_TEST_DATA) + "/../../docs/knobs.md"), knobs_markdown())
      << "run `sylvite knobs > docs/knobs.md`";
}

}  // namespace
}  // namespace sylvite
