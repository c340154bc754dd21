#include "autotune/database.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "autotune/sqlite.h"
#include "base/files.h"
#include "tests/autotune/sample_kernels.h"
#include "tests/support/sample_card.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::database_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const TuningKey key{"x86-64-linux", "test machine", 1, "halide 21", "f32"};

/// A candidate for storage only; `number` makes it different.
Candidate numbered(int number) {
  Candidate candidate;
  candidate.schedule.decisions.push_back({"v0", -1, "vectorize", {"d0", std::to_string(number)}});
  return candidate;
}

Trial trial_of(const Candidate& candidate, const std::vector<double>& samples,
               Verdict verdict = Verdict::ok) {
  return {"", candidate, verdict, samples, median(samples), 0.25, "said", 0.5};
}

std::string integrity(const std::string& path) {
  SqliteConnection connection(path, SQLITE_OPEN_READWRITE, 10000);  // writing rolls back a hot journal
  SqliteStatement check(connection, "PRAGMA integrity_check");
  return check.step() ? check.text(0) : "nothing";
}

/// Runs `action` in a child process that ends without running destructors; returns its pid.
template <typename Action>
pid_t in_child(Action action) {
  pid_t pid = fork();
  if (pid == 0) {
    action();
    _exit(0);
  }
  return pid;
}

