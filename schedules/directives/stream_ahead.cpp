#include "schedules/directives/stream_ahead.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "schedules/directives/amx_tiles.h"
#include "schedules/directives/prefetch.h"

namespace sylvite {
namespace {

using Halide::Expr;
using namespace Halide::Internal;  // NOLINT(google-build-using-namespace): its node types

constexpr int line_bytes = 64;  // of a cache line

using Lets = std::vector<std::pair<std::string, Expr>>;

/// The expression with these names replaced by their values, the last first.
Expr inlined(Expr expr, const Lets& lets) {
  for (std::size_t i = lets.size(); i-- > 0;) expr = substitute(lets[i].first, lets[i].second, expr);
  return expr;
}

std::optional<std::int64_t> known(const Expr& expr) {
  return as_const_int(simplify(expr));
}

/// How much further `expr` is for the next iteration of a loop, if it always is as much.
std::optional<std::int64_t> advance_of(const Expr& expr, const std::string& loop) {
  return known(substitute(loop, Variable::make(Halide::Int(32), loop) + 1, expr) - expr);
}

/// Where a loop's body loads full vectors or tiles of the weight, each place once; and whether it has loops
/// of its own.
class WeightLoads : public IRVisitor {
 public:
  explicit WeightLoads(const std::string& weight) : weight_(weight) {}
  std::vector<Expr> places;
  int lanes = 0;
  int element_bytes = 4;
  bool are_tiles = false;
  bool has_loops = false;

 protected:
  using IRVisitor::visit;
  void visit(const For* op) override {
    has_loops = true;
    IRVisitor::visit(op);
  }
  void visit(const LetStmt* op) override {
    lets_.emplace_back(op->name, op->value);
    IRVisitor::visit(op);
    lets_.pop_back();
  }
  void visit(const Load* op) override {
    const Ramp* ramp = op->index.as<Ramp>();
    if (op->name == weight_ && ramp != nullptr && is_const_one(ramp->stride))
      add(ramp->base, ramp->lanes, op->type.bytes());
    IRVisitor::visit(op);
  }
  void visit(const Call* op) override {
    const std::optional<AmxLoad> tile = dense_amx_load(*op);
    if (tile && tile->name == weight_) {
      add(tile->start, tile->elements, tile->element_bytes);
      are_tiles = true;
    }
    IRVisitor::visit(op);
  }

 private:
  void add(const Expr& start, int elements, int bytes) {
    const Expr place = inlined(start, lets_);
    const bool is_new =
        std::none_of(places.begin(), places.end(), [&](const Expr& other) { return equal(other, place); });
    if (is_new) places.push_back(place);
    lanes = elements;
    element_bytes = bytes;
  }

  const std::string& weight_;
  Lets lets_;
};

/// What one decision asks for, in the names of lowered code.
struct Request {
  std::string loop;
  std::string weight;
  int distance = 1;
};

/// Halide adds the names of the loops that a loop was split from to its own.
Request request_of(const Algorithm& algorithm, const Decision& decision) {
  const Halide::Internal::Function function = algorithm.stages.at(decision.stage).function();
  const auto& definition = decision.update < 0 ? function.definition() : function.update(decision.update);
  const std::string& loop = decision.arguments[0];
  for (const Halide::Internal::Dim& dim : definition.schedule().dims()) {
    if (dim.var != loop && !dim.var.ends_with("." + loop)) continue;
    return {fmt::format("{}.s{}.{}", function.name(), decision.update + 1, dim.var), decision.arguments[1],
            decision.number(2)};
  }
  throw CompileError("the stage has no loop '{}'", loop);
}

/// The largest value, if it is known. Tails of split loops are min(rest, factor).
std::optional<std::int64_t> most(const Expr& extent) {
  if (const auto* smaller = extent.as<Min>()) {
    const std::optional<std::int64_t> a = most(smaller->a);
    const std::optional<std::int64_t> b = most(smaller->b);
    return a && b ? std::min(*a, *b) : a ? a : b;
  }
  return as_const_int(extent);
}

/// Loads that follow each other: `elements` from `start` on in the first step, as many behind them in the
/// next.
struct Stream {
  Expr start;
  std::int64_t elements = 0;
  int parts = 1;  ///< slabs that follow each other
};

/// The loops around the loads of a slab.
struct Nest {
  std::vector<const For*> steps;    ///< they go through the slab
  std::int64_t length = 1;          ///< iterations of all steps
  Expr step = 0;                    ///< which of them runs
  Expr rounds = 1;                  ///< passes through the same slab
  Expr round = 0;                   ///< how many passes are over
  std::optional<std::string> next;  ///< the loop that goes on to the next slab
};

/// Which passes through a slab fetch parts of the next one: as many as there are or, where only a run tells that, the greatest power
/// of two that is not more, so that steps need no division.
struct Parts {
  explicit Parts(const Nest& nest) : round(nest.round) {
    if (const auto known_rounds = known(nest.rounds)) {
      rounds = *known_rounds;
      return;
    }
    shift = 31 - Halide::cast<int>(Halide::count_leading_zeros(Halide::max(nest.rounds, 1)));
    round = Halide::min(round, (Expr(1) << shift) - 1);
  }
  /// The part of `all` passes that one pass has.
  [[nodiscard]] Expr of(const Expr& all) const {
    return shift.defined() ? all >> shift : all / static_cast<int>(rounds);
  }

