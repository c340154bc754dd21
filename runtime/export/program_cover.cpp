#include "runtime/export/program_cover.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "lowering/plan/open_kernel.h"
#include "lowering/plan/plan_loops.h"
#include "lowering/plan/symbolic_plan.h"
#include "runtime/export/join_plans.h"
#include "runtime/export/shared_kernels.h"
#include "runtime/export/tables_in_box.h"
#include "runtime/symbolic_plans.h"

namespace sylvite {
namespace {

constexpr std::size_t most_programs = 64;

std::vector<std::string> symbols_of(const Built& built) {
  std::vector<std::string> symbols;
  symbols.reserve(built.choices->size());
  for (const Choice& choice : *built.choices) symbols.push_back(choice.symbol);
  return symbols;
}

/// What the program launches on a device at the sizes of a case.
std::shared_ptr<const DeviceNotes> notes_of(const Built& built, const ProgramCase& at) {
  Program here(built.program.code(), at.bindings, [&] { return std::make_shared<const Plan>(*at.plan); },
               {{&built.program}, true, false});
  return std::make_shared<const DeviceNotes>(here.device_notes());
}

std::vector<Candidate> candidates_of(const Built& built) {
  std::vector<Candidate> candidates;
  candidates.reserve(built.choices->size());
  for (const Choice& choice : *built.choices) candidates.push_back(choice.candidate);
  return candidates;
}

/// As make_program does for a device.
void unroll(std::vector<Plan>& plans) {
  for (Plan& plan : plans) {
    if (!plan.loops.empty()) plan = unrolled(plan);
    if (plan.launches.size() != plans.front().launches.size())
      throw UnsupportedError("loops have another count of trips at other sizes");
  }
}

/// A model at sizes as they are asked for.
class Samples {
 public:
  explicit Samples(const OpenModel& model) : model_(model) { model_.menu = nullptr; }

  const Imported& at(const Sizes& sizes) {
    const auto [found, is_new] = known_.try_emplace(sizes);
    if (!is_new) return found->second;
    found->second = bind_sizes(model_, sizes);
    if (found->second.host != nullptr) refuse_host_steps(*found->second.host);
    found->second.graph = {};  // only plans are needed
    found->second.transformed = {};
    return found->second;
  }
  const std::string& structure_at(const Sizes& sizes) {
    std::string& text = structures_[sizes];
    if (text.empty()) text = plan_structure(*at(sizes).plan) + decisions_text(at(sizes).facts);
    return text;
  }
  [[nodiscard]] const ModelSizes& sizes() const { return model_.parsed.sizes; }

 private:
  OpenModel model_;
  std::map<Sizes, Imported> known_;
  std::map<Sizes, std::string> structures_;
};

/// The plans of a box, all of one structure: the one that the most of the points have. At other sizes, where the model would be
/// lowered to other kernels, it is made of those plans.
class BoxPlans {
 public:
  BoxPlans(Samples& samples, const SizeGrid& grid) : samples_(samples) {
    std::map<std::string, int> counts;
    for (const Sizes& sizes : grid.points()) ++counts[samples.structure_at(sizes)];
    structure_ = std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
    if (counts.size() == 1) return;
    std::vector<PlanSample> alike;
    for (const Sizes& sizes : grid.points())
      if (samples.structure_at(sizes) == structure_)
        alike.push_back({sizes, samples.at(sizes).plan, samples.at(sizes).facts});
    symbolic_ = SymbolicPlan::of(fit_symbols(samples.sizes()), alike);
  }

  /// Throws UnsupportedError where there is none.
  const std::shared_ptr<const Plan>& at(const Sizes& sizes) {
    if (samples_.structure_at(sizes) == structure_) return samples_.at(sizes).plan;
    std::shared_ptr<const Plan>& plan = made_[sizes];
    if (plan != nullptr) return plan;
    std::optional<Plan> found;
    if (symbolic_) found = symbolic_->at(sizes, samples_.at(sizes).setup->config.lowering_reuse_memory);
    if (!found) throw UnsupportedError("the model has other kernels at " + describe(samples_.sizes(), sizes));
    return plan = std::make_shared<const Plan>(std::move(*found));
  }
  const std::string& classes_at(const Sizes& sizes) {
    std::string& text = classes_[sizes];
    if (text.empty()) text = kernel_classes(*at(sizes));
    return text;
  }

