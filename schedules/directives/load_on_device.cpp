#include "schedules/directives/load_on_device.h"

namespace sylvite {
namespace {

using namespace Halide::Internal;  // NOLINT(google-build-using-namespace): its node types

class HasLoad : public IRVisitor {
 public:
  bool found = false;

 protected:
  using IRVisitor::visit;
  void visit(const Load* /*load*/) override { found = true; }
};

class HasGpuLoop : public IRVisitor {
 public:
  bool found = false;

 protected:
  using IRVisitor::visit;
  void visit(const For* loop) override {
    found = found || is_gpu(loop->for_type);
    if (!found) IRVisitor::visit(loop);
  }
};

template <typename Search, typename Node>
bool has(const Node& node) {
  Search search;
  node.accept(&search);
  return search.found;
}

}  // namespace

Stmt LoadOnDevice::visit(const LetStmt* let) {
  if (has<HasLoad>(let->value) && has<HasGpuLoop>(let->body))
    return mutate(substitute(let->name, let->value, let->body));
  return IRMutator::visit(let);
}

Stmt LoadOnDevice::visit(const AssertStmt* check) {
  return has<HasLoad>(check->condition) ? Evaluate::make(0) : IRMutator::visit(check);
}

}  // namespace sylvite
