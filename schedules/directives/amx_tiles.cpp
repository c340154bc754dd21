#include "schedules/directives/amx_tiles.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lowering/algorithms/algorithm.h"
#include "schedules/directives/amx_nest.h"
#include "schedules/directives/prefetch.h"
#include "schedules/machine.h"

namespace sylvite {
namespace {

using namespace amx;  // NOLINT(google-build-using-namespace): the nest and its parts
using Halide::Expr;
using Halide::MemoryType;
using Halide::Type;
using namespace Halide::Internal;  // NOLINT(google-build-using-namespace): its node types

constexpr int sum_bytes = 4;    // of c
constexpr int group_bytes = 4;  // of a and b
constexpr int tile_sums = amx_tile_rows * amx_tile_columns;

Expr word(const Expr& value) {
  return Halide::cast(Halide::Int(16), value);
}

Expr bytes(const Expr& elements, int size) {
  return Halide::cast<std::int64_t>(simplify(elements)) * size;
}

class Emitter {
 public:
  Emitter(const Nest& nest, const Product& product, const Roles& roles)
      : nest_(nest), product_(product), roles_(roles), block_(block_of(nest, product, roles)) {
    for (std::size_t i = 0; i < block_.row_tiles.size() * block_.column_tiles.size(); ++i)
      sums_.push_back(unique_name(product.c.name + ".amx"));
  }

  [[nodiscard]] Stmt emit(bool starts_at_zero) const {
    std::vector<Stmt> first;
    std::vector<Stmt> last;
    for (std::size_t r = 0; r < block_.row_tiles.size(); ++r) {
      for (std::size_t c = 0; c < block_.column_tiles.size(); ++c) {
        first.push_back(set_sum(r, c, starts_at_zero ? zero() : load_sum(r, c)));
        last.push_back(store_sum(r, c));
      }
    }
    Stmt body = Block::make({Block::make(first), fold(), Block::make(last)});
    for (const std::string& name : sums_) {
      body = Allocate::make(name, sum_type(), MemoryType::AMXTile, {Expr(1)}, const_true(),
                            Block::make(body, Free::make(name)));
    }
    return body;
  }

 private:
  [[nodiscard]] Type tile_type(bool is_a) const {
    return (is_a ? product_.left : product_.right)
        .with_lanes(amx_tile_rows * amx_tile_groups * product_.group());
  }
  [[nodiscard]] Type sum_type() const {
    return product_.left.is_bfloat() ? Halide::Float(32, tile_sums) : Halide::Int(32, tile_sums);
  }
  [[nodiscard]] int element_bytes() const { return product_.left.bytes(); }
  [[nodiscard]] std::string sum_name(std::size_t r, std::size_t c) const {
    return sums_[r * block_.column_tiles.size() + c];
  }
  [[nodiscard]] Expr sum(std::size_t r, std::size_t c) const {
    return Load::make(sum_type(), sum_name(r, c), Ramp::make(0, 1, tile_sums), {}, {}, const_true(tile_sums),
                      {});
  }
  [[nodiscard]] Stmt set_sum(std::size_t r, std::size_t c, const Expr& value) const {
    return Store::make(sum_name(r, c), value, Ramp::make(0, 1, tile_sums), {}, const_true(tile_sums), {});
  }
  [[nodiscard]] Expr zero() const {
    return Call::make(sum_type(), "tile_zero", {word(block_.rows), word(block_.columns * sum_bytes)},
                      Call::Intrinsic);
  }
  /// dense_amx_load reads it back.
  [[nodiscard]] static Expr load(const Type& type, int rows, int row_bytes, const std::string& name,
                                 const Expr& offset, const Expr& stride) {
    return Call::make(type, amx_tile_load,
                      {word(rows), word(row_bytes), Variable::make(Halide::Handle(), name), offset, stride},
                      Call::Intrinsic);
  }
  [[nodiscard]] Expr sum_offset(std::size_t r, std::size_t c) const {
    return bytes(product_.c.start + block_.row_tiles[r].sum + block_.column_tiles[c].sum, sum_bytes);
  }
  [[nodiscard]] Expr load_sum(std::size_t r, std::size_t c) const {
    return Halide::reinterpret(sum_type(),
                               load(tile_type(true), block_.rows, block_.columns * sum_bytes, product_.c.name,
                                    sum_offset(r, c), bytes(block_.row_stride_c, sum_bytes)));
  }
  [[nodiscard]] Stmt store_sum(std::size_t r, std::size_t c) const {
    return Evaluate::make(Call::make(Halide::Int(32), "tile_store",
                                     {word(block_.rows), word(block_.columns * sum_bytes),
                                      Variable::make(Halide::Handle(), product_.c.name), sum_offset(r, c),
                                      bytes(block_.row_stride_c, sum_bytes), sum(r, c)},
                                     Call::Intrinsic));
  }

