#include "runtime/ahead.h"

#include <algorithm>
#include <chrono>

#include "autotune/worker_pool.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "runtime/build.h"
#include "runtime/family.h"
#include "runtime/kernel_menu.h"
#include "runtime/open_kernels.h"
#include "runtime/report.h"
#include "runtime/sizes_ahead.h"
#include "runtime/symbolic_plans.h"

namespace sylvite {

void KnownKernels::note_choices(const Plan& plan, const std::vector<Choice>& chosen) {
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    Choice& known = choices[plan.kernels[i].text] = chosen[i];
    known.object.clear();
  }
}

void KnownKernels::note_new(const Plan& plan, const std::vector<Choice>& chosen) {
  for (std::size_t i = 0; i < plan.kernels.size(); ++i)
    if (const auto [known, is_new] = choices.try_emplace(plan.kernels[i].text); is_new) {
      known->second = chosen[i];
      known->second.object.clear();
    }
}

void KnownKernels::note_objects(const std::vector<Choice>& chosen) {
  for (const Choice& choice : chosen)
    if (!choice.object.empty()) objects.emplace(choice.symbol, choice.object);
}

Ahead::Ahead(OpenModel model, std::shared_ptr<KnownKernels> kernels, std::shared_ptr<const Program> first,
             const CompileReport& compiled)
    : model_(std::move(model)), kernels_(std::move(kernels)), first_(std::move(first)) {
  const bool on_device = model_.setup->machine.gpu.has_value();
  const int few = on_device ? 64 : 32;  // classes of sizes are more there
  constexpr double part = 0.1;          // of the time that compiling took
  constexpr double least = 1;           // seconds, where it was another process that compiled
  constexpr std::size_t plans = 512;
  most_ = left_ = compiled.compiled == 0 ? 0 : std::max(few, compiled.compiled);
  budget_ = std::max(least, part * compiled.compile_seconds);
  const ModelSizes& sizes = model_.parsed.sizes;
  for (Sizes& each : sizes_ahead(sizes, on_device)) steps_.push_back({Kind::telling, std::move(each)});
  for (Sizes& each : sizes_between(sizes)) steps_.push_back({Kind::between, std::move(each)});
  for (Sizes& each : sizes_scattered(sizes, plans)) steps_.push_back({Kind::plan, std::move(each)});
  steps_.push_back({Kind::choice, {}});
}

void Ahead::start() {
  thread_.emplace([this](const std::stop_token& stop) {
    make(stop);
    return std::monostate();
  });
}

void Ahead::make(const std::stop_token& stop) {
  for (; !steps_.empty() && !stop.stop_requested(); steps_.pop_front())
    if (is_wanted(steps_.front().kind)) make_step(steps_.front(), stop);
  is_done_ = true;
}

/// The same, where the model cannot be of these sizes, says so.
void Ahead::make_step(const Step& step, const std::stop_token& stop) {
  try {
    switch (step.kind) {
      case Kind::plan:
        return make_plan(step.sizes);
      case Kind::choice:
        return choose_variants(stop);
      case Kind::telling:
      case Kind::between:
      case Kind::variant:
        return make_kernels(step.sizes, stop);
    }
  } catch (const Stopped&) {
    return;
  } catch (const std::exception& error) {
    log_line(LogLevel::info, "sizes: nothing ahead of {}: {}", describe(model_.parsed.sizes, step.sizes),
             error.what());
  }
}

bool Ahead::is_wanted(Kind kind) const {
  constexpr int enough_told = 32;
  const bool are_alike = left_ == most_;  // all sizes have the same kernels
  switch (kind) {
    case Kind::telling:
      return left_ > 0 || most_ == 0;
    case Kind::between:
      return left_ > 0 && !are_alike && between_ < budget_;
    case Kind::plan:
      return planning_ < budget_ && told_in_turn_ < enough_told;
    case Kind::choice:
      return most_ > 0 && !model_.setup->machine.gpu;
    case Kind::variant:
      return left_ > 0;
  }
  return false;
}

