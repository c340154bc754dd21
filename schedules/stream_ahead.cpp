#include "schedules/stream_ahead.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"

namespace sylvite {
namespace {

using Halide::Expr;
using namespace Halide::Internal;  // NOLINT(google-build-using-namespace): its node types

constexpr int line_floats = 16;  // of a cache line

/// Full vectors of the weight that a loop's body loads, each once; and whether it has loops of its own.
class WeightLoads : public IRVisitor {
 public:
  explicit WeightLoads(const std::string& weight) : weight_(weight) {}
  std::vector<const Ramp*> ramps;
  bool has_loops = false;

 protected:
  using IRVisitor::visit;
  void visit(const For* op) override {
    has_loops = true;
    IRVisitor::visit(op);
  }
  void visit(const Load* op) override {
    const Ramp* ramp = op->index.as<Ramp>();
    if (op->name == weight_ && ramp != nullptr && is_const_one(ramp->stride)) {
      const bool known = std::any_of(ramps.begin(), ramps.end(),
                                     [&](const Ramp* other) { return equal(other->base, ramp->base); });
      if (!known) ramps.push_back(ramp);
    }
    IRVisitor::visit(op);
  }

 private:
  const std::string& weight_;
};

/// What one decision asks for, in the names of lowered code.
struct Request {
  std::string loop;
  std::string weight;
  int distance = 1;
};

/// The loop's name in lowered code: Halide adds the names of the loops it was split from.
std::string loop_name(const Halide::Func& stage, const std::string& loop) {
  for (const Halide::Internal::Dim& dim : stage.function().definition().schedule().dims()) {
    if (dim.var == loop || dim.var.ends_with("." + loop)) return stage.name() + ".s0." + dim.var;
  }
  throw CompileError("stage '{}' has no loop '{}'", stage.name(), loop);
}

class StreamAheadPass : public IRMutator {
 public:
  explicit StreamAheadPass(Request request) : request_(std::move(request)) {}

 protected:
  using IRMutator::visit;
  Stmt visit(const For* op) override {
    if (op->name == request_.loop) outer_ = op;
    WeightLoads loads(request_.weight);
    op->body.accept(&loads);
    Stmt result = loads.ramps.empty() || loads.has_loops ? IRMutator::visit(op) : with_prefetches(op, loads);
    if (op->name == request_.loop) outer_ = nullptr;
    return result;
  }

 private:
  Stmt with_prefetches(const For* op, const WeightLoads& loads) const {
    const Expr repeats = outer_ != nullptr ? outer_->extent : Expr(1);
    const std::optional<std::int64_t> steps = as_const_int(op->extent);
    const std::optional<std::int64_t> rounds = as_const_int(repeats);
    if (!steps || !rounds) return Stmt(op);
    const int floats = static_cast<int>(loads.ramps.size()) * loads.ramps[0]->lanes;  // in a step
    const Expr step = Variable::make(Halide::Int(32), op->name) - op->min;
    const Expr start = substitute(op->name, op->min, loads.ramps[0]->base);
    const int rounds_int = static_cast<int>(*rounds);
    Expr place = step;
    if (outer_ != nullptr) {
      const Expr round = Variable::make(Halide::Int(32), outer_->name) - outer_->min;
      place = round * static_cast<int>(*steps) + step;
    }
    place = start + request_.distance * floats * static_cast<int>(*steps) + place * floats / rounds_int;
    const int lines = std::max(1, floats / line_floats / rounds_int);
    Stmt body = op->body;
    for (int line = lines; line-- > 0;) body = Block::make(prefetch(place + line * line_floats), body);
    return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api, body);
  }

  [[nodiscard]] Stmt prefetch(const Expr& index) const {
    const Expr base = Variable::make(Halide::Handle(), request_.weight);
    return Evaluate::make(
        Call::make(Halide::Float(32), Call::prefetch, {base, simplify(index), 1, 1}, Call::Intrinsic));
  }

  Request request_;
  const For* outer_ = nullptr;
};

}  // namespace

void add_stream_ahead(const Schedule& schedule, const Algorithm& algorithm, Halide::Pipeline& pipeline) {
  for (const Decision& decision : schedule.decisions) {
    if (decision.directive != stream_ahead_directive) continue;
    const Halide::Func& stage = algorithm.stages.at(decision.stage);
    const std::string loop = loop_name(stage, decision.arguments.at(0));
    pipeline.add_custom_lowering_pass(  // NOLINT(cppcoreguidelines-owning-memory): the pipeline owns it
        new StreamAheadPass({loop, decision.arguments.at(1), std::stoi(decision.arguments.at(2))}));
  }
}

}  // namespace sylvite