  [[nodiscard]] bool has_loop_of_groups() const { return block_.groups > block_.groups_in_tile; }

  /// How far the loops around one step of the fold have moved an operand.
  [[nodiscard]] Expr moved(const Access& access) const {
    Expr offset = access.start;
    const auto add = [&](std::size_t loop, int factor) {
      offset =
          offset + Variable::make(Halide::Int(32), nest_.loops[loop].name) * (access.moves[loop] * factor);
    };
    for (const std::size_t loop : roles_.steps) add(loop, 1);
    if (has_loop_of_groups()) add(*roles_.groups, block_.groups_in_tile);
    return offset;
  }

  /// A name for tile `number` of an operand, which it has while `body` runs.
  [[nodiscard]] Expr operand(bool is_a, std::size_t number) const {
    return Variable::make(tile_type(is_a), fmt::format("{}.{}{}", product_.c.name, is_a ? "a" : "b", number));
  }
  [[nodiscard]] Expr operand_offset(bool is_a, std::size_t number) const {
    const TilePlace& place = is_a ? block_.row_tiles[number] : block_.column_tiles[number];
    return bytes(moved(is_a ? product_.a : product_.b) + place.operand, element_bytes());
  }
  [[nodiscard]] Stmt touch_kept() const {
    const bool keeps_a = block_.row_tiles.size() < block_.column_tiles.size();
    return prefetch((keeps_a ? product_.a : product_.b).name, operand_offset(keeps_a, 0), PrefetchInto::l1);
  }
  [[nodiscard]] Stmt with_operand(bool is_a, std::size_t number, const Stmt& body) const {
    const Access& access = is_a ? product_.a : product_.b;
    const Expr tile = load(tile_type(is_a), is_a ? block_.rows : block_.groups_in_tile,
                           (is_a ? block_.groups_in_tile : block_.columns) * group_bytes, access.name,
                           operand_offset(is_a, number),
                           bytes(is_a ? block_.row_stride_a : block_.row_stride_b, element_bytes()));
    return LetStmt::make(operand(is_a, number).as<Variable>()->name, tile, body);
  }
  [[nodiscard]] Stmt add_product(std::size_t r, std::size_t c) const {
    const Expr value = Call::make(
        sum_type(), "tile_matmul",
        {word(block_.rows), word(block_.columns * sum_bytes), word(block_.groups_in_tile * group_bytes),
         sum(r, c), operand(true, r), operand(false, c)},
        Call::Intrinsic);
    return set_sum(r, c, value);
  }

  /// What a step does, in order.
  struct Action {
    enum class Kind { load_a, load_b, product, load_anew } kind;
    std::size_t row = 0, column = 0;  ///< of the tile, or of both
  };

