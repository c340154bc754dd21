#include "autotune/database.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "autotune/claim.h"
#include "autotune/database_open.h"
#include "autotune/database_schema.h"
#include "autotune/sqlite.h"
#include "base/words.h"

namespace sylvite {

namespace {

/// Raise when a form or template changes so that stored candidates mean something else.
constexpr int template_version = 3;

constexpr std::string_view announcement_prefix = "searched by ";
constexpr const char* last_trial_sql = "SELECT ifnull(max(id), 0) FROM trials";
constexpr std::string_view key_columns = "target, machine, threads, versions, precision";

void insert_kernel(SqliteConnection& connection, const Kernel& kernel) {
  SqliteStatement(connection, "INSERT INTO kernels VALUES (?, ?, ?) ON CONFLICT DO NOTHING")
      .bind(kernel.id)
      .bind(kernel_class_name(kernel.kind))
      .bind(kernel.text)
      .run();
}

void bind_key(SqliteStatement& statement, const TuningKey& key) {
  statement.bind(key.target).bind(key.machine).bind(key.threads).bind(key.versions).bind(key.precision);
}

std::int64_t insert_key(SqliteConnection& connection, const TuningKey& key) {
  SqliteStatement insert(
      connection,
      fmt::format("INSERT INTO keys({}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", key_columns));
  bind_key(insert, key);
  insert.run();
  SqliteStatement find(
      connection,
      "SELECT id FROM keys WHERE target = ? AND machine = ? AND threads = ? AND versions = ? "
      "AND precision = ?");
  bind_key(find, key);
  return find.step() ? find.integer(0) : 0;
}

std::string samples_text(const std::vector<double>& samples) {
  return nlohmann::json(samples).dump();
}

std::vector<double> parse_samples(const std::string& text) {
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<double> samples;
  for (const auto& item : json.is_array() ? json : nlohmann::json::array())
    if (item.is_number()) samples.push_back(item.get<double>());
  return samples;
}

/// The name in `meta` of what the process that made the claim tries.
std::string announcement_of(const std::string& claim) {
  return fmt::format("{}{}", announcement_prefix, claim);
}

/// What processes said by Database::announce, by their claims.
std::map<std::string, std::string> announcements(SqliteConnection& connection) {
  std::map<std::string, std::string> found;
  SqliteStatement row(connection, "SELECT name, value FROM meta WHERE substr(name, 1, length(?1)) = ?1");
  row.bind(announcement_prefix);
  while (row.step()) found[row.text(0).substr(announcement_prefix.size())] = row.text(1);
  return found;
}

/// "threads 1 there, 2 here; ..." for the fields of two keys that differ.
std::vector<std::string> differences(const TuningKey& there, const TuningKey& here) {
  std::vector<std::string> found;
  auto compare = [&](std::string_view field, const auto& a, const auto& b) {
    if (a != b) found.push_back(fmt::format("{} is '{}' there, '{}' here", field, a, b));
  };
  compare("target", there.target, here.target);
  compare("machine", there.machine, here.machine);
  compare("threads", there.threads, here.threads);
  compare("versions", there.versions, here.versions);
  compare("precision", there.precision, here.precision);
  return found;
}

}  // namespace

std::string TuningKey::to_string() const {
  return fmt::format("target={} machine={} threads={} versions={} precision={}", target, machine, threads,
                     versions, precision);
}

TuningKey tuning_key(const Machine& machine, const std::string& precision) {
  std::string versions = fmt::format("halide {}.{}.{}, templates {}", HALIDE_VERSION_MAJOR,
                                     HALIDE_VERSION_MINOR, HALIDE_VERSION_PATCH, template_version);
  const GpuTools& tools = machine.gpu_tools;
  if (tools.cublaslt != 0) versions += fmt::format(", cuBLASLt {}", tools.cublaslt);
  if (tools.cudnn != 0) versions += fmt::format(", cuDNN {}", tools.cudnn);
  if (!tools.hopper) versions += ", without Hopper's instructions";
  const std::string arithmetic = machine.winograd ? precision : precision + " without Winograd";
  return {machine.target, machine.description(), machine.threads, versions, arithmetic};
}

struct Database::Rep {
  OpenedDatabase opened;
  std::string wanted;  ///< the file that rows were meant for
  std::set<std::string> unstored_trials;
  std::set<std::string> unstored_winners;

