#pragma once
// Runs a candidate of a kernel in this process and compares it with the reference interpreter.

#include <Halide.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "frontend/graph/interpreter.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/kernel.h"
#include "schedules/directives/own_directives.h"
#include "schedules/space.h"
#include "tests/support/bound_space.h"

namespace sylvite::test {

inline Tensor random_tensor(const TensorType& type, unsigned seed) {
  Tensor tensor(type.dtype, type.dims());
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> values(-1.0, 1.0);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    if (is_float(type.dtype))
      tensor.set_double(i, values(generator));
    else
      tensor.set_int64(i, static_cast<std::int64_t>(generator() % 2));
  return tensor;
}

inline Halide::Type element_type(DType dtype) {
  if (dtype == DType::f32) return Halide::Float(32);
  if (dtype == DType::i64) return Halide::Int(64);
  if (dtype == DType::boolean) return Halide::UInt(8);
  throw std::logic_error("candidate_runner: dtype");
}

inline Halide::Buffer<> buffer_of(Tensor& tensor) {
  std::vector<int> extents(tensor.dims().rbegin(), tensor.dims().rend());
  return Halide::Buffer<>(element_type(tensor.dtype()), tensor.mutable_data(), extents);
}

/// The tensor as `type` stores it; padded channels hold a value that must not reach any result.
inline Tensor stored(const Tensor& tensor, const TensorType& type) {
  Tensor result = pack(tensor, layout_packing(type));
  const std::int64_t block = type.layout.channel_block;
  if (block == 0) return result;
  const std::int64_t channels = type.dims()[1];
  const std::int64_t blocks = (channels + block - 1) / block;
  const std::int64_t inner = result.size() / (type.dims()[0] * blocks * block);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const std::int64_t channel = i / (inner * block) % blocks * block + i % block;
    if (channel >= channels) result.set_double(i, 1000.0);
  }
  return result;
}

/// The logical elements of a stored tensor.
inline Tensor logical(const Tensor& stored_tensor, const TensorType& type) {
  const std::int64_t block = type.layout.channel_block;
  if (block == 0) return stored_tensor;
  const Dims dims = type.dims();
  const std::int64_t blocks = (dims[1] + block - 1) / block;
  std::int64_t inner = 1;
  for (std::size_t i = 2; i < dims.size(); ++i) inner *= dims[i];
  Tensor result(type.dtype, dims);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const std::int64_t pixel = i % inner;
    const std::int64_t channel = i / inner % dims[1];
    const std::int64_t batch = i / (inner * dims[1]);
    const std::int64_t at = ((batch * blocks + channel / block) * inner + pixel) * block + channel % block;
    result.set_double(i, stored_tensor.as_double(at));
  }
  return result;
}

/// For the processor at hand, or another `target` that it can run.
inline Tensor run_candidate(const Kernel& kernel, const Candidate& candidate,
                            const std::vector<Tensor>& inputs,
                            const Halide::Target& target = Halide::get_host_target()) {
  Algorithm algorithm = build_algorithm(kernel, candidate.form);
  Schedule::parse(candidate.schedule.to_string()).apply(algorithm);
  const std::vector<Packing> packings = input_packings(kernel, candidate.form);
  std::vector<Tensor> keep;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
    keep.push_back(kernel.input_is_weight[i] ? pack(inputs[i], packings[i]) : stored(inputs[i], type));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) algorithm.inputs[i].set(buffer_of(keep[i]));
  const TensorType& type = kernel.body.type(kernel.body.outputs.at(0));
  Tensor output(type.dtype, type.storage_dims());
  Halide::Pipeline pipeline(algorithm.outputs);
  add_own_passes(candidate.schedule, algorithm, target.to_string(), pipeline);
  pipeline.realize(Halide::Pipeline::RealizationArg(buffer_of(output).raw_buffer()), target);
  return logical(output, type);
}

/// Expects the candidate to agree with the interpreter to `tolerance` of the output's scale.
inline void expect_agrees(const Kernel& kernel, const Candidate& candidate, double tolerance = 2e-6,
                          const Halide::Target& target = Halide::get_host_target()) {
  SCOPED_TRACE(candidate.to_string());
  std::vector<Tensor> inputs;
  inputs.reserve(kernel.body.inputs.size());
  for (std::size_t i = 0; i < kernel.body.inputs.size(); ++i)
    inputs.push_back(random_tensor(kernel.body.type(kernel.body.inputs[i]), static_cast<unsigned>(i) + 1));
  const Tensor expected = interpret(kernel.body, inputs).at(0);
  Tensor actual;
  try {
    actual = run_candidate(kernel, candidate, inputs, target);
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

/// A machine of fixed make, so that tests choose the same points everywhere.
inline Machine test_machine(int threads) {
  Machine machine = detect_machine(threads);
  machine.l1_bytes = 32 << 10;
  machine.l2_bytes = 1 << 20;
  machine.vector_floats = 16;
  machine.vector_registers = 32;
  return machine;
}

/// The host as if it had AVX2 and no more: sixteen registers of eight floats.
struct NarrowMachine {
  Machine machine;
  Halide::Target target;
};
inline NarrowMachine avx2_machine(int threads) {
  NarrowMachine narrow{test_machine(threads), Halide::get_host_target()};
  for (const auto feature :
       {Halide::Target::AVX512, Halide::Target::AVX512_Skylake, Halide::Target::AVX512_Cannonlake,
        Halide::Target::AVX512_Zen4, Halide::Target::AVX512_Zen5, Halide::Target::AVX512_SapphireRapids,
        Halide::Target::AVX512_KNL}) {
    narrow.target.set_feature(feature, false);
  }
  narrow.target.processor_tune = Halide::Target::ProcessorGeneric;
  narrow.machine.vector_floats = 8;
  narrow.machine.vector_registers = 16;
  return narrow;
}
inline bool has_avx2() {
  return Halide::get_host_target().has_feature(Halide::Target::AVX2);
}

/// The heuristic point with some numbers replaced.
inline Point point_with(const Space& space, const Kernel& kernel, const Machine& machine,
                        const NamedValues& replaced) {
  return sylvite::point_with(bound(space, kernel, machine), replaced);
}

inline const Space& space_named(const std::string& name) {
  for (const Space& space : space_table())
    if (space.name == name) return space;
  throw std::logic_error("no space " + name);
}

}  // namespace sylvite::test