  /// The operand with fewer tiles is kept, the other passes by. Where not all that is kept fits, it goes back
  /// and forth, so that one tile of it serves two of the other. LLVM, which sees equal loads, would rather
  /// keep both and spill a sum: from load_anew on it takes memory for changed.
  [[nodiscard]] std::vector<Action> actions_of_step() const {
    const std::size_t rows = block_.row_tiles.size();
    const std::size_t columns = block_.column_tiles.size();
    const bool keeps_a = rows < columns;
    const std::size_t kept = std::min(rows, columns);
    const bool all_fit = rows * columns + kept + 1 <= amx_register_count;
    std::vector<Action> actions;
    const auto load = [&](bool is_a, std::size_t i) {
      actions.push_back({is_a ? Action::Kind::load_a : Action::Kind::load_b, i, i});
    };
    for (std::size_t k = 0; all_fit && k < kept; ++k) load(keeps_a, k);
    for (std::size_t p = 0; p < std::max(rows, columns); ++p) {
      load(!keeps_a, p);
      for (std::size_t i = 0; i < kept; ++i) {
        const std::size_t k = all_fit || p % 2 == 0 ? i : kept - 1 - i;
        const bool is_there = all_fit || (p > 0 && i == 0);
        if (!all_fit && p == 1 && i == 1) actions.push_back({Action::Kind::load_anew, 0, 0});
        if (!is_there) load(keeps_a, k);
        actions.push_back({Action::Kind::product, keeps_a ? k : p, keeps_a ? p : k});
      }
    }
    return actions;
  }

  [[nodiscard]] Stmt step() const {
    const std::vector<Action> actions = actions_of_step();
    Stmt body = add_product(actions.back().row, actions.back().column);
    for (std::size_t i = actions.size() - 1; i-- > 0;) {
      const Action& action = actions[i];
      switch (action.kind) {
        case Action::Kind::load_a:
          body = with_operand(true, action.row, body);
          break;
        case Action::Kind::load_b:
          body = with_operand(false, action.column, body);
          break;
        case Action::Kind::load_anew:
          body = Block::make(touch_kept(), body);
          break;
        case Action::Kind::product:
          body = Block::make(add_product(action.row, action.column), body);
          break;
      }
    }
    return body;
  }

  /// All steps, in the order of the nest's loops.
  [[nodiscard]] Stmt fold() const {
    Stmt body = step();
    for (std::size_t i = nest_.loops.size(); i-- > 0;) {
      const bool is_step = std::find(roles_.steps.begin(), roles_.steps.end(), i) != roles_.steps.end();
      const bool is_groups = roles_.groups == i && has_loop_of_groups();
      if (!is_step && !is_groups) continue;
      const int extent = is_step ? nest_.loops[i].extent : block_.groups / block_.groups_in_tile;
      body = For::make(nest_.loops[i].name, 0, extent, ForType::Serial, Halide::Partition::Never,
                       Halide::DeviceAPI::None, body);
    }
    return body;
  }

  const Nest& nest_;
  const Product& product_;
  const Roles& roles_;
  TileBlock block_;
  std::vector<std::string> sums_;
};

// ---- finding the update -----------------------------------------------------------------------------------

/// Elements of `name` that the statement sets to zero, when that is all it does.
std::optional<std::int64_t> zeros_stored(const Stmt& statement, const std::string& name) {
  if (const auto* let = statement.as<LetStmt>()) return zeros_stored(let->body, name);
  if (const auto* loop = statement.as<For>()) {
    const auto extent = as_const_int(simplify(loop->extent));
    const auto inner = zeros_stored(loop->body, name);
    return extent && inner ? std::optional(*extent * *inner) : std::nullopt;
  }
  if (const auto* block = statement.as<Block>()) {
    const auto first = zeros_stored(block->first, name);
    const auto rest = zeros_stored(block->rest, name);
    return first && rest ? std::optional(*first + *rest) : std::nullopt;
  }
  const auto* store = statement.as<Store>();
  if (store == nullptr || store->name != name || !is_const_zero(store->value)) return std::nullopt;
  return store->value.type().lanes();
}

class AmxTilesPass : public IRMutator {
 public:
  /// `stage` as lowered loops begin: "v0_fold.s1."
  AmxTilesPass(std::string name, std::string stage) : name_(std::move(name)), stage_(std::move(stage)) {}

