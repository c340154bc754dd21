#include "runtime/family.h"

#include <algorithm>
#include <list>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "frontend/onnx/growing_states.h"
#include "runtime/ahead.h"
#include "runtime/alike_programs.h"
#include "runtime/background.h"
#include "runtime/build.h"
#include "runtime/equal_weights.h"
#include "runtime/evaluated.h"
#include "runtime/host_room.h"
#include "runtime/hot_sizes.h"
#include "runtime/input_sizes.h"
#include "runtime/kernel_menu.h"
#include "runtime/open_kernels.h"
#include "runtime/report.h"
#include "runtime/state_file.h"

namespace sylvite {
namespace {

struct Member {
  Built built;
  std::list<Sizes>::iterator use;  ///< of Rep::uses
  bool is_provisional = false;     ///< made while kernels were compiled ahead: there may be better ones
  bool is_borrowed = false;        ///< its kernels are the best at other sizes
  int runs = 0;                    ///< while it is
  Uses uses = {};
};

/// Kernels for other sizes, compiled while the model runs.
struct Behind {
  Imported imported;
  Chosen chosen;
};

/// Kernels that do not compile, or that a device cannot launch at these sizes.
bool is_of_kernels(const Error& error) {
  return error.code() == ErrorCode::compile_failure || error.code() == ErrorCode::unsupported;
}

}  // namespace

struct Family::Rep {
  explicit Rep(OpenModel open)
      : model(std::move(open)), given(model.parsed.sizes), length(length_symbol(model.parsed)) {}

  ~Rep() {
    if (ahead != nullptr && !ahead->is_mine()) leave_parent();
  }
  Rep(const Rep&) = delete;
  Rep& operator=(const Rep&) = delete;

  [[nodiscard]] Relatives relatives() const;
  /// For sizes beside the first: nothing is measured for them.
  [[nodiscard]] OpenModel quiet_model() const {
    OpenModel quiet = model;
    quiet.setup = without_tuning(quiet.setup);
    return quiet;
  }
  [[nodiscard]] Built* add_told(const Sizes& sizes);
  [[nodiscard]] Built* add_known(const OpenModel& open, const Sizes& sizes);
  [[nodiscard]] std::shared_ptr<const Plan> with_known_weights(const std::shared_ptr<const Plan>& plan) const;
  Built& keep(const Sizes& sizes, Built built);
  Built& build(const Imported& imported, const Chooser& choose, const std::stop_token& stop);
  void forget_oldest();
  [[nodiscard]] Relatives relatives_of_alike() const;
  [[nodiscard]] bool is_full() const { return static_cast<std::int64_t>(members.size()) >= most; }
  void count(const Sizes& sizes);
  void note_kernels(const Imported& imported, const Chosen& chosen);
  [[nodiscard]] bool begin_ahead();
  void end_ahead();
  void end_variants();
  void leave_parent();
  [[nodiscard]] AheadTurn take_turn();
  void renew(const Sizes& sizes);
  void take_behind();
  void note_run();
  void specialize();
  void take_specialized();
  [[nodiscard]] const Sizes& with_length(const Sizes& read);