 private:
  Samples& samples_;
  std::string structure_;
  std::optional<SymbolicPlan> symbolic_;
  std::map<Sizes, std::shared_ptr<const Plan>> made_;
  std::map<Sizes, std::string> classes_;
};

/// The programs of one box, in which the model has the same kernels but for the sizes that they are for.
class BoxCover {
 public:
  BoxCover(Samples& samples, const SizeBox& box, SharedKernels& shared, const Chooser& choose,
           const PlaceWeights& place)
      : samples_(samples),
        box_(box),
        grid_(samples.sizes(), box),
        sampled_(some_sizes(samples.sizes(), box)),
        plans_of_(samples, grid_),
        shared_(shared),
        choose_(choose),
        place_(place) {}

  /// Throws UnsupportedError where the box must be divided.
  void run(std::vector<CoveredBox>& covered) {
    // First the ends alone: most that stands in the way is seen there.
    const std::shared_ptr<const Plan>& greatest = plans_of_.at(box_.high);
    check_alike({plans_of_.at(box_.low)}, *greatest);
    std::set<std::string> made;
    std::optional<Sizes> uncovered = grid_.points()[grid_.hint()];
    while (uncovered) {
      plans_.clear();
      for (const Sizes& sizes : grid_.points()) plans_.push_back(plans_of_.at(sizes));
      check_alike(plans_, *greatest);
      if (!made.insert(plans_of_.classes_at(*uncovered)).second)
        throw UnsupportedError("kernels are for other sizes at " + describe(samples_.sizes(), *uncovered));
      programs_.push_back(program_for(*uncovered, covered));
      uncovered = find_uncovered();
      if (uncovered) grid_.add(*uncovered);
    }
    for (CoveredBox& each : programs_) covered.push_back(std::move(each));
  }

 private:
  /// For sizes as `wanted` has them.
  CoveredBox program_for(const Sizes& wanted, const std::vector<CoveredBox>& covered) {
    const std::string& classes = plans_of_.classes_at(wanted);
    std::vector<std::size_t> group;
    for (std::size_t i = 0; i < grid_.points().size(); ++i)
      if (plans_of_.classes_at(grid_.points()[i]) == classes) group.push_back(i);
    const auto first =
        std::ranges::find_if(group, [&](std::size_t i) { return grid_.points()[i] == wanted; });
    std::swap(*first, group.front());
    const Plan& greatest = *plans_of_.at(box_.high);
    const Machine& machine = samples_.at(wanted).setup->machine;
    shared_.find(wanted, plans_of_.at(wanted));
    std::vector<Plan> plans = join_plans(plans_, greatest, group, shared_.made, machine);
    if (machine.gpu) unroll(plans);
    Imported imported = samples_.at(wanted);
    imported.plan = std::make_shared<Plan>(plans[group.front()]);
    Relatives relatives{{}, true, false};  // the library has objects of all kernels
    for (const std::vector<CoveredBox>* each : {&covered, &std::as_const(programs_)})
      for (const CoveredBox& other : *each) relatives.programs.push_back(&other.built->program);
    auto built = std::make_unique<Built>(build_program(imported, choose_(imported), relatives));
    std::vector<ProgramCase> cases;
    std::vector<PlanSample> points;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const Sizes& sizes = grid_.points()[i];
      cases.push_back({&plans[i], bind_plan(plans[i], candidates_of(*built)), samples_.at(sizes).room});
      if (machine.gpu) cases.back().notes = notes_of(*built, cases.back());
      points.push_back({sizes, plans_[i], samples_.at(sizes).facts});
    }
    ExtentFit fit(fit_symbols(samples_.sizes()), grid_.points(),
                  grid_.is_whole() ? 0 : ExtentFit::usual_confirming);
    const std::vector<const SizeFacts*> facts = equal_facts();
    suggest_extents(points, fit);
    check_decisions(facts, fit);
    WeightPlaces places = place_.of(*built);
    add_tables(*built, fit, places);
    ExportedProgram program = export_program(fit, cases, grid_.greatest(), symbols_of(*built), places,
                                             {built->program.code(), sampled_});
    program.box = box_;
    log_line(LogLevel::info, "export: a program for {} to {}, made for {}",
             describe(samples_.sizes(), box_.low), describe(samples_.sizes(), box_.high),
             describe(samples_.sizes(), wanted));
    return {std::move(program), std::move(built)};
  }

