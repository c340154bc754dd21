#include "autotune/database_queries.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "autotune/database_open.h"
#include "autotune/database_schema.h"
#include "autotune/sqlite.h"
#include "base/json_text.h"

namespace sylvite {

namespace {

/// Counts by name: `sql` selects a text and a number.
std::map<std::string, std::int64_t> counts(SqliteConnection& connection, const std::string& sql) {
  std::map<std::string, std::int64_t> found;
  SqliteStatement statement(connection, sql);
  while (statement.step()) found[statement.text(0)] = statement.integer(1);
  return found;
}

std::string file_integrity(SqliteConnection& connection) {
  SqliteStatement check(connection, "PRAGMA integrity_check(1)");
  return check.step() ? check.text(0) : "no answer";
}

/// JSON has no infinity and no NaN.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

/// Stored samples are JSON text already; anything else becomes an empty list.
nlohmann::json samples(const std::string& text) {
  auto parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_array() ? parsed : nlohmann::json::array();
}

/// Columns target, machine, threads, versions, precision, beginning at `first`.
void add_key(nlohmann::ordered_json& line, const SqliteStatement& row, int first) {
  line["target"] = row.text(first);
  line["machine"] = row.text(first + 1);
  line["threads"] = row.integer(first + 2);
  line["versions"] = row.text(first + 3);
  line["precision"] = row.text(first + 4);
}

void write_line(std::ostream& output, const nlohmann::ordered_json& line) {
  output << json_text(line) << '\n';
}

std::int64_t export_kernels(SqliteConnection& connection, std::ostream& output) {
  SqliteStatement row(connection, "SELECT id, class, text FROM kernels ORDER BY id");
  std::int64_t lines = 0;
  for (; row.step(); ++lines) {
    write_line(
        output,
        {{"record", "kernel"}, {"kernel", row.text(0)}, {"class", row.text(1)}, {"text", row.text(2)}});
  }
  return lines;
}

std::int64_t export_trials(SqliteConnection& connection, std::ostream& output) {
  SqliteStatement row(connection, R"(
    SELECT t.kernel, y.target, y.machine, y.threads, y.versions, y.precision, t.candidate, t.verdict, t.median_us,
           t.samples, t.error, t.message, t.compile_seconds, t.created_at
    FROM trials t JOIN keys y ON y.id = t.key WHERE NOT failed_by_machine(t.verdict, t.message) ORDER BY t.id)");
  std::int64_t lines = 0;
  for (; row.step(); ++lines) {
    nlohmann::ordered_json line{{"record", "trial"}, {"kernel", row.text(0)}};
    add_key(line, row, 1);
    line["candidate"] = row.text(6);
    line["verdict"] = row.text(7);
    line["median_us"] = number(row.real(8));
    line["samples_us"] = samples(row.text(9));
    line["error"] = number(row.real(10));
    line["message"] = row.text(11);
    line["compile_seconds"] = number(row.real(12));
    line["created_at"] = row.text(13);
    write_line(output, line);
  }
  return lines;
}

std::int64_t export_winners(SqliteConnection& connection, std::ostream& output) {
  SqliteStatement row(connection, fmt::format(R"(
    SELECT x.kernel, y.target, y.machine, y.threads, y.versions, y.precision, x.candidate, x.median_us, x.error,
           x.origin, x.budget_seconds, x.created_at
    FROM winners x JOIN keys y ON y.id = x.key WHERE NOT {} ORDER BY x.id)",
                                              fmt::format(fmt::runtime(spoilt_reference_sql), "main")));
  std::int64_t lines = 0;
  for (; row.step(); ++lines) {
    nlohmann::ordered_json line{{"record", "winner"}, {"kernel", row.text(0)}};
    add_key(line, row, 1);
    line["candidate"] = row.text(6);
    line["median_us"] = number(row.real(7));
    line["error"] = number(row.real(8));
    line["origin"] = row.text(9);
    line["budget_seconds"] = number(row.real(10));
    line["created_at"] = row.text(11);
    write_line(output, line);
  }
  return lines;
}

/// Attaches a second file as `other` for as long as it lives.
class Attached {
 public:
  Attached(SqliteConnection& connection, const std::string& path) : connection_(connection) {
    SqliteStatement(connection, "ATTACH DATABASE ? AS other").bind(path).run();
  }
  ~Attached() { sqlite3_exec(connection_.handle(), "DETACH DATABASE other", nullptr, nullptr, nullptr); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  SqliteConnection& connection_;
};

/// Runs an INSERT ... SELECT; returns the number of rows it changed.
std::int64_t insert(SqliteConnection& connection, const std::string& sql) {
  connection.execute(sql);
  return sqlite3_changes64(connection.handle());
}

/// Joins a row `x` of the other file to this file's kernel and key.
constexpr const char* here = R"(
  JOIN other.keys oy ON oy.id = x.key
  JOIN main.keys y USING(target, machine, threads, versions, precision)
  JOIN other.kernels ok ON ok.id = x.kernel
  JOIN main.kernels k ON k.id = ok.id AND k.text = ok.text)";

}  // namespace

