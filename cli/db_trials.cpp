#include <algorithm>
#include <set>

#include "autotune/candidate_text.h"
#include "autotune/database_queries.h"
#include "base/error.h"
#include "base/table.h"
#include "cli/db_actions.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "runtime/schedule_text.h"
#include "schedules/candidate.h"

namespace sylvite {
namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// A column that only stands where rows differ in it.
struct Column {
  const char* name;
  std::string (*cell)(const TrialRow&);
};
constexpr Column situation[] = {
    {"kernel", [](const TrialRow& row) { return row.kernel; }},
    {"machine", [](const TrialRow& row) { return row.machine; }},
    {"threads", [](const TrialRow& row) { return std::to_string(row.threads); }},
    {"precision", [](const TrialRow& row) { return row.precision; }},
};

std::vector<Column> columns_that_differ(const std::vector<TrialRow>& rows) {
  std::vector<Column> columns;
  for (const Column& column : situation) {
    std::set<std::string> cells;
    for (const TrialRow& row : rows) cells.insert(column.cell(row));
    if (cells.size() > 1) columns.push_back(column);
  }
  return columns;
}

/// Of the candidates of each kernel among themselves.
std::vector<std::string> labels_of(const std::vector<TrialRow>& rows) {
  std::map<std::string, std::vector<std::size_t>> by_kernel;
  for (std::size_t i = 0; i < rows.size(); ++i) by_kernel[rows[i].kernel].push_back(i);
  std::vector<std::string> labels(rows.size());
  for (const auto& [kernel, numbers] : by_kernel) {
    std::vector<std::string> candidates;
    for (const std::size_t number : numbers) candidates.push_back(rows[number].candidate);
    const std::vector<std::string> own = candidate_labels(candidates);
    for (std::size_t i = 0; i < numbers.size(); ++i) labels[numbers[i]] = own[i];
  }
  return labels;
}

std::string error_text(const TrialRow& row) {
  if (row.verdict != "ok" && row.error == 0) return "-";
  return row.error < 1000 ? fmt::format("{:.4f}", row.error) : fmt::format("{:.1e}", row.error);
}

std::string trial_table(const std::vector<TrialRow>& rows, std::size_t limit) {
  const std::vector<Column> differing = columns_that_differ(rows);
  std::vector<std::string> header = {"#"};
  for (const Column& column : differing) header.emplace_back(column.name);
  const bool any_message =
      std::ranges::any_of(rows, [](const TrialRow& row) { return !row.message.empty(); });
  header.insert(header.end(), {"verdict", "median us", "best so far", "error", "candidate"});
  if (any_message) header.emplace_back("message");
  Table table(header);
  const std::vector<std::string> labels = labels_of(rows);
  for (std::size_t i = 0; i < std::min(limit, rows.size()); ++i) {
    std::vector<std::string> cells = {std::to_string(i + 1)};
    for (const Column& column : differing) cells.push_back(column.cell(rows[i]));
    cells.insert(cells.end(), {rows[i].verdict, time_text(rows[i].median_us),
                               time_text(rows[i].best_so_far_us), error_text(rows[i]), labels[i]});
    if (any_message) cells.push_back(first_line(rows[i].message));
    table.add_row(std::move(cells));
  }
  std::string text = table.to_string();
  if (rows.size() > limit) text += fmt::format("and {} more: --limit {}\n", rows.size() - limit, rows.size());
  return text;
}

nlohmann::json trials_json(const std::vector<TrialRow>& rows, std::size_t limit) {
  nlohmann::json trials = nlohmann::json::array();
  const std::vector<std::string> labels = labels_of(rows);
  for (std::size_t i = 0; i < std::min(limit, rows.size()); ++i) {
    const TrialRow& row = rows[i];
    trials.push_back({{"number", i + 1},
                      {"kernel", row.kernel},
                      {"machine", row.machine},
                      {"threads", row.threads},
                      {"precision", row.precision},
                      {"verdict", row.verdict},
                      {"median_us", row.median_us},
                      {"best_so_far_us", row.best_so_far_us},
                      {"error", row.error},
                      {"label", labels[i]},
                      {"candidate", row.candidate},
                      {"message", row.message},
                      {"created_at", row.created_at}});
  }
  return {{"schema", 1}, {"trials", trials}};
}

/// The candidate as `explain` prints one.
std::string schedule_text(const std::vector<TrialRow>& rows, std::int64_t number) {
  if (number < 1 || number > static_cast<std::int64_t>(rows.size()))
    throw UsageError("--schedule {}: expected a row of sylvite db trials, 1 to {}", number, rows.size());
  const std::string& text = rows[static_cast<std::size_t>(number - 1)].candidate;
  try {
    const Candidate candidate = Candidate::parse(text);
    return fmt::format("form: {}\n{}", candidate.form.to_string(), readable(candidate.schedule));
  } catch (const ModelError&) {
    return text;  // of another version; as it is stored
  }
}

}  // namespace

int db_trials(std::span<const std::string> arguments) {
  Options options(
      "db trials KERNEL [OPTION ...]",
      "Every trial of a kernel, fastest first; KERNEL may be a prefix. What all candidates of a form have\n"
      "in common is left out.");
  add_database_option(options);
  options.add_value("limit", "N", "rows at most; -1: all", "50");
  options.add_flag("by-date", "in the order they were made");
  options.add_value("schedule", "N", "print the Nth of the rows instead, as Halide C++");
  add_json_option(options, "the rows");
  options.expect_words("KERNEL", 1, 1);
  if (!options.parse(arguments)) return 0;
  const std::int64_t limit = options.integer("limit");
  const std::string& kernel = options.words().front();
  constexpr int all = -1;
  const std::vector<TrialRow> rows =
      list_trials(open_database(options), kernel, all, !options.has("by-date"));
  if (rows.empty())
    throw UsageError("no trials of a kernel whose id begins with '{}'; sylvite db top has ids", kernel);
  const std::size_t shown = limit < 0 ? rows.size() : static_cast<std::size_t>(limit);
  if (options.has("schedule"))
    print(schedule_text(rows, options.integer("schedule")));
  else
    say(options, trial_table(rows, shown));
  write_json(options, trials_json(rows, shown));
  return 0;
}

}  // namespace sylvite
