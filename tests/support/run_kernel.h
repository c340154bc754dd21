#pragma once
// Runs a Kernel as a candidate through Halide's JIT, and the same body through the reference interpreter.

#include <Halide.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/plan/kernel.h"
#include "lowering/plan/storage_order.h"
#include "runtime/export/embed/first_places.h"
#include "schedules/directives/own_directives.h"
#include "schedules/space.h"
#include "sylvite/graph_text.h"

namespace sylvite {

/// A kernel from graph text such as "graph g(%x: f32[2,3]) { ... }"; inputs named w... are weights.
inline Kernel kernel_of(const std::string& text) {
  Graph graph = parse_graph(text);
  std::vector<bool> is_weight;
  for (const ValueId id : graph.inputs) is_weight.push_back(graph.value(id).name.starts_with("w"));
  return make_kernel(graph, std::move(is_weight));
}

inline Halide::Buffer<> buffer_over(DType dtype, const Dims& stored, bool has_outer_blocks, void* data) {
  const Dims strides = storage_strides(stored, has_outer_blocks);
  std::vector<halide_dimension_t> dims;
  for (std::size_t i = stored.size(); i-- > 0;)
    dims.emplace_back(0, static_cast<std::int32_t>(stored[i]), static_cast<std::int32_t>(strides[i]));
  return Halide::Buffer<>(Halide::Type(halide_type_of(dtype)), data, static_cast<int>(dims.size()),
                          dims.data());
}

/// The dense form of a tensor stored in its type's layout.
inline Tensor unpacked(const Tensor& stored, const TensorType& type) {
  const int block = type.layout.channel_block;
  if (block == 0) return stored;
  Tensor dense(type.dtype, type.dims());
  const Dims dims = type.dims();
  const Dims strides = storage_strides(type.storage_dims(), has_outer_blocks(type));
  std::int64_t inner = 1;
  for (std::size_t d = 2; d < dims.size(); ++d) inner *= dims[d];
  for (std::int64_t i = 0; i < dense.size(); ++i) {
    const std::int64_t s = i % inner;
    const std::int64_t c = i / inner % dims[1];
    const std::int64_t n = i / inner / dims[1];
    dense.set_double(i, stored.as_double(n * strides[0] + c / block * strides[1] + s * block + c % block));
  }
  return dense;
}

/// An activation as its layout stores it; padded channels hold a number that must not reach any result.
inline Tensor stored_activation(const Tensor& dense, const TensorType& type) {
  Tensor stored = pack(dense, layout_packing(type));
  const std::int64_t block = type.layout.channel_block;
  if (block == 0) return stored;
  const std::int64_t channels = type.dims()[1], blocks = type.storage_dims()[1];
  const std::int64_t stride = storage_strides(type.storage_dims(), has_outer_blocks(type))[1];
  for (std::int64_t i = 0; i < stored.size(); ++i)
    if (i / stride % blocks * block + i % block >= channels) stored.set_double(i, 100);
  return stored;
}

/// The functions that kernels call, for Halide's own linker.
inline std::map<std::string, Halide::JITExtern> called_functions() {
  const Halide::Type word = Halide::Int(32), address = Halide::Handle();
  const Halide::ExternSignature signature(word, false, {address, address, word, word, word, address});
  const Halide::ExternCFunction first_places(reinterpret_cast<void*>(sylvite_first_places), signature);
  return {{"sylvite_first_places", Halide::JITExtern(first_places)}};
}

/// For the processor at hand, or another `target` that it can run.
inline std::vector<Tensor> run_candidate(
    const Kernel& kernel, const Candidate& candidate, const std::vector<Tensor>& inputs,
    const Halide::Target& target = Halide::Target(detect_machine(1).target)) {
  Algorithm algorithm = build_algorithm(kernel, candidate.form);
  candidate.schedule.apply(algorithm);
  const std::vector<Packing> packings = input_packings(kernel, candidate.form);
  std::vector<Tensor> stored;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
    stored.push_back(kernel.input_is_weight[i] ? pack(inputs[i], packings[i])
                                               : stored_activation(inputs[i], type));
    Tensor& last = stored.back();
    const bool is_packed = kernel.input_is_weight[i] && !is_layout(packings[i], type);
    algorithm.inputs[i].set(is_packed ? buffer_over(last.dtype(), last.dims(), false, last.mutable_data())
                                      : buffer_over(last.dtype(), type.storage_dims(), has_outer_blocks(type),
                                                    last.mutable_data()));
  }
  std::vector<Tensor> results;
  std::vector<Halide::Buffer<>> buffers;
  for (const ValueId id : kernel.body.outputs) {
    const TensorType& type = kernel.body.type(id);
    results.emplace_back(type.dtype, type.storage_dims());
    buffers.push_back(
        buffer_over(type.dtype, type.storage_dims(), has_outer_blocks(type), results.back().mutable_data()));
  }
  Halide::Realization realization(buffers);
  Halide::Pipeline pipeline(algorithm.outputs);
  add_own_passes(candidate.schedule, algorithm, target.to_string(), pipeline);
  pipeline.set_jit_externs(called_functions());
  pipeline.realize(realization, target);
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = unpacked(results[i], kernel.body.type(kernel.body.outputs[i]));
  return results;
}

