#include "autotune/race.h"
#include "autotune/try_candidates.h"
#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "cli/actions.h"
#include "cli/kernel_choice.h"
#include "cli/model_options.h"
#include "cli/verb.h"
#include "runtime/lock.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

using Words = std::span<const std::string>;

/// A model and what its kernels run now.
struct Model {
  Imported imported;
  Chosen chosen;
};

Model open_model(const Options& options) {
  Imported imported = load(open(options, compile_options(options)));
  Chosen chosen = choose_or_end(imported);
  print_warnings(chosen.report);
  return {std::move(imported), std::move(chosen)};
}

/// What a file says for one kernel of the model.
struct Proposal {
  std::size_t kernel = 0;
  Candidate candidate;
};

std::vector<Proposal> read_proposals(const std::string& path, const Plan& plan) {
  std::vector<Proposal> proposals;
  for (KernelSchedule& schedule : parse_schedules(read_file(path), path))
    proposals.push_back({find_kernel(plan, schedule.kernel, path), std::move(schedule.candidate)});
  if (proposals.empty())
    throw UsageError("{} has no schedule; sylvite schedule show writes some to begin with", path);
  return proposals;
}

/// Tries candidates of a model's kernels in workers.
class Bench {
 public:
  explicit Bench(const Setup& setup) : setup_(setup) {
    if (setup.worker_command.empty())
      throw IoError("nothing can be tried: the `sylvite` command was not found");
    TuneOptions workers = tune_options(setup);
    workers.compile_timeout = options_.compile_timeout;
    evaluator_ = make_evaluator(workers, setup.machine);
  }
  std::vector<Trial> run(const Kernel& kernel, const std::vector<Candidate>& candidates, int samples) {
    options_.samples = samples;
    return try_candidates(kernel, setup_.machine, candidates, options_, evaluator_);
  }

 private:
  const Setup& setup_;
  TryOptions options_;
  Evaluator evaluator_;
};

constexpr int check_samples = 7;

std::string label(const Model& model, std::size_t kernel) {
  return fmt::format("kernel {} ({})", model.imported.plan->kernels[kernel].id,
                     readable_name(*model.imported.plan, kernel));
}

/// Ends the command unless the candidate compiled and was right.
void require_right(const Model& model, std::size_t kernel, const Trial& trial) {
  if (trial.verdict == Verdict::ok) return;
  const std::string problem =
      fmt::format("{}: {}: {}", label(model, kernel), verdict_name(trial.verdict), trial.message);
  if (trial.verdict == Verdict::compile_error || trial.verdict == Verdict::compile_timeout)
    throw CompileError("{}", problem);
  throw VerifyError("{}", problem);
}

Trial check(Bench& bench, const Model& model, const Proposal& proposal) {
  const Kernel& kernel = model.imported.plan->kernels[proposal.kernel];
  Trial trial = bench.run(kernel, {proposal.candidate}, check_samples).at(0);
  require_right(model, proposal.kernel, trial);
  return trial;
}

void say_right(const Options& options, const Model& model, std::size_t kernel, const Trial& trial) {
  say(options, fmt::format("{}: compiles and is right, {:.2g} of the tolerance, {} us\n",
                           label(model, kernel), trial.error, time_text(trial.median_us, 2)));
}

/// Options of the actions that read FILE.
Options schedule_file_options(const std::string& action, const std::string& about) {
  Options options("schedule " + action + " MODEL.onnx FILE [OPTION ...]", about);
  options.add_model_options();
  options.expect_words("MODEL.onnx FILE", 2, 2);
  return options;
}

/// Does something with each schedule of the file; the document for --json.
template <typename Action>
nlohmann::json for_each_proposal(const Options& options, const Model& model, const Action& action) {
  const std::vector<Proposal> proposals = read_proposals(options.words()[1], *model.imported.plan);
  Bench bench(*model.imported.setup);
  nlohmann::json document = report_json(model.imported, model.chosen.report, std::nullopt);
  for (const Proposal& proposal : proposals) {
    nlohmann::json row = action(bench, proposal);
    row["kernel"] = model.imported.plan->kernels[proposal.kernel].id;
    document["schedules"].push_back(std::move(row));
  }
  return document;
}

nlohmann::json trial_json(const Trial& trial) {
  return {{"median_us", trial.median_us}, {"share_of_tolerance", trial.error}};
}

std::string halide_text(const Model& model, std::size_t kernel) {
  const Candidate& candidate = model.chosen.choices[kernel].candidate;
  return fmt::format("// {}, over the form {}\n{}", label(model, kernel), candidate.form.to_string(),
                     readable(candidate.schedule));
}