int exit_status(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Database, KeepsTrialsAndWinners) {
  TemporaryFolder folder;
  std::string path = folder.file("new/folder/tuning.db");
  Kernel kernel = sample_matmul();
  {
    Database database(path);
    EXPECT_EQ(database.warning(), "");
    database.record_trial(kernel, key, trial_of(numbered(1), {3, 1, 2}));
    database.record_trial(kernel, key, trial_of(numbered(2), {}, Verdict::run_crash));
    database.record_winner(kernel, key, {numbered(1), 2, 0.25, "search", 60});
  }
  Database database(path);
  EXPECT_EQ(database.trial_count(), 2);
  auto trials = database.trials(kernel, key);
  ASSERT_EQ(trials.size(), 2);
  EXPECT_EQ(trials[0].candidate, numbered(1));
  EXPECT_EQ(trials[0].samples_us, (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(trials[0].median_us, 2);
  EXPECT_EQ(trials[0].error, 0.25);
  EXPECT_EQ(trials[1].verdict, Verdict::run_crash);
  EXPECT_EQ(trials[1].message, "said");
  auto winner = database.find_winner(kernel, key);
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->candidate, numbered(1));
  EXPECT_EQ(winner->origin, "search");
  EXPECT_EQ(winner->budget_seconds, 60);
  EXPECT_EQ(database.warning(), "");
}

TEST(Database, OneRowPerCandidate) {
  Database database("");
  Kernel kernel = sample_matmul();
  auto stored = [&] { return database.trials(kernel, key).at(0); };
  database.record_trial(kernel, key, trial_of(numbered(1), {5, 5, 5}));
  database.record_trial(kernel, key, trial_of(numbered(1), {9}));
  EXPECT_EQ(stored().median_us, 5) << "fewer samples do not replace more";
  database.record_trial(kernel, key, trial_of(numbered(1), {4, 4, 4, 4}));
  EXPECT_EQ(stored().median_us, 4);
  database.record_trial(kernel, key, trial_of(numbered(1), {}, Verdict::run_timeout));
  EXPECT_EQ(stored().verdict, Verdict::ok) << "a busy machine explains a timeout";
  database.record_trial(kernel, key, trial_of(numbered(1), {}, Verdict::wrong_result));
  EXPECT_EQ(stored().verdict, Verdict::wrong_result);
  database.record_trial(kernel, key, trial_of(numbered(1), {4, 4, 4, 4, 4}));
  EXPECT_EQ(stored().verdict, Verdict::wrong_result) << "never forgiven";
  EXPECT_EQ(database.trial_count(), 1);
}

TEST(Database, ARowIsReplacedWhateverIsStored) {
  Database database("");
  const Kernel kernel = sample_matmul();
  database.record_trial(kernel, key, trial_of(numbered(1), {100, 100, 100}));
  database.replace_trial(kernel, key, trial_of(numbered(1), {120}));
  EXPECT_EQ(database.trials(kernel, key).at(0).median_us, 120);
  EXPECT_EQ(database.trial_count(), 1);
}

TEST(Database, RacesAreReadBack) {
  Database database("");
  const Kernel kernel = sample_matmul();
  database.record_race(kernel, key, {numbered(1), numbered(2), {3, 4}, {1, 2}, "won", RaceScope::model});
  database.record_race(sample_matmul(8), key, {numbered(1), numbered(2), {3}, {1}, "won"});
  const std::vector<Race> races = database.races(kernel, key);
  ASSERT_EQ(races.size(), 1);
  EXPECT_EQ(races[0].incumbent, numbered(1));
  EXPECT_EQ(races[0].challenger_us, (std::vector<double>{1, 2}));
  EXPECT_EQ(races[0].scope, RaceScope::model);
}

/// What the machine failed at is no verdict, and a reference schedule chosen for that is no winner.
TEST(Database, FailuresOfTheMachineAreNotUsed) {
  Database database("");
  Kernel kernel = sample_matmul();
  Trial failed = trial_of(numbered(1), {}, Verdict::compile_error);
  failed.message = "LLVM ERROR: IO failure on output stream: No space left on device";
  database.record_trial(kernel, key, failed);
  EXPECT_TRUE(database.trials(kernel, key).empty());
  database.record_winner(kernel, key, {numbered(0), 2, 0, "reference", 60});
  EXPECT_FALSE(database.find_winner(kernel, key));
  EXPECT_THAT(database.explain_miss(kernel, key), HasSubstr("while the machine failed"));
  database.record_trial(kernel, key, trial_of(numbered(2), {}, Verdict::wrong_result));
  ASSERT_TRUE(database.find_winner(kernel, key)) << "rather that than what may be wrong";
  EXPECT_EQ(database.find_winner(kernel, key)->budget_seconds, 0) << "and it is searched again";
  database.record_trial(kernel, key, trial_of(numbered(1), {}, Verdict::compile_error));
  EXPECT_EQ(database.trials(kernel, key).size(), 2) << "tried again";
  EXPECT_EQ(database.find_winner(kernel, key)->budget_seconds, 60);
}

/// What a person pinned gives way to a pin alone; without one the fastest candidate that was tried is next.
TEST(Database, PinsStayUntilTheyAreTakenAway) {
  Database database("");
  const Kernel kernel = sample_matmul();
  const Winner pin{numbered(1), 20, 0.5, std::string(origin_pinned), 0};
  EXPECT_FALSE(database.remove_pin(kernel, key, numbered(9)));
  database.record_winner(kernel, key, {numbered(2), 10, 0.5, "search", 60});
  EXPECT_FALSE(database.remove_pin(kernel, key, numbered(9))) << "it is none";
  database.record_winner(kernel, key, pin);
  database.record_winner(kernel, key, {numbered(2), 10, 0.5, "search", 600});
  EXPECT_EQ(database.find_winner(kernel, key)->candidate, numbered(1));
  database.record_winner(kernel, key, {numbered(3), 30, 0.5, std::string(origin_pinned), 0});
  EXPECT_EQ(database.find_winner(kernel, key)->candidate, numbered(3));
  EXPECT_TRUE(database.remove_pin(kernel, key, numbered(9)));
  EXPECT_FALSE(database.find_winner(kernel, key)) << "nothing is known";
  database.record_winner(kernel, key, pin);
  database.record_trial(kernel, key, trial_of(numbered(1), {20}));
  database.record_trial(kernel, key, trial_of(numbered(2), {10}));
  database.record_trial(kernel, key, trial_of(numbered(4), {1}, Verdict::wrong_result));
  EXPECT_TRUE(database.remove_pin(kernel, key, numbered(9)));
  const std::optional<Winner> next = database.find_winner(kernel, key);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->candidate, numbered(2));
  EXPECT_EQ(next->origin, "search");
  EXPECT_EQ(next->budget_seconds, 0) << "any search may go on from it";
  database.record_winner(kernel, key, pin);
  EXPECT_TRUE(database.remove_pin(kernel, key, numbered(2)));
  EXPECT_EQ(database.find_winner(kernel, key)->origin, "heuristic") << "it is the default schedule";
}

