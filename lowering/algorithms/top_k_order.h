#pragma once
// What the formulations of top_k share: the order of its elements.

#include <string>
#include <vector>

#include "lowering/algorithms/algorithm_builder.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/algorithms/order_keys.h"

namespace sylvite {

/// What all formulations read of the node.
struct TopKOrder {
  AlgorithmBuilder& builder;
  const Node& node;
  ValueId in = node.inputs.front();
  const TensorType& type = builder.type(node.outputs.front());
  std::string name = builder.name(node.outputs.front());
  std::size_t axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  bool largest = node.attributes.integer("largest") != 0;
  Halide::Expr count = builder.extent(in, axis);
  Halide::Expr k = builder.extent(type.shape.at(axis));
  std::vector<Halide::Var> vars = AlgorithmBuilder::vars_of(type);
  std::size_t position = vars.size() - 1 - axis;

  [[nodiscard]] Halide::Expr key(const Halide::Expr& place) const {
    Coordinates source = AlgorithmBuilder::coordinates_of(type);
    source[axis] = place;
    return index_key(Halide::cast(folded_type(type.dtype), builder.read(in, source)), true);
  }
  /// The vars of the result with another place along the axis.
  [[nodiscard]] std::vector<Halide::Expr> at(const Halide::Expr& place) const {
    std::vector<Halide::Expr> arguments(vars.begin(), vars.end());
    arguments[position] = place;
    return arguments;
  }
  /// The vars but that of the axis.
  [[nodiscard]] std::vector<Halide::Var> rows() const {
    std::vector<Halide::Var> others = vars;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(position));
    return others;
  }
  [[nodiscard]] Halide::Func stage(const std::string& suffix) const { return builder.stage(name + suffix); }

  void define(const Halide::Expr& chosen_key, const Halide::Expr& chosen_index) const {
    builder.define(node.outputs[0], [&](const Coordinates&) -> Halide::Expr {
      if (type.dtype == DType::boolean) return chosen_key != 0;
      return from_order_key(chosen_key, compute_type_of(type.dtype));
    });
    builder.define(node.outputs[1],
                   [&](const Coordinates&) { return Halide::cast<std::int64_t>(chosen_index); });
  }
};

/// Keys as unsigned numbers, the first of the order the largest; and back.
[[nodiscard]] Halide::Expr to_unsigned(const Halide::Expr& key, bool largest);
[[nodiscard]] Halide::Expr from_unsigned(const Halide::Expr& word, const Halide::Type& type, bool largest);

/// Are equal elements to be taken as a C++ library does it, and for this machine?
[[nodiscard]] bool follows_library(const TopKOrder& order);
/// And left where partitions put them, in no order? First ones are kept in a heap, and sorted, where they are few. REQUIRES
/// follows_library.
[[nodiscard]] Halide::Expr is_left_unsorted(const TopKOrder& order);

/// The place that is the slot-th of its row, by the library's steps, in rows where `is_needed`: `words` has the axis innermost,
/// then the other dims in order, and is unsigned, the first of the order the largest.
[[nodiscard]] Halide::Expr place_by_library(const TopKOrder& order, const Halide::Func& words,
                                            const Halide::Expr& is_needed);

/// All rows by the function, which takes the library's steps where these are to be followed.
void define_by_function(const TopKOrder& order);

}  // namespace sylvite
