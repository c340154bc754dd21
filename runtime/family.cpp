#include "runtime/family.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "frontend/onnx/growing_states.h"
#include "runtime/background.h"
#include "runtime/build.h"
#include "runtime/equal_weights.h"
#include "runtime/evaluated.h"
#include "runtime/input_sizes.h"
#include "runtime/kernel_menu.h"
#include "runtime/open_kernels.h"
#include "runtime/report.h"
#include "runtime/sizes_ahead.h"

namespace sylvite {
namespace {

struct Member {
  Built built;
  std::int64_t last_used = 0;
};

/// Kernels for other sizes, compiled while the model runs.
struct Behind {
  Imported imported;
  Chosen chosen;
};

}  // namespace

struct Family::Rep {
  explicit Rep(OpenModel open)
      : model(std::move(open)), given(model.parsed.sizes), length(length_symbol(model.parsed)) {}

  [[nodiscard]] Relatives relatives() const;
  /// For sizes beside the first: nothing is measured for them.
  [[nodiscard]] OpenModel quiet_model() const {
    OpenModel quiet = model;
    quiet.setup = without_tuning(quiet.setup);
    return quiet;
  }
  [[nodiscard]] Built* add_known(const OpenModel& open, const Sizes& sizes);
  [[nodiscard]] std::shared_ptr<const Plan> with_known_weights(const std::shared_ptr<const Plan>& plan) const;
  Built& keep(const Sizes& sizes, Built built);
  Built& build(const Imported& imported, const Chooser& choose, const std::stop_token& stop);
  void forget_oldest();
  void count(const Sizes& sizes);
  void count_bytes();
  void note_choices(const Plan& plan, const std::vector<Choice>& chosen);
  int compile_kernels(const OpenModel& open, const Sizes& sizes, int most, const std::stop_token& stop);
  int try_kernels(const OpenModel& open, const Sizes& sizes, int most, const std::stop_token& stop);
  void compile_between(const OpenModel& open, int left, double budget, const std::stop_token& stop);
  void learn_plans(const OpenModel& open, double budget, const std::stop_token& stop);
  void note_kernels(const Imported& imported, const Chosen& chosen);
  [[nodiscard]] bool is_compiling();
  [[nodiscard]] const Sizes& with_length(const Sizes& read);

  OpenModel model;  ///< without a file when the family is one program
  InputSizes given;
  std::optional<std::size_t> length;  ///< which size is that of the states
  Sizes of_run;                       ///< with it
  std::unordered_map<Sizes, std::unique_ptr<Member>, SizesHash> members;
  std::unordered_set<Sizes, SizesHash> met;
  std::unordered_map<std::string, Choice>
      choices;    ///< of programs that were imported, by the texts of kernels
  Objects ahead;  ///< of sizes that had no program when they were compiled
  std::unique_ptr<Background<Behind>> behind;
  Member* latest = nullptr;
  Sizes latest_sizes;
  std::int64_t clock = 0;
  std::int64_t most = 1;
  CompileReport report;
};

Relatives Family::Rep::relatives() const {
  Relatives relatives{{}, true};
  for (const auto& [sizes, member] : members) relatives.programs.push_back(&member->built.program);
  relatives.ahead = &ahead;
  return relatives;
}

/// The plan with those weights that other programs have, too: equal ones become one, so that they are packed once.
std::shared_ptr<const Plan> Family::Rep::with_known_weights(const std::shared_ptr<const Plan>& plan) const {
  if (members.empty()) return plan;
  EqualWeights known;
  for (const auto& [sizes, member] : members)
    for (const Tensor& weight : member->built.program.plan().weights) known.add(weight);
  auto shared = std::make_shared<Plan>(*plan);
  for (Tensor& weight : shared->weights) weight = known.find_or(weight);
  return shared;
}

/// From plans at other sizes, where other programs have all its kernels; else nullptr.
Built* Family::Rep::add_known(const OpenModel& open, const Sizes& sizes) {
  const std::optional<Imported> imported = bind_known_sizes(open, sizes);
  if (!imported || members.empty()) return nullptr;
  const auto is_chosen = [&](const Kernel& kernel) { return choices.contains(kernel.text); };
  if (!std::ranges::all_of(imported->plan->kernels, is_chosen)) return nullptr;
  Chosen chosen = choose_each(*imported, [&](const Kernel& kernel) { return choices.at(kernel.text); });
  try {
    return &keep(sizes, build_program(*imported, std::move(chosen), relatives()));
  } catch (const CompileError& error) {
    log_line(LogLevel::info, "sizes: {}", error.what());
    return nullptr;
  }
}

void Family::Rep::note_choices(const Plan& plan, const std::vector<Choice>& chosen) {
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    Choice& known = choices[plan.kernels[i].text] = chosen[i];
    known.object.clear();
  }
}