TEST(Database, ExplainsAMiss) {
  Database database("");
  Kernel kernel = sample_matmul();
  EXPECT_EQ(database.explain_miss(kernel, key), "");
  TuningKey other = key;
  other.threads = 2;
  database.record_winner(kernel, other, {numbered(1), 2, 0, "search", 60});
  other.precision = "bf16";
  database.record_winner(kernel, other, {numbered(1), 2, 0, "search", 60});
  EXPECT_FALSE(database.find_winner(kernel, key));
  EXPECT_EQ(database.explain_miss(kernel, key), "nearest winner: threads is '2' there, '1' here");
}

TEST(Database, RowsThatDoNotFitAreMisses) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  Kernel kernel = sample_matmul();
  Kernel other = sample_matmul(32);
  Database database(path);
  database.record_trial(kernel, key, trial_of(numbered(1), {1}));
  database.record_winner(kernel, key, {numbered(1), 2, 0, "search", 60});
  database.record_winner(other, key, {numbered(1), 2, 0, "search", 60});
  SqliteConnection raw(path, SQLITE_OPEN_READWRITE, 1000);
  raw.execute("UPDATE winners SET candidate = 'gibberish((' WHERE kernel = '" + kernel.id + "'");
  raw.execute("UPDATE trials SET candidate = 'gibberish(('");
  raw.execute("UPDATE kernels SET text = 'something else' WHERE id = '" + other.id + "'");
  EXPECT_FALSE(database.find_winner(kernel, key));
  EXPECT_TRUE(database.trials(kernel, key).empty());
  EXPECT_FALSE(database.find_winner(other, key));
  EXPECT_THAT(database.warning(), HasSubstr("is not used"));
}

TEST(Database, SetsADamagedFileAside) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  Kernel kernel = sample_matmul();
  {
    Database(path).record_winner(kernel, key, {numbered(1), 2, 0, "search", 60});
  }
  std::string bytes = read_file(path);
  bytes.replace(0, 6, "XXXXXX");  // the mark of SQLite's files is damaged, ours is not
  write_file(path, bytes);
  {
    Database database(path);
    EXPECT_THAT(database.warning(), HasSubstr("set aside"));
    database.record_winner(kernel, key, {numbered(1), 2, 0, "search", 60});
  }
  EXPECT_EQ(read_file(path + ".corrupt-1"), bytes);
  EXPECT_TRUE(Database(path).find_winner(kernel, key));

  std::fstream pages(path,
                     std::ios::in | std::ios::out | std::ios::binary);  // flip bytes all over the second page
  for (int i = 0; i < 4096; i += 3) {
    pages.seekp(4096 + i);
    pages.put('\x5a');
  }
  pages.close();
  Database database(path);
  EXPECT_THAT(database.warning(), HasSubstr("set aside"));
  EXPECT_TRUE(fs::exists(path + ".corrupt-2"));
  EXPECT_EQ(database.path(), path);
  EXPECT_FALSE(database.find_winner(kernel, key));
}

TEST(Database, TruncatedFilesNeverThrow) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  {
    Database(path).record_winner(sample_matmul(), key, {numbered(1), 2, 0, "search", 60});
  }
  std::string whole = read_file(path);
  for (std::size_t size = 0; size < whole.size(); size += 1777) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    Database database(path);
    database.record_winner(sample_matmul(), key, {numbered(1), 2, 0, "search", 60});
    EXPECT_TRUE(database.find_winner(sample_matmul(), key)) << size;
  }
}

