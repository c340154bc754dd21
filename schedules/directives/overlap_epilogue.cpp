#include "schedules/directives/overlap_epilogue.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/rounding.h"
#include "lowering/algorithms/algorithm.h"
#include "schedules/directives/amx_tiles.h"

namespace sylvite {
namespace {

using Halide::Expr;
using namespace Halide::Internal;  // NOLINT(google-build-using-namespace): its node types

Expr int_variable(const std::string& name) {
  return Variable::make(Halide::Int(32), name);
}

/// A loop around what is looked at, or a let between such loops.
struct Level {
  std::string name;
  const For* loop = nullptr;  ///< or a let of
  Expr value;
  Expr min, extent;  ///< of the loop, in terms of what is outside of all levels
};
using Levels = std::vector<Level>;

/// Values for loops and lets under names of their own.
struct Renaming {
  std::map<std::string, Expr> names;
  std::vector<std::pair<std::string, Expr>> lets;

  [[nodiscard]] Stmt defined_around(Stmt statement) const {
    for (std::size_t i = lets.size(); i-- > 0;)
      statement = LetStmt::make(lets[i].first, lets[i].second, statement);
    return statement;
  }
};

/// New names for all levels, which have the values that `value_of` gives to their loops.
template <typename ValueOf>
Renaming renamed(const Levels& levels, ValueOf value_of) {
  Renaming result;
  for (const Level& level : levels) {
    const Expr value = level.loop != nullptr ? value_of(level) : substitute(result.names, level.value);
    result.lets.emplace_back(unique_name(level.name + ".before"), value);
    result.names[level.name] = Variable::make(value.type(), result.lets.back().first);
  }
  return result;
}

/// `inner` with these values for all levels.
template <typename ValueOf>
Stmt at_values(const Levels& levels, const Stmt& inner, ValueOf value_of) {
  const Renaming renaming = renamed(levels, value_of);
  return renaming.defined_around(substitute(renaming.names, inner));
}

/// With the lets among the levels in their places; nothing where it depends on a loop of theirs.
std::optional<Expr> seen_from_outside(const Levels& levels, Expr expr) {
  for (std::size_t i = levels.size(); i-- > 0;) {
    if (!expr_uses_var(expr, levels[i].name)) continue;
    if (levels[i].loop != nullptr) return std::nullopt;
    expr = substitute(levels[i].name, levels[i].value, expr);
  }
  return expr;
}

/// Follows lets and serial loops inwards, as long as each holds nothing but the next; what they hold.
std::optional<Stmt> descend(Stmt statement, Levels& levels) {
  while (true) {
    if (const auto* let = statement.as<LetStmt>()) {
      levels.push_back({let->name, nullptr, let->value, {}, {}});
      statement = let->body;
    } else if (const auto* loop = statement.as<For>()) {
      const auto min = seen_from_outside(levels, loop->min);
      const auto extent = seen_from_outside(levels, loop->extent);
      if (loop->for_type != ForType::Serial || !min || !extent) return std::nullopt;
      levels.push_back({loop->name, loop, {}, *min, *extent});
      statement = loop->body;
    } else {
      return statement;
    }
  }
}

/// Loops of constant extents as one: how many iterations, and which one runs.
struct Count {
  int extent = 1;
  Expr now = 0;
  /// False where the extent is not known.
  bool add(const For& loop, const Expr& its_extent) {
    const auto more = as_const_int(simplify(its_extent));
    if (!more) return false;
    now = now * static_cast<int>(*more) + (int_variable(loop.name) - loop.min);
    extent *= static_cast<int>(*more);
    return true;
  }
};

/// The steps of a block's products: all loops around them.
class Steps : public IRVisitor {
 public:
  Count count;
  bool fits = true;
  const For* innermost = nullptr;

 protected:
  using IRVisitor::visit;
  void visit(const For* op) override {
    if (!has_amx_products(op)) return;
    fits = fits && op->for_type == ForType::Serial && count.add(*op, op->extent);
    innermost = op;
    IRVisitor::visit(op);
  }
};

/// Puts a statement at the end of one loop's body.
class AppendTo : public IRMutator {
 public:
  AppendTo(const For* loop, Stmt share) : loop_(loop), share_(std::move(share)) {}

 protected:
  using IRMutator::visit;
  Stmt visit(const For* op) override {
    if (op != loop_) return IRMutator::visit(op);
    return For::make(op->name, op->min, op->extent, op->for_type, op->partition_policy, op->device_api,
                     Block::make(op->body, share_));
  }

 private:
  const For* loop_;
  Stmt share_;
};

/// One block: where its sums are kept, what makes them and what reads them.
struct TileBlock {
  const Allocate* sums;
  Stmt produce, consume;
};

std::optional<TileBlock> read_block(const Stmt& statement, const std::string& name) {
  const auto* sums = statement.as<Allocate>();
  const auto* all = sums == nullptr ? nullptr : sums->body.as<Block>();
  if (all == nullptr || sums->name != name || sums->constant_allocation_size() == 0) return std::nullopt;
  const auto* produce = all->first.as<ProducerConsumer>();
  const auto* rest = all->rest.as<Block>();
  const auto* consume = rest == nullptr ? nullptr : rest->first.as<ProducerConsumer>();
  if (produce == nullptr || consume == nullptr || !produce->is_producer || consume->is_producer)
    return std::nullopt;
  return TileBlock{sums, produce, consume->body};
}

class OverlapEpilogue : public IRMutator {
 public:
  explicit OverlapEpilogue(std::string name) : name_(std::move(name)) {}