/// Those of these sizes that nothing has yet, where they are no more than `most`; how many were compiled.
int Family::Rep::compile_kernels(const OpenModel& open, const Sizes& sizes, int most,
                                 const std::stop_token& stop) {
  const double start = steady_seconds();
  const Imported imported = bind_sizes(open, sizes);
  Chosen chosen = choose_known(imported);
  if (missing_objects(imported, chosen, relatives()) > most) return 0;
  get_objects(imported, chosen, stop, relatives());
  note_kernels(imported, chosen);
  log_line(LogLevel::info, "sizes: {} kernels ahead of {}, {:.2f} s", chosen.report.compiled,
           describe(model.parsed.sizes, sizes), steady_seconds() - start);
  report.ready_seconds += steady_seconds() - start;
  return chosen.report.compiled;
}

/// Objects that no program has yet, and what was chosen.
void Family::Rep::note_kernels(const Imported& imported, const Chosen& chosen) {
  for (const Choice& choice : chosen.choices)
    if (!choice.object.empty()) ahead.emplace(choice.symbol, choice.object);
  note_choices(*imported.plan, chosen.choices);
  report.compiled += chosen.report.compiled;
  report.compile_seconds += chosen.report.compile_seconds;
}

/// Takes what was compiled behind runs, once it is. Throws what compiling threw.
bool Family::Rep::is_compiling() {
  if (behind == nullptr) return false;
  if (!behind->is_ready()) return true;
  const std::unique_ptr<Background<Behind>> done = std::move(behind);
  const Behind made = done->take();
  note_kernels(made.imported, made.chosen);
  return false;
}

/// The same, or none where the model cannot be of these sizes.
int Family::Rep::try_kernels(const OpenModel& open, const Sizes& sizes, int most,
                             const std::stop_token& stop) {
  if (members.contains(sizes)) return 0;
  try {
    return compile_kernels(open, sizes, most, stop);
  } catch (const Error& error) {
    log_line(LogLevel::info, "sizes: no kernels ahead of {}: {}", describe(model.parsed.sizes, sizes),
             error.what());
    return 0;
  }
}

/// Those of sizes all over the ranges, `left` at most, until all but compiling has taken `budget` seconds.
void Family::Rep::compile_between(const OpenModel& open, int left, double budget,
                                  const std::stop_token& stop) {
  for (const Sizes& sizes : sizes_between(model.parsed.sizes)) {
    if (left <= 0 || budget <= 0 || stop.stop_requested()) break;
    const double start = steady_seconds(), before = report.compile_seconds;
    left -= try_kernels(open, sizes, left, stop);
    budget -= steady_seconds() - start - (report.compile_seconds - before);
  }
}

/// So that programs at most sizes need no import.
void Family::Rep::learn_plans(const OpenModel& open, double budget, const std::stop_token& stop) {
  constexpr std::size_t most = 64;
  const double start = steady_seconds();
  for (const Sizes& sizes : sizes_scattered(model.parsed.sizes, most)) {
    if (steady_seconds() - start > budget || stop.stop_requested()) break;
    try {
      if (!learn_plan(open, sizes)) break;
    } catch (const Error& error) {
      log_line(LogLevel::info, "sizes: no plan for {}: {}", describe(model.parsed.sizes, sizes),
               error.what());
    }
  }
  report.ready_seconds += steady_seconds() - start;
}

Built& Family::Rep::keep(const Sizes& sizes, Built built) {
  members[sizes] = std::make_unique<Member>(Member{std::move(built), ++clock});
  latest = members[sizes].get();
  latest_sizes = sizes;
  while (static_cast<std::int64_t>(members.size()) > most) forget_oldest();
  count(sizes);
  return latest->built;
}

void Family::Rep::forget_oldest() {
  const auto oldest =
      std::ranges::min_element(members, {}, [](const auto& each) { return each.second->last_used; });
  log_line(LogLevel::info, "sizes: the program for {} goes", describe(model.parsed.sizes, oldest->first));
  members.erase(oldest);
}

void Family::Rep::count(const Sizes& sizes) {
  const CompileReport& made = latest->built.report;
  if (report.programs == 0) {
    report = made;
    report.programs = 0;
    report.import_seconds += model.seconds;
    report.ready_seconds += model.seconds;
  } else {
    add_report(report, made);
  }
  met.insert(sizes);
  ++report.programs;
  report.sizes = static_cast<int>(met.size());
}