TEST(Database, LeavesForeignFilesAlone) {
  TemporaryFolder folder;
  std::string foreign = folder.file("foreign.db");
  SqliteConnection(foreign, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 0).execute("CREATE TABLE mine(x)");
  std::string other_version = folder.file("other_version.db");
  {
    Database database(other_version);
  }
  SqliteConnection(other_version, SQLITE_OPEN_READWRITE, 0).execute("PRAGMA user_version = 999");
  fs::create_directory(folder.file("directory"));
  std::string notes = folder.file("notes.txt");
  write_file(notes, "buy milk\n" + std::string(5000, 'x') + "CREATE TABLE sweep_items(");
  std::string short_notes = folder.file("short.txt");
  write_file(short_notes, "buy milk\n");
  std::string damaged = folder.file("damaged.db");
  write_file(damaged, read_file(foreign).substr(0, 5000) + std::string(100, 'x'));
  for (const std::string& path : {foreign, other_version, notes, short_notes, damaged,
                                  folder.file("directory"), std::string("/proc/none/x.db")}) {
    std::string before = fs::is_regular_file(path) ? read_file(path) : "";
    Database database(path);
    EXPECT_THAT(database.warning(), HasSubstr(path));
    EXPECT_EQ(database.path(), "");
    database.record_winner(sample_matmul(), key, {numbered(1), 2, 0, "search", 60});
    EXPECT_TRUE(database.find_winner(sample_matmul(), key)) << "in memory";
    EXPECT_EQ(fs::is_regular_file(path) ? read_file(path) : "", before);
  }
}

TEST(Database, QuestionsChangeNothing) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  EXPECT_THROW(static_cast<void>(Database::for_questions(path)), IoError);
  EXPECT_FALSE(fs::exists(path)) << "not created";
  Kernel kernel = sample_matmul();
  {
    Database(path).record_winner(kernel, key, {numbered(1), 2, 0, "search", 60});
  }
  std::string before = read_file(path);
  fs::permissions(path, fs::perms::owner_read);
  fs::permissions(fs::path(path).parent_path(), fs::perms::owner_read | fs::perms::owner_exec);
  {
    Database database = Database::for_questions(path);
    EXPECT_TRUE(database.find_winner(kernel, key));
    EXPECT_EQ(database.path(), path);
    EXPECT_THROW(database.connection().execute("DELETE FROM winners"), SqliteError);
  }
  fs::permissions(fs::path(path).parent_path(), fs::perms::owner_all);
  fs::permissions(path, fs::perms::owner_all);
  EXPECT_EQ(read_file(path), before);
  write_file(path, "junk" + before.substr(4, 2000));
  EXPECT_THROW(static_cast<void>(Database::for_questions(path)), IoError);
  EXPECT_TRUE(fs::exists(path)) << "not set aside";
}

TEST(Database, ALockedFileIsAWarning) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  Kernel kernel = sample_matmul();
  Database database(path, /*lock_timeout_seconds=*/0.1);
  database.record_winner(kernel, key, {numbered(1), 2, 0, "search", 60});
  SqliteConnection holder(path, SQLITE_OPEN_READWRITE, 1000);
  holder.execute("BEGIN IMMEDIATE");  // others may read, not write
  database.record_trial(kernel, key, trial_of(numbered(2), {1}));
  EXPECT_THAT(database.warning(), HasSubstr("locked"));
  EXPECT_TRUE(database.find_winner(kernel, key)) << "what was stored is still there";
  EXPECT_EQ(database.trial_count(), 1) << "and the new row, in memory";
  holder.execute("COMMIT");
  holder.execute("BEGIN EXCLUSIVE");
  EXPECT_THAT(Database(path, 0.1).warning(), HasSubstr("locked"));
}

TEST(Database, AReadOnlyFileIsStillRead) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  Kernel kernel = sample_matmul();
  {
    Database(path).record_winner(kernel, key, {numbered(1), 2, 0, "search", 60});
  }
  fs::permissions(path, fs::perms::owner_read);
  if (access(path.c_str(), W_OK) == 0) GTEST_SKIP() << "this user may write everything";
  Database database(path);
  EXPECT_THAT(database.warning(), HasSubstr("cannot be written"));
  EXPECT_TRUE(database.find_winner(kernel, key));
}

