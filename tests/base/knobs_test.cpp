#include "base/knobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/files.h"

namespace sylvite::knobs_test {
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
  EXPECT_EQ(settings.config().mode, Mode::standard);
  EXPECT_DOUBLE_EQ(settings.config().tune_budget.count(), 60);
  settings.set("tune.budget", "5m");
  settings.set("passes.disable", "fold_constants, remove_noops ,");
  EXPECT_DOUBLE_EQ(settings.config().tune_budget.count(), 300);
  EXPECT_THAT(settings.config().passes_disable, ElementsAre("fold_constants", "remove_noops"));
}

/// A value that is not the default.
std::string other_value(const Knob& knob) {
  if (!knob.choices.empty())
    return std::string(knob.choices[0] == knob.fallback ? knob.choices[1] : knob.choices[0]);
  switch (knob.type) {
    case KnobType::boolean:
      return knob.fallback == "true" ? "false" : "true";
    case KnobType::list:
      return knob.name.starts_with("import.") ? "a=2" : "a";
    default:
      return "17";
  }
}

TEST(Knobs, EachSetsAMemberOfItsOwn) {
  std::vector<std::pair<std::string_view, CompileConfig>> seen = {{"none", Settings().config()}};
  for (const Knob& knob : knob_table()) {
    Settings settings;
    settings.set(std::string(knob.name), other_value(knob));
    for (const auto& [name, config] : seen)
      EXPECT_FALSE(settings.config() == config) << knob.name << " and " << name;
    seen.emplace_back(knob.name, settings.config());
  }
}

/// Every choice that the table offers is the enumerator of that name.
TEST(Settings, EveryChoiceIsItsEnumerator) {
  Settings settings;
  const auto with = [&](const char* name, std::string_view value) {
    settings.set(name, std::string(value));
    return settings.config();
  };
  for (const std::string_view name : choice_names<Precision>)
    EXPECT_EQ(name_of(with("compile.precision", name).precision), name);
  EXPECT_EQ(with("compile.precision", "int8-dynamic").precision, Precision::int8_dynamic);
  EXPECT_EQ(with("compile.mode", "reduce-overhead").mode, Mode::reduce_overhead);
  EXPECT_EQ(with("compile.device", "cuda").device, DeviceKind::cuda);
  EXPECT_EQ(with("compile.keep_wide", "off").keep_wide, AutoOnOff::off);
  EXPECT_EQ(with("lowering.rows", "off").lowering_rows, AutoOff::off);
  EXPECT_EQ(with("log.level", "error").log_level, LogLevel::error);
  EXPECT_EQ(with("log.progress", "jsonl").log_progress, ProgressStyle::jsonl);
  EXPECT_EQ(with("runtime.cuda_streams", "3").runtime_cuda_streams, 3);
  EXPECT_THAT(message_of([&] { settings.set("runtime.cuda_streams", "5"); }),
              HasSubstr("expected one of 1, 2, 3, 4"));
}

TEST(Settings, ReadsNamedExtentsAndShapes) {
  Settings settings;
  settings.set("import.dims", "batch=2, sequence=128");
  settings.set("import.shapes", "image=1x3x8x8,scalar=");
  const CompileConfig config = settings.config();
  EXPECT_EQ(config.import_dims, (std::map<std::string, SizeRange>{{"batch", 2}, {"sequence", 128}}));
  EXPECT_THAT(config.import_shapes.at("image"), ElementsAre(1, 3, 8, 8));
  EXPECT_THAT(config.import_shapes.at("scalar"), ElementsAre());
  EXPECT_THAT(message_of([&] { settings.set("import.dims", "batch"); }),
              HasSubstr("import.dims batch: expected NAME="));
  settings.set("import.dims", "batch=1..64, sequence=1..512@128+384, width=32..1024%32, height=224");
  EXPECT_EQ(settings.config().import_dims,
            (std::map<std::string, SizeRange>{{"batch", {1, 64}},
                                              {"sequence", {1, 512, {128, 384}}},
                                              {"width", {32, 1024, {}, 32}},
                                              {"height", 224}}));
  EXPECT_THAT(message_of([&] { settings.set("import.dims", "batch=1..4,batch=2"); }),
              HasSubstr("'batch' is given twice"));
  EXPECT_THAT(message_of([&] { settings.set("import.dims", "batch=4..1"); }),
              HasSubstr("import.dims (--dims): 'batch=4..1': the range ends at 1"));
  EXPECT_THAT(message_of([&] { settings.set("import.shapes", "x=1xx2"); }),
              HasSubstr("import.shapes (--shapes): '' in 'x=1xx2'"));
}

