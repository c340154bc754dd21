#include "schedules/directives/skip_idle.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lowering/algorithms/algorithm.h"

namespace sylvite {
namespace {

using Halide::Expr;
using namespace Halide::Internal;  // NOLINT(google-build-using-namespace): its node types

/// What an iteration makes, and the only condition under which it stores into what outlives it.
class Iteration : public IRVisitor {
 public:
  Expr condition;            ///< in terms of what is outside of the iteration, if it can be
  bool is_idle_else = true;  ///< everything else lies in memory of its own
  std::set<std::string> stored;

 protected:
  using IRVisitor::visit;
  void visit(const Allocate* op) override {
    own_.insert(op->name);
    IRVisitor::visit(op);
  }
  void visit(const Store* op) override {
    stored.insert(op->name);
    if (!own_.contains(op->name) && !is_conditional_) is_idle_else = false;
    IRVisitor::visit(op);
  }
  void visit(const LetStmt* op) override {
    lets_.emplace_back(op->name, op->value);
    IRVisitor::visit(op);
    lets_.pop_back();
  }
  void visit(const IfThenElse* op) override {
    Expr outside = op->condition;
    for (std::size_t i = lets_.size(); i-- > 0;)
      outside = substitute(lets_[i].first, lets_[i].second, outside);
    const bool is_same = condition.defined() && equal(condition, outside);
    if (is_conditional_ || op->else_case.defined() || (condition.defined() && !is_same))
      return IRVisitor::visit(op);
    condition = outside;
    is_conditional_ = true;
    IRVisitor::visit(op);
    is_conditional_ = false;
  }

 private:
  std::set<std::string> own_;
  std::vector<std::pair<std::string, Expr>> lets_;
  bool is_conditional_ = false;
};

/// Does an expression read what is stored, or a variable of the loops inside?
class Reads : public IRVisitor {
 public:
  std::set<std::string> buffers;
  std::set<std::string> variables;

 protected:
  using IRVisitor::visit;
  void visit(const Load* op) override {
    buffers.insert(op->name);
    IRVisitor::visit(op);
  }
  void visit(const Variable* op) override { variables.insert(op->name); }
};

class InnerLoops : public IRVisitor {
 public:
  std::set<std::string> names;

 protected:
  using IRVisitor::visit;
  void visit(const For* op) override {
    names.insert(op->name);
    IRVisitor::visit(op);
  }
};

bool meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  for (const std::string& each : a)
    if (b.contains(each)) return true;
  return false;
}

class SkipIdle : public IRMutator {
 public:
  explicit SkipIdle(std::string loop) : loop_(std::move(loop)) {}

 protected:
  using IRMutator::visit;
  Stmt visit(const For* op) override {
    if (op->name != loop_) return IRMutator::visit(op);
    Iteration iteration;
    op->body.accept(&iteration);
    if (!iteration.condition.defined() || !iteration.is_idle_else) return op;
    Reads reads;
    iteration.condition.accept(&reads);
    InnerLoops inner;
    op->body.accept(&inner);
    if (meet(reads.buffers, iteration.stored) || meet(reads.variables, inner.names)) return op;
    return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api,
                     IfThenElse::make(iteration.condition, op->body));
  }

 private:
  std::string loop_;
};

}  // namespace

std::unique_ptr<IRMutator> skip_idle_pass(const Algorithm& algorithm, const Decision& decision,
                                          const std::string& /*target*/) {
  const std::string& func = algorithm.stages.at(decision.stage).name();
  return std::make_unique<SkipIdle>(func + ".s" + std::to_string(decision.update + 1) + "." +
                                    decision.arguments.at(0));
}

}  // namespace sylvite