std::string editable_text(const Model& model, std::size_t kernel) {
  const Choice& choice = model.chosen.choices[kernel];
  const std::string cost = choice.median_us > 0 ? fmt::format(", {} us", time_text(choice.median_us)) : "";
  return fmt::format("# from {}{}\n", source_name(choice.source), cost) +
         to_text(KernelSchedule{model.imported.plan->kernels[kernel].id,
                                readable_name(*model.imported.plan, kernel), choice.candidate});
}

int schedule_show(Words arguments) {
  Options options("schedule show MODEL.onnx [OPTION ...]",
                  "The schedules that kernels run now, as text to edit; check, race and pin read it back.");
  add_kernel_option(options, "this kernel only");
  options.add_flag("halide", "as Halide C++");
  options.add_value("output,o", "FILE", "write there instead of stdout");
  options.add_model_options();
  if (!options.parse(arguments)) return 0;
  const Model model = open_model(options);
  std::string text;
  nlohmann::json document = report_json(model.imported, model.chosen.report, std::nullopt);
  for (const std::size_t kernel : wanted_kernels(options, *model.imported.plan)) {
    text += text.empty() ? "" : "\n";
    text += options.has("halide") ? halide_text(model, kernel) : editable_text(model, kernel);
    const Choice& choice = model.chosen.choices[kernel];
    document["schedules"].push_back({{"kernel", model.imported.plan->kernels[kernel].id},
                                     {"candidate", choice.candidate.to_string()},
                                     {"origin", source_name(choice.source)},
                                     {"median_us", choice.median_us}});
  }
  if (options.has("output"))
    write_file(options.value("output"), text);
  else
    say(options, text);
  write_json(options, document);
  return 0;
}

int schedule_check(Words arguments) {
  Options options = schedule_file_options(
      "check", "Whether the schedules of FILE compile and compute what the plain ones do.");
  if (!options.parse(arguments)) return 0;
  const Model model = open_model(options);
  const auto check_one = [&](Bench& bench, const Proposal& proposal) {
    const Trial trial = check(bench, model, proposal);
    say_right(options, model, proposal.kernel, trial);
    return trial_json(trial);
  };
  write_json(options, for_each_proposal(options, model, check_one));
  return 0;
}

std::string race_text(const Model& model, const Proposal& proposal, const std::string& path,
                      const std::vector<Trial>& trials, const RaceVerdict& verdict) {
  const Choice& choice = model.chosen.choices[proposal.kernel];
  Table table({"schedule", "median us", "samples"});
  table.add_row({fmt::format("now ({})", source_name(choice.source)), time_text(trials[0].median_us, 2),
                 std::to_string(trials[0].samples_us.size())});
  table.add_row({path, time_text(trials[1].median_us, 2), std::to_string(trials[1].samples_us.size())});
  const bool is_same = trials[0].candidate == trials[1].candidate;
  const char* const result = is_same          ? "the same schedule"
                             : verdict.won()  ? "faster"
                             : verdict.lost() ? "slower"
                                              : "no difference beyond the noise";
  return fmt::format("{}\n{}{:.3f} of the time of now, noise {:.3f}: {}\n", label(model, proposal.kernel),
                     table.to_string(), verdict.ratio, verdict.band, result);
}

/// What kernels run now, the proposal, and how that fares.
struct Contest {
  std::vector<Trial> trials;
  RaceVerdict verdict;
};

/// In turns; a narrow lead must repeat in the other order.
Contest race(Bench& bench, const Model& model, const Proposal& proposal, int samples) {
  const auto run = [&](const Candidate& first, const Candidate& second) {
    std::vector<Trial> trials =
        bench.run(model.imported.plan->kernels[proposal.kernel], {first, second}, samples);
    for (const Trial& trial : trials) require_right(model, proposal.kernel, trial);
    return trials;
  };
  const Candidate& now = model.chosen.choices[proposal.kernel].candidate;
  Contest result{run(now, proposal.candidate), {}};
  result.verdict = compare_samples(result.trials[0].samples_us, result.trials[1].samples_us);
  if (!result.verdict.is_narrow()) return result;
  const std::vector<Trial> again = run(proposal.candidate, now);
  result.verdict = combine(result.verdict, compare_samples(again[1].samples_us, again[0].samples_us));
  return result;
}