void Family::Rep::count_bytes() {
  report.peak_bytes = 0;
  std::set<const void*> counted;
  for (const auto& [each, member] : members) report.peak_bytes += member->built.program.peak_bytes(counted);
}

Family::Family(Built only) : rep_(std::make_unique<Rep>(OpenModel{only.setup, "", {}, 0})) {
  rep_->report.programs = 0;
  rep_->keep({}, std::move(only));
}

Family::Family(OpenModel model) : rep_(std::make_unique<Rep>(std::move(model))) {
  rep_->report.programs = 0;
  rep_->most = rep_->model.setup->config.sizes_kept;
}

Family::~Family() = default;
Family::Family(Family&&) noexcept = default;
Family& Family::operator=(Family&&) noexcept = default;

const ModelSizes& Family::sizes() const {
  return rep_->model.parsed.sizes;
}

/// What inputs say, and how long the states are, where programs differ by it.
const Sizes& Family::Rep::with_length(const Sizes& read) {
  if (!length) return read;  // NOLINT(bugprone-return-const-ref-from-parameter): `given` keeps it
  of_run = read;
  of_run[*length] = 0;
  if (latest != nullptr) {
    const std::vector<Port>& states = latest->built.program.plan().states;
    const auto port = std::ranges::find(states, model.parsed.growing->length, &Port::name);
    of_run[*length] = latest->built.program.state_integer(static_cast<std::size_t>(port - states.begin()));
  }
  return of_run;
}

Built& Family::Rep::build(const Imported& imported, const Chooser& choose, const std::stop_token& stop) {
  Imported shared = imported;
  shared.plan = with_known_weights(imported.plan);
  Built& built = keep(imported.sizes, build_program(shared, choose(shared), relatives(), stop));
  note_choices(built.program.plan(), built.choices);
  return built;
}

/// Where a kernel for many sizes does not compile in any way, those for these sizes alone serve.
Built& Family::add(const Imported& imported, const Chooser& choose, const std::stop_token& stop) {
  try {
    return rep_->build(imported, choose, stop);
  } catch (const CompileError& error) {
    if (imported.for_sizes == nullptr || imported.setup->lock != nullptr) throw;
    log_line(LogLevel::warning, "{}; kernels for these sizes alone are compiled instead", error.what());
  }
  Imported own = imported;
  own.plan = std::exchange(own.for_sizes, nullptr);
  return rep_->build(own, choose, stop);
}

void Family::compile_ahead(const std::stop_token& stop) {
  constexpr int few = 12;
  constexpr double part = 0.1;  // of the time that compiling took
  const Setup& setup = *rep_->model.setup;
  const bool is_wanted = rep_->model.menu != nullptr && setup.config.kernels_ahead == AutoOff::automatic;
  if (!is_wanted || rep_->report.compiled == 0) return;  // else a process before this one did
  const OpenModel quiet = rep_->quiet_model();
  const int most = std::max(few, rep_->report.compiled);
  int left = most;
  const auto is_over = [&] { return left <= 0 || stop.stop_requested(); };
  for (const Sizes& sizes : sizes_ahead(this->sizes())) {
    if (is_over()) break;
    left -= rep_->try_kernels(quiet, sizes, left, stop);
  }
  const double budget = part * rep_->report.compile_seconds;
  const bool are_alike = left == most;  // all sizes have the same kernels
  if (!are_alike) rep_->compile_between(quiet, left, budget, stop);
  rep_->learn_plans(quiet, budget, stop);
}

void Family::end_variants() {
  if (rep_->model.menu == nullptr) return;
  rep_->model.menu->end_variants([&](const std::string& text) { return rep_->choices.contains(text); });
}

/// nullptr where there is none.
Built* Family::find(const Sizes& sizes) {
  if (rep_->latest != nullptr && sizes == rep_->latest_sizes) return &rep_->latest->built;
  const auto found = rep_->members.find(sizes);
  if (found == rep_->members.end()) return nullptr;
  rep_->latest = found->second.get();
  rep_->latest_sizes = sizes;
  rep_->latest->last_used = ++rep_->clock;
  return &rep_->latest->built;
}

Built* Family::compiled_at(const Sizes& sizes) {
  if (Built* found = find(sizes)) return found;
  if (rep_->is_compiling()) return nullptr;
  const OpenModel quiet = rep_->quiet_model();
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): `sizes` may be what `given` read
  const Sizes wanted = sizes;
  if (Built* known = rep_->add_known(quiet, wanted)) return known;
  Imported imported = bind_sizes(quiet, wanted);
  Chosen chosen = choose_known(imported);
  if (missing_objects(imported, chosen, rep_->relatives()) == 0 || !refuse_evaluation(imported).empty())
    return &add(imported, [&](const Imported&) { return chosen; });
  log_line(LogLevel::info, "sizes: kernels for {} are compiled behind runs", describe(this->sizes(), wanted));
  const auto given = std::make_shared<Behind>(Behind{std::move(imported), std::move(chosen)});
  rep_->behind = std::make_unique<Background<Behind>>([given](const std::stop_token& stop) {
    get_objects(given->imported, given->chosen, stop);
    return std::move(*given);
  });
  return nullptr;
}

