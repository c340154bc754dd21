#pragma once
// What a kernel of bf16 should give: the interpreter in f32 on the same numbers. Products of bf16 are exact
// in f32 and are added up in f32, so that only the stored result is rounded, by 2^-9 of itself.

#include <set>
#include <string>
#include <vector>

#include "tests/support/run_kernel.h"

namespace sylvite {

/// Graph text with f32 for bf16.
inline std::string in_f32(std::string text) {
  for (std::size_t at = text.find("bf16"); at != std::string::npos; at = text.find("bf16", at))
    text.replace(at, 4, "f32");
  return text;
}

inline std::vector<Tensor> interpret_in_f32(const std::string& text, const std::vector<Tensor>& narrow) {
  std::vector<Tensor> wide;
  for (const Tensor& tensor : narrow) {
    Tensor& result = wide.emplace_back(DType::f32, tensor.dims());
    for (std::int64_t i = 0; i < tensor.size(); ++i) result.set_double(i, tensor.as_double(i));
  }
  return interpret(kernel_of(in_f32(text)).body, wide);
}

/// Runs each different candidate that the space makes of the points; returns how many those are.
inline std::size_t expect_as_in_f32(const std::string& text, const BoundSpace& space,
                                    const std::vector<Point>& points) {
  const Kernel kernel = kernel_of(text);
  const std::vector<Tensor> inputs = random_inputs(kernel);
  const std::vector<Tensor> expected = interpret_in_f32(text, inputs);
  std::set<std::string> seen;
  for (const Point& point : points) {
    Candidate candidate;
    try {
      candidate = space.at(point);
    } catch (const UnsupportedError&) {
      continue;
    }
    if (!seen.insert(candidate.to_string()).second) continue;
    expect_close(run_candidate(kernel, candidate, inputs), expected, 0x1p-8,
                 kernel.text + candidate.to_string());
  }
  return seen.size();
}

}  // namespace sylvite
