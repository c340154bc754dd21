#include "schedules/directives/even_odd_lanes.h"

#include <set>
#include <string>
#include <vector>

#include "lowering/algorithms/bf16_rounding.h"

namespace sylvite {
namespace {

using Halide::Expr;
using namespace Halide::Internal;  // NOLINT(google-build-using-namespace): its node types

constexpr int lanes = even_odd_lanes;
constexpr int half = lanes / 2;  // words of a vector register
constexpr int bf16_bits = 16;

/// Vectors of 32 bits a lane are divided into even and odd ones, those of 16 bits are in order.
bool is_vector(const Halide::Type& type) {
  return type.bits() == 32 && type.lanes() == lanes;
}

/// From lanes in order: the even ones, then the odd ones.
Expr divided(const Expr& vector) {
  std::vector<int> places;
  places.reserve(lanes);
  for (int i = 0; i < lanes; ++i) places.push_back(i % half * 2 + i / half);
  return Shuffle::make({vector}, places);
}

/// Back into order.
Expr in_order(const Expr& vector) {
  std::vector<int> places;
  places.reserve(lanes);
  for (int i = 0; i < lanes; ++i) places.push_back(i / 2 + i % 2 * half);
  return Shuffle::make({vector}, places);
}

class EvenOddLanes : public IRMutator {
 public:
  using IRMutator::mutate;
  Stmt mutate(const Stmt& statement) override {
    ++depth_;
    Stmt result = IRMutator::mutate(statement);
    return --depth_ == 0 && !fits_ ? statement : result;
  }

 protected:
  using IRMutator::visit;

  /// bf16 as words with its bits on top: 32 lanes of them are 16 words with two each.
  Expr visit(const Call* call) override {
    if (is_bf16_rounding(*call) && is_vector(call->args[0].type())) return in_order(IRMutator::visit(call));
    const bool widens = call->is_intrinsic(Call::widening_shift_left) &&
                        call->type.element_of() == Halide::UInt(32) && call->type.lanes() == lanes &&
                        is_const(call->args[1], bf16_bits);
    if (!widens) return IRMutator::visit(call);
    const std::string name = unique_name("pairs");
    const Halide::Type words = Halide::UInt(32, half);
    const Expr pairs = Variable::make(words, name);
    const Expr upper = Halide::Internal::make_const(words, 0xffff0000U);
    return Let::make(name, Reinterpret::make(words, mutate(call->args[0])),
                     Shuffle::make_concat({pairs << make_const(words, bf16_bits), pairs & upper}));
  }
  Stmt visit(const Allocate* allocate) override {
    own_.insert(allocate->name);
    return IRMutator::visit(allocate);
  }
  Expr visit(const Load* load) override {
    if (load->type.lanes() == lanes && !is_vector(load->type)) check(is_narrow(load->type));
    if (!is_vector(load->type) || own_.contains(load->name)) {
      if (is_vector(load->type)) check_place(load->index);
      return load;
    }
    return divided(load);
  }
  Stmt visit(const Store* store) override {
    const Expr value = mutate(store->value);
    const bool is_own = own_.contains(store->name);
    if (is_vector(value.type()) && is_own) check_place(store->index);
    const bool leaves = is_vector(value.type()) && !is_own;
    return Store::make(store->name, leaves ? in_order(value) : value, store->index, store->param,
                       store->predicate, store->alignment);
  }

  // What knows one lane from the other.
  Expr visit(const Ramp* ramp) override {
    check(ramp->lanes != lanes);
    return IRMutator::visit(ramp);
  }
  Expr visit(const Broadcast* broadcast) override {
    check(broadcast->type.lanes() != lanes || broadcast->value.type().is_scalar());
    return IRMutator::visit(broadcast);
  }
  Expr visit(const Shuffle* shuffle) override {
    check(shuffle->type.lanes() != lanes);
    for (const Expr& vector : shuffle->vectors) check(vector.type().lanes() != lanes);
    return IRMutator::visit(shuffle);
  }
  Expr visit(const Cast* cast) override {
    const Halide::Type from = cast->value.type();
    if (is_vector(from) && is_narrow(cast->type)) return in_order(IRMutator::visit(cast));
    check(cast->type.lanes() != lanes || from.bits() == cast->type.bits());
    return IRMutator::visit(cast);
  }
  Expr visit(const Select* select) override {
    // Stored bf16 is in order, a condition on vectors of f32 is not.
    if (is_narrow(select->type) && select->type.lanes() == lanes)
      check(select->condition.as<Broadcast>() != nullptr || select->condition.type().is_scalar());
    return IRMutator::visit(select);
  }

  // Stored bf16 is compared in order, too.
  Expr visit(const EQ* op) override { return compared(op); }
  Expr visit(const NE* op) override { return compared(op); }
  Expr visit(const LT* op) override { return compared(op); }
  Expr visit(const LE* op) override { return compared(op); }
  Expr visit(const GT* op) override { return compared(op); }
  Expr visit(const GE* op) override { return compared(op); }

 private:
  template <typename Comparison>
  Expr compared(const Comparison* op) {
    check(op->a.type().lanes() != lanes || is_vector(op->a.type()));
    return IRMutator::visit(op);
  }
  static bool is_narrow(const Halide::Type& type) { return type.bits() == bf16_bits; }

  void check(bool fits) { fits_ = fits_ && fits; }
  /// Vectors of the kernel's own f32 are always the same ones.
  void check_place(const Expr& index) {
    const Ramp* ramp = index.as<Ramp>();
    check(ramp != nullptr && is_const_one(ramp->stride));
    if (!fits_) return;
    const ModulusRemainder place = modulus_remainder(ramp->base);
    check(place.modulus % lanes == 0 && place.remainder % lanes == 0);
  }

  std::set<std::string> own_;  ///< allocations around
  bool fits_ = true;
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<IRMutator> even_odd_lanes_pass(const Algorithm& /*algorithm*/, const Decision& /*decision*/,
                                               const std::string& /*target*/) {
  return std::make_unique<EvenOddLanes>();
}

}  // namespace sylvite