/// Seeded inputs: floats in (-2, 2), integers in [-5, 5] or [0, 5], booleans.
inline std::vector<Tensor> random_inputs(const Kernel& kernel, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::vector<Tensor> inputs;
  for (const ValueId id : kernel.body.inputs) {
    const TensorType& type = kernel.body.type(id);
    Tensor tensor(type.dtype, type.dims());
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double unit = static_cast<double>(generator() >> 8) / (1 << 24);
      if (is_float(type.dtype))
        tensor.set_double(i, unit * 4 - 2);
      else if (type.dtype == DType::boolean)
        tensor.set_int64(i, unit < 0.5 ? 0 : 1);
      else
        tensor.set_int64(i, static_cast<std::int64_t>(unit * 11) - (is_signed_integer(type.dtype) ? 5 : 0));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

/// One failure per tensor that disagrees, naming the first element. Infinities must match, NaN matches NaN.
inline void expect_close(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                         double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < actual.size(); ++k) {
    ASSERT_EQ(actual[k].dims(), expected[k].dims()) << what;
    for (std::int64_t i = 0; i < actual[k].size(); ++i) {
      const double a = actual[k].as_double(i);
      const double b = expected[k].as_double(i);
      const bool same = a == b || (std::isnan(a) && std::isnan(b));
      if (!same && !(std::abs(a - b) <= tolerance * (1 + std::abs(b)))) {
        ADD_FAILURE() << what << "\noutput " << k << " element " << i << " is " << a << ", expected " << b;
        return;
      }
    }
  }
}

/// Runs a candidate on `inputs` (random ones when empty) and compares with the interpreter.
inline void check_candidate(const Kernel& kernel, const Candidate& candidate, std::vector<Tensor> inputs = {},
                            double tolerance = 2e-5) {
  if (inputs.empty()) inputs = random_inputs(kernel);
  const std::string what = kernel.text + candidate.to_string();
  try {
    expect_close(run_candidate(kernel, candidate, inputs), interpret(kernel.body, inputs), tolerance, what);
  } catch (const Halide::Error& error) {
    ADD_FAILURE() << what << "\n" << error.what();
  } catch (const Error& error) {
    ADD_FAILURE() << what << "\n" << error.what();
  }
}

/// Expects the first output to agree with the interpreter to `tolerance` of its largest number.
inline void expect_agrees(const Kernel& kernel, const Candidate& candidate, double tolerance = 2e-6,
                          const Halide::Target& target = Halide::Target(detect_machine(1).target)) {
  SCOPED_TRACE(candidate.to_string());
  const std::vector<Tensor> inputs = random_inputs(kernel);
  const Tensor expected = interpret(kernel.body, inputs).at(0);
  Tensor actual;
  try {
    actual = run_candidate(kernel, Candidate::parse(candidate.to_string()), inputs, target).at(0);
  } catch (const Halide::Error& error) {
    FAIL() << error.what();
  }
  double scale = 0;
  double error = 0;
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    scale = std::max(scale, std::abs(expected.as_double(i)));
    const double difference = std::abs(expected.as_double(i) - actual.as_double(i));
    error = std::isfinite(difference) ? std::max(error, difference) : 1e30;
  }
  EXPECT_LE(error, tolerance * scale);
}

/// The reference and the heuristic candidate.
inline void check_kernel(const std::string& text, std::vector<Tensor> inputs = {}, double tolerance = 2e-5) {
  const Kernel kernel = kernel_of(text);
  check_candidate(kernel, reference_candidate(kernel), inputs, tolerance);
  const Candidate chosen = default_candidate(kernel, detect_machine(2));
  if (!(chosen == reference_candidate(kernel))) check_candidate(kernel, chosen, inputs, tolerance);
}

}  // namespace sylvite
