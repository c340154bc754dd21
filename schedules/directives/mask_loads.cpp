#include "schedules/directives/mask_loads.h"

#include <algorithm>
#include <utility>

namespace sylvite {
namespace {

using namespace Halide;
using namespace Halide::Internal;

/// Adds a - b for every a >= b that a condition, or its opposite, says of integers.
void add_differences(const Expr& condition, bool holds, std::vector<Expr>& differences) {
  if (const auto* both = condition.as<And>(); both != nullptr && holds) {
    add_differences(both->a, holds, differences);
    add_differences(both->b, holds, differences);
  } else if (const auto* either = condition.as<Or>(); either != nullptr && !holds) {
    add_differences(either->a, holds, differences);
    add_differences(either->b, holds, differences);
  } else if (const auto* no = condition.as<Not>()) {
    add_differences(no->a, !holds, differences);
  } else if (const auto* less = condition.as<LT>(); less != nullptr && less->a.type().is_int()) {
    differences.push_back(holds ? less->b - less->a - 1 : less->a - less->b);
  } else if (const auto* most = condition.as<LE>(); most != nullptr && most->a.type().is_int()) {
    differences.push_back(holds ? most->b - most->a : most->a - most->b - 1);
  }
}

/// Leaves out clamps that change nothing where the differences are not negative.
class WithoutClamps : public IRMutator {
 public:
  explicit WithoutClamps(const std::vector<Expr>& differences) : differences_(differences) {}
  using IRMutator::mutate;

 protected:
  // What is inside first: of a clamp to both sides, the outer one is seen to change nothing once the inner one is gone.
  Expr visit(const Max* max) override {
    Expr a = mutate(max->a), b = mutate(max->b);
    if (is_known(a, b)) return a;
    return is_known(b, a) ? b : Max::make(a, b);
  }
  Expr visit(const Min* min) override {
    Expr a = mutate(min->a), b = mutate(min->b);
    if (is_known(b, a)) return a;
    return is_known(a, b) ? b : Min::make(a, b);
  }

 private:
  [[nodiscard]] bool is_known(const Expr& larger, const Expr& smaller) const {
    return std::ranges::any_of(differences_, [&](const Expr& difference) {
      if (difference.type().lanes() != larger.type().lanes()) return false;
      const Expr more = simplify(larger - smaller - difference);
      return is_const_zero(more) || is_positive_const(more);
    });
  }

  const std::vector<Expr>& differences_;
};

}  // namespace

Expr MaskLoads::branch(const Expr& condition, bool holds, const Expr& value) {
  const Expr here = holds ? condition : !condition;
  const bool joins =
      guard_.defined() && guard_.type().lanes() == here.type().lanes();  // not below reductions of vectors
  const Expr outer = std::exchange(guard_, joins ? guard_ && here : here);
  const std::size_t known = differences_.size();
  add_differences(condition, holds, differences_);
  Expr result = mutate(value);
  differences_.resize(known);
  guard_ = outer;
  return result;
}

Expr MaskLoads::visit(const Select* select) {
  if (!select->condition.type().is_vector()) return IRMutator::visit(select);
  return Select::make(mutate(select->condition), branch(select->condition, true, select->true_value),
                      branch(select->condition, false, select->false_value));
}

Expr MaskLoads::visit(const Load* load) {
  const bool fits = guard_.defined() && load->type.lanes() == guard_.type().lanes() &&
                    load->type.bits() >= 32 && is_const_one(load->predicate) &&
                    load->index.as<Ramp>() == nullptr;
  if (!fits) return IRMutator::visit(load);
  const Expr index = simplify(WithoutClamps(differences_).mutate(load->index));
  const auto* ramp = index.as<Ramp>();
  if (ramp == nullptr || !is_const_one(ramp->stride)) return IRMutator::visit(load);
  return Load::make(load->type, load->name, index, load->image, load->param, guard_, ModulusRemainder());
}

}  // namespace sylvite
