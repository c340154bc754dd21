#include "autotune/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "autotune/claim.h"
#include "autotune/sqlite.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/ini.h"
#include "base/knobs.h"
#include "base/nearest.h"
#include "base/words.h"

namespace sylvite {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> sweep_keys = {"sweep.models",  "sweep.modes",  "sweep.precisions",
                                                        "sweep.threads", "sweep.budget", "sweep.name"};
/// In the order of SweepState.
constexpr std::array<std::string_view, 5> state_names = {"pending", "running", "done", "failed", "stopped"};

/// All keys of the file with their values: those of [sweep], and knobs.
struct SweepFile {
  std::map<std::string, std::string> sweep;
  std::map<std::string, std::string> knobs;

  [[nodiscard]] std::vector<std::string> list(const std::string& key, const std::string& fallback) const {
    auto found = sweep.find(key);
    auto items = split(found == sweep.end() ? fallback : found->second, ',');
    if (items.empty()) throw UsageError("{} is empty: give a comma-separated list", key);
    return items;
  }
};

SweepFile parse_file(std::string_view text, const std::string& name) {
  SweepFile file;
  for (const auto& [key, value] : parse_ini(text, "sweep " + name))
    if (!key.starts_with("sweep."))
      file.knobs[key] = value;
    else if (std::ranges::find(sweep_keys, key) != sweep_keys.end())
      file.sweep[key] = value;
    else
      throw UsageError("sweep {}: unknown key '{}'{}", name, key,
                       suggestion(key, {sweep_keys.begin(), sweep_keys.end()}));
  return file;
}

/// Refuses unknown knobs and wrong values before anything runs.
void check_settings(const std::map<std::string, std::string>& settings) {
  Settings checked;
  for (const auto& [key, value] : settings) checked.set(key, value);
}

void insert_state(Database& database, const SweepPlan& plan, const SweepItem& item,
                  const SweepStatus& status) {
  SqliteStatement(database.connection(), R"(
      INSERT INTO sweep_items(sweep, item, state, message, seconds) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT(sweep, item) DO UPDATE SET state = excluded.state, message = excluded.message,
        seconds = excluded.seconds, updated_at = excluded.updated_at)")
      .bind(plan.name)
      .bind(item.to_string())
      .bind(sweep_state_name(status.state))
      .bind(status.message)
      .bind(status.seconds)
      .run();
}

/// A sweep must not fail because its progress cannot be stored: it is only resumed less exactly then.
void store_state(Database& database, const SweepPlan& plan, const SweepItem& item,
                 const SweepStatus& status) {
  try {
    SqliteTransaction transaction(database.connection());
    insert_state(database, plan, item, status);
    transaction.commit();
  } catch (const SqliteError&) {  // NOLINT(bugprone-empty-catch): Database warns of it at the item's trials
  }
}

ErrorCode code_of(const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  return ours == nullptr ? ErrorCode::internal : ours->code();
}

enum class Claim { taken, done, elsewhere };

std::string now_in(SqliteConnection& connection) {
  SqliteStatement row(connection, "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now')");
  return row.step() ? row.text(0) : "";
}

/// What becomes of an item that is stored like this; `since` is when this run began.
Claim claim_on(const std::string& state, const std::string& message, bool is_later) {
  if (state == sweep_state_name(SweepState::done)) return Claim::done;
  if (state == sweep_state_name(SweepState::failed)) return is_later ? Claim::elsewhere : Claim::taken;
  const bool is_mine = message == claim_of_this_process();
  return !is_mine && is_claim_held(message) ? Claim::elsewhere : Claim::taken;
}

/// Takes the item for this process, unless it is done, or another process runs it or failed at it after `since`.
Claim claim(Database& database, const SweepPlan& plan, const SweepItem& item, const std::string& since) {
  try {
    SqliteTransaction transaction(database.connection());
    SqliteStatement row(
        database.connection(),
        "SELECT state, message, updated_at > ? FROM sweep_items WHERE sweep = ? AND item = ?");
    row.bind(since).bind(plan.name).bind(item.to_string());
    const Claim found = row.step() ? claim_on(row.text(0), row.text(1), row.integer(2) != 0) : Claim::taken;
    if (found != Claim::taken) return found;
    insert_state(database, plan, item, {SweepState::running, claim_of_this_process(), 0});
    transaction.commit();
  } catch (const SqliteError&) {  // NOLINT(bugprone-empty-catch): as in store_state
  }
  return Claim::taken;
}

}  // namespace

