// `db trials` and `db replay` on a database that a tuning left.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "autotune/database_queries.h"
#include "autotune/replay.h"
#include "autotune/sqlite.h"
#include "base/error.h"
#include "base/files.h"
#include "schedules/candidate.h"
#include "tests/cli/command.h"

namespace sylvite::db_test {
namespace {

using testing::HasSubstr;
using testing_command::Result;

class Db : public testing::Test {
 protected:
  void SetUp() override {
    const std::string model = folder_ + "/small.onnx";
    write_file(model, testing_command::small_model(0));
    constexpr std::int64_t trials = 7;  // more than two of one of its kernels
    const Result tuned = testing_command::tune({model, "--progress", "none"}, db_, trials, folder_);
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
    for (const WinnerRow& row : top_winners(Database::for_questions(db_), -1))
      if (row.trials > 2) kernel_ = row.kernel;
    ASSERT_NE(kernel_, "");
  }
  [[nodiscard]] Result db(std::vector<std::string> words) const {
    words.insert(words.begin(), "db");
    words.insert(words.end(), {"--db", db_});
    return testing_command::run_command(words, folder_);
  }
  [[nodiscard]] nlohmann::json json(std::vector<std::string> words) const {
    words.insert(words.end(), {"--json", "-"});
    return nlohmann::json::parse(db(words).out);
  }
  [[nodiscard]] ReplayTask stored() const {
    const Database database = Database::for_questions(db_);
    return replay_tasks(database, winner_keys(database).at(0), kernel_).at(0);
  }
  /// As if the winner had taken so many times its time.
  void scale_stored_time(double factor) const {
    const ReplayTask task = stored();
    Winner winner = task.winner;
    winner.median_us *= factor;
    Database(db_).record_winner(task.kernel, task.stored_key, winner);
  }

  const std::string folder_ = testing_command::fresh_folder();
  const std::string db_ = folder_ + "/trials.db";
  std::string kernel_;
};

TEST_F(Db, FormsAndTimesAreNamedAlikeEverywhere) {
  EXPECT_THAT(db({"top"}).out, testing::Not(HasSubstr("form: ")));
  scale_stored_time(0);  // as of a kernel whose turn did not come
  const Result why = db({"why", folder_ + "/small.onnx", "--threads", "1"});
  EXPECT_EQ(why.exit_code, 0) << why.err;
  EXPECT_THAT(why.out, testing::Not(HasSubstr("- us")));
}

TEST_F(Db, TrialsAreToldApartAndTheirSchedulesShown) {
  const nlohmann::json trials = json({"trials", kernel_})["trials"];
  ASSERT_GT(trials.size(), 2);
  std::set<std::string> labels;
  for (const nlohmann::json& trial : trials) labels.insert(trial["label"].get<std::string>());
  EXPECT_EQ(labels.size(), trials.size());
  const std::string table = db({"trials", kernel_}).out;
  for (const std::string& label : labels) EXPECT_THAT(table, HasSubstr(label));
  EXPECT_EQ(trials[0]["number"], 1);
  std::string second = db({"trials", kernel_, "--schedule", "2"}).out;
  const std::string line_break = "\n    ";
  for (std::size_t at = second.find(line_break); at != std::string::npos; at = second.find(line_break))
    second.erase(at, line_break.size());
  EXPECT_EQ(Candidate::parse(second), Candidate::parse(trials[1]["candidate"].get<std::string>()));
  EXPECT_THAT(db({"trials", kernel_, "--schedule", "999"}).err, HasSubstr("--schedule 999"));
  EXPECT_THAT(db({"trials", kernel_, "--limit", "1"}).out, HasSubstr("more: --limit"));
  EXPECT_EQ(db({"trials", kernel_, "--limit", "-1"}).out, db({"trials", kernel_}).out);
}

TEST_F(Db, QuestionsAreAnsweredInJsonToo) {
  for (const char* limit : {"-1", "4294967296"})
    EXPECT_EQ(json({"top", "--limit", limit})["winners"], json({"top"})["winners"]);
  const nlohmann::json top = json({"top", "--kernel", kernel_})["winners"].at(0);
  EXPECT_EQ(top["kernel"], kernel_);
  EXPECT_GT(top["trials"], 2);
  const nlohmann::json stats = json({"stats"});
  EXPECT_EQ(stats["integrity"], "ok");
  EXPECT_GT(stats["trials_by_verdict"]["ok"], 2);
  const std::string model = folder_ + "/small.onnx";
  const nlohmann::json why = json({"why", model, "--threads", "1"})["winners"];
  EXPECT_TRUE(why.at(0).contains("candidate")) << why;
  const nlohmann::json missing = json({"why", model, "--threads", "2"})["winners"];
  EXPECT_THAT(missing.at(0)["miss"].get<std::string>(), HasSubstr("threads")) << missing;
}

TEST_F(Db, ReplayListsWhatMovedAndStoresNothingUnasked) {
  scale_stored_time(0.1);
  const double stored_us = stored().winner.median_us;
  const Result result = db({"replay", kernel_});
  EXPECT_EQ(result.exit_code, 9) << result.err;
  EXPECT_THAT(result.out, HasSubstr(kernel_));
  EXPECT_THAT(result.out, testing::AnyOf(HasSubstr("slower"), HasSubstr("beaten")));
  EXPECT_EQ(stored().winner.median_us, stored_us);
  const nlohmann::json report = json({"replay", kernel_, "--update"});
  EXPECT_EQ(report["winners"][0]["kernel"], kernel_);
  EXPECT_GT(report["winners"][0]["ratio"], 2);
  EXPECT_GT(stored().winner.median_us, 2 * stored_us) << "asked for";
}

TEST_F(Db, ReplayOfNothingIsRefused) {
  EXPECT_EQ(db({"replay", "zzz"}).exit_code, static_cast<int>(ErrorCode::bad_usage));
  EXPECT_THAT(db({"replay", "zzz"}).err, HasSubstr("'zzz'"));
  EXPECT_EQ(testing_command::run_command({"db", "replay", "--db", folder_ + "/none.db"}, folder_).exit_code,
            static_cast<int>(ErrorCode::io_failure));
}

TEST_F(Db, RowsOfAnyBytesAreAnsweredFor) {
  {
    const Database database(db_);
    database.connection().execute("UPDATE keys SET target = 'x86-\xff', versions = 'halide \xfe'");
    database.connection().execute("UPDATE kernels SET class = cast(x'ff22' AS TEXT)");
  }
  EXPECT_THAT(db({"replay", kernel_}).exit_code, testing::AnyOf(0, 9)) << "as a winner of other versions";
  EXPECT_EQ(json({"top"})["winners"].at(0)["class"], "\xef\xbf\xbd\"");
  EXPECT_EQ(json({"trials", kernel_})["trials"].at(0)["kernel"], kernel_);
}

}  // namespace
}  // namespace sylvite::db_test