  /// After a write: notes the row if it went to memory for want of the file.
  void note(std::set<std::string>& unstored, const std::string& row) {
    if (opened.path.empty() && !wanted.empty()) unstored.insert(row);
  }

  void warn(const std::string& text) { opened.warning += (opened.warning.empty() ? "" : "; ") + text; }

  /// After a failed access: goes on in memory with what the file still yields.
  void leave_file(const std::string& reason) {
    warn(fmt::format("tuning database {} failed ({}); going on in memory", opened.path, reason));
    SqliteConnection memory = memory_database();
    try {
      memory.copy_from(opened.connection);
    } catch (const SqliteError&) {
      memory = memory_database();  // nothing readable: start empty
    }
    opened.connection = std::move(memory);
    opened.path.clear();
  }

  /// Runs `action` on the file, or when that fails, in memory. A failure in memory is a warning.
  template <typename Action>
  void attempt(Action action) {
    for (bool in_memory = false; !in_memory;) {
      in_memory = opened.path.empty();
      try {
        action(opened.connection);
        return;
      } catch (const SqliteError& error) {
        if (in_memory)
          warn(error.what());
        else
          leave_file(error.what());
      }
    }
  }

  template <typename Action>
  void attempt_write(Action action) {
    attempt([&](SqliteConnection& connection) {
      SqliteTransaction transaction(connection);
      action(connection);
      transaction.commit();
    });
  }

  /// A row of the columns candidate, verdict, samples, median_us, error, message, compile_seconds; nothing when it does
  /// not parse.
  std::optional<Trial> trial_at(const SqliteStatement& row, const std::string& kernel_id) {
    auto candidate = parse_candidate(row.text(0), kernel_id);
    const auto verdict = find_verdict(row.text(1));
    if (!candidate || !verdict) return std::nullopt;
    return Trial{kernel_id,   *candidate,  *verdict,    parse_samples(row.text(2)),
                 row.real(3), row.real(4), row.text(5), row.real(6)};
  }