std::string_view sweep_state_name(SweepState state) {
  return state_names.at(static_cast<std::size_t>(state));
}

std::string SweepItem::to_string() const {
  std::string text = model;
  for (const auto& [key, value] : settings) text += fmt::format(" {}={}", key, value);
  return text;
}

SweepPlan parse_sweep(std::string_view text, const std::string& name, const std::string& folder) {
  SweepFile file = parse_file(text, name);
  SweepPlan plan;
  plan.name = file.sweep.contains("sweep.name") ? file.sweep["sweep.name"] : name;
  std::set<std::string> seen;
  for (const std::string& model : file.list("sweep.models", "")) {
    for (const std::string& mode : file.list("sweep.modes", "max-autotune")) {
      for (const std::string& precision : file.list("sweep.precisions", "f32")) {
        for (const std::string& threads : file.list("sweep.threads", "0")) {
          SweepItem item{(fs::path(folder) / model).lexically_normal().string(), file.knobs};
          item.settings["compile.mode"] = mode;
          item.settings["compile.precision"] = precision;
          item.settings["compile.threads"] = threads;
          if (file.sweep.contains("sweep.budget")) item.settings["tune.budget"] = file.sweep["sweep.budget"];
          check_settings(item.settings);
          if (seen.insert(item.to_string()).second) plan.items.push_back(std::move(item));
        }
      }
    }
  }
  return plan;
}

SweepPlan read_sweep(const std::string& path) {
  fs::path absolute = fs::absolute(path);
  return parse_sweep(read_file(path), absolute.stem().string(), absolute.parent_path().string());
}

std::vector<SweepStatus> sweep_status(const SweepPlan& plan, const Database& database) {
  std::map<std::string, SweepStatus> known;
  SqliteStatement row(database.connection(),
                      "SELECT item, state, message, seconds FROM sweep_items WHERE sweep = ?");
  row.bind(plan.name);
  while (row.step()) {
    const auto state = std::ranges::find(state_names, row.text(1)) - state_names.begin();
    if (state == std::ssize(state_names)) continue;  // of a damaged file
    SweepStatus& status = known[row.text(0)] = {static_cast<SweepState>(state), row.text(2), row.real(3)};
    if (status.state == SweepState::running && !is_claim_held(status.message))
      status.state = SweepState::stopped;
  }
  std::vector<SweepStatus> statuses;
  for (const SweepItem& item : plan.items) {
    auto found = known.find(item.to_string());
    statuses.push_back(found == known.end() ? SweepStatus{} : found->second);
  }
  return statuses;
}

void reset_sweep(const SweepPlan& plan, Database& database) {
  SqliteTransaction transaction(database.connection());
  SqliteStatement(database.connection(), "DELETE FROM sweep_items WHERE sweep = ?").bind(plan.name).run();
  transaction.commit();
}

SweepReport run_sweep(const SweepPlan& plan, Database& database,
                      const std::function<void(std::size_t index, const SweepItem&)>& run_item) {
  SweepReport report;
  const std::string since = now_in(database.connection());
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const SweepItem& item = plan.items[i];
    if (const Claim found = claim(database, plan, item, since); found != Claim::taken) {
      ++(found == Claim::done ? report.skipped : report.elsewhere);
      continue;
    }
    const double start = steady_seconds();
    try {
      run_item(i, item);
      store_state(database, plan, item, {SweepState::done, "", steady_seconds() - start});
      ++report.done;
    } catch (const std::exception& error) {
      store_state(database, plan, item, {SweepState::failed, error.what(), steady_seconds() - start});
      report.errors.push_back(fmt::format("{}: {}", item.to_string(), error.what()));
      if (report.code == ErrorCode::ok) report.code = code_of(error);
      ++report.failed;
    }
  }
  return report;
}

}  // namespace sylvite