std::vector<WinnerRow> top_winners(const Database& database, std::int64_t limit,
                                   const std::string& kernel_prefix) {
  SqliteStatement row(database.connection(), R"(
    SELECT kernel, class, target, machine, threads, versions, precision, origin, median_us, slowest_us, error, trials,
           candidate, created_at
    FROM v_best WHERE substr(kernel, 1, length(?1)) = ?1 ORDER BY median_us DESC, kernel LIMIT ?2)");
  row.bind(kernel_prefix).bind(limit);
  std::vector<WinnerRow> found;
  while (row.step()) {
    TuningKey key{row.text(2), row.text(3), static_cast<int>(row.integer(4)), row.text(5), row.text(6)};
    found.push_back({row.text(0), row.text(1), key, row.text(7), row.real(8), row.real(9), row.real(10),
                     row.integer(11), row.text(12), row.text(13)});
  }
  return found;
}

std::vector<TrialRow> list_trials(const Database& database, const std::string& kernel_prefix,
                                  std::int64_t limit, bool by_time) {
  SqliteStatement row(database.connection(), R"(
    SELECT trial, created_at, kernel, class, machine, threads, precision, verdict, median_us, best_so_far_us, error,
           compile_seconds, candidate, message
    FROM v_history WHERE substr(kernel, 1, length(?1)) = ?1
    ORDER BY CASE WHEN ?3 THEN verdict <> 'ok' END, CASE WHEN ?3 THEN median_us END, trial LIMIT ?2)");
  row.bind(kernel_prefix).bind(limit).bind(by_time ? 1 : 0);
  std::vector<TrialRow> found;
  while (row.step()) {
    found.push_back({row.integer(0), row.text(1), row.text(2), row.text(3), row.text(4),
                     static_cast<int>(row.integer(5)), row.text(6), row.text(7), row.real(8), row.real(9),
                     row.real(10), row.real(11), row.text(12), row.text(13)});
  }
  return found;
}

DatabaseStats database_stats(const Database& database) {
  SqliteConnection& connection = database.connection();
  DatabaseStats stats;
  stats.path = database.path();
  stats.schema_version = schema_version;
  stats.bytes = connection.integer("PRAGMA page_count") * connection.integer("PRAGMA page_size");
  stats.kernels = connection.integer("SELECT count(*) FROM kernels");
  stats.keys = connection.integer("SELECT count(*) FROM keys");
  stats.trials = connection.integer("SELECT count(*) FROM trials");
  stats.winners = connection.integer("SELECT count(*) FROM winners");
  stats.races = connection.integer("SELECT count(*) FROM races");
  SqliteStatement seconds(connection, "SELECT total(compile_seconds) FROM trials");
  stats.compile_seconds = seconds.step() ? seconds.real(0) : 0;
  stats.trials_by_verdict =
      counts(connection,
             "SELECT iif(failed_by_machine(verdict, message), 'to be tried again', verdict) "
             "AS what, count(*) FROM trials GROUP BY what");
  stats.winners_by_origin = counts(connection, "SELECT origin, count(*) FROM winners GROUP BY origin");
  stats.integrity = file_integrity(connection);
  return stats;
}

