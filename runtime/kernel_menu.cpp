#include "runtime/kernel_menu.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/rounding.h"
#include "lowering/plan/merged_axes.h"
#include "lowering/plan/open_kernel.h"
#include "runtime/size_buckets.h"
#include "runtime/sizes_ahead.h"
#include "runtime/widest_kernel.h"
#include "schedules/cuda/candidate.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

/// A kernel of its own at each size must be worth its compilation. `than` is for `fixed`, whose sizes both take.
bool is_nearly_as_fast(const BoundSpace& space, const BoundSpace& than, const Kernel& fixed,
                       const Machine& machine) {
  constexpr double most = 1.5, most_on_device = 3;
  if (machine.gpu) {
    const auto seconds = [&](const BoundSpace& each) {
      return cuda_seconds_of(fixed, each.at(each.heuristic), *machine.gpu);
    };
    const std::optional<double> own = seconds(space), others = seconds(than);
    return own && others && *own <= most_on_device * *others;
  }
  if (!space.cost || !than.cost) return false;
  return space.cost(space.heuristic) <= most * than.cost(than.heuristic);
}

/// Why one kernel for all sizes would be much slower than one for each, or cannot be made; empty when neither is so. REQUIRES
/// `open` at its hints, those of `fixed`; `other` is the second of its two cases.
std::string refusal(const Kernel& open, const Kernel& fixed, const Kernel& other, const Machine& machine) {
  const BoundSpace own = spaces_for(open, machine).front(), wanted = spaces_for(fixed, machine).front();
  const std::optional<Kernel> second = as_case(open, other);
  try {
    if (own.name != wanted.name && !is_nearly_as_fast(own, wanted, fixed, machine))
      return fmt::format("it would have a schedule of '{}', with fixed sizes it has one of '{}'", own.name,
                         wanted.name);
    (void)default_choice(second ? *second : open, machine);
  } catch (const UnsupportedError& error) {
    return error.what();
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

/// Those of `beside`, but the least of each range that somebody gave: of these on, kernels of images shall serve. Equal sizes
/// differ there.
Sizes least_sizes(const ModelSizes& model, const Sizes& sizes, const Sizes& beside) {
  Sizes least = beside;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const SizeRange& range = model.symbols[i].range;
    const auto equal = std::count(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i), sizes[i]);
    const std::int64_t size =
        round_up(std::max<std::int64_t>(range.low, 2), range.multiple) + equal * range.multiple;
    if (!model.symbols[i].is_guessed && size < sizes[i]) least[i] = size;
  }
  return least;
}

/// An open kernel from its text, as generalize() makes it: without guards, as cases are compared with its bound body.
Kernel parse_open(const std::string& text) {
  const Kernel parsed = parse_kernel(text);
  if (!parsed.open) throw ModelError("not an open kernel");
  Graph body = *parsed.open;
  body.symbols = {};
  body.symbols.table = parsed.open->symbols.table;
  return make_kernel(body, parsed.input_is_weight);
}

bool has_images(const Plan& plan) {
  return std::ranges::any_of(plan.buffers,
                             [](const Buffer& buffer) { return buffer.type.layout.channel_block > 1; });
}

/// Sizes to compare with, the most telling first: all differ, or, where two names must be of one size, equal ones stay equal.
std::vector<Sizes> comparisons(const ModelSizes& model, const Sizes& sizes, const Sizes& beside) {
  Sizes with_equal = beside;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto first = static_cast<std::size_t>(std::ranges::find(sizes, sizes[i]) - sizes.begin());
    if (model.symbols[i].range.contains(beside[first])) with_equal[i] = beside[first];
  }
  std::vector<Sizes> all;
  if (beside != sizes) all.push_back(beside);
  if (with_equal != beside) all.push_back(with_equal);
  return all;
}

/// Each of several sizes in turn is that of `beside`: the others may have one value alone, though nobody said so.
std::vector<Sizes> with_one_changed(const Sizes& sizes, const Sizes& beside) {
  std::vector<Sizes> all;
  for (std::size_t i = 0; i < sizes.size() && sizes.size() > 1; ++i) {
    if (beside[i] == sizes[i]) continue;
    all.push_back(sizes);
    all.back()[i] = beside[i];
  }
  return all;
}

/// Each of a few sizes in turn stays as it is: some kernels are there at that size alone, as those of images too narrow for their
/// windows.
std::vector<Sizes> with_one_kept(const Sizes& sizes, const Sizes& beside) {
  constexpr std::size_t few = 4;
  std::vector<Sizes> all;
  for (std::size_t i = 0; i < sizes.size() && sizes.size() <= few; ++i) {
    Sizes kept = beside;
    kept[i] = sizes[i];
    if (kept != beside && kept != sizes) all.push_back(std::move(kept));
  }
  return all;
}

