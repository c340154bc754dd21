#include "autotune/candidate_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "base/hash.h"
#include "schedules/candidate.h"

namespace sylvite {
namespace {

/// Directives of which a stage may have several: the argument that tells one from another.
struct NamedBy {
  std::string_view directive;
  std::size_t argument;
};
constexpr NamedBy named_by[] = {{"split", 2},        {"fuse", 2},        {"tile", 2},         {"unroll", 0},
                                {"vectorize", 0},    {"parallel", 0},    {"bound_extent", 0}, {"prefetch", 0},
                                {"unroll_steps", 0}, {"stream_ahead", 1}};

/// What a directive of a stage decides, without its values; numbers come first.
struct Trait {
  bool is_number = false;
  std::string stage;  ///< with its update
  std::string directive;
  std::string loop;  ///< that tells it from others of its kind in the stage; may be ""
  int repetition = 0;
  auto operator<=>(const Trait&) const = default;
};
using Values = std::vector<std::string>;
using Traits = std::map<Trait, Values>;

/// The loop that a split makes, and its steps; other arguments of a split are a trait of their own.
void add_split(Traits& traits, const Trait& split, const Decision& decision) {
  Trait number = split;
  number.is_number = true;
  traits[number] = {decision.arguments[3]};
  traits[split] = {decision.arguments.begin() + 4, decision.arguments.end()};
}

Traits traits_of(const Schedule& schedule) {
  constexpr std::size_t least_split_arguments = 4;
  Traits traits;
  for (const Decision& decision : schedule.decisions) {
    Trait trait;
    trait.stage = decision.stage;
    if (decision.update >= 0) trait.stage += fmt::format(".update({})", decision.update);
    trait.directive = decision.directive;
    const auto* const named = std::ranges::find(named_by, decision.directive, &NamedBy::directive);
    if (named != std::end(named_by) && named->argument < decision.arguments.size())
      trait.loop = decision.arguments[named->argument];
    while (traits.contains(trait)) ++trait.repetition;
    if (trait.directive == "split" && decision.arguments.size() >= least_split_arguments)
      add_split(traits, trait, decision);
    else
      traits[trait] = decision.arguments;
  }
  return traits;
}

/// The candidates of one form.
struct DecisionGroup {
  std::vector<std::size_t> rows;
  std::vector<Traits> traits;  ///< of each row
};

/// Not equal in all rows, numbers first, then those with short values.
std::vector<Trait> varying_traits(const DecisionGroup& group) {
  std::set<Trait> all;
  for (const Traits& traits : group.traits)
    for (const auto& [trait, values] : traits) all.insert(trait);
  std::vector<std::pair<std::size_t, Trait>> varying;
  for (const Trait& trait : all) {
    std::set<std::optional<Values>> values;
    std::size_t length = 0;
    for (const Traits& traits : group.traits) {
      const auto found = traits.find(trait);
      values.insert(found == traits.end() ? std::nullopt : std::optional(found->second));
      if (found != traits.end()) length = std::max(length, found->second.size());
    }
    if (values.size() > 1) varying.emplace_back(trait.is_number ? 0 : length + 1, trait);
  }
  std::ranges::stable_sort(varying, {}, [](const auto& each) { return each.first; });
  std::vector<Trait> sorted;
  sorted.reserve(varying.size());
  for (auto& [length, trait] : varying) sorted.push_back(std::move(trait));
  return sorted;
}

/// Arguments that all rows with the trait have at both ends are left out.
struct Trimmed {
  std::size_t front = 0;
  std::size_t back = 0;
};

Trimmed common_ends(const DecisionGroup& group, const Trait& trait) {
  std::vector<const Values*> all;
  for (const Traits& traits : group.traits)
    if (const auto found = traits.find(trait); found != traits.end()) all.push_back(&found->second);
  std::size_t shortest = all.front()->size();
  for (const Values* values : all) shortest = std::min(shortest, values->size());
  Trimmed trimmed;
  const auto agree = [&](const auto& at) {
    return std::ranges::all_of(all, [&](const Values* values) { return at(*values) == at(*all.front()); });
  };
  while (trimmed.front < shortest && agree([&](const Values& values) { return values[trimmed.front]; }))
    ++trimmed.front;
  while (trimmed.front + trimmed.back < shortest &&
         agree([&](const Values& values) { return values[values.size() - 1 - trimmed.back]; }))
    ++trimmed.back;
  if (trimmed.front + trimmed.back == shortest) return {};
  return trimmed;
}

/// "i=14", "v1.i=14" or "v1.fuse(b,ll..)".
std::string trait_text(const DecisionGroup& group, const Trait& trait, const Values& values,
                       bool with_stage) {
  const std::string stage = with_stage ? trait.stage + "." : "";
  if (trait.is_number) return fmt::format("{}{}={}", stage, trait.loop, values.front());
  const auto [front, back] = common_ends(group, trait);
  const std::span shown = std::span(values).subspan(front, values.size() - front - back);
  return fmt::format("{}{}({}{}{})", stage, trait.directive, front > 0 ? ".." : "", fmt::join(shown, ","),
                     back > 0 ? ".." : "");
}

/// Loops of one name in two stages, which only the stages tell apart.
bool is_namesake(const Trait& one, const Trait& other) {
  return other.is_number && one.stage != other.stage && one.loop == other.loop;
}

/// Adds to the labels of the group's rows what tells them apart.
void label_group(const DecisionGroup& group, std::vector<std::string>& labels) {
  const std::vector<Trait> varying = varying_traits(group);
  std::size_t apart = 1;
  for (const Trait& trait : varying) {
    const bool with_stage = !trait.is_number || std::ranges::any_of(varying, [&](const Trait& other) {
      return is_namesake(trait, other);
    });
    std::vector<std::string> longer;
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
      longer.push_back(labels[group.rows[i]]);
      if (const auto found = group.traits[i].find(trait); found != group.traits[i].end())
        longer.back() += " " + trait_text(group, trait, found->second, with_stage);
    }
    const std::size_t now_apart = std::set(longer.begin(), longer.end()).size();
    if (!trait.is_number && now_apart <= apart) continue;
    apart = now_apart;
    for (std::size_t i = 0; i < group.rows.size(); ++i) labels[group.rows[i]] = std::move(longer[i]);
  }
}

}  // namespace

std::vector<std::string> candidate_labels(const std::vector<std::string>& candidates) {
  std::vector<std::string> labels;
  std::map<std::string, DecisionGroup> groups;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    try {
      const Candidate candidate = Candidate::parse(candidates[i]);
      labels.push_back(candidate.form.to_string());
      DecisionGroup& group = groups[labels.back()];
      group.rows.push_back(i);
      group.traits.push_back(traits_of(candidate.schedule));
    } catch (const Error&) {  // written by another version
      labels.push_back(candidates[i].substr(0, candidates[i].find('\n')) + " " +
                       short_hash(candidates[i]).substr(0, 6));
    }
  }
  for (const auto& [form, group] : groups) label_group(group, labels);
  return labels;
}

}  // namespace sylvite