  OpenModel model;  ///< without a file when the family is one program
  InputSizes given;
  std::optional<std::size_t> length;  ///< which size is that of the states
  Sizes of_run;                       ///< with it
  std::unordered_map<Sizes, std::shared_ptr<Member>, SizesHash> members;
  std::list<Sizes> uses;  ///< of all members, the least recent first
  std::unordered_set<Sizes, SizesHash> met;
  std::shared_ptr<KnownKernels> known = std::make_shared<KnownKernels>();
  AlikePrograms alike;
  std::unique_ptr<Ahead> ahead;  ///< until it is done
  std::unique_ptr<Background<Behind>> behind;
  std::optional<HotSizes> hot;  ///< where sizes may get kernels for them alone
  Member* latest = nullptr;
  Sizes latest_sizes;
  std::int64_t most = 1;
  CompileReport report;
};

Relatives Family::Rep::relatives() const {
  Relatives relatives{{}, true};
  for (const auto& [sizes, member] : members) relatives.programs.push_back(&member->built.program);
  relatives.ahead = &known->objects;
  return relatives;
}

std::shared_ptr<const Plan> Family::Rep::with_known_weights(const std::shared_ptr<const Plan>& plan) const {
  std::set<const Plan*> others;
  for (const auto& [sizes, member] : members) others.insert(&member->built.program.plan_alike());
  return with_equal_weights(plan, others);
}

/// Of a program with code that is there.
Relatives Family::Rep::relatives_of_alike() const {
  if (model.setup->machine.gpu || latest == nullptr) return relatives();
  return {{&latest->built.program}, true, true, &known->objects};
}

/// Without an import: one of those that are there with other numbers, else what plans at other sizes tell; else nullptr.
Built* Family::Rep::add_told(const Sizes& sizes) {
  if (is_full() && members.at(uses.front()).get() != latest) forget_oldest();  // it may become the new one
  std::optional<Built> found = alike.at(model, sizes, relatives_of_alike());
  if (!found) return add_known(quiet_model(), sizes);
  Built& built = keep(sizes, *std::move(found));
  latest->is_borrowed = true;
  return &built;
}

/// From plans at other sizes, where other programs have all its kernels; else nullptr.
Built* Family::Rep::add_known(const OpenModel& open, const Sizes& sizes) {
  const std::optional<Imported> imported = bind_known_sizes(open, sizes);
  if (!imported || members.empty()) return nullptr;
  const auto is_chosen = [&](const Kernel& kernel) { return known->choices.contains(kernel.text); };
  if (!std::ranges::all_of(imported->plan->kernels, is_chosen)) return nullptr;
  Chosen chosen =
      choose_each(*imported, [&](const Kernel& kernel) { return known->choices.at(kernel.text); });
  try {
    Built& built = keep(sizes, build_program(*imported, std::move(chosen), relatives()));
    alike.note(model, sizes, built);
    return &built;
  } catch (const Error& error) {
    if (!is_of_kernels(error)) throw;
    log_line(LogLevel::info, "sizes: {}", error.what());
    return nullptr;
  }
}

/// Objects that no program has yet, and what was chosen.
void Family::Rep::note_kernels(const Imported& imported, const Chosen& chosen) {
  known->note_objects(chosen.choices);
  known->note_choices(*imported.plan, chosen.choices);
  report.compiled += chosen.report.compiled;
  report.compile_seconds += chosen.report.compile_seconds;
}

/// Takes what was compiled behind runs, where something was; throws what compiling threw. REQUIRES that it is ready.
void Family::Rep::take_behind() {
  if (behind == nullptr) return;
  const std::unique_ptr<Background<Behind>> done = std::move(behind);
  const Behind made = done->take();
  note_kernels(made.imported, made.chosen);
}

Built& Family::Rep::keep(const Sizes& sizes, Built built) {
  std::shared_ptr<Member>& member = members[sizes];
  if (member != nullptr) uses.erase(member->use);
  member =
      std::make_shared<Member>(Member{std::move(built), uses.insert(uses.end(), sizes), ahead != nullptr});
  latest = member.get();
  latest_sizes = sizes;
  while (static_cast<std::int64_t>(members.size()) > most) forget_oldest();
  count(sizes);
  return latest->built;
}

void Family::Rep::forget_oldest() {
  if (is_logged(LogLevel::info))
    log_line(LogLevel::info, "sizes: the program for {} goes", describe(model.parsed.sizes, uses.front()));
  const auto found = members.find(uses.front());
  if (found->second.use_count() == 1)
    alike.retire(std::move(found->second->built.program));  // no thread has it
  members.erase(found);
  uses.pop_front();
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

Family::Family(Built only) : rep_(std::make_unique<Rep>(OpenModel{only.setup, "", {}, 0})) {
  rep_->report.programs = 0;
  rep_->keep({}, std::move(only));
}

Family::Family(OpenModel model) : rep_(std::make_unique<Rep>(std::move(model))) {
  rep_->report.programs = 0;
  rep_->most = rep_->model.setup->config.sizes_kept;
}

Family::~Family() {
  rep_.reset();
  HostRoom::trim();
}
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
    const std::vector<Port>& states = latest->built.program.plan_alike().states;
    const auto port = std::ranges::find(states, model.parsed.growing->length, &Port::name);
    of_run[*length] = latest->built.program.state_integer(static_cast<std::size_t>(port - states.begin()));
  }
  return of_run;
}

Built& Family::Rep::build(const Imported& imported, const Chooser& choose, const std::stop_token& stop) {
  Imported shared = imported;
  shared.plan = with_known_weights(imported.plan);
  Built& built = keep(imported.sizes, build_program(shared, choose(shared), relatives(), stop));
  known->note_choices(built.program.plan(), *built.choices);
  return built;
}