/// Are ranges given? Then kernels for all of them are compiled ahead of runs.
bool is_given(const ModelSizes& model) {
  return std::ranges::any_of(model.symbols, [](const SizeSymbol& symbol) {
    return !symbol.is_guessed && !symbol.range.hints.empty();
  });
}

/// Are these sizes to be fast at? Programs for them are built ahead of runs.
bool is_hinted(const ModelSizes& model, const Sizes& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (std::ranges::find(model.symbols[i].range.hints, sizes[i]) == model.symbols[i].range.hints.end())
      return false;
  return is_given(model);
}

/// Are kernels for these sizes compiled ahead of runs on a device?
bool is_made_ahead(const ModelSizes& model, const Sizes& sizes) {
  const std::vector<Sizes> ahead = sizes_ahead(model, true);
  return std::ranges::find(ahead, sizes) != ahead.end();
}

/// With no sizes but those of one class with these, where there are others: a device has a kernel for each.
ModelSizes within_device_classes(ModelSizes model, const Sizes& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    SizeRange& range = model.symbols[i].range;
    const SizeClass around = device_class(sizes[i]);
    const std::int64_t low = round_up(std::max(range.low, around.low), range.multiple);
    const std::int64_t high = std::min(range.high, around.high) / range.multiple * range.multiple;
    if (low >= high) continue;
    range.low = low;
    range.high = high;
  }
  return model;
}

Sizes with_two_for_one(const ModelSizes& model, Sizes sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == 1 && model.symbols[i].range.contains(2)) sizes[i] = 2;
  return sizes;
}

}  // namespace

std::vector<Kernel> forms_to_share(const Plan& plan, const Machine& machine) {
  if (machine.gpu) return plan.kernels;
  std::vector<Kernel> forms;
  forms.reserve(plan.kernels.size());
  for (const Kernel& kernel : plan.kernels) forms.push_back(with_merged_axes(kernel));
  return forms;
}

KernelMenu::Seen* KernelMenu::Entry::find(const Kernel& kernel) {
  const auto found =
      std::ranges::find_if(seen, [&](const Seen& each) { return each.kernel.text == kernel.text; });
  return found == seen.end() ? nullptr : &*found;
}

KernelVariants* KernelMenu::Entry::variants_of(const Kernel& kernel) const {
  const auto found = std::ranges::find_if(open, [&](const auto& each) { return each->has_case(kernel); });
  return found == open.end() ? nullptr : found->get();
}

const std::vector<std::shared_ptr<KernelVariants>>& KernelMenu::alike(const Kernel& kernel) const {
  static const std::vector<std::shared_ptr<KernelVariants>> none;
  const auto found = entries_.find(skeleton(kernel));
  return found == entries_.end() ? none : found->second.open;
}

void KernelMenu::learn(const Plan& plan, const Machine& machine) {
  learn_from({forms_to_share(plan, machine), {}, {}}, machine);
}

bool KernelMenu::Lesson::differs_from(const Sizes& others) const {
  for (std::size_t i = 0; i < std::min(sizes.size(), others.size()); ++i)
    if (sizes[i] == others[i] && sizes[i] != apart[i]) return false;
  return true;
}

void KernelMenu::learn_from(const Lesson& lesson, const Machine& machine) {
  constexpr std::int64_t plans_kept = 8;
  ++plans_;
  std::vector<std::pair<Entry*, Seen>> unknown;
  std::vector<std::pair<Entry*, const Kernel*>> again;  // plans at other sizes told nothing of them
  for (const Kernel& kernel : lesson.forms) {
    Entry& entry = entries_[skeleton(kernel)];
    if (Seen* const seen = entry.find(kernel)) {
      seen->plan = plans_;
      seen->is_settled = seen->is_settled || lesson.differs_from(seen->sizes);
      if (!seen->is_settled) again.emplace_back(&entry, &kernel);
    } else if (entry.variants_of(kernel) == nullptr) {
      unknown.emplace_back(&entry, Seen{kernel, plans_, lesson.sizes});
    }
  }
  const auto is_settled_by = [&](Entry& entry, const Kernel& kernel) {
    const std::size_t before = entry.open.size();
    const bool is_refused = !entry.compare(kernel, lesson, plans_, machine);
    if (entry.open.size() > before) ++generation_;
    return is_refused;
  };
  for (const auto& [entry, kernel] : again)
    if (is_settled_by(*entry, *kernel)) entry->find(*kernel)->is_settled = true;
  for (auto& [entry, seen] : unknown) seen.is_settled = is_settled_by(*entry, seen.kernel);
  // Only now: kernels of one plan differ in what the model is, not in its sizes.
  for (auto& [entry, seen] : unknown) {
    entry->seen.push_back(std::move(seen));
    entry->forget_before(plans_ - plans_kept);
  }
}

