#include "schedules/cuda/pool_gradient.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "schedules/cuda/grouped.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

std::string refuse_pooling(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (body.nodes().size() != 1 || body.nodes()[0].op != Op::max_pool_gradient)
    return "it is more than the gradient of a max pooling";
  for (const ValueId id : body.nodes()[0].inputs) {
    const TensorType& type = body.type(id);
    if (std::string refusal = refuse_image(type); !refusal.empty()) return refusal;
    if (type.element_count() == 0) return "it is empty";
    if (type.dims()[1] % 2 != 0) return "its channels are odd";
  }
  return is_channels_last(body.type(body.outputs[0])) ? "" : "its result lies otherwise than its images";
}

}  // namespace

Reading<CudaPoolGradientProblem> read_cuda_pool_gradient(const Kernel& kernel) {
  if (std::string refusal = refuse_pooling(kernel); !refusal.empty()) return {{}, refusal};
  const Graph& body = kernel.body;
  const Node& node = body.nodes()[0];
  CudaPoolGradientProblem problem;
  problem.windows = windows_of(kernel);
  problem.element = body.type(node.inputs[0]).dtype;
  problem.gradient = body_input_number(body, node.inputs[0]);
  problem.x = body_input_number(body, node.inputs[1]);
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.is_open = kernel.open != nullptr;
  problem.has_open_images = has_open_images(kernel);
  return {problem, ""};
}

std::vector<CudaPoolGradientChoice> cuda_pool_gradient_choices(const CudaPoolGradientProblem& problem) {
  std::vector<CudaPoolGradientChoice> choices;
  // As many pixels as lie between windows meet the fewest.
  const auto pixels = [](std::int64_t stride) {
    return static_cast<int>(std::clamp<std::int64_t>(stride, 2, 3));
  };
  const int lines = pixels(problem.windows.stride_y), columns = pixels(problem.windows.stride_x);
  for (const int vector : {8, 4, 2})
    for (const int threads : {256, 128})
      if (problem.windows.channels % vector == 0) choices.push_back({vector, threads, lines, columns});
  const CudaPoolGradientChoice first = choices[0];
  choices.push_back({first.vector, first.threads, 1, 1});
  return choices;
}

CudaTemplate make_cuda_pool_gradient(const CudaPoolGradientProblem& problem,
                                     const CudaPoolGradientChoice& choice) {
  constexpr std::int64_t most_unrolled = 9;  // taps; more would be much code
  const CudaMatmulProblem::Windows& w = problem.windows;
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry =
      fmt::format("pool_gradient_{}_{}x{}_{}", dtype_name(problem.element), w.taps_y, w.taps_x, w.channels);
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_vector, windows_text(w));
  const std::vector<CudaExtent> extents = image_extents(w, problem.is_open, problem.has_open_images);
  result.source.text += fmt::format(
      "constexpr int VECTOR = {}, THREADS = {}, BLOCK_Y = {}, BLOCK_X = {}, UNROLL = {};\ntypedef {} "
      "Element;\n"
      "struct Arguments {{\n  Element* out;\n  const Element* gradient;\n  const Element* x;\n{}}};\n{}{}",
      choice.vector, choice.threads, choice.lines, choice.columns, w.taps() <= most_unrolled ? 3 : 1,
      dtype_name(problem.element), extent_members(extents), extents_text(extents),
      embedded::cuda_pool_gradient);
  const BlockCount vectors = BlockCount(w.lines).in_parts_of(choice.lines) *
                             BlockCount(w.columns).in_parts_of(choice.columns) *
                             (w.images * (w.channels / choice.vector));
  launch.shape.set_blocks(vectors.in_parts_of(choice.threads));
  launch.shape.block[0] = static_cast<unsigned>(choice.threads);
  launch.shape.programmatic = true;
  launch.pointers = {problem.out_argument, problem.gradient, problem.x};
  launch.numbers = extent_numbers(extents);
  return result;
}

}  // namespace sylvite