  /// The candidate of a stored row, or nothing (and a warning) when it does not parse.
  std::optional<Candidate> parse_candidate(const std::string& text, const std::string& kernel_id) {
    try {
      return Candidate::parse(text);
    } catch (const std::exception& error) {
      warn(fmt::format("a stored candidate of kernel {} is not used: {}", kernel_id, error.what()));
      return std::nullopt;
    }
  }
};

Database::Database(const std::string& path, double lock_timeout_seconds)
    : rep_(new Rep{open_database(path, static_cast<int>(lock_timeout_seconds * 1000)), path, {}, {}}) {}
Database::Database(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Database Database::for_questions(const std::string& path) {
  if (path.empty()) throw IoError("no database: set HOME or XDG_CACHE_HOME, or give --db");
  return Database(std::unique_ptr<Rep>(new Rep{{open_for_reading(path), path, ""}, path, {}, {}}));
}
Database::~Database() = default;
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;

const std::string& Database::warning() const {
  return rep_->opened.warning;
}
std::string Database::unstored() const {
  if (rep_->unstored_trials.empty() && rep_->unstored_winners.empty()) return "";
  return fmt::format("{} and {} were not stored in {}", counted(rep_->unstored_trials.size(), "trial"),
                     counted(rep_->unstored_winners.size(), "winner"), rep_->wanted);
}
const std::string& Database::path() const {
  return rep_->opened.path;
}
SqliteConnection& Database::connection() const {
  return rep_->opened.connection;
}

void Database::write_trial(const Kernel& kernel, const TuningKey& key, const Trial& trial,
                           std::string_view where) {
  rep_->attempt_write([&](SqliteConnection& connection) {
    insert_kernel(connection, kernel);
    SqliteStatement statement(connection, fmt::format(R"(
      INSERT INTO trials(kernel, key, candidate, verdict, median_us, samples, error, message, compile_seconds)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT(kernel, key, candidate) DO UPDATE SET verdict = excluded.verdict, median_us = excluded.median_us,
        samples = excluded.samples, error = excluded.error, message = excluded.message,
        compile_seconds = excluded.compile_seconds {})",
                                                      where));
    statement.bind(kernel.id).bind(insert_key(connection, key)).bind(trial.candidate.to_string());
    statement.bind(verdict_name(trial.verdict)).bind(trial.median_us).bind(samples_text(trial.samples_us));
    statement.bind(trial.error).bind(trial.message).bind(trial.compile_seconds).run();
  });
  rep_->note(rep_->unstored_trials, kernel.id + trial.candidate.to_string());
}

void Database::record_trial(const Kernel& kernel, const TuningKey& key, const Trial& trial) {
  write_trial(kernel, key, trial, R"(
      WHERE (excluded.verdict = 'ok' AND json_array_length(excluded.samples) > json_array_length(trials.samples)
             AND trials.verdict IN ('ok', 'noisy'))
         OR excluded.verdict IN ('run_crash', 'wrong_result')
         OR failed_by_machine(trials.verdict, trials.message))");
}

void Database::replace_trial(const Kernel& kernel, const TuningKey& key, const Trial& trial) {
  write_trial(kernel, key, trial, "");
}

void Database::record_winner(const Kernel& kernel, const TuningKey& key, const Winner& winner) {
  rep_->attempt_write([&](SqliteConnection& connection) {
    insert_kernel(connection, kernel);
    SqliteStatement statement(connection, R"(
      INSERT INTO winners(kernel, key, candidate, median_us, error, origin, budget_seconds)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT(kernel, key) DO UPDATE SET candidate = excluded.candidate, median_us = excluded.median_us,
        error = excluded.error, origin = excluded.origin, budget_seconds = excluded.budget_seconds,
        created_at = excluded.created_at
      WHERE CASE excluded.origin WHEN 'pinned' THEN 1 WHEN 'untried' THEN winners.origin = 'untried'
            ELSE winners.origin <> 'pinned' END)");
    statement.bind(kernel.id).bind(insert_key(connection, key)).bind(winner.candidate.to_string());
    statement.bind(winner.median_us).bind(winner.error).bind(winner.origin).bind(winner.budget_seconds).run();
  });
  rep_->note(rep_->unstored_winners, kernel.id);
}

bool Database::remove_pin(const Kernel& kernel, const TuningKey& key, const Candidate& heuristic) {
  bool removed = false;
  rep_->attempt_write([&](SqliteConnection& connection) {
    const std::int64_t key_id = insert_key(connection, key);
    SqliteStatement(connection, "DELETE FROM winners WHERE kernel = ? AND key = ? AND origin = 'pinned'")
        .bind(kernel.id)
        .bind(key_id)
        .run();
    removed = sqlite3_changes64(connection.handle()) > 0;
    if (!removed) return;
    SqliteStatement(connection, R"(
      INSERT INTO winners(kernel, key, candidate, median_us, error, origin, budget_seconds)
      SELECT kernel, key, candidate, median_us, error, CASE candidate WHEN ? THEN 'heuristic' ELSE 'search' END, 0
      FROM trials WHERE kernel = ? AND key = ? AND verdict = 'ok' ORDER BY median_us, id LIMIT 1)")
        .bind(heuristic.to_string())
        .bind(kernel.id)
        .bind(key_id)
        .run();
  });
  return removed;
}

void Database::record_race(const Kernel& kernel, const TuningKey& key, const Race& race) {
  rep_->attempt_write([&](SqliteConnection& connection) {
    insert_kernel(connection, kernel);
    SqliteStatement statement(connection, R"(
      INSERT INTO races(kernel, key, incumbent, challenger, incumbent_samples, challenger_samples, result, scope)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?))");
    statement.bind(kernel.id).bind(insert_key(connection, key));
    statement.bind(race.incumbent.to_string()).bind(race.challenger.to_string());
    statement.bind(samples_text(race.incumbent_us))
        .bind(samples_text(race.challenger_us))
        .bind(race.result)
        .bind(race.scope == RaceScope::model ? "model" : "kernel")
        .run();
  });
}

