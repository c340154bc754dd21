#include "schedules/cuda/depthwise_gradient.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/ops/facts.h"
#include "schedules/cuda/grouped.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_taps = 49;  // whose sums a thread keeps

std::string refuse(const Kernel& kernel) {
  if (!is_filter_gradient(kernel)) return "it is no gradient of a filter";
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  const Dims result = body.type(node.outputs[0]).dims();
  if (node.attributes.integer("groups") != result[2] || result[3] != 1 || body.nodes().size() != 1)
    return "it is not depthwise, or is more than a gradient";
  if (body.type(node.outputs[0]).element_count() == 0) return "it is empty";
  if (result[1] > most_taps) return "its windows are large";
  for (const ValueId id : node.inputs) {
    const TensorType& type = body.type(id);
    if (std::string refusal = refuse_image(type); !refusal.empty()) return refusal;
    if (type.dims()[1] != result[2]) return "it is not depthwise";
  }
  return result[2] % 8 == 0 ? "" : "its channels are no multiple of 8";
}

/// Neighbouring pixels of a line that a thread takes together.
std::int64_t group_of(const CudaDepthwiseGradientProblem& problem) {
  constexpr std::int64_t most = 8;
  const std::int64_t columns = problem.windows.out_columns;
  return problem.has_open_images ? most : ceil_div(columns, ceil_div(columns, most));
}

}  // namespace

Reading<CudaDepthwiseGradientProblem> read_cuda_depthwise_gradient(const Kernel& kernel) {
  if (std::string refusal = refuse(kernel); !refusal.empty()) return {{}, refusal};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  CudaDepthwiseGradientProblem problem;
  problem.windows = windows_of(kernel);
  problem.element = body.type(node.inputs[0]).dtype;
  problem.parts = node.attributes.integer("parts");
  problem.part = filter_gradient_part(body.type(node.inputs[0]).dims(), problem.parts);
  problem.gradient = body_input_number(body, node.inputs[0]);
  problem.x = body_input_number(body, node.inputs[1]);
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.is_open = kernel.open != nullptr;
  problem.has_open_images = has_open_images(kernel);
  return {problem, ""};
}

std::vector<CudaDepthwiseGradientChoice> cuda_depthwise_gradient_choices(
    const CudaDepthwiseGradientProblem& problem) {
  constexpr std::int64_t most_held = 64;  // sums of a thread
  constexpr int threads = 128;            // of so many sums that few fit
  std::vector<CudaDepthwiseGradientChoice> choices;
  for (const int vector : {8, 4, 2})
    for (const int width : {32, 64}) {
      const int lanes = width / vector;
      if (problem.windows.taps() * vector <= most_held || vector == 2)
        choices.push_back({vector, lanes, threads / lanes});
    }
  return choices;
}

CudaTemplate make_cuda_depthwise_gradient(const CudaDepthwiseGradientProblem& problem,
                                          const CudaDepthwiseGradientChoice& choice) {
  const CudaMatmulProblem::Windows& w = problem.windows;
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = fmt::format("depthwise_gradient_{}_{}x{}_{}", dtype_name(problem.element), w.taps_y,
                             w.taps_x, w.channels);
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  std::vector<CudaExtent> extents = image_extents(w, problem.is_open, problem.has_open_images);
  extents.push_back({"part", problem.part, problem.is_open});
  const std::int64_t group = group_of(problem);
  result.source.text +=
      windows_text(w) +
      fmt::format(
          "constexpr int GROUP = {}, VECTOR = {}, LANES = {}, DEEP = {};\nconstexpr bool WHOLE = {};\n"
          "typedef {} Element;\n"
          "struct Arguments {{\n  float* out;\n  const Element* gradient;\n  const Element* x;\n{}}};\n{}{}",
          group, choice.vector, choice.lanes, choice.deep,
          !problem.has_open_images && w.out_columns % group == 0, dtype_name(problem.element),
          extent_members(extents), extents_text(extents), embedded::cuda_depthwise_gradient);
  const std::int64_t strips = ceil_div(w.channels, std::int64_t{choice.lanes} * choice.vector);
  launch.shape.set_blocks(BlockCount(strips) * problem.parts);
  launch.shape.block[0] = static_cast<unsigned>(choice.lanes * choice.deep);
  launch.shape.programmatic = true;
  launch.pointers = {problem.out_argument, problem.gradient, problem.x};
  launch.numbers = extent_numbers(extents);
  return result;
}

}  // namespace sylvite
