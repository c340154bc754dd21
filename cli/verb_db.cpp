#include <fstream>
#include <iostream>
#include <sstream>

#include "autotune/database_queries.h"
#include "base/error.h"
#include "base/table.h"
#include "base/words.h"
#include "cli/actions.h"
#include "cli/db_actions.h"
#include "cli/model_options.h"
#include "cli/verb.h"
#include "runtime/lock.h"

namespace sylvite {
namespace {

using Words = std::span<const std::string>;

/// Of a stored candidate: what the first line of its text says.
std::string form_of(const std::string& candidate) {
  constexpr std::string_view prefix = "form: ";
  const std::string line = candidate.substr(0, candidate.find('\n'));
  return line.starts_with(prefix) ? line.substr(prefix.size()) : line;
}

std::string describe(const Winner& winner) {
  const std::string time = winner.median_us > 0 ? fmt::format(", {} us", time_text(winner.median_us)) : "";
  return fmt::format("{} ({}{})", winner.candidate.form.to_string(), winner.origin, time);
}

int db_top(Words arguments) {
  Options options("db top [OPTION ...]", "The stored winners that take longest.");
  add_database_option(options);
  options.add_value("limit", "N", "rows at most; -1: all", "20");
  options.add_value("kernel", "ID", "only kernels whose id begins so");
  add_json_option(options, "the rows");
  if (!options.parse(arguments)) return 0;
  const std::string prefix = options.has("kernel") ? options.value("kernel") : "";
  Table table({"kernel", "class", "median us", "slowest us", "trials", "threads", "from", "form", "machine"});
  nlohmann::json winners = nlohmann::json::array();
  for (const WinnerRow& row : top_winners(open_database(options), options.integer("limit"), prefix)) {
    table.add_row({row.kernel, row.kernel_class, time_text(row.median_us), time_text(row.slowest_us),
                   std::to_string(row.trials), std::to_string(row.key.threads), row.origin,
                   form_of(row.candidate), row.key.machine});
    winners.push_back({{"kernel", row.kernel},
                       {"class", row.kernel_class},
                       {"median_us", row.median_us},
                       {"slowest_us", row.slowest_us},
                       {"trials", row.trials},
                       {"machine", row.key.machine},
                       {"threads", row.key.threads},
                       {"precision", row.key.precision},
                       {"versions", row.key.versions},
                       {"origin", row.origin},
                       {"candidate", row.candidate}});
  }
  say(options, table.to_string());
  write_json(options, {{"schema", 1}, {"winners", winners}});
  return 0;
}

nlohmann::json stats_json(const DatabaseStats& stats) {
  return {{"schema", 1},
          {"path", stats.path},
          {"integrity", stats.integrity},
          {"schema_version", stats.schema_version},
          {"bytes", stats.bytes},
          {"kernels", stats.kernels},
          {"keys", stats.keys},
          {"trials", stats.trials},
          {"trials_by_verdict", stats.trials_by_verdict},
          {"winners", stats.winners},
          {"winners_by_origin", stats.winners_by_origin},
          {"races", stats.races},
          {"compile_seconds", stats.compile_seconds}};
}

int db_stats(Words arguments) {
  Options options("db stats [OPTION ...]", "Counts, sizes, and the result of an integrity check.");
  add_database_option(options);
  add_json_option(options, "the same");
  if (!options.parse(arguments)) return 0;
  const DatabaseStats stats = database_stats(open_database(options));
  Table table({"what", "value"});
  table.add_row({"file", stats.path});
  table.add_row({"integrity", stats.integrity});
  table.add_row({"schema version", std::to_string(stats.schema_version)});
  table.add_row({"size", format_bytes(stats.bytes)});
  table.add_row({"kernels", std::to_string(stats.kernels)});
  table.add_row({"machines and settings", std::to_string(stats.keys)});
  table.add_row({"trials", std::to_string(stats.trials)});
  for (const auto& [verdict, count] : stats.trials_by_verdict)
    table.add_row({"  " + verdict, std::to_string(count)});
  table.add_row({"winners", std::to_string(stats.winners)});
  for (const auto& [origin, count] : stats.winners_by_origin)
    table.add_row({"  " + origin, std::to_string(count)});
  table.add_row({"races", std::to_string(stats.races)});
  table.add_row({"time compiling", format_seconds(stats.compile_seconds)});
  say(options, table.to_string());
  write_json(options, stats_json(stats));
  return stats.integrity == "ok" ? 0 : static_cast<int>(ErrorCode::io_failure);
}

int db_export(Words arguments) {
  Options options("db export [FILE] [OPTION ...]",
                  "Kernels, trials and winners as JSON lines, to FILE or stdout.");
  add_database_option(options);
  options.expect_words("FILE", 0, 1);
  if (!options.parse(arguments)) return 0;
  std::ostringstream text;
  (void)export_jsonl(open_database(options), text);
  write_text(options.words().empty() ? "-" : options.words().front(), text.str());
  return 0;
}

int db_merge(Words arguments) {
  Options options("db merge OTHER.db ... [OPTION ...]",
                  "Adds what other databases know; of two winners the pinned one stays, else the faster.");
  add_database_option(options);
  options.expect_words("OTHER.db", 1, 1000);
  if (!options.parse(arguments)) return 0;
  Database database(database_file(options));
  if (!database.warning().empty()) throw IoError("{}", database.warning());
  for (const std::string& other : options.words()) {
    const MergeReport report = merge_database(database, other);
    print("{}: {}, {}, {}\n", other, counted(report.kernels, "new kernel"),
          counted(report.trials, "new trial"), counted(report.winners, "new or faster winner"));
  }
  return 0;
}

int db_forget(Words arguments) {
  Options options("db forget [KERNEL] [OPTION ...]",
                  "Deletes trials, winners and races, so that they are searched again. Conditions add up.");
  add_database_option(options);
  options.add_value("verdict", "V", "only trials that ended so, and what was won by such candidates");
  options.add_value("before", "DATE", "only what was stored before it, e.g. 2026-01-31 (UTC)");
  options.expect_words("KERNEL", 0, 1);
  if (!options.parse(arguments)) return 0;
  ForgetFilter filter;
  if (!options.words().empty()) filter.kernel_prefix = options.words().front();
  if (options.has("verdict")) filter.verdict = options.value("verdict");
  if (options.has("before")) filter.before = options.value("before");
  if (filter.kernel_prefix.empty() && filter.verdict.empty() && filter.before.empty())
    throw UsageError("say what to forget: a KERNEL, --verdict or --before; see sylvite db forget --help");
  if (!filter.verdict.empty() && !find_verdict(filter.verdict))
    throw UsageError("--verdict {}: no verdict; sylvite db stats lists those that are stored",
                     filter.verdict);
  if (!filter.before.empty() &&
      (filter.before.size() < 4 || filter.before.find_first_not_of("0123456789-:.TZ") != std::string::npos))
    throw UsageError("--before {}: expected a date such as 2026-01-31", filter.before);
  Database database = open_to_change(options);
  const ForgetReport report = forget_rows(database, filter);
  print("{}, {} and {} forgotten\n", counted(report.trials, "trial"), counted(report.winners, "winner"),
        counted(report.races, "race"));
  return 0;
}

int db_why(Words arguments) {
  Options options(
      "db why MODEL.onnx [OPTION ...]",
      "For each kernel of a model: its stored winner, or why there is none: the nearest record and how it\n"
      "differs.");
  options.add_model_options();
  if (!options.parse(arguments)) return 0;
  const CompileOptions wanted = compile_options(options);
  const Imported imported = load(open(options, wanted));
  refuse_lock(*imported.setup, "sylvite db why");
  const TuningKey key = imported.setup->key();
  const Database database = Database::for_questions(imported.setup->database);
  Table table({"kernel", "class", "winner"});
  nlohmann::json winners = nlohmann::json::array();
  for (const Kernel& kernel : imported.plan->kernels) {
    const std::string kind(kernel_class_name(kernel.kind));
    nlohmann::json& row = winners.emplace_back(nlohmann::json{{"kernel", kernel.id}, {"class", kind}});
    if (const std::optional<Winner> winner = database.find_winner(kernel, key)) {
      table.add_row({kernel.id, kind, describe(*winner)});
      row.update({{"origin", winner->origin},
                  {"median_us", winner->median_us},
                  {"candidate", winner->candidate.to_string()}});
    } else {
      const std::string nearest = database.explain_miss(kernel, key);
      row["miss"] = nearest.empty() ? "never tried" : nearest;
      table.add_row({kernel.id, kind, "none: " + row["miss"].get<std::string>()});
    }
  }
  say(options, table.to_string());
  write_json(options, {{"schema", 1}, {"winners", winners}});
  return 0;
}

constexpr Action db_actions[] = {
    {"top", db_top, "the stored winners that take longest"},
    {"trials", db_trials, "every trial of a kernel"},
    {"stats", db_stats, "counts, sizes and an integrity check"},
    {"export", db_export, "everything as JSON lines"},
    {"merge", db_merge, "add what other databases know"},
    {"forget", db_forget, "delete trials and winners by kernel, verdict or date"},
    {"replay", db_replay, "time the stored winners again, and list those that moved"},
    {"why", db_why, "for each kernel of a model: its winner, or why there is none"},
};

}  // namespace

void add_database_option(Options& options) {
  options.add_value("db", "FILE", "the database; default: trials.db in the user's cache folder");
}

/// The file that --db names.
std::string database_file(const Options& options) {
  CompileOptions wanted;
  if (options.has("db")) wanted.set["db.path"] = options.value("db");
  return database_path(resolve_settings(wanted).config());
}

Database open_database(const Options& options) {
  return Database::for_questions(database_file(options));
}

Database open_to_change(const Options& options) {
  (void)open_database(options);  // says what is wrong with the file, and creates none
  Database database(database_file(options));
  if (!database.warning().empty()) throw IoError("{}", database.warning());
  return database;
}

int verb_db(Words arguments) {
  return run_action("db", "Looks into the database of trials and winners.", db_actions, arguments);
}

}  // namespace sylvite