std::int64_t export_jsonl(const Database& database, std::ostream& output) {
  SqliteConnection& connection = database.connection();
  return export_kernels(connection, output) + export_trials(connection, output) +
         export_winners(connection, output);
}

namespace {

/// Deletes the chosen rows of a table; `candidate` is what a trial of the wanted verdict must be, in SQL.
std::int64_t forget_of(SqliteConnection& connection, const std::string& table, const std::string& candidate,
                       const ForgetFilter& filter) {
  SqliteStatement(connection, fmt::format(R"(
      DELETE FROM {0} WHERE substr(kernel, 1, length(?1)) = ?1 AND (?2 = '' OR created_at < ?2)
        AND (?3 = '' OR EXISTS (SELECT 1 FROM trials t WHERE t.kernel = {0}.kernel AND t.key = {0}.key
                                AND t.verdict = ?3 AND t.candidate IN ({1}))))",
                                          table, candidate))
      .bind(filter.kernel_prefix)
      .bind(filter.before)
      .bind(filter.verdict)
      .run();
  return sqlite3_changes64(connection.handle());
}

}  // namespace

ForgetReport forget_rows(Database& database, const ForgetFilter& filter) {
  SqliteConnection& connection = database.connection();
  SqliteTransaction transaction(connection);
  ForgetReport report;
  report.races = forget_of(connection, "races", "races.incumbent, races.challenger", filter);
  report.winners = forget_of(connection, "winners", "winners.candidate", filter);
  report.trials = forget_of(connection, "trials", "trials.candidate", filter);  // last: the others ask them
  transaction.commit();
  return report;
}

MergeReport merge_database(Database& database, const std::string& other_path) {
  static_cast<void>(open_for_reading(other_path));  // says what is wrong with the file
  if (!database.path().empty() && std::filesystem::equivalent(database.path(), other_path))
    throw UsageError("{} is merged into itself: name another database, or another --db", other_path);
  SqliteConnection& connection = database.connection();
  Attached attached(connection, other_path);
  SqliteTransaction transaction(connection);
  MergeReport report;
  report.kernels =
      insert(connection, "INSERT OR IGNORE INTO main.kernels SELECT id, class, text FROM other.kernels");
  connection.execute(
      "INSERT OR IGNORE INTO main.keys(target, machine, threads, versions, precision) "
      "SELECT target, machine, threads, versions, precision FROM other.keys");
  report.trials = insert(connection, fmt::format(R"(
      INSERT INTO main.trials(kernel, key, candidate, verdict, median_us, samples, error, message,
                              compile_seconds, created_at)
      SELECT x.kernel, y.id, x.candidate, x.verdict, x.median_us, x.samples, x.error, x.message, x.compile_seconds,
             x.created_at
      FROM other.trials x {} WHERE NOT failed_by_machine(x.verdict, x.message) ORDER BY x.id
      ON CONFLICT(kernel, key, candidate) DO UPDATE SET verdict = excluded.verdict, median_us = excluded.median_us,
        samples = excluded.samples, error = excluded.error, message = excluded.message,
        compile_seconds = excluded.compile_seconds, created_at = excluded.created_at
      WHERE failed_by_machine(trials.verdict, trials.message))",
                                                 here));
  report.winners =
      insert(connection, fmt::format(R"(
      INSERT INTO main.winners(kernel, key, candidate, median_us, error, origin, budget_seconds, created_at)
      SELECT x.kernel, y.id, x.candidate, x.median_us, x.error, x.origin, x.budget_seconds, x.created_at
      FROM other.winners x {} WHERE NOT {}
      ON CONFLICT(kernel, key) DO UPDATE SET candidate = excluded.candidate, median_us = excluded.median_us,
        error = excluded.error, origin = excluded.origin, budget_seconds = excluded.budget_seconds,
        created_at = excluded.created_at
      WHERE winners.origin <> 'pinned' AND (excluded.origin = 'pinned' OR (excluded.median_us > 0
            AND (winners.median_us <= 0 OR winners.median_us IS NULL OR excluded.median_us < winners.median_us))))",
                                     here, fmt::format(fmt::runtime(spoilt_reference_sql), "other")));
  transaction.commit();
  return report;
}

}  // namespace sylvite
