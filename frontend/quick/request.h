#pragma once
// What an evaluator of this room is asked for, and the table's evaluators.

#include "frontend/ops/evaluate.h"

namespace sylvite::quick {

/// One operation. REQUIRES inputs and types as its type rule says, f32 where they are floats.
struct Request {
  Op op;
  InputTensors inputs;
  const Attributes& attributes;
  ResultTypes types;
  int threads = 1;

  [[nodiscard]] const float* data(std::size_t input) const { return inputs[input]->view<float>().data(); }
};

/// The result, or one that is left to the reference: no tensor.
using Evaluator = OutputTensors (*)(const Request&);

[[nodiscard]] OutputTensors unary(const Request&);
[[nodiscard]] OutputTensors binary(const Request&);
[[nodiscard]] OutputTensors where(const Request&);
/// Into and from f32, booleans and integers of up to 64 bits.
[[nodiscard]] OutputTensors cast(const Request&);
/// Into 8 and 16 bits, by a scale and perhaps a zero point.
[[nodiscard]] OutputTensors round_to_steps(const Request&);
[[nodiscard]] OutputTensors binary_integers(const Request&);
[[nodiscard]] OutputTensors matmul(const Request&);
/// Into i32. Products of 8-bit integers are added up in f32, as many at a time as it holds exactly; larger ones are left.
[[nodiscard]] OutputTensors matmul_integers(const Request&);
[[nodiscard]] OutputTensors conv(const Request&);
[[nodiscard]] OutputTensors conv_integers(const Request&);  ///< as matmul_integers
[[nodiscard]] OutputTensors attention(const Request&);
[[nodiscard]] OutputTensors pool(const Request&);
[[nodiscard]] OutputTensors reduce(const Request&);
[[nodiscard]] OutputTensors softmax(const Request&);
[[nodiscard]] OutputTensors axis_norm(const Request&);
[[nodiscard]] OutputTensors batch_norm(const Request&);

}  // namespace sylvite::quick