/// Where a kernel for many sizes does not compile in any way, those for these sizes alone serve.
Built& Family::add(const Imported& imported, const Chooser& choose, const std::stop_token& stop) {
  const NoFork no_fork;
  try {
    return rep_->build(imported, choose, stop);
  } catch (const Error& error) {
    if (!is_of_kernels(error) || imported.for_sizes == nullptr || imported.setup->lock != nullptr) throw;
    log_line(LogLevel::warning, "{}; kernels for these sizes alone are compiled instead", error.what());
  }
  Imported own = imported;
  own.plan = std::exchange(own.for_sizes, nullptr);
  return rep_->build(own, choose, stop);
}

/// False where nothing is to be made ahead.
bool Family::Rep::begin_ahead() {
  if (model.menu == nullptr || model.setup->config.kernels_ahead != AutoOff::automatic) return false;
  const std::shared_ptr<Member>& first = members.at(latest_sizes);
  ahead = std::make_unique<Ahead>(quiet_model(), known,
                                  std::shared_ptr<const Program>(first, &first->built.program), report);
  return true;
}

/// Kernels of further programs are those that are compiled, wherever these serve.
void Family::Rep::end_variants() {
  if (model.menu == nullptr) return;
  model.menu->end_variants([&](const std::string& text) { return known->choices.contains(text); });
}

void Family::Rep::end_ahead() {
  add_report(report, ahead->take_report());
  ahead.reset();
  alike.forget();
  end_variants();
}

/// In a child made by fork, what the thread was at is in no known state, and stays; sizes have kernels of their own.
void Family::Rep::leave_parent() {
  [[maybe_unused]] const Ahead* const left = ahead.release();  // it has the others, too
  known = std::make_shared<KnownKernels>();
  model.menu = nullptr;
  model.plans = nullptr;
  model.made = nullptr;
  alike.forget();
}

void Family::compile_ahead(const std::stop_token& stop) {
  if (rep_->report.compiled == 0 || !rep_->begin_ahead())  // else a process before this one did
    return rep_->end_variants();
  const Stopwatch watch(rep_->report.ready_seconds);
  rep_->ahead->make(stop);
  rep_->end_ahead();
}

void Family::start_ahead() {
  const Setup& setup = *rep_->model.setup;
  if (rep_->model.menu != nullptr && setup.config.specialize == Specialize::lazy) rep_->hot.emplace();
  rep_->begin_ahead() ? rep_->ahead->start() : rep_->end_variants();
}

AheadTurn Family::Rep::take_turn() {
  if (ahead != nullptr && !ahead->is_mine()) leave_parent();
  return ahead != nullptr ? ahead->take_turn() : AheadTurn();
}

/// The program for these sizes is made anew where other kernels are better.
void Family::Rep::renew(const Sizes& sizes) {
  const std::shared_ptr<Member> member = members.at(sizes);
  member->is_provisional = false;
  member->is_borrowed = false;
  const OpenModel quiet = quiet_model();
  const std::optional<Imported> imported = bind_known_sizes(quiet, sizes);
  if (!imported) return;
  if (have_kernels_alike(*imported->plan, member->built.program.plan_alike()))
    alike.note(model, sizes, member->built);
  else
    (void)add_known(quiet, sizes);
}

/// The latest program is about to run.
void Family::Rep::note_run() {
  constexpr double least = 1;  // seconds, where objects were in the cache
  if (ahead == nullptr && hot->note_run(latest->uses, std::max(least, report.compile_seconds))) specialize();
}

/// Kernels for the latest sizes alone are compiled behind runs, where others serve them.
void Family::Rep::specialize() {
  latest->uses.is_decided = true;
  const OpenModel quiet = quiet_model();
  Imported imported = bind_told_sizes(quiet, latest_sizes);
  if (std::ranges::none_of(imported.plan->kernels, [](const Kernel& each) { return each.open != nullptr; }))
    return;
  imported.plan = with_known_weights(learn_plan(quiet, latest_sizes, import_from(quiet)));
  imported.for_sizes = nullptr;
  Chosen chosen = choose_known(imported);
  log_line(LogLevel::info, "sizes: kernels for {} alone are compiled behind runs",
           describe(model.parsed.sizes, latest_sizes));
  hot->compile(std::move(imported), std::move(chosen));
}