 protected:
  using IRMutator::visit;
  Stmt visit(const For* op) override {
    if (op->for_type == ForType::Serial) {
      Levels blocks;
      const std::optional<Stmt> inner = descend(op, blocks);
      const std::optional<TileBlock> block = inner ? read_block(*inner, name_) : std::nullopt;
      if (block) {
        if (const std::optional<Stmt> result = overlapped(blocks, *block)) return *result;
      }
    }
    return IRMutator::visit(op);
  }

 private:
  static std::optional<Stmt> overlapped(const Levels& blocks, const TileBlock& block) {
    Steps steps;
    block.produce.accept(&steps);
    if (!steps.fits || steps.innermost == nullptr) return std::nullopt;
    const std::optional<Stmt> share = share_of_step(block.consume, steps.count);
    if (!share) return std::nullopt;
    const std::string starts = unique_name("starts");
    const Renaming before = block_before(blocks);
    const Stmt shares =
        IfThenElse::make(!Variable::make(Halide::Bool(), starts), substitute(before.names, *share));
    Stmt body = before.defined_around(AppendTo(steps.innermost, shares).mutate(block.produce));
    body = LetStmt::make(starts, is_first(blocks), body);
    for (std::size_t i = blocks.size(); i-- > 0;) {
      const Level& level = blocks[i];
      body = level.loop == nullptr
                 ? LetStmt::make(level.name, level.value, body)
                 : For::make(level.name, level.loop->min, level.loop->extent, level.loop->for_type,
                             level.loop->partition_policy, level.loop->device_api, body);
    }
    const Allocate* sums = block.sums;
    return Allocate::make(sums->name, sums->type, sums->memory_type, sums->extents, sums->condition,
                          Block::make({body, last(blocks, block.consume), Free::make(sums->name)}),
                          sums->new_expr, sums->free_function, sums->padding);
  }

  /// What step `now` of a block's products does of the reader's iterations.
  static std::optional<Stmt> share_of_step(const Stmt& consume, const Count& steps) {
    Levels rows;
    const std::optional<Stmt> row = descend(consume, rows);
    if (!row) return std::nullopt;
    Count count;
    for (const Level& level : rows)
      if (level.loop != nullptr && !count.add(*level.loop, level.extent)) return std::nullopt;
    const int most = ceil_div(count.extent, steps.extent);
    const Expr first = steps.now * most;
    const std::string name = unique_name("epilogue");
    int inner = count.extent;
    const Stmt one = at_values(rows, *row, [&](const Level& level) -> Expr {
      const auto extent = static_cast<int>(*as_const_int(simplify(level.extent)));
      inner /= extent;
      return simplify(level.min + (int_variable(name) / inner) % extent);
    });
    const Stmt share = For::make(name, simplify(first), simplify(min(most, count.extent - first)),
                                 ForType::Serial, Halide::Partition::Never, Halide::DeviceAPI::None, one);
    return IfThenElse::make(simplify(first < count.extent), share);
  }

  /// Whether no block came before.
  static Expr is_first(const Levels& blocks) {
    Expr result = const_true();
    for (const Level& level : blocks)
      if (level.loop != nullptr) result = result && int_variable(level.name) == level.min;
    return simplify(result);
  }

  /// The loops around as the block before has them.
  static Renaming block_before(const Levels& blocks) {
    std::map<std::string, Expr> values;
    Expr wraps = const_true();  // all further inwards are at their first
    for (std::size_t i = blocks.size(); i-- > 0;) {
      const Level& level = blocks[i];
      if (level.loop == nullptr) continue;
      const Expr now = int_variable(level.name);
      const Expr is_least = now == level.min;
      values[level.name] =
          simplify(select(wraps, select(is_least, level.min + level.extent - 1, now - 1), now));
      wraps = wraps && is_least;
    }
    return renamed(blocks, [&](const Level& level) { return values.at(level.name); });
  }

  static Stmt last(const Levels& blocks, const Stmt& consume) {
    Expr is_any = const_true();
    for (const Level& level : blocks)
      if (level.loop != nullptr) is_any = is_any && level.extent > 0;
    const Stmt all =
        at_values(blocks, consume, [](const Level& level) { return simplify(level.min + level.extent - 1); });
    is_any = simplify(is_any);
    return is_const_one(is_any) ? all : IfThenElse::make(is_any, all);
  }

  std::string name_;
};

}  // namespace

std::unique_ptr<IRMutator> overlap_epilogue_pass(const Algorithm& algorithm, const Decision& decision,
                                                 const std::string& /*target*/) {
  return std::make_unique<OverlapEpilogue>(algorithm.stages.at(decision.stage).name());
}

}  // namespace sylvite
