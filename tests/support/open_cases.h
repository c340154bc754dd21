#pragma once
// Open kernels, compiled once, at many sizes, against the interpreter.

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "autotune/random_inputs.h"
#include "autotune/verify.h"
#include "frontend/graph/interpreter.h"
#include "lowering/algorithms/problems.h"
#include "lowering/plan/open_kernel.h"
#include "runtime/kernel_menu.h"
#include "runtime/kernel_runner.h"
#include "runtime/scratch.h"
#include "schedules/compile.h"
#include "schedules/space.h"

namespace sylvite {

struct OpenCase {
  std::string name;
  std::string text;          ///< of the graph
  std::string weights = {};  ///< after "weights:"
  std::vector<SymbolValues> sizes;
};

inline void PrintTo(const OpenCase& test, std::ostream* out) {
  *out << test.name;
}

/// As a kernel keeps them.
inline std::vector<Tensor> stored(const Kernel& kernel, std::vector<Tensor> outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = pack(outputs[i], layout_packing(kernel.body.type(kernel.body.outputs[i])));
  return outputs;
}

/// Values for the interpreter: dense, though random_inputs stores them as typed.
inline std::vector<Tensor> dense_inputs(const Kernel& kernel) {
  std::vector<Tensor> inputs;
  for (const ValueId id : kernel.body.inputs) {
    const TensorType& type = kernel.body.type(id);
    Tensor tensor(type.dtype, type.dims());
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double wave = std::sin(0.7 * static_cast<double>(i) + static_cast<double>(inputs.size()));
      if (is_float(type.dtype))
        tensor.set_double(i, wave);
      else
        tensor.set_int64(i, wave > 0 ? 1 : 0);
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

/// Fills what kernels take with numbers that raise FE_INVALID wherever they are calculated with.
inline void poison_scratch() {
  constexpr std::size_t count = std::size_t{1} << 20;
  auto* numbers = static_cast<std::uint32_t*>(take_scratch(nullptr, count * sizeof(std::uint32_t)));
  std::fill_n(numbers, count, 0x7fa00000U);  // a signalling NaN
  give_scratch(nullptr, numbers);
}

inline void expect_agreement(const Kernel& kernel, const Candidate& candidate, const std::string& object,
                             const Machine& machine) {
  std::vector<Tensor> inputs = dense_inputs(kernel);
  const std::vector<Tensor> expected = stored(kernel, interpret(kernel.body, inputs));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!kernel.input_is_weight[i])
      inputs[i] = pack(inputs[i], layout_packing(kernel.body.type(kernel.body.inputs[i])));
  ColdWeights weights(inputs, 0);
  KernelRunner runner(kernel, candidate, object, machine.target, inputs, weights, machine.threads);
  poison_scratch();
  std::feclearexcept(FE_INVALID);
  runner.call();
  EXPECT_EQ(std::fetestexcept(FE_INVALID), 0) << "calculates with numbers that it did not write";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.outputs[i]);
    EXPECT_LE(output_error(type, runner.outputs()[i], expected[i], {1e-4, 1e-5}), 1);
  }
}

/// The first `spaces` that take the kernel.
inline void expect_agreement(const OpenCase& test, std::size_t spaces) {
  const Kernel open = parse_kernel(test.text + "weights:" + test.weights + "\n");
  EXPECT_EQ(parse_kernel(open.text).text, open.text);
  for (const int threads : {1, 3}) {
    const Machine machine = detect_machine(threads);
    std::vector<BoundSpace> all = spaces_for(open, machine);
    all.resize(std::min(spaces, all.size()));
    for (const BoundSpace& space : all) {
      const Candidate candidate = space.at(space.heuristic);
      const std::string object = compile_to_object(open, candidate, machine.target);
      for (const SymbolValues& sizes : test.sizes) {
        const Kernel kernel = with_sizes(open, sizes);
        SCOPED_TRACE(
            fmt::format("{} at {}\n{}", space.name, fmt::join(kernel.sizes, ", "), candidate.to_string()));
        EXPECT_EQ(symbol_name(kernel, candidate, machine.target),
                  symbol_name(open, candidate, machine.target));
        expect_agreement(kernel, candidate, object, machine);
      }
    }
  }
}

}  // namespace sylvite