TEST(Database, AFullDiskIsAWarning) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  {
    Database(path).record_winner(sample_matmul(), key, {numbered(0), 2, 0, "search", 60});
  }
  pid_t child = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    Database database(path);
    auto limit = static_cast<rlim_t>(fs::file_size(path) + 8192);
    rlimit file_size{limit, limit};
    setrlimit(RLIMIT_FSIZE, &file_size);
    for (int i = 1; i <= 300; ++i)
      database.record_trial(sample_matmul(), key, trial_of(numbered(i), std::vector<double>(20, 1.5)));
    bool good =
        !database.warning().empty() && database.trial_count() == 300 &&
        database.unstored().find(" trials and 0 winners were not stored in " + path) != std::string::npos &&
        database.find_winner(sample_matmul(), key).has_value();
    _exit(good ? 0 : 1);
  });
  EXPECT_EQ(exit_status(child), 0);
  EXPECT_EQ(integrity(path), "ok");
}

TEST(Database, ManyProcessesWriteOneFile) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  constexpr int writers = 4;
  constexpr int rows = 25;
  std::vector<pid_t> children;
  children.reserve(writers);
  for (int writer = 0; writer < writers; ++writer) {
    children.push_back(in_child([&] {
      Database database(path);  // all race to create the file, too
      for (int i = 0; i < rows; ++i) {
        database.record_trial(sample_matmul(), key, trial_of(numbered(writer * rows + i), {1}));
        database.record_trial(sample_matmul(), key, trial_of(numbered(-1), {1}));  // everyone's
      }
      _exit(database.warning().empty() ? 0 : 1);
    }));
  }
  for (pid_t child : children) EXPECT_EQ(exit_status(child), 0);
  EXPECT_EQ(Database(path).trial_count(), writers * rows + 1);
  EXPECT_EQ(integrity(path), "ok");
}

TEST(Database, ProcessesThatCreateTheFileTogetherAllUseIt) {
  constexpr int rounds = 25;
  constexpr int writers = 4;
  TemporaryFolder folder;
  for (int round = 0; round < rounds; ++round) {
    std::string path = folder.file("tuning" + std::to_string(round) + ".db");
    std::vector<pid_t> children;
    children.reserve(writers);
    for (int writer = 0; writer < writers; ++writer)
      children.push_back(in_child([&] { _exit(Database(path).warning().empty() ? 0 : 1); }));
    for (pid_t child : children) EXPECT_EQ(exit_status(child), 0) << "round " << round;
  }
}

TEST(Database, KillInTheMiddleOfWritesKeepsCommits) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  {
    Database database(path);
  }
  for (int round = 0; round < 8; ++round) {
    std::int64_t before = Database(path).trial_count();
    int begun[2];
    ASSERT_EQ(pipe(begun), 0);
    pid_t child = in_child([&] {
      Database database(path);
      for (int i = 0;; ++i) {
        database.record_trial(sample_matmul(), key, trial_of(numbered(round * 1000000 + i), {1, 2, 3}));
        if (i == 0 && write(begun[1], "", 1) != 1) _exit(1);
      }
    });
    close(begun[1]);
    char byte = 0;
    EXPECT_EQ(read(begun[0], &byte, 1), 1);
    close(begun[0]);
    std::this_thread::sleep_for(std::chrono::milliseconds(7 * round));
    kill(child, SIGKILL);
    EXPECT_EQ(exit_status(child), 128 + SIGKILL);
    EXPECT_EQ(integrity(path), "ok");
    Database database(path);
    EXPECT_EQ(database.warning(), "");
    EXPECT_GT(database.trial_count(), before);
  }
}

/// Stored winners are found by this text.
TEST(TuningKey, NamesTheCardAndItsLibraries) {
  Machine host;
  host.target = "x86-64-linux-avx";
  const TuningKey card_alone = tuning_key(with_gpu(host, sample_card()), "bf16");
  EXPECT_EQ(card_alone.machine, "NVIDIA H200, driver 13000");
  EXPECT_EQ(card_alone.target, "x86-64-linux-avx-cuda-cuda_capability_80");
  const GpuTools tools{.cublaslt = 130100, .cudnn = 91900, .missing_compiler = {}};
  const TuningKey with_libraries = tuning_key(with_gpu(host, sample_card(), tools), "bf16");
  EXPECT_EQ(with_libraries.versions, card_alone.versions + ", cuBLASLt 130100, cuDNN 91900");
}

}  // namespace
}  // namespace sylvite::database_test