/// Those that nothing has yet, where they are no more than `left_`.
void Ahead::make_kernels(const Sizes& sizes, const std::stop_token& stop) {
  std::unique_lock turn = own_turn();
  const double start = steady_seconds();
  const Imported imported = bind_told_sizes(model_, sizes);
  Chosen chosen = choose_known(imported);
  const Relatives relatives{.programs = {first_.get()}, .ahead = &kernels_->objects};
  const int missing = missing_objects(imported, chosen, relatives);
  between_ += steady_seconds() - start;
  if (missing > left_) return;
  if (missing > 0) turn.unlock();
  get_objects(imported, chosen, stop, {.programs = {first_.get()}});
  if (!turn.owns_lock()) turn = own_turn();
  kernels_->note_objects(chosen.choices);
  kernels_->note_choices(*imported.plan, chosen.choices);
  left_ -= chosen.report.compiled;
  const std::scoped_lock report(report_mutex_);
  log_line(LogLevel::info, "sizes: {} kernels ahead of {}, {:.2f} s", chosen.report.compiled,
           describe(model_.parsed.sizes, sizes), steady_seconds() - start);
  report_.compiled += chosen.report.compiled;
  report_.compile_seconds += chosen.report.compile_seconds;
  for (const std::string& warning : chosen.report.warnings) warn(report_, warning);
}

/// So that a program at these sizes needs no import.
void Ahead::make_plan(const Sizes& sizes) {
  const std::unique_lock turn = own_turn();
  const Stopwatch watch(planning_);
  std::shared_ptr<const Plan> plan = model_.plans->at(sizes, model_.setup->config.lowering_reuse_memory);
  told_in_turn_ = plan == nullptr ? 0 : told_in_turn_ + 1;
  if (plan == nullptr) plan = learn_plan(model_, sizes, import_from(model_));
  constexpr std::size_t most = 24;  // each is worked through for what kernels it has
  if (plans_.size() == most) return;
  plans_.push_back(std::move(plan));
  sizes_of_plans_.push_back(sizes);
}

/// Of kernels that are open, for what the plans have of them.
void Ahead::choose_variants(const std::stop_token& stop) {
  const Machine& machine = model_.setup->machine;
  std::unique_lock turn = own_turn();
  if (!model_.menu->may_vary()) return;
  const std::vector<VariedKernel> kernels = model_.menu->cases_in(plans_, machine);
  turn.unlock();
  left_ = std::max(left_, most_ / 2);
  const double start = steady_seconds();
  const std::vector<ChosenVariant> chosen =
      sylvite::choose_variants(kernels, plans_.size(), static_cast<std::size_t>(left_), machine, [&] {
        const ForkPoint between_kernels;
        return stop.stop_requested();
      });
  turn = own_turn();
  model_.menu->add_variants(kernels, chosen);
  log_line(LogLevel::info, "sizes: {} variants of {} kernels, {:.2f} s", chosen.size(), kernels.size(),
           steady_seconds() - start);
  for (const Sizes& sizes : sizes_of_plans_) steps_.push_back({Kind::variant, sizes});
}

AheadTurn Ahead::take_turn() {
  ++waiting_;
  std::unique_lock turn(turn_);
  --waiting_;
  return {std::move(turn), *model_.menu, kernels_};
}

AheadTurn::AheadTurn(std::unique_lock<std::mutex> lock, KernelMenu& menu,
                     std::shared_ptr<const KnownKernels> kernels)
    : lock_(std::move(lock)), menu_(&menu) {
  menu.prefer(
      [known = std::move(kernels)](const std::string& text) { return known->choices.contains(text); });
}

AheadTurn::~AheadTurn() {
  if (lock_.owns_lock()) menu_->prefer(nullptr);
}

/// Behind whoever waits for one.
std::unique_lock<std::mutex> Ahead::own_turn() {
  const ForkPoint others_go_on;
  constexpr std::chrono::microseconds pause(200);
  while (waiting_ > 0) std::this_thread::sleep_for(pause);
  return std::unique_lock(turn_);
}

CompileReport Ahead::take_report() {
  const std::scoped_lock report(report_mutex_);
  return std::exchange(report_, {});
}

}  // namespace sylvite