  /// Tables that are no others' first bytes, for each of the box's sizes.
  void add_tables(const Built& built, ExtentFit& fit, WeightPlaces& places) const {
    const Plan& greatest = *plans_.at(grid_.greatest());
    std::map<std::int32_t, Extent> known;
    const PackedWeights& packed = *built.program.bindings().weights;
    for (std::size_t slot = 0; slot < packed.size(); ++slot) {
      const std::int32_t weight = packed.weight_of(slot);
      std::vector<Tensor> samples;
      samples.reserve(plans_.size());
      for (const auto& plan : plans_) samples.push_back(plan->weights.at(static_cast<std::size_t>(weight)));
      const Tensor& longest = greatest.weights.at(static_cast<std::size_t>(weight));
      if (std::ranges::all_of(samples, [&](const Tensor& each) { return begins(longest, each); })) continue;
      const std::optional<FittedTable> table = fit_table(samples, fit);
      if (!table ||
          !begins(packed.at(slot), built.program.plan().weights.at(static_cast<std::size_t>(weight))))
        throw UnsupportedError("a table of the model, {}, is another one at other sizes",
                               longest.type().to_string());
      if (!known.contains(weight)) known[weight] = add_table(*table);
      places.tables[static_cast<std::int64_t>(slot)] = known[weight];
    }
  }
  [[nodiscard]] Extent add_table(const FittedTable& table) const {
    const TablesInBox all = tables_in_box(samples_.sizes(), box_, table);
    return Extent(place_.add(all.bytes)) + all.place;
  }

  [[noreturn]] static void refuse_decisions() {
    throw UnsupportedError("pads, bounds of slices or the like follow another rule at other sizes");
  }
  /// Of the imports at the points. Throws UnsupportedError where these decided otherwise.
  [[nodiscard]] std::vector<const SizeFacts*> equal_facts() const {
    std::vector<const SizeFacts*> facts;
    facts.reserve(grid_.points().size());
    for (const Sizes& sizes : grid_.points()) facts.push_back(&samples_.at(sizes).facts);
    const std::string text = decisions_text(*facts[0]);
    const auto is_alike = [&](const SizeFacts* each) { return decisions_text(*each) == text; };
    if (!std::ranges::all_of(facts, is_alike)) refuse_decisions();
    return facts;
  }
  /// Throws UnsupportedError where an import at some size of the box would decide otherwise than those at the points did.
  void check_decisions(const std::vector<const SizeFacts*>& facts, ExtentFit& fit) const {
    const std::optional<SizeDecisions> decisions = SizeDecisions::of(facts, fit);
    const auto holds_in_box = [&](const std::vector<std::string>& symbols, const auto& holds) {
      return !find_sizes(samples_.sizes(), box_, symbols, std::not_fn(holds));
    };
    if (!decisions || !decisions->all_of(holds_in_box)) refuse_decisions();
  }

  [[nodiscard]] bool is_covered(const SymbolValues& sizes) const {
    return std::ranges::any_of(programs_, [&](const CoveredBox& each) {
      return std::ranges::all_of(each.program.conditions, [&](const ExportedCondition& condition) {
        const std::int64_t number = condition.number.at(sizes);
        return number >= condition.low && number <= condition.high;
      });
    });
  }
  /// Extents grow with sizes: where the ends are covered by one program, all between are. Else every size is tried.
  [[nodiscard]] std::optional<Sizes> find_uncovered() const {
    const std::vector<SizeSymbol>& symbols = samples_.sizes().symbols;
    SymbolValues low, high;
    std::vector<std::string> names;
    names.reserve(symbols.size());
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      names.push_back(symbols[i].name);
      low[symbols[i].name] = box_.low[i];
      high[symbols[i].name] = box_.high[i];
    }
    if (programs_.size() == 1 && is_covered(low) && is_covered(high)) return std::nullopt;
    const std::optional<SymbolValues> found = find_sizes(
        samples_.sizes(), box_, names, [&](const SymbolValues& sizes) { return !is_covered(sizes); });
    if (!found) return std::nullopt;
    Sizes sizes;
    sizes.reserve(names.size());
    for (const std::string& name : names) sizes.push_back(found->at(name));
    return sizes;
  }

