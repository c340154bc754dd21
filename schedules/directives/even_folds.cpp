#include "schedules/directives/even_folds.h"

#include <bit>

namespace sylvite {

using namespace Halide::Internal;

namespace {

/// Is a sum one of narrow floats, which processors add up in pairs?
class NarrowFloats : public IRVisitor {
 public:
  bool found = false;

 protected:
  using IRVisitor::visit;
  void visit(const Cast* cast) override {
    found = found || (cast->value.type().is_float() && cast->value.type().bits() < 32);
    IRVisitor::visit(cast);
  }
  void visit(const Call* call) override {
    found = found || (call->type.is_float() && call->type.bits() < 32);
    IRVisitor::visit(call);
  }
};

bool has_narrow_floats(const Halide::Expr& value) {
  NarrowFloats visitor;
  value.accept(&visitor);
  return visitor.found;
}

Halide::Expr combined(VectorReduce::Operator op, const Halide::Expr& a, const Halide::Expr& b) {
  if (op == VectorReduce::Add) return Add::make(a, b);
  return op == VectorReduce::Max ? Max::make(a, b) : Min::make(a, b);
}

/// The first lanes of a value, as many as the largest power of two below their number, with the last ones. Named, so that the value
/// is computed once.
Halide::Expr folded(VectorReduce::Operator op, const Halide::Expr& value) {
  const int lanes = value.type().lanes();
  if (lanes == 1) return value;
  const int kept = static_cast<int>(std::bit_floor(static_cast<unsigned>(lanes - 1)));
  const std::string name = unique_name("folded");
  const Halide::Expr lane = Variable::make(value.type(), name);
  const auto slice = [&](int first) {
    return kept == 1 ? Shuffle::make_extract_element(lane, first) : Shuffle::make_slice(lane, first, 1, kept);
  };
  return Let::make(name, value, folded(op, combined(op, slice(0), slice(lanes - kept))));
}

}  // namespace

Halide::Expr EvenFolds::visit(const VectorReduce* fold) {
  const auto lanes = static_cast<unsigned>(fold->value.type().lanes());
  const bool is_sum = fold->op == VectorReduce::Add;
  const bool is_fold = is_sum || fold->op == VectorReduce::Max || fold->op == VectorReduce::Min;
  const bool fits = is_fold && fold->type.is_scalar() && fold->type.is_float() && fold->type.bits() >= 32;
  if (!fits || (is_sum && (!std::has_single_bit(lanes) || has_narrow_floats(fold->value))))
    return IRMutator::visit(fold);
  return folded(fold->op, mutate(fold->value));
}

}  // namespace sylvite