bool KernelMenu::Entry::compare(const Kernel& kernel, const Lesson& lesson, std::int64_t plan,
                                const Machine& machine) {
  // The same place of the model at other sizes: the kernel that differs in the fewest extents.
  if (variants_of(kernel) != nullptr) return true;  // one that another kernel of this plan brought
  std::optional<Kernel> closest;
  const Seen* other = nullptr;
  const Sharing sharing = machine.gpu ? lesson.sharing : Sharing::on_host;
  const bool is_new = find(kernel) == nullptr;
  for (const Seen& each : seen) {
    const bool is_beside = !is_new && each.plan == plan;  // another layer of this plan
    if (is_beside || !lesson.differs_from(each.sizes)) continue;
    std::optional<Kernel> joined = generalize(each.kernel, kernel, sharing);
    if (!joined || (closest && closest->sizes.size() <= joined->sizes.size())) continue;
    closest = std::move(joined);
    other = &each;
  }
  if (!closest) return true;
  closest = from_fewest(other->kernel, kernel, *std::move(closest), machine);
  if (const auto found = refused.find(closest->text); found != refused.end()) {
    found->second = plan;
    return false;
  }
  const std::string reason = refusal(*closest, other->kernel, kernel, machine);
  log_line(LogLevel::debug, "kernel {} ({}): {} {}", closest->id, kernel_class_name(closest->kind),
           reason.empty() ? "is open" : "is not open:", reason);
  if (reason.empty())
    open.push_back(std::make_shared<KernelVariants>(for_few_and_many(std::move(*closest), machine)));
  else
    refused[closest->text] = plan;
  return reason.empty();
}

void KernelMenu::Entry::forget_before(std::int64_t plan) {
  std::erase_if(seen, [&](const Seen& each) { return each.plan < plan; });
  std::erase_if(refused, [&](const auto& each) { return each.second < plan; });
}

/// Kernels for the sizes of these where each makes all of them faster by a five-hundredth, on a GPU by a thousandth.
void KernelMenu::vary(const std::vector<Kernel>& forms, const Machine& machine) {
  const double part = machine.gpu ? 0.001 : 0.002;
  std::vector<std::pair<const Kernel*, KernelVariants*>> cases;
  double seconds = 0;
  for (const Kernel& kernel : forms) {
    KernelVariants* const variants = entries_[skeleton(kernel)].variants_of(kernel);
    if (variants == nullptr) continue;
    cases.emplace_back(&kernel, variants);
    seconds += variants->seconds(kernel, machine);
  }
  for (const auto& [kernel, variants] : cases) variants->vary(*kernel, machine, part * seconds);
}

bool KernelMenu::is_settled(const std::vector<Kernel>& forms) {
  return std::ranges::all_of(forms, [&](const Kernel& kernel) {
    Entry& entry = entries_[skeleton(kernel)];
    const Seen* const seen = entry.find(kernel);
    return (seen != nullptr && seen->is_settled) || entry.variants_of(kernel) != nullptr;
  });
}

std::shared_ptr<const Plan> KernelMenu::serve(
    const ModelSizes& model, const Sizes& sizes, const std::shared_ptr<const Plan>& plan,
    const Machine& machine, const std::function<std::shared_ptr<const Plan>(const Sizes&)>& lower) {
  if (plans_ == 0) restore(model, *plan);
  const std::vector<Kernel> forms = forms_to_share(*plan, machine);
  const Sizes beside = sizes_beside(machine.gpu ? within_device_classes(model, sizes) : model, sizes);
  // Kernels of images serve one and many; the others are compared where what is one stays one.
  std::vector<Sizes> others = {with_two_for_one(model, beside)};
  if (others[0] != beside) others.push_back(beside);
  // Schedules for other sizes join ahead of runs; where nothing is made ahead, classes bring them.
  const Sharing sharing = is_given(model) ? Sharing::on_device : Sharing::of_device_class;
  learn_from({forms, sizes, others[0], sharing}, machine);
  const bool serves_images = !machine.gpu && has_images(*plan);
  if (serves_images) others.insert(others.begin(), least_sizes(model, sizes, others[0]));
  if (const auto alike = sizes_with_like_product(model, sizes); alike && !machine.gpu)
    others.push_back(*alike);
  const auto is_compared = [&](const Sizes& each) {
    try {
      const Lesson lesson{forms_to_share(*lower(each), machine), each, sizes, sharing};
      learn_from(lesson, machine);
      return true;
    } catch (const Error& error) {
      log_line(LogLevel::info, "sizes: none to compare with {}: {}", describe(model, sizes), error.what());
      return false;
    }
  };
  for (const Sizes& other : others) {
    if (is_settled(forms) || std::ranges::any_of(comparisons(model, sizes, other), is_compared)) continue;
    for (const Sizes& each : with_one_changed(sizes, other))
      if (!is_settled(forms)) (void)is_compared(each);
  }
  for (const Sizes& each : with_one_kept(sizes, beside))
    if (!is_settled(forms)) (void)is_compared(each);
  const bool may_wait =
      is_hinted(model, sizes) || (machine.gpu && is_given(model) && is_made_ahead(model, sizes));
  if ((serves_images || machine.gpu) && may_vary_ && may_wait) vary(forms, machine);
  keep();
  return with_open(*plan, forms, machine);
}