/// Programs of sizes whose kernels were compiled for them alone take the place of those that are there.
void Family::Rep::take_specialized() {
  std::optional<Specialized> made = hot->take();
  if (!made || !members.contains(made->imported.sizes)) return;
  Relatives others = relatives();
  if (made->donor) others.programs.push_back(&*made->donor);
  try {
    keep(made->imported.sizes, build_program(made->imported, std::move(made->chosen), others));
    latest->uses.is_decided = true;
    ++report.specialized;
  } catch (const Error& error) {
    log_line(LogLevel::info, "sizes: no kernels for them alone: {}", error.what());
  }
}

/// nullptr where there is none.
Built* Family::find(const Sizes& sizes) {
  if (rep_->ahead != nullptr && rep_->ahead->is_done()) rep_->end_ahead();
  if (rep_->hot) rep_->take_specialized();
  Built* const found = find_member(sizes);
  if (rep_->hot && found != nullptr) rep_->note_run();
  return found;
}

Built* Family::find_member(const Sizes& sizes) {
  const auto is_final = [&] {
    Member& latest = *rep_->latest;
    const bool is_worth_it =
        latest.is_provisional || (latest.is_borrowed && ++latest.runs > AlikePrograms::few_runs);
    return !is_worth_it || rep_->ahead != nullptr;
  };
  if (rep_->latest != nullptr && sizes == rep_->latest_sizes && is_final()) return &rep_->latest->built;
  const auto found = rep_->members.find(sizes);
  if (found == rep_->members.end()) return nullptr;
  rep_->latest = found->second.get();
  rep_->latest_sizes = sizes;
  rep_->uses.splice(rep_->uses.end(), rep_->uses, rep_->latest->use);
  if (!is_final()) rep_->renew(rep_->latest_sizes);
  return &rep_->latest->built;
}

Built* Family::compiled_at(const Sizes& sizes) {
  if (Built* found = find(sizes)) return found;
  if (rep_->behind != nullptr && !rep_->behind->is_ready()) return nullptr;
  const AheadTurn turn = rep_->take_turn();
  rep_->take_behind();
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): `sizes` may be what `given` read
  const Sizes wanted = sizes;
  if (Built* known = rep_->add_told(wanted)) return known;
  Imported imported = bind_sizes(rep_->quiet_model(), wanted);  // with a graph, which runs may evaluate
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
  if (rep_->behind != nullptr) {
    rep_->behind->wait();
    const AheadTurn turn = rep_->take_turn();
    rep_->take_behind();
  }
  if (rep_->hot) {
    rep_->hot->wait();
    rep_->take_specialized();
  }
  if (rep_->ahead == nullptr || !rep_->ahead->is_mine()) return;
  rep_->ahead->wait();
  rep_->end_ahead();
}

bool Family::is_compiling() const {
  const bool is_behind = rep_->behind != nullptr && !rep_->behind->is_ready();
  if (rep_->hot && rep_->hot->is_compiling()) return true;
  return is_behind || (rep_->ahead != nullptr && rep_->ahead->is_mine() && !rep_->ahead->is_done());
}

void Family::stop_compiling() {
  rep_->behind.reset();
  rep_->hot.reset();
  rep_->ahead.reset();
}

Built& Family::at(const Sizes& sizes) {
  if (Built* found = find(sizes)) return *found;
  const double start = steady_seconds();
  const AheadTurn turn = rep_->take_turn();
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): `sizes` may be what `given` read
  const Sizes wanted = sizes;
  Built* built = rep_->add_told(wanted);
  const bool is_told = built != nullptr;
  if (!is_told) built = &add(bind_told_sizes(rep_->quiet_model(), wanted), choose_known);
  if (is_logged(LogLevel::info))
    log_line(LogLevel::info, "sizes: a program for {}{}, {:.4f} s", describe(this->sizes(), wanted),
             is_told ? " as others are" : "", steady_seconds() - start);
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
  for (const Port& state : latest().program.plan_alike().states) names.push_back(state.name);
  return names;
}

/// Of the file, or of the one program there is.
std::string Family::model_id() const {
  if (rep_->model.parsed.proto != nullptr) return model_file_id(rep_->model.parsed);
  return plan_id(latest().program.plan());
}

const CompileReport& Family::report() const {
  if (rep_->ahead != nullptr && rep_->ahead->is_mine()) add_report(rep_->report, rep_->ahead->take_report());
  rep_->report.peak_bytes = Program::peak_bytes(rep_->relatives().programs);
  return rep_->report;
}

}  // namespace sylvite