  Samples& samples_;
  const SizeBox& box_;
  SizeGrid grid_;
  std::vector<SymbolValues> sampled_;  ///< sizes of the box
  BoxPlans plans_of_;
  SharedKernels& shared_;
  const Chooser& choose_;
  const PlaceWeights& place_;
  std::vector<std::shared_ptr<const Plan>> plans_;  ///< at the points of the grid
  std::vector<CoveredBox> programs_;
};

class Cover {
 public:
  Cover(const OpenModel& model, const Chooser& choose, const PlaceWeights& place)
      : samples_(model),
        shared_(samples_.sizes(), model.setup->machine,
                [this](const Sizes& sizes) { return samples_.at(sizes).plan; }),
        choose_(choose),
        place_(place),
        on_device_(model.setup->machine.gpu.has_value()) {}

  std::vector<CoveredBox> run() {
    find_kernels(size_boxes(samples_.sizes()));
    open_ = boxes_by_time();
    std::ranges::reverse(open_);
    while (!open_.empty()) {
      const SizeBox box = open_.back();
      open_.pop_back();
      if (divide_by_structure(box)) continue;
      try {
        if (covered_.size() >= most_programs) refuse();
        BoxCover(samples_, box, shared_, choose_, place_).run(covered_);
      } catch (const UnsupportedError& error) {
        why_ = error.what();
        log_line(LogLevel::info, "export: {}", why_);
        if (!divide(box)) throw;
      }
    }
    return std::move(covered_);
  }

 private:
  [[noreturn]] void refuse() const {
    throw UsageError(
        "sizes are {}: the library would need more than {} programs, since {}; give narrower ranges, or "
        "multiples "
        "(--dims NAME=32..320%32)",
        describe_ranges(samples_.sizes()), most_programs,
        why_.empty() ? "the model has other kernels at other sizes" : why_);
  }

  /// Kernels that serve the most sizes, and variants of them where a program of its own makes the model faster.
  void find_kernels(const std::vector<SizeBox>& boxes) {
    constexpr std::size_t most = 24;  // each is worked through for what kernels it has
    std::vector<std::shared_ptr<const Plan>> plans;
    for (const SizeBox& box : boxes) {
      const SizeGrid grid(samples_.sizes(), box);
      const std::vector<Sizes>& points = grid.points();
      const std::size_t step = (points.size() * boxes.size() + most - 1) / most;
      try {
        const Sizes& hint = points[grid.hint()];
        shared_.find(hint, samples_.at(hint).plan);
        for (std::size_t i = 0; i < points.size(); i += step) plans.push_back(samples_.at(points[i]).plan);
      } catch (const Error& error) {
        log_line(LogLevel::info, "export: {}", error.what());
      }
    }
    shared_.vary(plans);
  }

  /// Where the model has other kernels at one end of an axis than at the other, they change somewhere between. A few such
  /// changes are programs' ends; where there are many, one that is right has kernels for others' sizes, too.
  bool divide_by_structure(const SizeBox& box) {
    constexpr std::size_t most_divided = 8;
    if (open_.size() + covered_.size() >= most_divided) return false;
    for (std::size_t axis = 0; axis < box.low.size(); ++axis) {
      Sizes end = box.low;
      end[axis] = box.high[axis];
      const std::string& before = samples_.structure_at(box.low);
      if (before == samples_.structure_at(end)) continue;
      const std::int64_t step = samples_.sizes().symbols[axis].range.multiple;
      std::int64_t last = box.low[axis];
      std::int64_t beyond = box.high[axis];
      while (beyond - last > step) {
        Sizes middle = box.low;
        middle[axis] = last + (beyond - last) / step / 2 * step;
        (samples_.structure_at(middle) == before ? last : beyond) = middle[axis];
      }
      push(box, axis, last);
      return true;
    }
    return false;
  }

  /// How much longer the model should take at one corner of the box with the variants for its hint than with its own.
  double corner_loss(const SizeBox& box) {
    const SizeGrid grid(samples_.sizes(), box);
    return loss(box.low, grid.points()[grid.hint()]);
  }
  double loss(const Sizes& sizes, const Sizes& made_for) {
    if (samples_.structure_at(sizes) != samples_.structure_at(made_for)) return 1;
    return shared_.loss(samples_.at(sizes).plan, samples_.at(made_for).plan);
  }

