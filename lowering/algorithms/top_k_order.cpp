#include "lowering/algorithms/top_k_order.h"

#include <algorithm>
#include <array>

#include "frontend/ops/top_k_ties.h"

// First elements of rows, of which equal ones come in the order of their places, or in that in which a C++ library's partial_sort,
// nth_element and sort leave them. A function that is compiled beside kernels (runtime/export/embed/first_places.h) chooses them:
// stage vN_places, which Halide calls an extern one. It reads words (vN_words_steps, or the keys of maxima), and for each row whether it is
// needed (vN_alike_steps).

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::Var;

/// Which way the function takes, as its header numbers them, by the node's `ties`.
int way_by_ties(const TopKOrder& order) {
  constexpr std::array ways = {3, 1, 0, 2};
  return ways.at(static_cast<std::size_t>(order.node.attributes.integer("ties")));
}

/// Arguments of a stage whose first is the place along the axis, and then the other dims.
std::vector<Expr> in_row(const TopKOrder& order, const Expr& place) {
  std::vector<Expr> arguments = {place};
  for (const Var& row : order.rows()) arguments.emplace_back(row);
  return arguments;
}

}  // namespace

Expr to_unsigned(const Expr& key, bool largest) {
  const Halide::Type word = Halide::UInt(key.type().bits());
  const Expr top = Halide::Internal::make_const(word, key.type().is_int() ? 1 : 0) << (word.bits() - 1);
  const Expr ordered = Halide::reinterpret(word, key) ^ top;
  return largest ? ordered : ~ordered;
}

Expr from_unsigned(const Expr& word, const Halide::Type& type, bool largest) {
  const Expr top = Halide::Internal::make_const(word.type(), type.is_int() ? 1 : 0)
                   << (word.type().bits() - 1);
  return Halide::reinterpret(type, (largest ? word : ~word) ^ top);
}

bool follows_library(const TopKOrder& order) {
  return order.node.attributes.integer("ties") != first_of_equals && !DeviceMath::is_used();
}

Expr is_left_unsorted(const TopKOrder& order) {
  constexpr int of_heap = 64;
  const std::int64_t ties = order.node.attributes.integer("ties");
  if (ties == as_library) return Halide::Internal::const_false();
  if (ties == as_kth_value) return Halide::Internal::const_true();
  return cast<std::int64_t>(order.k) * of_heap > cast<std::int64_t>(order.count);
}

Expr place_by_library(const TopKOrder& order, const Func& words, const Expr& is_needed) {
  const Var axis = order.vars[order.position];
  std::vector<Var> arguments = order.rows();
  Func needed = order.stage("_alike_steps");
  needed(arguments) = cast<std::int32_t>(is_needed);
  arguments.insert(arguments.begin(), axis);
  Func places = order.stage("_places");
  places.define_extern(
      "sylvite_first_places",
      {words, needed, cast<std::int32_t>(order.count), cast<std::int32_t>(order.k), Expr(way_by_ties(order))},
      Halide::Int(32), arguments, Halide::NameMangling::C);
  return Halide::clamp(places(in_row(order, axis)), 0, Halide::max(order.count - 1, 0));
}

void define_by_function(const TopKOrder& order) {
  const Var axis = order.vars[order.position];
  const Expr own = order.key(axis);
  const int bits = std::max(32, own.type().bits());
  std::vector<Var> arguments = order.rows();
  arguments.insert(arguments.begin(), axis);
  Func words = order.stage("_words_steps");
  words(arguments) = cast(Halide::UInt(bits), to_unsigned(own, order.largest));
  const Expr place = place_by_library(order, words, Halide::Internal::const_true());
  const Expr word = cast(Halide::UInt(own.type().bits()), words(in_row(order, place)));
  order.define(from_unsigned(word, own.type(), order.largest), place);
}

}  // namespace sylvite