std::vector<VariedKernel> KernelMenu::cases_in(const std::vector<std::shared_ptr<const Plan>>& plans,
                                               const Machine& machine) {
  std::vector<VariedKernel> kernels;
  std::unordered_map<const KernelVariants*, std::size_t> numbers;
  std::unordered_map<std::string, std::pair<std::size_t, std::size_t>> known;  // kernel and case, by text
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const std::vector<Kernel> forms = forms_to_share(*plans[p], machine);
    for (const Launch& launch : plans[p]->launches) {
      const Kernel& form = forms.at(static_cast<std::size_t>(launch.kernel));
      if (const auto found = known.find(form.text); found != known.end()) {
        kernels[found->second.first].cases[found->second.second].plans.push_back(p);
        continue;
      }
      const KernelVariants* const variants = entries_[skeleton(form)].variants_of(form);
      if (variants == nullptr) continue;
      const auto [number, is_new] = numbers.try_emplace(variants, kernels.size());
      if (is_new) kernels.push_back({variants->kernels(), {}});
      VariedKernel& kernel = kernels[number->second];
      known[form.text] = {number->second, kernel.cases.size()};
      kernel.cases.push_back({form, {p}});
    }
  }
  return kernels;
}

void KernelMenu::add_variants(const std::vector<VariedKernel>& kernels,
                              const std::vector<ChosenVariant>& variants) {
  for (const ChosenVariant& each : variants) {
    const Kernel& first = kernels.at(each.kernel).variants.front();
    for (const auto& known : entries_[skeleton(first)].open)
      if (known->first().text == first.text) known->add(each.open);
  }
  keep();
}

std::shared_ptr<const Plan> KernelMenu::apply(const std::shared_ptr<const Plan>& plan,
                                              const Machine& machine) {
  return with_open(*plan, forms_to_share(*plan, machine), machine);
}

std::shared_ptr<const Plan> KernelMenu::with_open(const Plan& plan, const std::vector<Kernel>& forms,
                                                  const Machine& machine) {
  auto result = std::make_shared<Plan>(plan);
  for (std::size_t i = 0; i < forms.size(); ++i) {
    for (const auto& variants : alike(forms[i])) {
      std::optional<Kernel> found = variants->case_of(forms[i], machine, prefer_);
      if (!found) continue;
      result->kernels[i] = std::move(*found);
      break;
    }
  }
  return result;
}

/// What processes before this one had open for the model that has this plan at the first sizes.
void KernelMenu::restore(const ModelSizes& model, const Plan& plan) {
  if (setup_ == nullptr) return;
  file_ = MenuFile(*setup_, model, plan);
  kept_ = file_.load();
  may_vary_ = kept_.empty();
  try {
    for (const std::vector<std::string>& texts : kept_) {
      const Kernel first = parse_open(texts.at(0));
      const auto variants = std::make_shared<KernelVariants>(first);
      for (std::size_t i = 1; i < texts.size(); ++i) variants->add(parse_open(texts[i]));
      entries_[skeleton(first)].open.push_back(variants);
      ++generation_;
    }
  } catch (const Error& error) {
    log_line(LogLevel::info, "sizes: kernels of other processes cannot be read: {}", error.what());
  }
}

void KernelMenu::end_variants(const IsCompiled& is_compiled) {
  if (!std::exchange(may_vary_, false)) return;
  for (auto& [name, entry] : entries_)
    for (const auto& variants : entry.open) variants->keep_if(is_compiled);
  keep();
}

void KernelMenu::keep() {
  if (setup_ == nullptr) return;
  OpenTexts texts;
  for (const auto& [name, entry] : entries_)
    for (const auto& each : entry.open) texts.push_back(each->texts());
  std::ranges::sort(texts);
  if (texts == kept_) return;
  file_.store(texts);
  kept_ = std::move(texts);
}

}  // namespace sylvite
