#pragma once
// Pointwise work of a kernel as a scalar C function: the second printer of one body, beside the Halide
// expressions of pointwise_bodies.h. Templates that are written in CUDA C++ call it at their results.

#include <string>
#include <vector>

#include "lowering/plan/join_bodies.h"
#include "lowering/plan/kernel.h"

namespace sylvite {

/// An element that the function takes: of a body input, read at the result's coordinates.
struct PointwiseOperand {
  int input = 0;  ///< index into body.inputs
  DType dtype = DType::f32;
  std::string name;  ///< of the parameter, unique in the function
  /// Elements between neighbours along each dim of the result, outermost first, as the input's layout has
  /// them; 0 where it is broadcast.
  Dims strides;
  std::int64_t offset = 0;  ///< of the first element from the input's, in elements
  /// Where a template has made one dim of the outermost ones, strides[0] is from one to the next of those that the operand has: each
  /// stands for `each` in turn, and after `period` of them the first comes again; 0: never.
  std::int64_t each = 1, period = 0;

  /// C for its first element, of an array that is named as it is.
  [[nodiscard]] std::string first(const std::string& array) const;
};

/// A constant that counts, which the function takes: each run gives it.
struct PointwiseCount {
  std::string name;                    ///< of the parameter, unique in the function
  std::int64_t extent = 1;             ///< at the kernel's sizes
  CountForm form = CountForm::number;  ///< what the parameter is of it
  DType dtype = DType::f32;            ///< that it is rounded to
};

/// float NAME(float root, float OPERAND..., float COUNT...): floats of any storage type are computed in f32; truth values are 0 or 1.
struct PointwiseText {
  std::string function;
  std::vector<PointwiseOperand> operands;
  std::vector<PointwiseCount> counts = {};
};

/// A value, or what a change of layout that moves nothing makes it of, as that of an image of one pixel.
[[nodiscard]] ValueId before_layout(const Graph& graph, ValueId id);

/// The path from value `root` to value `output`, and what else that reads. `fast` allows functions whose
/// error is below that of results stored in 16 bits. Calls functions of schedules/cuda/pointwise.cuh. Throws
/// UnsupportedError, saying which node, for what is no pointwise work on floats and truth values of `root`,
/// of constants of one element, and of inputs that are read as they lie or broadcast. `open` is the body with symbols, whose
/// values have the same numbers; nullptr where runs give no constants.
[[nodiscard]] PointwiseText print_pointwise(const Graph& body, ValueId root, ValueId output,
                                            const std::string& name, bool fast, const Graph* open = nullptr);

}  // namespace sylvite
