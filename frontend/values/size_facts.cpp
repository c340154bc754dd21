#include "frontend/values/size_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace sylvite {
namespace {

thread_local NotedSizeFacts* noted = nullptr;

}  // namespace

NotedSizeFacts::NotedSizeFacts(bool are_open)
    : before_(std::exchange(noted, this)), are_open_(are_open) {}

NotedSizeFacts::~NotedSizeFacts() {
  noted = before_;
}

bool sizes_are_open() {
  return noted != nullptr && noted->are_open_;
}

Dims decide_by_sizes(std::string rule, Dims numbers, std::function<Dims(const Dims&)> decide,
                     DecisionAsExtents follow) {
  Dims decision = decide(numbers);
  if (noted != nullptr)
    noted->facts_.push_back(
        {std::move(rule), std::move(numbers), decision, std::move(decide), std::move(follow)});
  return decision;
}

std::string decisions_text(const SizeFacts& facts) {
  std::string text;
  for (const SizeFact& fact : facts)
    text +=
        fact.follow ? fact.rule + '\n' : fmt::format("{}: {}\n", fact.rule, fmt::join(fact.decision, " "));
  return text;
}

}  // namespace sylvite
