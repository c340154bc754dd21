#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/ops/facts.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/extents.h"
#include "schedules/cuda/matmul.h"

// Gradients of convolutions by their filters, as products whose depth is pixels: what the template reads of a kernel, and
// which numbers to race.

namespace sylvite {
namespace {

using Windows = CudaMatmulProblem::Windows;

std::string refuse_operands(const Kernel& kernel) {
  if (!is_filter_gradient(kernel)) return "it is no gradient of a filter";
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  if (body.outputs.size() != 1) return "it has several outputs";
  if (node.attributes.integer("groups") != 1) return "it has several groups";
  if (body.type(body.outputs[0]).shape != body.type(node.outputs[0]).shape)
    return "its epilogue changes the shape";
  if (body.type(node.outputs[0]).element_count() == 0) return "it is empty";
  for (const ValueId id : node.inputs) {
    const TensorType& type = body.type(id);
    if (type.dtype != DType::bf16 && type.dtype != DType::f16)
      return fmt::format("{} is not of 16 bits, as depth must be that does not lie innermost",
                         dtype_name(type.dtype));
    if (!is_channels_last(type)) return "channels do not lie innermost";
    if (body_input_number(body, id) < 0) return "its operands are computed in the kernel";
  }
  return "";
}

MatmulOperand pixels_of(const Graph& body, ValueId id) {
  MatmulOperand operand;
  operand.input = body_input_number(body, id);
  operand.pitch = body.type(id).dims()[1];
  operand.depth_fast = false;
  return operand;
}

bool meets_pixels_once(const Windows& w) {
  return w.taps() == 1 && w.stride_x == 1 && w.stride_y == 1 && w.pad_x == 0 && w.pad_y == 0;
}

std::string read_gradient_epilogue(const Kernel& kernel, CudaMatmulProblem& problem) {
  const Graph& body = kernel.body;
  try {
    problem.epilogue = print_pointwise(body, body.node(kernel.anchor).outputs[0], body.outputs[0], "epilogue",
                                       problem.out != DType::f32);
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  return problem.epilogue.operands.empty() ? "" : "its epilogue reads a tensor";
}

struct Tile {
  int x, y;
  bool ping_pong;
};
constexpr Tile gradient_tiles[] = {{128, 128, false}, {128, 64, false}, {128, 192, false}, {128, 256, false},
                                   {256, 128, false}, {64, 64, true},   {64, 128, true},   {128, 128, true}};

/// Clocks of a multiprocessor, of waves of tiles.
double estimate_gradient(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice, const Card& card) {
  constexpr double load_bytes = 64;  // per clock, from the L2 cache
  constexpr double turn = 2500;      // from the last product of a tile to the first of the next
  constexpr double meeting = 1500;   // of each other block of a split
  const std::int64_t x = choice.swapped ? problem.n : problem.m, y = choice.swapped ? problem.m : problem.n;
  const std::int64_t count = ceil_div(x, choice.tile_x) * ceil_div(y, choice.tile_y) * problem.batch;
  const auto waves =
      static_cast<double>(ceil_div(count, std::max<std::int64_t>(1, card.multiprocessors / choice.split)));
  const double products = choice.tile_x / 64.0 * choice.tile_y * 1.2;
  const double loads = (choice.tile_x + choice.tile_y) * 128 / load_bytes;
  const double steps = static_cast<double>(ceil_div(problem.part, 64 * choice.split));
  return waves * (steps * std::max(products, loads) + turn + meeting * (choice.split - 1));
}

}  // namespace

bool is_filter_gradient(const Kernel& kernel) {
  return kernel.kind == KernelClass::convolution && kernel.body.node(kernel.anchor).op == Op::filter_gradient;
}

Reading<CudaMatmulProblem> read_cuda_filter_gradient(const Kernel& kernel) {
  if (std::string refusal = refuse_operands(kernel); !refusal.empty()) return {{}, refusal};
  const Graph& body = kernel.body;
  const Node& node = body.node(kernel.anchor);
  const Dims gradient = body.type(node.inputs[0]).dims(), result = body.type(node.outputs[0]).dims();
  CudaMatmulProblem problem;
  problem.a = pixels_of(body, node.inputs[0]);
  problem.b = pixels_of(body, node.inputs[1]);
  problem.element = body.type(node.inputs[0]).dtype;
  problem.out = body.type(body.outputs[0]).dtype;
  problem.part = filter_gradient_part(gradient, node.attributes.integer("parts"));
  problem.batch = result[0] * result[1];
  problem.m = result[2];
  problem.n = result[3];
  problem.k = gradient[0] * gradient[2] * gradient[3];
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.k_is_open = kernel.open != nullptr;
  Windows windows = windows_of(kernel);
  const bool is_joined = node.attributes.integer("joined") != 0;
  if (is_joined) {
    if (!may_join_taps(windows)) return {{}, "its joined taps reach over the border of the image"};
    join_taps(windows);
  }
  if (is_joined || !meets_pixels_once(windows)) {
    problem.windows = windows;
    problem.has_open_images = has_open_images(kernel);
  }
  if (std::string refusal = read_gradient_epilogue(kernel, problem); !refusal.empty()) return {{}, refusal};
  return {problem, ""};
}

std::vector<CudaMatmulChoice> cuda_filter_gradient_choices(const CudaMatmulProblem& problem,
                                                           const Card& card) {
  constexpr std::size_t most_choices = 12;
  std::vector<CudaMatmulChoice> choices;
  for (const Tile& tile : gradient_tiles) {
    for (const bool swapped : {false, true}) {
      for (const int split : {1, 2, 4, 8}) {
        CudaMatmulChoice choice;
        choice.tile_x = tile.x;
        choice.tile_y = tile.y;
        choice.ping_pong = tile.ping_pong;
        choice.swapped = swapped;
        choice.split = split;
        if (refuse_cuda_matmul(problem, choice, card).empty()) choices.push_back(choice);
      }
    }
  }
  std::stable_sort(choices.begin(), choices.end(), [&](const CudaMatmulChoice& a, const CudaMatmulChoice& b) {
    return estimate_gradient(problem, a, card) < estimate_gradient(problem, b, card);
  });
  if (choices.size() > most_choices) choices.resize(most_choices);
  return choices;
}

}  // namespace sylvite