int schedule_race(Words arguments) {
  Options options = schedule_file_options(
      "race", "Times the schedules of FILE in turns with those that kernels run now, after a check.");
  options.add_value("samples", "N", "of each, 3 to 1000", "31");
  if (!options.parse(arguments)) return 0;
  const std::int64_t samples = options.integer("samples");
  if (samples < 3 || samples > 1000) throw UsageError("--samples {}: expected 3 to 1000", samples);
  const Model model = open_model(options);
  const auto race_one = [&](Bench& bench, const Proposal& proposal) {
    (void)check(bench, model, proposal);
    const auto [trials, verdict] = race(bench, model, proposal, static_cast<int>(samples));
    say(options, race_text(model, proposal, options.words()[1], trials, verdict));
    nlohmann::json row = trial_json(trials[1]);
    row["now_us"] = trials[0].median_us;
    row["ratio"] = verdict.ratio;
    row["noise"] = verdict.band;
    return row;
  };
  write_json(options, for_each_proposal(options, model, race_one));
  return 0;
}

/// A database that takes what is stored. Throws IoError where there is none.
Database open_database(const Setup& setup) {
  if (setup.database.empty()) throw IoError("there is no database to store in; give --db FILE");
  Database database(setup.database);
  if (!database.warning().empty()) throw IoError("{}", database.warning());
  return database;
}

void require_stored(const Database& database) {
  if (!database.unstored().empty()) throw IoError("{}", database.unstored());
}

int schedule_pin(Words arguments) {
  Options options = schedule_file_options(
      "pin", "Stores the schedules of FILE as winners that no search takes the place of, after a check.");
  if (!options.parse(arguments)) return 0;
  const Model model = open_model(options);
  const Setup& setup = *model.imported.setup;
  refuse_lock(setup, "sylvite schedule pin");
  Database database = open_database(setup);
  std::vector<std::pair<std::size_t, Trial>> right;  // with their kernels
  const auto check_one = [&](Bench& bench, const Proposal& proposal) {
    const Trial& trial = right.emplace_back(proposal.kernel, check(bench, model, proposal)).second;
    say_right(options, model, proposal.kernel, trial);
    return trial_json(trial);
  };
  // All of them or none: the first that is wrong ends the command here.
  const nlohmann::json document = for_each_proposal(options, model, check_one);
  for (const auto& [index, trial] : right) {
    const Kernel& kernel = model.imported.plan->kernels[index];
    database.record_trial(kernel, setup.key(), trial);
    database.record_winner(kernel, setup.key(),
                           {trial.candidate, trial.median_us, trial.error, std::string(origin_pinned), 0});
  }
  require_stored(database);
  for (const auto& [index, trial] : right) say(options, fmt::format("{}: pinned\n", label(model, index)));
  write_json(options, document);
  return 0;
}

bool unpin(Database& database, const Kernel& kernel, const Setup& setup) {
  return database.remove_pin(kernel, setup.key(), default_candidate(kernel, setup.machine));
}

int schedule_unpin(Words arguments) {
  Options options(
      "schedule unpin MODEL.onnx [OPTION ...]",
      "Takes pins of the model's kernels away; the fastest candidate that was tried comes in their place.");
  add_kernel_option(options, "this kernel only");
  options.add_model_options();
  if (!options.parse(arguments)) return 0;
  const Imported imported = load(open(options, compile_options(options)));
  const Setup& setup = *imported.setup;
  refuse_lock(setup, "sylvite schedule unpin");
  const std::vector<std::size_t> wanted = wanted_kernels(options, *imported.plan);
  Database database = open_database(setup);
  nlohmann::json document = report_json(imported, imported.report, std::nullopt);
  int removed = 0;
  for (const std::size_t i : wanted) {
    const bool was_pinned = unpin(database, imported.plan->kernels[i], setup);
    removed += was_pinned ? 1 : 0;
    document["schedules"].push_back({{"kernel", imported.plan->kernels[i].id}, {"was_pinned", was_pinned}});
  }
  require_stored(database);
  say(options, fmt::format("{} of {} kernels were pinned\n", removed, wanted.size()));
  write_json(options, document);
  return 0;
}

constexpr Action schedule_actions[] = {
    {"show", schedule_show, "the schedules of a model's kernels, to edit, or as Halide C++"},
    {"check", schedule_check, "whether edited ones compile and are right"},
    {"race", schedule_race, "time edited ones in turns with those of now"},
    {"pin", schedule_pin, "store edited ones as winners that stay"},
    {"unpin", schedule_unpin, "let the search decide again"},
};

}  // namespace

int verb_schedule(Words arguments) {
  return run_action("schedule", "Schedules by hand: shown, edited, tried against the winner, and kept.",
                    schedule_actions, arguments);
}

}  // namespace sylvite
