#include "schedules/directives/merge_checks.h"

#include <string>
#include <vector>

namespace sylvite {
namespace {

using namespace Halide;
using namespace Halide::Internal;

/// A definition or a check, in their order. A definition has a name.
struct Step {
  std::string name;
  Expr value;  ///< of a definition
  Stmt check;  ///< else an AssertStmt
};

class FollowsPointers : public IRVisitor {
 public:
  bool found = false;

 protected:
  using IRVisitor::visit;
  void visit(const Call* call) override {
    found = found || !call->is_pure();  // as those that read a buffer's fields
    IRVisitor::visit(call);
  }
  void visit(const Load* load) override {
    found = true;
    IRVisitor::visit(load);
  }
};

/// Does it do more than compute with numbers that are known?
bool follows_pointers(const Expr& value) {
  FollowsPointers visitor;
  value.accept(&visitor);
  return visitor.found;
}

/// What stands in front of the work, and the work.
std::vector<Step> entry_steps(Stmt& rest) {
  std::vector<Step> steps;
  std::vector<Stmt> later;  // the last one is next
  for (;;) {
    if (const auto* let = rest.as<LetStmt>(); let != nullptr && later.empty()) {
      steps.push_back({let->name, let->value, {}});
      rest = let->body;
    } else if (const auto* block = rest.as<Block>()) {
      later.push_back(block->rest);
      rest = block->first;
    } else if (const auto* check = rest.as<AssertStmt>(); check != nullptr && !later.empty()) {
      steps.push_back({"", {}, rest});
      rest = later.back();
      later.pop_back();
    } else {
      break;
    }
  }
  for (; !later.empty(); later.pop_back()) rest = Block::make(rest, later.back());
  return steps;
}

/// One check for several; a single one stays as it is.
Stmt one_check(const std::vector<Step>& checks) {
  if (checks.size() == 1) return checks[0].check;
  Expr all;
  for (const Step& step : checks) {
    const Expr& condition = step.check.as<AssertStmt>()->condition;
    all = all.defined() ? all && condition : condition;
  }
  const Expr message =
      Call::make(Int(32), "halide_error_requirement_failed",
                 {Expr("the bounds of its buffers"), Expr("a buffer is not as the kernel was compiled for")},
                 Call::Extern);
  return AssertStmt::make(all, message);
}

/// With checks as late as they may be: in front of the next definition that follows a pointer, or of the work.
std::vector<Step> with_merged_checks(const std::vector<Step>& steps) {
  std::vector<Step> merged, checks;
  const auto put_checks = [&] {
    if (!checks.empty()) merged.push_back({"", {}, one_check(checks)});
    checks.clear();
  };
  for (const Step& step : steps) {
    const bool is_check = step.name.empty();
    if (!is_check && follows_pointers(step.value)) put_checks();
    (is_check ? checks : merged).push_back(step);
  }
  put_checks();
  return merged;
}

}  // namespace

Stmt MergeChecks::mutate(const Stmt& entry) {
  Stmt result = entry;
  const std::vector<Step> steps = with_merged_checks(entry_steps(result));
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    result = step->name.empty() ? Block::make(step->check, result)
                                : LetStmt::make(step->name, step->value, result);
  return result;
}

}  // namespace sylvite