  std::int64_t rounds = 1;  ///< at least
  Expr shift;
  Expr round;
};

class StreamAheadPass : public IRMutator {
 public:
  explicit StreamAheadPass(Request request) : request_(std::move(request)) {}

 protected:
  using IRMutator::visit;
  Stmt visit(const For* op) override {
    const std::vector<const For*> outer_loops = loops_;
    const Lets outer_lets = lets_;
    if (op->is_parallel()) {  // what is outside does not change from one iteration to the next
      loops_.clear();
      lets_.clear();
    } else {
      loops_.push_back(op);
    }
    WeightLoads loads(request_.weight);
    op->body.accept(&loads);
    const bool is_inner = !loads.places.empty() && !loads.has_loops && !loops_.empty();
    Stmt result = is_inner ? with_prefetches(op, loads) : IRMutator::visit(op);
    loops_ = outer_loops;
    lets_ = outer_lets;
    return result;
  }
  Stmt visit(const LetStmt* op) override {
    lets_.emplace_back(op->name, op->value);
    Stmt result = IRMutator::visit(op);
    lets_.pop_back();
    return result;
  }

 private:
  [[nodiscard]] Stmt with_prefetches(const For* op, const WeightLoads& loads) const {
    std::vector<Stream> streams = side_by_side(loads);
    const std::optional<Nest> nest = nest_of(streams[0]);
    if (!nest) return Stmt(op);
    const Expr now = streams[0].start;
    for (Stream& stream : streams)
      for (const For* loop : nest->steps) stream.start = substitute(loop->name, loop->min, stream.start);
    const Expr done = now - streams[0].start;
    streams = one_after_another(streams, *nest);
    Stmt body = op->body;
    for (std::size_t i = streams.size(); i-- > 0;) {
      const std::optional<std::int64_t> slab = next_slab(streams[i], *nest, streams.size() == 1);
      if (!slab) return Stmt(op);
      const Stmt share = fetch_share(streams[i], loads, request_.distance * *slab, *nest, done);
      body = Block::make(share, body);
    }
    return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api, body);
  }

  /// One step's share of a stream's slab that lies `away`: `parts` times as many elements as are `done` in
  /// this pass, when the stream was made of so many. Where passes are so many that a step has less than a
  /// line, steps of tiles take turns: those are long enough for a test.
  [[nodiscard]] Stmt fetch_share(const Stream& stream, const WeightLoads& loads, std::int64_t away,
                                 const Nest& nest, const Expr& done) const {
    const Parts parts(nest);
    const Expr all = parts.round * static_cast<int>(nest.length * stream.elements) + done * stream.parts;
    const Expr place = stream.start + static_cast<int>(away) + parts.of(all);
    const int line = line_bytes / loads.element_bytes;
    const int lines_of_step = std::max(1, static_cast<int>(stream.elements) / line);
    std::vector<Stmt> fetches;
    for (int i = 0; i < std::max(1, lines_of_step / static_cast<int>(parts.rounds)); ++i)
      fetches.push_back(prefetch(request_.weight,
                                 Halide::cast<std::int64_t>(simplify(place + i * line)) * loads.element_bytes,
                                 PrefetchInto::l2));
    Stmt share = Block::make(fetches);
    const std::int64_t every = std::min<std::int64_t>(parts.rounds / lines_of_step, nest.length);
    if (!loads.are_tiles || every < 2) return share;
    return IfThenElse::make(simplify(nest.step % static_cast<int>(every) == 0), share);
  }

