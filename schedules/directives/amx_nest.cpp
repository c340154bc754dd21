#include "schedules/directives/amx_nest.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/rounding.h"

namespace sylvite::amx {

using Halide::Expr;
using namespace Halide::Internal;  // NOLINT(google-build-using-namespace): its node types

namespace {

std::string text_of(const Expr& expr) {
  std::ostringstream text;
  text << expr;
  return text.str();
}

}  // namespace

// ---- reading the loops ------------------------------------------------------------------------------------

bool is_nest(const Stmt& statement) {
  if (const auto* let = statement.as<LetStmt>()) return is_nest(let->body);
  if (const auto* loop = statement.as<For>()) return is_nest(loop->body);
  return statement.as<Store>() != nullptr;
}

Nest read_nest(Stmt statement) {
  Nest nest;
  const Store* found = nullptr;
  std::vector<std::pair<std::string, Expr>> lets;
  const auto inlined = [&](Expr expr) {
    for (std::size_t i = lets.size(); i-- > 0;) expr = substitute(lets[i].first, lets[i].second, expr);
    return simplify(expr);
  };
  while (found == nullptr) {
    if (const auto* let = statement.as<LetStmt>()) {
      lets.emplace_back(let->name, let->value);
      statement = let->body;
    } else if (const auto* loop = statement.as<For>()) {
      const auto extent = as_const_int(inlined(loop->extent));
      if (!extent || loop->for_type != ForType::Serial)
        refuse("loop {} is {}", loop->name, extent ? "not serial" : "of no constant extent");
      nest.loops.push_back({loop->name, inlined(loop->min), static_cast<int>(*extent)});
      statement = loop->body;
    } else {
      found = statement.as<Store>();
    }
  }
  nest.stored = found->name;
  nest.index = inlined(found->index);
  nest.value = inlined(found->value);
  return nest;
}

namespace {

bool uses_loops(const Nest& nest, const Expr& expr) {
  return std::any_of(nest.loops.begin(), nest.loops.end(),
                     [&](const Loop& loop) { return expr_uses_var(expr, loop.name); });
}

Access read_access(const Nest& nest, const std::string& name, const Expr& index) {
  Access access{name, index, {}};
  for (const Loop& loop : nest.loops) {
    const Expr next = substitute(loop.name, Variable::make(Halide::Int(32), loop.name) + 1, index);
    access.moves.push_back(simplify(next - index));
    if (uses_loops(nest, access.moves.back()))
      refuse("{} is not read or written at even distances along {}", name, loop.name);
    access.start = substitute(loop.name, loop.min, access.start);
  }
  access.start = simplify(access.start);
  return access;
}

bool is_scalar_load_of(const Expr& expr, const std::string& name, const Expr& index) {
  const auto* load = expr.as<Load>();
  return load != nullptr && load->name == name && load->type.is_scalar() &&
         equal(simplify(load->index), index);
}

/// Of an element that AMX multiplies.
const Load* plain_load(const Expr& expr) {
  const Load* load = expr.as<Load>();
  const bool is_known = load != nullptr && (load->type == Halide::BFloat(16) ||
                                            load->type == Halide::Int(8) || load->type == Halide::UInt(8));
  return is_known && is_const_one(load->predicate) ? load : nullptr;
}

const Load* widened(const Expr& expr) {
  const auto* cast = expr.as<Cast>();
  return cast == nullptr ? nullptr : plain_load(cast->value);
}

/// The factors of a product in the type of the sum. Of integers Halide may have made one of its own.
std::pair<const Load*, const Load*> factors_of(const Expr& expr) {
  if (const auto* product = expr.as<Mul>()) return {widened(product->a), widened(product->b)};
  const auto* cast = expr.as<Cast>();
  const auto* call = cast == nullptr ? expr.as<Call>() : cast->value.as<Call>();
  if (call == nullptr || !call->is_intrinsic(Call::widening_mul)) return {nullptr, nullptr};
  return {plain_load(call->args[0]), plain_load(call->args[1])};
}

/// Loops that move one operand and not the other say which is which.
bool has_columns(const Access& a, const Access& c) {
  for (std::size_t i = 0; i < a.moves.size(); ++i)
    if (is_const_one(c.moves[i]) && is_const_zero(a.moves[i])) return true;
  return false;
}

}  // namespace

Product read_product(const Nest& nest) {
  const auto* sum = nest.value.as<Add>();
  const std::string& name = nest.stored;
  const auto is_old = [&](const Expr& part) { return is_scalar_load_of(part, name, nest.index); };
  std::pair<const Load*, const Load*> factors;
  if (sum != nullptr && is_old(sum->a)) factors = factors_of(sum->b);
  if (sum != nullptr && is_old(sum->b)) factors = factors_of(sum->a);
  const auto [a, b] = factors;
  const bool are_alike = a != nullptr && b != nullptr && a->type.bits() == b->type.bits() &&
                         nest.value.type() == (a->type.is_bfloat() ? Halide::Float(32) : Halide::Int(32));
  if (!are_alike) {
    refuse("the update is no sum of products of two stored bf16, or of two bytes: {} = {}", name,
           text_of(nest.value));
  }
  Product result{read_access(nest, name, nest.index), read_access(nest, a->name, a->index),
                 read_access(nest, b->name, b->index), a->type, b->type};
  if (!has_columns(result.a, result.c)) {
    std::swap(result.a, result.b);
    std::swap(result.left, result.right);
  }
  return result;
}

// ---- what each loop is ------------------------------------------------------------------------------------

namespace {

void add_fold_loop(const Nest& nest, const Product& product, std::size_t i, Roles& roles) {
  const auto goes_on = [&](const Access& access) {
    return is_const_zero(simplify(access.moves[i] - access.moves[*roles.groups] * roles.group_count));
  };
  const Expr& a = product.a.moves[i];
  const int extent = nest.loops[i].extent;
  if (is_const_one(a) && is_const_one(product.b.moves[i]) && extent == product.group()) {
    roles.has_group = true;
  } else if (!roles.groups && is_const(a, product.group())) {
    roles.groups = i;
    roles.group_count = extent;
  } else if (roles.groups && goes_on(product.a) && goes_on(product.b)) {
    roles.group_count *= extent;
  } else {
    roles.steps.push_back(i);
  }
}

}  // namespace

Roles roles_of(const Nest& nest, const Product& product) {
  Roles roles;
  for (std::size_t i = nest.loops.size(); i-- > 0;) {
    const Expr& c = product.c.moves[i];
    const Expr& b = product.b.moves[i];
    const bool moves_a = !is_const_zero(product.a.moves[i]);
    if (is_const_zero(c))
      add_fold_loop(nest, product, i, roles);
    else if (is_const_zero(b))
      if (roles.rows)
        roles.row_tiles.push_back(i);
      else
        roles.rows = i;
    else if (moves_a)
      refuse("loop {} moves both operands and the sum: it belongs outside of the stage", nest.loops[i].name);
    else if (!roles.columns && is_const_one(c) && is_const(b, product.group()))
      roles.columns = i;
    else
      roles.column_tiles.push_back(i);
  }
  if (!roles.has_group)
    refuse("no loop of {} goes through {} neighbours of both operands", product.c.name, product.group());
  if (!roles.columns) {
    refuse("no loop of {} goes through neighbouring columns whose groups lie side by side in {}",
           product.c.name, product.b.name);
  }
  const Loop& columns = nest.loops[*roles.columns];
  if (columns.extent > amx_tile_columns)
    refuse("loop {} has {} columns, a tile {}", columns.name, columns.extent, amx_tile_columns);
  return roles;
}

namespace {

/// Every combination of the loops' iterations with the places.
std::vector<TilePlace> repeated(const Nest& nest, const Access& operand, const Access& sum,
                                const std::vector<std::size_t>& loops, std::vector<TilePlace> places) {
  for (const std::size_t loop : loops) {
    std::vector<TilePlace> all;
    for (int i = 0; i < nest.loops[loop].extent; ++i) {
      for (const TilePlace& place : places) {
        all.push_back(
            {simplify(place.operand + operand.moves[loop] * i), simplify(place.sum + sum.moves[loop] * i)});
      }
    }
    places = std::move(all);
  }
  return places;
}

}  // namespace

TileBlock block_of(const Nest& nest, const Product& product, const Roles& roles) {
  TileBlock block;
  std::vector<TilePlace> rows = {{0, 0}};
  if (roles.rows) {
    const int extent = nest.loops[*roles.rows].extent;
    block.row_stride_a = product.a.moves[*roles.rows];
    block.row_stride_c = product.c.moves[*roles.rows];
    const int tiles = ceil_div(extent, amx_tile_rows);
    block.rows = ceil_div(extent, tiles);
    rows.clear();
    for (int i = 0; i < tiles; ++i) {
      const int first = std::min(i * block.rows, extent - block.rows);
      rows.push_back({simplify(block.row_stride_a * first), simplify(block.row_stride_c * first)});
    }
  }
  block.columns = nest.loops[*roles.columns].extent;
  block.row_tiles = repeated(nest, product.a, product.c, roles.row_tiles, rows);
  block.column_tiles = repeated(nest, product.b, product.c, roles.column_tiles, {{0, 0}});
  if (roles.groups) {
    block.groups = roles.group_count;
    block.groups_in_tile = amx_groups_in_tile(roles.group_count);
    block.row_stride_b = product.b.moves[*roles.groups];
  }
  const auto row_tiles = static_cast<int>(block.row_tiles.size());
  const auto column_tiles = static_cast<int>(block.column_tiles.size());
  if (amx_registers(row_tiles, column_tiles) > amx_register_count) {
    refuse("{} x {} tiles of {} do not fit {} tile registers", row_tiles, column_tiles, product.c.name,
           amx_register_count);
  }
  return block;
}

}  // namespace sylvite::amx