std::optional<Winner> Database::find_winner(const Kernel& kernel, const TuningKey& key) const {
  std::optional<Winner> winner;
  rep_->attempt([&](SqliteConnection& connection) {
    SqliteStatement statement(connection,
                              fmt::format(R"(
      SELECT x.candidate, x.median_us, x.error, x.origin, x.budget_seconds, {},
             EXISTS (SELECT 1 FROM trials t WHERE t.kernel = x.kernel AND t.key = x.key
                     AND t.verdict IN ('run_crash', 'wrong_result') AND NOT failed_by_machine(t.verdict, t.message))
      FROM winners x JOIN kernels k ON k.id = x.kernel JOIN keys y ON y.id = x.key
      WHERE x.kernel = ? AND k.text = ? AND y.target = ? AND y.machine = ? AND y.threads = ? AND y.versions = ?
        AND y.precision = ?)",
                                          fmt::format(fmt::runtime(spoilt_reference_sql), "main")));
    bind_key(statement.bind(kernel.id).bind(kernel.text), key);
    if (!statement.step()) return;
    const bool is_spoilt = statement.integer(5) != 0;
    const bool others_are_wrong = statement.integer(6) != 0;  // the heuristic one, perhaps
    if (is_spoilt && !others_are_wrong) return;
    if (auto candidate = rep_->parse_candidate(statement.text(0), kernel.id)) {
      const double budget = is_spoilt ? 0 : statement.real(4);
      winner = Winner{*candidate, statement.real(1), statement.real(2), statement.text(3), budget};
    }
  });
  return winner;
}

std::vector<Trial> Database::trials(const Kernel& kernel, const TuningKey& key) const {
  std::vector<Trial> found;
  rep_->attempt([&](SqliteConnection& connection) {
    found.clear();
    SqliteStatement statement(connection, R"(
      SELECT t.candidate, t.verdict, t.samples, t.median_us, t.error, t.message, t.compile_seconds
      FROM trials t JOIN kernels k ON k.id = t.kernel JOIN keys y ON y.id = t.key
      WHERE t.kernel = ? AND k.text = ? AND y.target = ? AND y.machine = ? AND y.threads = ? AND y.versions = ?
        AND y.precision = ? AND NOT failed_by_machine(t.verdict, t.message) ORDER BY t.id)");
    bind_key(statement.bind(kernel.id).bind(kernel.text), key);
    while (statement.step())
      if (auto trial = rep_->trial_at(statement, kernel.id)) found.push_back(std::move(*trial));
  });
  return found;
}

std::int64_t Database::last_trial() const {
  std::int64_t last = 0;
  rep_->attempt([&](SqliteConnection& connection) { last = connection.integer(last_trial_sql); });
  return last;
}

std::vector<Trial> Database::trials_since(const TuningKey& key, std::int64_t& mark) const {
  std::vector<Trial> found;
  rep_->attempt([&](SqliteConnection& connection) {
    found.clear();
    const std::int64_t last = connection.integer(last_trial_sql);
    SqliteStatement statement(connection, R"(
      SELECT t.candidate, t.verdict, t.samples, t.median_us, t.error, t.message, t.compile_seconds, t.kernel
      FROM trials t JOIN keys y ON y.id = t.key
      WHERE t.id > ? AND t.id <= ? AND y.target = ? AND y.machine = ? AND y.threads = ? AND y.versions = ?
        AND y.precision = ? AND NOT failed_by_machine(t.verdict, t.message) ORDER BY t.id)");
    bind_key(statement.bind(mark).bind(last), key);
    constexpr int kernel_column = 7;
    while (statement.step())
      if (auto trial = rep_->trial_at(statement, statement.text(kernel_column)))
        found.push_back(std::move(*trial));
    mark = last;
  });
  return found;
}

