#include "runtime/tails.h"

#include <algorithm>

#include "runtime/background.h"
#include "runtime/family.h"

namespace sylvite {

struct Tails::Member {
  explicit Member(const std::function<Family(const std::stop_token&)>& make) : making(make) {}

  [[nodiscard]] Tails* next() const { return family ? family->latest().tails.get() : nullptr; }

  std::optional<Family> family;  ///< once it is ready
  Background<Family> making;
};

Tails::Tails(const std::shared_ptr<const Setup>& setup) : setup_(without_tuning(setup)) {}
Tails::~Tails() = default;

std::optional<std::vector<HostValue>> Tails::run(const std::shared_ptr<const ParsedModel>& tail,
                                                 const std::vector<HostValue>& inputs) {
  auto found = members_.find(tail);
  if (found == members_.end()) {
    // Those that were made anew are of no use any more.
    std::erase_if(members_, [](const auto& each) { return each.first.use_count() == 1; });
    auto member = std::make_unique<Member>([model = open_model(*tail, setup_)](const std::stop_token& stop) {
      Family family(model);
      (void)family.add(bind_sizes(model, first_sizes(model.parsed.sizes)), choose_known, stop);
      return family;
    });
    found = members_.emplace(tail, std::move(member)).first;
  }
  Member& member = *found->second;
  const bool waits = setup_->config.first_answer == FirstAnswer::best;
  if (!member.family) {
    if (!waits && !member.making.is_ready()) return std::nullopt;
    member.family = member.making.take();
  }
  Built* built = waits ? &member.family->of(inputs) : member.family->compiled_of(inputs);
  if (built == nullptr) return std::nullopt;
  return run_values(*built, inputs);
}

void Tails::wait() {
  for (const auto& [tail, member] : members_) {
    if (!member->family) {
      member->making.wait();
      continue;
    }
    member->family->wait();
    if (Tails* next = member->next()) next->wait();
  }
}

void Tails::stop() {
  members_.clear();
}

bool Tails::is_compiling() const {
  return std::ranges::any_of(members_, [](const auto& each) {
    const Member& member = *each.second;
    if (!member.family) return member.making.is_mine() && !member.making.is_ready();
    const Tails* next = member.next();
    return member.family->is_compiling() || (next != nullptr && next->is_compiling());
  });
}

}  // namespace sylvite
