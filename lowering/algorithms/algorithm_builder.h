#pragma once
// Builds a Kernel's Funcs value by value. The generic form and every template share it: a template defines
// its anchor itself and leaves prologue and epilogue to define_rest().

#include <Halide.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lowering/algorithms/algorithm.h"

namespace sylvite {

/// Where an element lies along one logical dim. When the dim is split into blocks in storage, `outer` and
/// `inner` say where without % or /, so that an operand with the same block is read densely; `full` is then
/// outer*block+inner, clamped to the extent where blocks are padded.
struct Coordinate {
  Halide::Expr full;
  Halide::Expr outer;
  Halide::Expr inner;
  int block = 0;

  Coordinate() = default;
  Coordinate(Halide::Expr index) : full(std::move(index)) {}  // NOLINT(google-explicit-constructor)
  Coordinate(int index) : full(index) {}                      // NOLINT(google-explicit-constructor)
  /// outer*block+inner, clamped to extent-1 when extent is no multiple of block.
  [[nodiscard]] static Coordinate split(const Halide::Expr& outer, const Halide::Expr& inner, int block,
                                        std::int64_t extent);
};
using Coordinates = std::vector<Coordinate>;  ///< one per logical dim, outermost first

/// An extent or a number of a form, as Halide takes it.
[[nodiscard]] inline int to_int(std::int64_t value) {
  return static_cast<int>(value);
}

/// A reduction domain over logical dims of a value; `at[i]` is the coordinate along axes[i].
struct ReducedDims {
  Halide::RDom domain;
  Coordinates at;
};

class AlgorithmBuilder {
 public:
  /// Makes an ImageParam per body input, with the extents and dense strides of its packed (or stored) form.
  AlgorithmBuilder(const Kernel& kernel, std::vector<Packing> packings);

  [[nodiscard]] const Kernel& kernel() const { return kernel_; }
  [[nodiscard]] const Graph& body() const { return kernel_.body; }
  [[nodiscard]] const TensorType& type(ValueId id) const { return kernel_.body.type(id); }
  [[nodiscard]] const std::string& name(ValueId id) const { return kernel_.body.value(id).name; }
  /// An extent as a number, or over the run's sizes.
  [[nodiscard]] Halide::Expr extent(const Extent& extent) const;
  /// Of a logical dim of a value.
  [[nodiscard]] Halide::Expr extent(ValueId id, std::size_t dim) const {
    return extent(type(id).shape.at(dim));
  }
  /// The parameter of a body input, for templates that read a packed weight by its packed coordinates.
  [[nodiscard]] const Halide::ImageParam& parameter(ValueId input) const;

  /// The element of a value at logical coordinates, in compute type. Coordinates must be in range.
  /// REQUIRES the value defined, an input without a packing of its own, or a one-element constant.
  [[nodiscard]] Halide::Expr read(ValueId id, const Coordinates& at) const;
  /// As read, but bf16 that is only moved, never computed, stays BFloat(16): views copy its bits, and dot
  /// products take it as it is.
  [[nodiscard]] Halide::Expr read_stored(ValueId id, const Coordinates& at) const;
  /// As read, but bf16 that is computed here has the digits that it would have were it stored: convolutions
  /// multiply the same numbers whether their source is computed in the kernel or before it.
  [[nodiscard]] Halide::Expr read_rounded(ValueId id, const Coordinates& at) const;
  /// As read, broadcasting the value to `rank` dims as numpy does: at has `rank` coordinates.
  [[nodiscard]] Halide::Expr read_broadcast(ValueId id, const Coordinates& at) const;
  /// The coordinates that read_broadcast reads.
  [[nodiscard]] Coordinates broadcast_coordinates(ValueId id, const Coordinates& at) const;

  /// The pure vars d0 (innermost) to dK of a value's storage dims, and the logical coordinates they stand
  /// for.
  [[nodiscard]] static std::vector<Halide::Var> vars_of(const TensorType& type);
  [[nodiscard]] static Coordinates coordinates_of(const TensorType& type);
  /// Storage arguments, innermost first, of an element of `type` at logical coordinates.
  [[nodiscard]] static std::vector<Halide::Expr> arguments_of(const TensorType& type, const Coordinates& at);
  /// An RDom over `axes` of a value: r0 is the innermost in storage. Blocked channels become two RVars,
  /// padding excluded.
  [[nodiscard]] ReducedDims reduce_over(const TensorType& type, const std::vector<int>& axes) const;

  /// A new stage that schedules can name. Names start with the value's name: v3_max.
  Halide::Func stage(const std::string& stage_name);
  /// Defines value `id` as the pure Func of its name; `element` gives the value in compute type, or as
  /// read_stored.
  void define(ValueId id, const std::function<Halide::Expr(const Coordinates&)>& element);
  /// Gives a value its finished Func (with updates, or of any name in stages), over vars_of(type), in compute
  /// type.
  void set(ValueId id, const Halide::Func& func);
  [[nodiscard]] bool is_defined(ValueId id) const { return funcs_.contains(id); }

  /// Defines, generically, every value not defined yet. Throws UnsupportedError naming what it cannot
  /// express.
  void define_rest();
  /// Defines, generically, the nodes before `node` that are not defined yet: a template's prologue.
  void define_before(NodeId node);
  /// Defines one node generically.
  void define_node(const Node& node);
  /// Adds the output stages and hands the algorithm over. The builder is spent.
  [[nodiscard]] Algorithm finish();
  /// The same with one stage, `results`, that is a tuple of all outputs. REQUIRES outputs that lie alike.
  [[nodiscard]] Algorithm finish_together();

 private:
  /// Dense bounds and strides, so that the compiler sees constants. Of a tuple Halide takes the bounds of the first alone.
  template <typename Parameter>
  void fix_shape(Parameter& parameter, const Shape& stored, bool has_outer_blocks,
                 bool sets_bounds = true) const;
  [[nodiscard]] Halide::Expr factor(const ExtentFactor& factor) const;
  /// What Op::extents gives, of one element.
  [[nodiscard]] Halide::Expr number_of_run(const Node& extents) const;
  /// An element of an output as it is stored.
  [[nodiscard]] Halide::Expr stored_element(ValueId output) const;

  const Kernel& kernel_;
  std::vector<Packing> packings_;
  std::map<ValueId, std::size_t> input_index_;
  std::map<ValueId, Halide::Func> funcs_;
  Algorithm algorithm_;
};

/// An RDom whose variables are named r0, r1, ... innermost first, from 0 with these extents.
[[nodiscard]] Halide::RDom reduction_domain(const std::vector<std::int64_t>& extents);
[[nodiscard]] Halide::RDom open_reduction_domain(const std::vector<Halide::Expr>& extents);

}  // namespace sylvite