  Stmt mutate(const Stmt& statement) override {
    ++depth_;
    Stmt result = IRMutator::mutate(statement);
    if (--depth_ == 0 && !is_found_)
      refuse("no loops {}* hold one store and nothing else: leave them rolled, and without tails", stage_);
    return result;
  }
  using IRMutator::mutate;

 protected:
  using IRMutator::visit;
  Stmt visit(const For* op) override { return is_update(op) ? in_tiles(op) : IRMutator::visit(op); }
  Stmt visit(const Block* op) override {
    const auto zeros = zeros_stored(op->first, name_);
    if (!zeros || !begins_with_update(op->rest)) return IRMutator::visit(op);
    zeros_ = *zeros;
    return mutate(op->rest);
  }

 private:
  [[nodiscard]] bool begins_with_update(const Stmt& statement) const {
    if (const auto* let = statement.as<LetStmt>()) return begins_with_update(let->body);
    if (const auto* block = statement.as<Block>()) return begins_with_update(block->first);
    return is_update(statement.as<For>());
  }
  [[nodiscard]] bool is_update(const For* loop) const {
    return loop != nullptr && loop->name.starts_with(stage_) && is_nest(loop);
  }

  Stmt in_tiles(const For* loop) {
    const std::int64_t zeros = std::exchange(zeros_, 0);
    is_found_ = true;
    const Nest nest = read_nest(loop);
    const Product product = read_product(nest);
    const Roles roles = roles_of(nest, product);
    std::int64_t sums = 1;
    for (std::size_t i = 0; i < nest.loops.size(); ++i)
      sums *= is_const_zero(product.c.moves[i]) ? 1 : nest.loops[i].extent;
    if (zeros > 0 && zeros != sums)
      refuse("{} elements of {} are set to zero, {} are sums of products", zeros, name_, sums);
    return Emitter(nest, product, roles).emit(zeros > 0);
  }

  std::string name_;
  std::string stage_;
  std::int64_t zeros_ = 0;  ///< elements of the sums that were set to zero right ahead of the update
  int depth_ = 0;
  bool is_found_ = false;
};

}  // namespace

bool has_amx_products(const Stmt& statement) {
  class Products : public IRVisitor {
   public:
    bool found = false;

   protected:
    using IRVisitor::visit;
    void visit(const Call* op) override {
      found = found || op->name == "tile_matmul";
      IRVisitor::visit(op);
    }
  } products;
  statement.accept(&products);
  return products.found;
}

std::optional<AmxLoad> dense_amx_load(const Call& call) {
  if (call.name != amx_tile_load) return std::nullopt;
  const auto rows = as_const_int(simplify(call.args[0]));
  const auto row_bytes = as_const_int(simplify(call.args[1]));
  const auto stride = as_const_int(simplify(call.args[4]));
  const auto* variable = call.args[2].as<Variable>();
  const auto* offset = call.args[3].as<Mul>();  // without one for elements of a byte
  const auto* start = (offset == nullptr ? call.args[3] : offset->a).as<Cast>();
  if (!rows || !row_bytes || stride != row_bytes || variable == nullptr || start == nullptr)
    return std::nullopt;
  const int size = call.type.bytes();
  return AmxLoad{variable->name, start->value, static_cast<int>(*rows * *row_bytes / size), size};
}

void check_amx_tiles(const Algorithm& /*algorithm*/, const Decision& decision) {
  if (decision.update < 0) throw CompileError("it makes products of an update: write .update(0)");
}

std::unique_ptr<IRMutator> amx_tiles_pass(const Algorithm& algorithm, const Decision& decision,
                                          const std::string& target) {
  if (!has_amx(target)) refuse("the target {} has no AMX", target);
  const std::string name = algorithm.stages.at(decision.stage).name();
  return std::make_unique<AmxTilesPass>(name, fmt::format("{}.s{}.", name, decision.update + 1));
}

}  // namespace sylvite
