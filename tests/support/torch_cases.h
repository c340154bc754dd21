#pragma once
// The captured graphs of tests/data/torch, with their inputs and what torch computed.

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "frontend/torch/memory_order.h"
#include "frontend/torch/torch_import.h"

namespace sylvite {

struct TorchCase {
  std::string name;
  std::string text;
  std::map<std::string, std::vector<std::string>> inputs;  ///< numbers by name, row by row
  std::vector<std::vector<std::string>> results;
};

inline std::vector<std::string> numbers_of(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> numbers;
  for (std::string word; words >> word;) numbers.push_back(word);
  return numbers;
}

inline std::vector<TorchCase> torch_cases(const std::string& family) {
  std::istringstream file(read_file(std::string(SYLVITE_TEST_DATA) + "/torch/" + family + ".cases"));
  std::vector<TorchCase> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# case ")) cases.emplace_back().name = line.substr(7);
    TorchCase& last = cases.back();
    last.text += line + "\n";
    const std::size_t sign = line.find(" =");
    if (line.starts_with("# %"))
      last.inputs[line.substr(3, sign - 3)] = numbers_of(line.substr(sign + 2));
    else if (line.starts_with("# ="))
      last.results.push_back(numbers_of(line.substr(3)));
  }
  return cases;
}

inline Tensor torch_tensor(DType dtype, const Dims& dims, const std::vector<std::string>& numbers) {
  Tensor tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::string& number = numbers.at(static_cast<std::size_t>(i));
    if (is_float(dtype))
      tensor.set_double(i, std::strtod(number.c_str(), nullptr));
    else
      tensor.set_int64(i, std::strtoll(number.c_str(), nullptr, 10));
  }
  return tensor;
}

/// What memory in `order` holds, row by row of the tensor with these dims.
inline Tensor stored_in_order(const Tensor& tensor, const std::vector<std::int64_t>& order) {
  Tensor stored(tensor.dtype(), in_order(tensor.dims(), order));
  const Dims strides = in_order(dense_strides(tensor.dims()), order);
  const Dims places = dense_strides(stored.dims());
  for (std::int64_t i = 0; i < stored.size(); ++i) {
    std::int64_t from = 0;
    for (std::size_t axis = 0; axis < places.size(); ++axis)
      from += i / places[axis] % stored.dims()[axis] * strides[axis];
    stored.set_double(i, tensor.as_double(from));
  }
  return stored;
}

/// For the inputs of the imported graph, in order.
inline std::vector<Tensor> torch_inputs(const TorchGraph& imported, const TorchCase& test) {
  std::vector<Tensor> inputs(imported.graph.inputs.size());
  for (const TorchInput& input : imported.inputs) {
    if (input.graph_input < 0) continue;
    const Dims dims = input.tensor.type.dims();
    const Tensor tensor = torch_tensor(input.tensor.type.dtype, dims, test.inputs.at(input.name));
    inputs[static_cast<std::size_t>(input.graph_input)] =
        stored_in_order(tensor, memory_order(dims, input.tensor.strides));
  }
  return inputs;
}

/// Of the largest number of a result.
inline double torch_tolerance(DType dtype) {
  return dtype == DType::bf16 ? 2e-2 : dtype == DType::f16 ? 3e-3 : 2e-6;
}

inline void expect_torch_results(const std::vector<Tensor>& actual, const TorchCase& test,
                                 const std::string& by) {
  ASSERT_EQ(actual.size(), test.results.size()) << test.name;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const Tensor expected = torch_tensor(actual[i].dtype(), actual[i].dims(), test.results[i]);
    ASSERT_EQ(static_cast<std::size_t>(expected.size()), test.results[i].size()) << test.name;
    double largest = 0;
    for (std::int64_t k = 0; k < expected.size(); ++k)
      if (std::isfinite(expected.as_double(k))) largest = std::max(largest, std::abs(expected.as_double(k)));
    const double tolerance = torch_tolerance(expected.dtype()) * largest;
    for (std::int64_t k = 0; k < expected.size(); ++k) {
      const double a = actual[i].as_double(k);
      const double b = expected.as_double(k);
      const bool is_same = a == b || (std::isnan(a) && std::isnan(b));
      if (is_same || std::abs(a - b) <= tolerance) continue;
      ADD_FAILURE() << test.name << ", " << by << ": element " << k << " of result " << i << " is " << a
                    << ", torch's " << b;
      break;
    }
  }
}

inline const std::vector<std::string> torch_families = {"pointwise", "shape",         "creation", "matmul",
                                                        "reduction", "normalization", "window",   "gather",
                                                        "draws",     "complex",       "special",  "linalg"};

}  // namespace sylvite