  /// Loads of one step; those that touch are one stream.
  [[nodiscard]] std::vector<Stream> side_by_side(const WeightLoads& loads) const {
    std::vector<std::pair<std::int64_t, Expr>> places;
    for (const Expr& place : loads.places) {
      const Expr whole = inlined(place, lets_);
      const auto offset = known(whole - inlined(loads.places[0], lets_));
      places.emplace_back(offset.value_or(0), whole);
    }
    std::stable_sort(places.begin(), places.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Stream> streams;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (i > 0 && places[i].first == places[i - 1].first + loads.lanes)
        streams.back().elements += loads.lanes;
      else
        streams.push_back({places[i].second, loads.lanes});
    return streams;
  }

  /// From the innermost loop outwards: those of its stage that go through the slab, those that repeat it, up
  /// to the one asked for, and the next. Nothing for a slab that is not dense.
  [[nodiscard]] std::optional<Nest> nest_of(const Stream& stream) const {
    Nest nest;
    bool is_over = false;
    for (std::size_t i = loops_.size(); i-- > 0 && !nest.next;) {
      const For* loop = loops_[i];
      is_over = is_over || stage_of(*loop) != stage_of(*loops_.back());
      if (!expr_uses_var(stream.start, loop->name)) {
        if (passed(i + 1)) continue;
        is_over = true;
        nest.round = nest.round + (Variable::make(Halide::Int(32), loop->name) - loop->min) * nest.rounds;
        const auto extent = most(loop->extent);
        nest.rounds = nest.rounds * (extent ? Expr(static_cast<int>(*extent)) : loop->extent);
      } else if (is_over) {
        nest.next = loop->name;
      } else {
        const auto extent = as_const_int(loop->extent);
        if (!extent || advance_of(stream.start, loop->name) != nest.length * stream.elements)
          return std::nullopt;
        nest.step = nest.step +
                    (Variable::make(Halide::Int(32), loop->name) - loop->min) * static_cast<int>(nest.length);
        nest.length *= *extent;
        nest.steps.push_back(loop);
      }
    }
    return nest.length > 1 ? std::optional(nest) : std::nullopt;
  }

  /// "v0_fold.s1" of the loop v0_fold.s1.r0.
  [[nodiscard]] static std::string stage_of(const For& loop) {
    const std::size_t stage = loop.name.find(".s");
    return loop.name.substr(0, loop.name.find('.', stage + 1));
  }

  /// Whether the loop asked for is among those from `first` on.
  [[nodiscard]] bool passed(std::size_t first) const {
    return std::any_of(loops_.begin() + static_cast<std::ptrdiff_t>(first), loops_.end(),
                       [&](const For* loop) { return loop->name == request_.loop; });
  }

  /// Slabs of several streams that follow each other are one longer slab.
  [[nodiscard]] static std::vector<Stream> one_after_another(const std::vector<Stream>& streams,
                                                             const Nest& nest) {
    for (std::size_t i = 1; i < streams.size(); ++i) {
      const auto gap = known(streams[i].start - streams[i - 1].start);
      if (gap != streams[i - 1].elements * nest.length) return streams;
    }
    Stream whole = streams[0];
    whole.parts = static_cast<int>(streams.size());
    whole.elements *= whole.parts;
    return {whole};
  }

  /// How far away the next slab is: as the loop around says, else right behind if all loads are in this one.
  [[nodiscard]] static std::optional<std::int64_t> next_slab(const Stream& stream, const Nest& nest,
                                                             bool is_only) {
    if (nest.next) {
      if (const auto advance = advance_of(stream.start, *nest.next)) return advance;
    }
    return is_only ? std::optional(stream.elements * nest.length) : std::nullopt;
  }

  Request request_;
  std::vector<const For*> loops_;  ///< around, the outermost first, inside one task
  Lets lets_;                      ///< as far
};

}  // namespace

void check_stream_ahead(const Algorithm& algorithm, const Decision& decision) {
  (void)request_of(algorithm, decision);
  const std::string& weight = decision.arguments[1];
  const bool known = std::ranges::any_of(
      algorithm.inputs, [&](const Halide::ImageParam& input) { return input.name() == weight; });
  if (!known) throw CompileError("no input is called '{}'", weight);
  if (decision.number(2) < 1) throw CompileError("a distance of {} is not ahead", decision.arguments[2]);
}

std::unique_ptr<IRMutator> stream_ahead_pass(const Algorithm& algorithm, const Decision& decision,
                                             const std::string& /*target*/) {
  return std::make_unique<StreamAheadPass>(request_of(algorithm, decision));
}

}  // namespace sylvite
