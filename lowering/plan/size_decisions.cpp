#include "lowering/plan/size_decisions.h"

#include <algorithm>
#include <set>
#include <utility>

#include "frontend/values/extents_at.h"

namespace sylvite {

std::optional<SizeDecisions> SizeDecisions::of(const std::vector<const SizeFacts*>& facts, ExtentFit& fit) {
  SizeDecisions result;
  std::set<std::pair<std::string, std::vector<Extent>>> known;
  for (std::size_t i = 0; i < facts.at(0)->size(); ++i) {
    const SizeFact& first = facts[0]->at(i);
    Decision decision{{}, first.decision, first.decide};
    for (std::size_t number = 0; number < first.numbers.size(); ++number) {
      std::vector<std::int64_t> values;
      values.reserve(facts.size());
      for (const SizeFacts* each : facts) values.push_back(each->at(i).numbers.at(number));
      const std::optional<Extent> found = fit.of(values);
      if (!found) return std::nullopt;
      decision.numbers.push_back(*found);
    }
    if (known.emplace(first.rule, decision.numbers).second) result.decisions_.push_back(std::move(decision));
  }
  return result;
}

bool SizeDecisions::Decision::holds_at(const SymbolValues& sizes) const {
  return decide(extents_at(numbers, sizes)) == made;
}

bool SizeDecisions::hold_at(const SymbolValues& sizes) const {
  return std::ranges::all_of(decisions_, [&](const Decision& each) { return each.holds_at(sizes); });
}

bool SizeDecisions::all_of(const Visit& visit) const {
  return std::ranges::all_of(decisions_, [&](const Decision& each) {
    std::set<std::string> symbols;
    for (const Extent& number : each.numbers)
      for (const std::string& name : number.symbols()) symbols.insert(name);
    return visit({symbols.begin(), symbols.end()},
                 [&](const SymbolValues& sizes) { return each.holds_at(sizes); });
  });
}

}  // namespace sylvite
