#pragma once
// What a pointwise operation does to elements, one row per operation, written twice: as a Halide expression, and as C for
// templates that are written in CUDA C++. Internal to lowering/.

#include <Halide.h>

#include <string>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

struct PointwiseOperands {
  const Node& node;
  const std::vector<Halide::Expr>& x;  ///< elements in compute type
  DType from;                          ///< element type of the first operand
  DType to;                            ///< of the result
};

/// In place of the text of an operation that templates in CUDA C++ refuse.
inline constexpr const char* not_printed = "";

/// In texts {0}, {1}, {2} stand for the operands. They are C++ over floats and truth values, and may call functions of
/// schedules/cuda/pointwise.cuh.
struct PointwiseBody {
  Op op;
  Halide::Expr (*expression)(const PointwiseOperands&);
  const char* text;  ///< or not_printed; nullptr: see text_of
  const char* fast_text =
      nullptr;  ///< whose error is below that of results stored in 16 bits; nullptr: as text
  std::string (*text_of)(const Node&, bool fast) = nullptr;  ///< the text where attributes matter
};

/// Throws UnsupportedError for operations that are not pointwise.
[[nodiscard]] const PointwiseBody& pointwise_body(Op op);

/// The node over operands that are printed already. Throws UnsupportedError for what is not_printed.
[[nodiscard]] std::string c_text(const Node& node, std::vector<std::string> operands, bool fast);
/// A float as C reads it back exactly.
[[nodiscard]] std::string c_literal(double value);

}  // namespace sylvite