TEST(Settings, LaterLayersOverride) {
  Settings settings;
  settings.set("tune.budget", "1s");
  settings.set("compile.threads", "3");
  Settings later;
  later.set("tune.budget", "2s");
  settings.override_with(later);
  EXPECT_EQ(settings.config().tune_budget, Seconds(2));
  EXPECT_EQ(settings.config().threads, 3);
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
  EXPECT_THAT(message_of([&] { settings.set("tune.budget", "-5s"); }), HasSubstr("from 0 to 30 years"));
  EXPECT_THAT(message_of([&] { settings.set("compile.mode", "max-autotun"); }),
              HasSubstr("did you mean max-autotune?"));
  EXPECT_THAT(message_of([&] { settings.set("cache.dir", "a#b"); }), HasSubstr("'#'"));
}

TEST(Settings, ReadsIniAndNamesTheFileInErrors) {
  Settings settings;
  settings.read_ini_text("# comment\n; another\n[tune]\r\nbudget = 2m  # the third\nenabled = yes", "a.ini");
  EXPECT_DOUBLE_EQ(settings.config().tune_budget.count(), 120);
  EXPECT_TRUE(settings.config().tune_enabled);
  EXPECT_THAT(message_of([&] { settings.read_ini_text("[tune]\nbugdet = 1\n", "b.ini"); }),
              HasSubstr("b.ini: unknown key 'tune.bugdet'; did you mean tune.budget?"));
  EXPECT_THAT(message_of([&] { settings.read_ini_text("[tune]\n\nx\n", "c.ini"); }),
              HasSubstr("c.ini, line 3: "));
  EXPECT_THAT(message_of([&] { settings.read_ini_text("[tune\nx = 1\n", "c.ini"); }),
              HasSubstr("got '[tune'"));
  EXPECT_THROW(settings.read_ini("/nonexistent/d.ini"), IoError);
}

/// Editors of other systems begin a file with a byte order mark, which nobody sees.
TEST(Settings, ReadsIniWithAByteOrderMark) {
  Settings settings;
  settings.read_ini_text("\xEF\xBB\xBF[compile]\nthreads = 2\n", "bom.ini");
  EXPECT_EQ(settings.config().threads, 2);
}

TEST(Settings, RefusesAKeyThatIsTwiceInAFile) {
  Settings settings;
  EXPECT_THAT(
      message_of([&] { settings.read_ini_text("[compile]\nthreads = 2\nthreads = 1\n", "twice.ini"); }),
      HasSubstr("twice.ini: 'compile.threads' is there twice"));
}

/// Teams of workers are made as large as they are asked for.
TEST(Settings, RefusesIntegersOutOfRange) {
  Settings settings;
  for (const char* count : {"-3", "1025", "99999"})
    EXPECT_THAT(message_of([&] { settings.set("compile.threads", count); }), HasSubstr("expected 0 to 1024"));
  EXPECT_THAT(message_of([&] { settings.set("import.random_weights", "-2"); }), HasSubstr("expected -1 to"));
  settings.set("compile.threads", "1024");
  EXPECT_EQ(settings.config().threads, 1024);
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
  for (const char* text : {"-1s", "1e9h", "999999999d"})
    EXPECT_THAT(message_of([&] { (void)parse_duration(text, "x"); }), HasSubstr("from 0 to 30 years"))
        << text;
}

TEST(ParseBytes, KnowsItsUnits) {
  EXPECT_EQ(parse_bytes("64kB", "x").count, 64000);
  EXPECT_EQ(parse_bytes("1.5GB", "x").count, 1500000000);
  EXPECT_EQ(parse_bytes("12", "x").count, 12);
  for (const char* wrong : {"", "-1", "much", "1e30", "nan", "2GiB"})
    EXPECT_THAT(message_of([&] { (void)parse_bytes(wrong, "--to"); }), HasSubstr("expected a size")) << wrong;
  EXPECT_THAT(message_of([&] { (void)parse_bytes("5XB", "--to"); }), HasSubstr("--to = '5XB'"));
  EXPECT_THAT(message_of([&] { (void)parse_duration("5xs", "--for"); }), HasSubstr("--for = '5xs'"));
}

TEST(Settings, ASizeMayBeUnlimited) {
  Settings settings;
  EXPECT_EQ(settings.config().cache_limit, parse_bytes("2GB", "x"));
  settings.set("cache.limit", "none");
  EXPECT_EQ(settings.config().cache_limit, unlimited_bytes);
}

TEST(KnobsPage, IsUpToDate) {
  EXPECT_EQ(read_file(std::string(SYLVITE_TEST_DATA) + "/../../docs/knobs.md"), knobs_markdown())
      << "run `sylvite knobs > docs/knobs.md`";
}

}  // namespace
}  // namespace sylvite::knobs_test