void Database::announce(const TuningKey& key, const std::set<std::string>& kernel_ids) {
  if (path().empty()) return;
  const std::string mine = claim_of_this_process();
  rep_->attempt_write([&](SqliteConnection& connection) {
    std::vector<std::string> outdated = {mine};
    for (const auto& [claim, text] : announcements(connection))
      if (!is_claim_held(claim)) outdated.push_back(claim);
    for (const std::string& claim : outdated)
      SqliteStatement(connection, "DELETE FROM meta WHERE name = ?").bind(announcement_of(claim)).run();
    if (kernel_ids.empty()) return;
    SqliteStatement(connection, "INSERT INTO meta VALUES (?, ?)")
        .bind(announcement_of(mine))
        .bind(fmt::format("{}\n{}", key.to_string(), fmt::join(kernel_ids, " ")))
        .run();
  });
}

std::set<std::string> Database::kernels_elsewhere(const TuningKey& key) const {
  std::set<std::string> kernels;
  if (path().empty()) return kernels;
  rep_->attempt([&](SqliteConnection& connection) {
    kernels.clear();
    const std::string mine = claim_of_this_process();
    for (const auto& [claim, text] : announcements(connection)) {
      const std::string head = key.to_string() + '\n';
      if (claim == mine || !text.starts_with(head) || !is_claim_held(claim)) continue;
      for (std::string& id : split(text.substr(head.size()), ' ')) kernels.insert(std::move(id));
    }
  });
  return kernels;
}

std::vector<Race> Database::races(const Kernel& kernel, const TuningKey& key) const {
  std::vector<Race> found;
  rep_->attempt([&](SqliteConnection& connection) {
    found.clear();
    SqliteStatement statement(connection, R"(
      SELECT r.incumbent, r.challenger, r.incumbent_samples, r.challenger_samples, r.result, r.scope
      FROM races r JOIN kernels k ON k.id = r.kernel JOIN keys y ON y.id = r.key
      WHERE r.kernel = ? AND k.text = ? AND y.target = ? AND y.machine = ? AND y.threads = ? AND y.versions = ?
        AND y.precision = ? ORDER BY r.id)");
    bind_key(statement.bind(kernel.id).bind(kernel.text), key);
    while (statement.step()) {
      auto incumbent = rep_->parse_candidate(statement.text(0), kernel.id);
      auto challenger = rep_->parse_candidate(statement.text(1), kernel.id);
      if (!incumbent || !challenger) continue;
      found.push_back({*incumbent, *challenger, parse_samples(statement.text(2)),
                       parse_samples(statement.text(3)), statement.text(4),
                       statement.text(5) == "model" ? RaceScope::model : RaceScope::kernel});
    }
  });
  return found;
}

std::string Database::explain_miss(const Kernel& kernel, const TuningKey& key) const {
  std::vector<std::string> nearest;
  bool is_spoilt = false;
  rep_->attempt([&](SqliteConnection& connection) {
    SqliteStatement statement(connection,
                              "SELECT target, machine, threads, versions, precision FROM winners w "
                              "JOIN keys y ON y.id = w.key WHERE w.kernel = ? ORDER BY w.id DESC");
    statement.bind(kernel.id);
    while (statement.step()) {
      TuningKey there{statement.text(0), statement.text(1), static_cast<int>(statement.integer(2)),
                      statement.text(3), statement.text(4)};
      auto found = differences(there, key);
      is_spoilt = is_spoilt || found.empty();
      if (nearest.empty() || found.size() < nearest.size()) nearest = std::move(found);
    }
  });
  if (is_spoilt) return "only a reference schedule is stored, chosen while the machine failed";
  return nearest.empty() ? "" : fmt::format("nearest winner: {}", fmt::join(nearest, ", "));
}

std::int64_t Database::trial_count() const {
  std::int64_t count = 0;
  rep_->attempt(
      [&](SqliteConnection& connection) { count = connection.integer("SELECT count(*) FROM trials"); });
  return count;
}

}  // namespace sylvite