void Family::wait() {
  if (rep_->behind == nullptr) return;
  rep_->behind->wait();
  (void)rep_->is_compiling();
}

bool Family::is_compiling() const {
  return rep_->behind != nullptr && !rep_->behind->is_ready();
}

Built& Family::at(const Sizes& sizes) {
  if (Built* found = find(sizes)) return *found;
  const double start = steady_seconds();
  const OpenModel quiet = rep_->quiet_model();
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): `sizes` may be what `given` read
  const Sizes wanted = sizes;
  Built* built = rep_->add_known(quiet, wanted);
  const bool is_known = built != nullptr;
  if (!is_known) built = &add(bind_sizes(quiet, wanted), choose_known);
  log_line(LogLevel::info, "sizes: a program for {}{}, {:.4f} s", describe(this->sizes(), wanted),
           is_known ? " as others are" : "", steady_seconds() - start);
  return *built;
}

Built& Family::of(const std::vector<Tensor>& inputs) {
  return sizes().are_fixed() ? latest() : at(rep_->with_length(rep_->given.of(inputs)));
}

Built& Family::of(const std::vector<HostValue>& inputs) {
  return sizes().are_fixed() ? latest() : at(rep_->with_length(rep_->given.of(inputs)));
}

Built& Family::of(const std::vector<DeviceTensor>& inputs) {
  return sizes().are_fixed() ? latest() : at(rep_->with_length(rep_->given.of(inputs)));
}

Built* Family::compiled_of(const std::vector<Tensor>& inputs) {
  return sizes().are_fixed() ? &latest() : compiled_at(rep_->with_length(rep_->given.of(inputs)));
}

Built* Family::compiled_of(const std::vector<HostValue>& inputs) {
  return sizes().are_fixed() ? &latest() : compiled_at(rep_->with_length(rep_->given.of(inputs)));
}

Built& Family::latest() {
  return rep_->latest->built;
}

const Built& Family::latest() const {
  return rep_->latest->built;
}

std::vector<std::string> Family::state_names() const {
  std::vector<std::string> names;
  for (const Port& state : latest().program.plan().states) names.push_back(state.name);
  return names;
}

/// Of the file, or of the one program there is.
std::string Family::model_id() const {
  if (rep_->model.parsed.proto != nullptr) return model_file_id(rep_->model.parsed);
  const Plan& plan = latest().program.plan();
  std::string text = plan.name;
  for (const Kernel& kernel : plan.kernels) text += kernel.id;
  for (const Tensor& weight : plan.weights)
    text +=
        sha256_hex({static_cast<const char*>(weight.data()), static_cast<std::size_t>(weight.byte_size())});
  return short_hash(text);
}

const CompileReport& Family::report() const {
  rep_->count_bytes();
  return rep_->report;
}

std::shared_ptr<const Setup> without_tuning(const std::shared_ptr<const Setup>& setup) {
  auto quiet = std::make_shared<Setup>(*setup);
  quiet->config.tune_enabled = false;
  return quiet;
}

Chosen choose_known(const Imported& imported) {
  return choose_candidates(imported);
}

void at_hinted_sizes(const OpenModel& model,
                     const std::function<double(const OpenModel&, const Sizes&)>& visit) {
  const std::vector<Sizes> all = hinted_sizes(model.parsed.sizes, model.setup->config.sizes_kept);
  double budget = model.setup->config.tune_budget.count();
  OpenModel limited = model;
  for (std::size_t i = 0; i < all.size(); ++i) {
    limited.setup = with_budget(model.setup, budget / static_cast<double>(all.size() - i));
    budget -= visit(limited, all[i]);
  }
}

Family build_family(const OpenModel& model, const Chooser& choose, const std::stop_token& stop) {
  Family family(model);
  at_hinted_sizes(model, [&](const OpenModel& limited, const Sizes& sizes) {
    return family.add(bind_sizes(limited, sizes), choose, stop).report.tune_seconds;
  });
  family.compile_ahead(stop);
  family.end_variants();
  (void)family.at(first_sizes(model.parsed.sizes));  // what the next run most likely needs
  return family;
}

}  // namespace sylvite
