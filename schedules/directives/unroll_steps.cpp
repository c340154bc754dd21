#include "schedules/directives/unroll_steps.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lowering/algorithms/algorithm.h"
#include "schedules/directives/amx_tiles.h"
#include "schedules/directives/prefetch.h"

namespace sylvite {
namespace {

using Halide::Expr;
using namespace Halide::Internal;  // NOLINT(google-build-using-namespace): its node types

/// `body` for every iteration of the loop.
std::vector<Stmt> copies_of(const For& loop, std::int64_t extent) {
  std::vector<Stmt> copies;
  copies.reserve(static_cast<std::size_t>(extent));
  for (std::int64_t i = 0; i < extent; ++i)
    copies.push_back(substitute(loop.name, simplify(loop.min + static_cast<int>(i)), loop.body));
  return copies;
}

/// What is constant now that all steps around it are: whether a step has a share of an epilogue, and how long
/// that is.
class UnrollShares : public IRMutator {
 protected:
  using IRMutator::visit;
  Stmt visit(const IfThenElse* op) override {
    const Expr condition = simplify(op->condition);
    if (is_const_one(condition)) return mutate(op->then_case);
    if (is_const_zero(condition)) return op->else_case.defined() ? mutate(op->else_case) : Evaluate::make(0);
    return IRMutator::visit(op);
  }
  Stmt visit(const For* op) override {
    constexpr std::int64_t most = 8;
    const auto extent = as_const_int(simplify(op->extent));
    const bool is_short = extent && *extent > 0 && *extent <= most;
    if (!is_short || op->for_type != ForType::Serial || has_amx_products(op)) return IRMutator::visit(op);
    return mutate(Block::make(copies_of(*op, *extent)));
  }
};

/// The first tile that a step loads, as a prefetch.
class FirstTile : public IRVisitor {
 public:
  Stmt touch;
  bool has_prefetch = false;

 protected:
  using IRVisitor::visit;
  void visit(const IfThenElse*) override {}  // not in every step
  void visit(const Call* op) override {
    has_prefetch = has_prefetch || op->name == prefetch_name;
    if (op->name == amx_tile_load && !touch.defined())
      touch = prefetch(op->args[2].as<Variable>()->name, op->args[3], PrefetchInto::l1);
    IRVisitor::visit(op);
  }
};

/// Behind what LLVM takes for a change of memory. Steps of a window load the same lines: LLVM would keep
/// those tiles until they are used again, for which there are no registers.
Stmt with_tiles_loaded_anew(const Stmt& step) {
  FirstTile first;
  step.accept(&first);
  return first.has_prefetch || !first.touch.defined() ? step : Block::make(first.touch, step);
}

class UnrollSteps : public IRMutator {
 public:
  UnrollSteps(std::string stage, std::int64_t most) : stage_(std::move(stage)), most_(most) {}

 protected:
  using IRMutator::visit;
  Stmt visit(const For* op) override {
    copies_ = 1;
    Stmt result = IRMutator::visit(op);
    if (!op->name.starts_with(stage_) || !has_amx_products(op)) return result;
    const auto* loop = result.as<For>();
    const auto extent = as_const_int(simplify(op->extent));
    if (loop == nullptr || op->for_type != ForType::Serial || !extent || copies_ * *extent > most_)
      return result;
    std::vector<Stmt> copies = copies_of(*loop, *extent);
    if (copies_ == 1) std::ranges::transform(copies, copies.begin(), with_tiles_loaded_anew);
    copies_ *= *extent;
    return UnrollShares().mutate(Block::make(copies));
  }

 private:
  std::string stage_;  ///< as its loops begin
  std::int64_t most_;
  std::int64_t copies_ = 1;  ///< of a step, that the loops inside the one just visited have made
};

}  // namespace

void check_unroll_steps(const Algorithm& /*algorithm*/, const Decision& decision) {
  (void)decision.number(0);
}

std::unique_ptr<IRMutator> unroll_steps_pass(const Algorithm& algorithm, const Decision& decision,
                                             const std::string& /*target*/) {
  const std::string stage = algorithm.stages.at(decision.stage).name() + ".s1.";
  return std::make_unique<UnrollSteps>(stage, decision.number(0));
}

}  // namespace sylvite
