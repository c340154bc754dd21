#pragma once
// Kernels of single nodes by their reference schedule, beside the interpreter.

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "frontend/ops/op_table.h"
#include "lowering/algorithms/algorithm.h"
#include "tests/support/run_kernel.h"

namespace sylvite {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline const double nan = std::numeric_limits<double>::quiet_NaN();

inline TensorType f32(const Dims& dims, int block = 0) {
  TensorType type = make_type(DType::f32, dims);
  type.layout.channel_block = block;
  return type;
}
inline TensorType of(DType dtype, const Dims& dims) {
  return make_type(dtype, dims);
}

/// One node to compute, all of a case's nodes reading the same inputs: compiled as one kernel with many
/// outputs.
struct NodeCase {
  Op op;
  std::vector<int> inputs;  ///< indices into the case's inputs; -1 leaves an optional input out
  Attributes attributes;
  int block = 0;  ///< layout of the result
};

inline Kernel kernel_with(const std::vector<TensorType>& inputs, const std::vector<NodeCase>& nodes) {
  Graph graph;
  for (std::size_t i = 0; i < inputs.size(); ++i) graph.add_input("x" + std::to_string(i), inputs[i]);
  for (const NodeCase& node : nodes) {
    std::vector<ValueId> operands;
    operands.reserve(node.inputs.size());
    for (const int i : node.inputs)
      operands.push_back(i < 0 ? no_value : graph.inputs.at(static_cast<std::size_t>(i)));
    for (const ValueId id : graph.add_node(node.op, operands, node.attributes)) {
      graph.value(id).type.layout.channel_block = node.block;
      graph.outputs.push_back(id);
    }
  }
  return make_kernel(graph, std::vector<bool>(inputs.size(), false));
}

/// Do the rows of the op table name the stages that fold?
inline void check_update_stages(const Kernel& kernel) {
  const Algorithm algorithm = build_algorithm(kernel, Form::parse("generic"));
  for (const Node& node : kernel.body.nodes()) {
    const std::string value = kernel.body.value(node.outputs.front()).name + "_";
    std::vector<std::string> found;
    for (const auto& [name, stage] : algorithm.stages)
      if (name.starts_with(value) && stage.has_update_definition())
        found.push_back(name.substr(value.size() - 1));
    EXPECT_THAT(found, testing::UnorderedElementsAreArray(update_stages(node.op))) << op_info(node.op).name;
  }
}

inline void check(const std::vector<TensorType>& inputs, const std::vector<NodeCase>& nodes,
                  const std::vector<Tensor>& values = {}, double tolerance = 2e-5) {
  const Kernel kernel = kernel_with(inputs, nodes);
  check_update_stages(kernel);
  check_candidate(kernel, reference_candidate(kernel), values, tolerance);
}

}  // namespace sylvite
