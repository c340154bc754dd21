#include <algorithm>
#include <cmath>
#include <map>

#include "autotune/replay.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/table.h"
#include "base/words.h"
#include "cli/db_actions.h"
#include "cli/model_options.h"
#include "cli/output.h"

namespace sylvite {
namespace {

/// The exit code when a winner is not what it was any more.
constexpr int worse_code = 9;

/// The winners of one key, timed again.
struct Replay {
  std::shared_ptr<const Setup> setup;
  std::vector<ReplayTask> tasks;
  std::vector<Replayed> results;
};

/// Settings that make this key, if this machine can have it; nullptr for one of another machine.
std::shared_ptr<const Setup> setup_of(const TuningKey& key) {
  const std::string without_winograd = " without Winograd";
  std::string precision = key.precision;
  CompileOptions wanted = command_options();
  if (precision.ends_with(without_winograd)) {
    precision.erase(precision.size() - without_winograd.size());
    wanted.set["schedules.winograd"] = "off";
  }
  wanted.set["compile.precision"] = precision;
  wanted.set["compile.threads"] = std::to_string(key.threads);
  if (is_gpu_target(key.target)) wanted.set["compile.device"] = "cuda";
  if (key.versions.find("cuBLASLt") != std::string::npos) wanted.set["schedules.cublaslt"] = "true";
  if (key.versions.find("cuDNN") != std::string::npos) wanted.set["schedules.cudnn"] = "true";
  if (key.versions.find("without Hopper") != std::string::npos) wanted.set["schedules.hopper"] = "off";
  try {
    auto setup = make_setup(wanted);
    const bool is_ours = setup->key().machine == key.machine && setup->key().precision == key.precision;
    return is_ours ? setup : nullptr;
  } catch (const Error&) {  // no such device here, or a knob's value of another version
    return nullptr;
  }
}

/// What there is to replay on this machine.
std::vector<Replay> find_replays(const Database& database, const std::string& prefix) {
  std::map<std::string, Replay> found;  // by key
  for (const TuningKey& key : winner_keys(database)) {
    const std::shared_ptr<const Setup> setup = setup_of(key);
    if (setup == nullptr) continue;
    std::vector<ReplayTask> tasks = replay_tasks(database, setup->key(), prefix);
    if (!tasks.empty()) found[setup->key().to_string()] = {setup, std::move(tasks), {}};
  }
  std::vector<Replay> replays;
  replays.reserve(found.size());
  for (auto& [key, replay] : found) replays.push_back(std::move(replay));
  return replays;
}

void run(Replay& replay_of_key, Progress& progress, double begin, double share) {
  const Setup& setup = *replay_of_key.setup;
  if (setup.worker_command.empty())
    throw IoError("nothing can be measured: the `sylvite` command was not found");
  const TuneOptions options = tune_options(setup);
  Evaluator evaluator = make_evaluator(options, setup.machine);
  const std::string message = fmt::format("{}, {}", counted(replay_of_key.tasks.size(), "winner"),
                                          counted(setup.machine.threads, "thread"));
  replay_of_key.results =
      replay(replay_of_key.tasks, setup.machine, {options.compile_jobs, options.compile_timeout}, evaluator,
             [&](double done) { progress.update(begin + share * done, message); });
  if (!evaluator.refusal().empty()) throw IoError("{}", evaluator.refusal());
}

std::string ratio_text(double ratio) {
  return ratio > 0 ? fmt::format("{:.3f}", ratio) : "-";
}

bool is_worse(Movement movement) {
  return movement == Movement::slower || movement == Movement::beaten || movement == Movement::failed;
}

std::string replay_table(const std::vector<Replay>& replays, bool all) {
  Table table({"kernel", "class", "threads", "precision", "stored us", "now us", "ratio", "noise", "default",
               "result", "message"});
  for (const Replay& replay : replays) {
    for (std::size_t i = 0; i < replay.results.size(); ++i) {
      const auto& [task, now] = std::tie(replay.tasks[i], replay.results[i]);
      if (!all && now.movement == Movement::held) continue;
      table.add_row({task.kernel.id, std::string(kernel_class_name(task.kernel.kind)),
                     std::to_string(task.stored_key.threads), task.stored_key.precision,
                     time_text(task.winner.median_us), time_text(now.winner ? now.winner->median_us : 0),
                     ratio_text(now.ratio), ratio_text(now.band), ratio_text(now.default_ratio),
                     std::string(movement_name(now.movement)),
                     now.message.substr(0, now.message.find('\n'))});
    }
  }
  return table.size() == 0 ? "" : table.to_string();
}

struct Counts {
  std::map<Movement, int> movements;
  double machine_ratio = 1;  ///< of the key where it is farthest from 1
  int winners = 0;
  int of_other_versions = 0;
};

Counts count(const std::vector<Replay>& replays) {
  Counts counts;
  for (const Replay& replay : replays) {
    for (std::size_t i = 0; i < replay.results.size(); ++i) {
      ++counts.winners;
      ++counts.movements[replay.results[i].movement];
      const double machine = replay.results[i].machine_ratio;
      if (std::abs(std::log(machine)) > std::abs(std::log(counts.machine_ratio)))
        counts.machine_ratio = machine;
      if (replay.tasks[i].stored_key != replay.setup->key()) ++counts.of_other_versions;
    }
  }
  return counts;
}

std::string count_line(const Counts& counts) {
  std::string text = counted(counts.winners, "winner");
  for (const auto& [movement, number] : counts.movements)
    text += fmt::format(", {} {}", number, movement_name(movement));
  constexpr double busy_ratio = 1.1;
  if (counts.machine_ratio != 1)
    text += fmt::format("; together they take {:.3f} of the stored time", counts.machine_ratio);
  if (counts.machine_ratio > busy_ratio) text += ": a busy or slower machine, try again";
  if (counts.of_other_versions > 0)
    text += fmt::format("; {} were stored by other versions, so that compilations do not use them yet",
                        counts.of_other_versions);
  return text + "\n";
}

nlohmann::json replay_json(const std::vector<Replay>& replays, const Counts& counts) {
  nlohmann::json winners = nlohmann::json::array();
  for (const Replay& replay : replays) {
    for (std::size_t i = 0; i < replay.results.size(); ++i) {
      const auto& [task, now] = std::tie(replay.tasks[i], replay.results[i]);
      winners.push_back({{"kernel", task.kernel.id},
                         {"class", kernel_class_name(task.kernel.kind)},
                         {"threads", task.stored_key.threads},
                         {"precision", task.stored_key.precision},
                         {"versions", task.stored_key.versions},
                         {"origin", task.winner.origin},
                         {"stored_us", task.winner.median_us},
                         {"now_us", now.winner ? now.winner->median_us : 0},
                         {"ratio", now.ratio},
                         {"machine_ratio", now.machine_ratio},
                         {"noise", now.band},
                         {"default_ratio", now.default_ratio},
                         {"result", movement_name(now.movement)},
                         {"message", now.message}});
    }
  }
  nlohmann::json json = {{"schema", 1}, {"winners", winners}, {"counts", nlohmann::json::object()}};
  for (const auto& [movement, number] : counts.movements)
    json["counts"][std::string(movement_name(movement))] = number;
  return json;
}

void update(const Options& options, const std::vector<Replay>& replays) {
  Database database = open_to_change(options);
  for (const Replay& replay : replays)
    store_replay(replay.tasks, replay.results, replay.setup->key(), database);
  if (!database.unstored().empty()) throw IoError("{}", database.unstored());
}

Options replay_options() {
  Options options(
      "db replay [KERNEL] [OPTION ...]",
      "Times the stored winners of this machine again, beside default schedules, and lists those that moved\n"
      "beyond the noise: after an upgrade of Halide, of a driver or of the system. Stores nothing.");
  add_database_option(options);
  options.add_flag("update",
                   "store what was measured; default schedules become winners where they are faster now");
  options.add_flag("all", "list those that held, too");
  add_json_option(options, "every winner and what became of it");
  options.expect_words("KERNEL", 0, 1);
  return options;
}

}  // namespace

int db_replay(std::span<const std::string> arguments) {
  Options options = replay_options();
  if (!options.parse(arguments)) return 0;
  const std::string prefix = options.words().empty() ? "" : options.words().front();
  check_destinations(options);
  std::vector<Replay> replays = find_replays(open_database(options), prefix);
  if (replays.empty())
    throw UsageError("{} has no measured winner of this machine{}; sylvite db top lists all",
                     database_file(options),
                     prefix.empty() ? "" : fmt::format(" for a kernel whose id begins with '{}'", prefix));
  const InterruptScope interrupts;
  {
    Progress progress("replaying", ProgressStyle::automatic);
    const double share = 1.0 / static_cast<double>(replays.size());
    for (std::size_t i = 0; i < replays.size(); ++i)
      run(replays[i], progress, static_cast<double>(i) * share, share);
  }
  const Counts counts = count(replays);
  say(options, replay_table(replays, options.has("all")) + count_line(counts));
  write_json(options, replay_json(replays, counts));
  if (options.has("update")) update(options, replays);
  end_if_interrupted();
  const bool any_worse =
      std::ranges::any_of(counts.movements, [](const auto& each) { return is_worse(each.first); });
  return any_worse ? worse_code : 0;
}

}  // namespace sylvite