  /// Two boxes, the first of which has the corner where other variants are faster: along the axis on which they differ the most.
  std::pair<SizeBox, SizeBox> divided_by_time(const SizeBox& box, double most) {
    const SizeGrid grid(samples_.sizes(), box);
    const Sizes& hint = grid.points()[grid.hint()];
    std::size_t axis = 0;
    double greatest = 0;
    for (std::size_t i = 0; i < hint.size(); ++i) {
      Sizes moved = hint;
      moved[i] = box.low[i];
      const double lost = moved == hint ? 0 : loss(moved, hint);
      if (lost <= greatest) continue;
      greatest = lost;
      axis = i;
    }
    const std::int64_t step = samples_.sizes().symbols[axis].range.multiple;
    Sizes last = box.low;
    for (Sizes next = last; next[axis] + step < hint[axis]; last = next) {
      next[axis] += step;
      if (loss(next, hint) < most) break;
    }
    return divided(samples_.sizes(), box, axis, last[axis]);
  }

  /// The boxes of size_boxes() in a few parts each, where the model should be clearly faster so.
  std::vector<SizeBox> boxes_by_time() {
    constexpr std::size_t most_parts = 3;
    constexpr double most = 1.1;
    std::vector<SizeBox> all;
    for (const SizeBox& box : size_boxes(samples_.sizes())) {
      std::vector<std::pair<SizeBox, double>> parts = {{box, corner_loss(box)}};
      while (parts.size() < most_parts) {
        const auto slowest = std::ranges::max_element(parts, {}, &std::pair<SizeBox, double>::second);
        if (slowest->second < most) break;
        const auto [first, second] = divided_by_time(slowest->first, most);
        *slowest = {first, corner_loss(first)};
        parts.insert(slowest + 1, {second, corner_loss(second)});
      }
      for (const auto& [part, lost] : parts) all.push_back(part);
    }
    return all;
  }

  bool divide(const SizeBox& box) {
    std::size_t axis = 0;
    for (std::size_t i = 1; i < box.low.size(); ++i)
      if (count_along(samples_.sizes(), box, i) > count_along(samples_.sizes(), box, axis)) axis = i;
    if (box.low.empty() || count_along(samples_.sizes(), box, axis) < 2) return false;
    push(box, axis, last_of_first_half(box, axis));
    return true;
  }

  /// On a device some kernels are for the extents of one class: the least class of the box is a half, too.
  [[nodiscard]] std::int64_t last_of_first_half(const SizeBox& box, std::size_t axis) const {
    const std::int64_t multiple = samples_.sizes().symbols[axis].range.multiple;
    const std::int64_t last = device_class(box.low[axis]).high / multiple * multiple;
    if (on_device_ && last >= box.low[axis] && last < box.high[axis]) return last;
    return size_between(samples_.sizes(), box, axis, 0.5);
  }

  void push(const SizeBox& box, std::size_t axis, std::int64_t last) {
    if (open_.size() + covered_.size() > most_programs) refuse();
    const auto [before, after] = divided(samples_.sizes(), box, axis, last);
    open_.push_back(after);
    open_.push_back(before);
  }

  Samples samples_;
  SharedKernels shared_;
  const Chooser& choose_;
  const PlaceWeights& place_;
  bool on_device_;
  std::vector<SizeBox> open_;  ///< still to be covered, the next one last
  std::vector<CoveredBox> covered_;
  std::string why_;  ///< more programs are needed
};

}  // namespace

std::vector<CoveredBox> cover_sizes(const OpenModel& model, const Chooser& choose,
                                    const PlaceWeights& place) {
  return Cover(model, choose, place).run();
}

ExportedProgram export_built(const Built& built, const WeightPlaces& weights) {
  ProgramCase only{&built.program.plan(), built.program.bindings(), built.room};
  if (is_gpu_target(built.setup->machine.target)) only.notes = notes_of(built, only);
  ExtentFit fit({}, {Dims{}}, 0);
  return export_program(fit, {only}, 0, symbols_of(built), weights, {built.program.code(), {}});
}

void refuse_host_steps(const HostPart& host) {
  std::string steps;
  for (const HostStep& step : host.steps()) steps += fmt::format("\n  {}: {}", step.name, step.reason);
  throw UnsupportedError("a model with steps on the host cannot be exported; its steps:{}",
                         steps.empty() ? " an output that is no tensor" : steps);
}

}  // namespace sylvite
