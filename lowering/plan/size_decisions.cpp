#include "lowering/plan/size_decisions.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "frontend/values/extents_at.h"

namespace sylvite {

namespace {

/// What one list of fact `i` is in each import.
std::vector<Dims> at_points(const std::vector<const SizeFacts*>& facts, std::size_t i,
                            Dims SizeFact::* list) {
  std::vector<Dims> all;
  all.reserve(facts.size());
  for (const SizeFacts* each : facts) all.push_back(each->at(i).*list);
  return all;
}

/// nullopt where the expressions would be too long.
std::optional<FollowingExtents> following(const SizeFact& fact, const std::vector<Extent>& numbers) {
  try {
    return fact.follow(numbers);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Is it what its numbers say, whatever the sizes are?
bool follows_always(const SizeFact& fact, const std::vector<Extent>& numbers,
                    const std::vector<Extent>& made) {
  if (!fact.follow) return false;
  const std::optional<FollowingExtents> all = following(fact, numbers);
  return all && all->are_exact && all->numbers == made;
}

}  // namespace

FollowedFacts::FollowedFacts(std::vector<const SizeFacts*> facts) : facts_(std::move(facts)) {
  for (std::size_t i = 0; i < facts_.at(0)->size(); ++i)
    if (facts_[0]->at(i).follow) waiting_.push_back(i);
}

void FollowedFacts::tell(ExtentFit& fit) {
  std::erase_if(waiting_, [&](std::size_t number) { return tell_one(number, fit); });
}

/// False where its numbers have no expressions yet.
bool FollowedFacts::tell_one(std::size_t number, ExtentFit& fit) const {
  const auto numbers = fit.of_each(at_points(facts_, number, &SizeFact::numbers), Certainty::told);
  if (!numbers) return false;
  const std::optional<FollowingExtents> made = following(facts_[0]->at(number), *numbers);
  if (!made) return true;
  for (const Extent& each : made->sizes) fit.suggest(each);
  for (const Extent& each : made->numbers) fit.tell(each);
  return true;
}

std::optional<SizeDecisions> SizeDecisions::of(const std::vector<const SizeFacts*>& facts, ExtentFit& fit,
                                               const std::vector<Extent>& said) {
  SizeDecisions result;
  std::set<std::pair<std::string, std::vector<Extent>>> known;
  for (std::size_t i = 0; i < facts.at(0)->size(); ++i) {
    const SizeFact& first = facts[0]->at(i);
    const auto numbers = fit.of_each(at_points(facts, i, &SizeFact::numbers));
    const auto made = fit.of_each(at_points(facts, i, &SizeFact::decision));
    if ((!numbers || !made) && first.follow) continue;  // no plan is made of it
    if (!numbers || !made) return std::nullopt;
    if (follows_always(first, *numbers, *made)) continue;
    if (known.emplace(first.rule, *numbers).second)
      result.decisions_.push_back({*numbers, *made, first.decide});
  }
  std::map<Extent, Extent> equal = fit.equalities();
  for (const Extent& each : said)
    if (const std::optional<Extent> found = fit.of_expression(each); found && *found != each)
      equal.try_emplace(each, *found);
  for (const auto& [one, other] : equal)
    result.decisions_.push_back({{one}, {other}, [](const Dims& numbers) { return numbers; }});
  return result;
}

bool SizeDecisions::Decision::holds_at(const SymbolValues& sizes) const {
  return decide(extents_at(numbers, sizes)) == extents_at(made, sizes);
}

bool SizeDecisions::hold_at(const SymbolValues& sizes) const {
  return std::ranges::all_of(decisions_, [&](const Decision& each) { return each.holds_at(sizes); });
}

bool SizeDecisions::all_of(const Visit& visit) const {
  return std::ranges::all_of(decisions_, [&](const Decision& each) {
    std::set<std::string> symbols;
    for (const std::vector<Extent>* all : {&each.numbers, &each.made})
      for (const Extent& number : *all)
        for (const std::string& name : number.symbols()) symbols.insert(name);
    return visit({symbols.begin(), symbols.end()},
                 [&](const SymbolValues& sizes) { return each.holds_at(sizes); });
  });
}

}  // namespace sylvite
