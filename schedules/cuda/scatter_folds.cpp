#include "schedules/cuda/scatter_folds.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/scatters.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr int threads = 256, warp = 32;

const ScatterFold& fold_of(const CudaScatterFoldsProblem& problem) {
  return *scatter_fold_named(problem.reduction);
}

std::string integer_identity(const CudaScatterFoldsProblem& problem) {
  if (problem.reduction == "add") return "0";
  if (problem.reduction == "mul") return "1";
  const char* least = problem.element == DType::i64 ? "(-9223372036854775807ll - 1)" : "(-2147483647 - 1)";
  const char* most = problem.element == DType::i64 ? "9223372036854775807ll" : "2147483647";
  return problem.reduction == "max" ? least : most;
}

/// "", or why the columns of updates are not those of the places.
std::string read_scattered_elements(const Graph& body, const Node& node, CudaScatterFoldsProblem& problem) {
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const Dims dims = body.type(node.inputs[0]).dims(), counts = body.type(node.inputs[1]).dims();
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (d != axis && counts[d] != dims[d]) return "some columns have no updates";
  problem.batches = product(dims, 0, axis);
  problem.places = dims[axis];
  problem.columns = product(dims, axis + 1, dims.size());
  problem.updates = counts[axis];
  problem.extents = {dims[axis]};
  problem.strides = {1};
  return "";
}

/// The function place_of of the template's text.
std::string place_text(const CudaScatterFoldsProblem& problem) {
  std::string text = "DEVICE int place_of(const Index* indices) {\n  int place = 0;\n";
  for (std::size_t c = 0; c < problem.extents.size(); ++c)
    text +=
        fmt::format("  place += settled(indices[{}], {}) * {};\n", c, problem.extents[c], problem.strides[c]);
  return text + "  return place;\n}\n";
}

/// Types, and the fold in them.
std::string types_text(const CudaScatterFoldsProblem& problem) {
  const bool is_float = is_float_storage(problem.element);
  const ScatterFold& fold = fold_of(problem);
  const char* integer = problem.element == DType::i64 ? "long long" : "int";
  const double initial = problem.initial.value_or(0);
  const std::string first = is_float ? fmt::format("__int_as_float({:#x})",
                                                   std::bit_cast<std::uint32_t>(static_cast<float>(initial)))
                                     : fmt::format("{}ll", static_cast<std::int64_t>(initial));
  return fmt::format(
      "#define IDENTITY {}\n#define INITIAL (Sum){}\ntypedef {} Element;\ntypedef {} Sum;\ntypedef {} "
      "Index;\n"
      "DEVICE Sum fold(Sum a, Sum b) {{\n  return {};\n}}\n"
      "DEVICE Sum to_sum(Element x) {{\n  return {};\n}}\nDEVICE Element to_element(Sum x) {{\n  return "
      "{};\n}}\n"
      "struct Arguments {{\n  Element* out;\n  const Element* x;\n  const Index* indices;\n"
      "  const Element* updates;\n}};\n",
      is_float ? fold.identity : integer_identity(problem), first,
      is_float ? dtype_name(problem.element) : integer, is_float ? "float" : integer,
      problem.index == DType::i64 ? "long long" : "int", is_float ? fold.floats : fold.integers,
      is_float ? "to_float(x)" : "x", is_float ? "from_float(Element{}, x)" : "x");
}

std::int64_t bytes_of_sum(const CudaScatterFoldsProblem& problem) {
  return problem.element == DType::i64 ? 8 : 4;
}

/// Cycles that a thread walks updates: it waits for their loads, and where a warp folds some together, it looks for those that meet
/// and waits for its turn.
double walk_of(const CudaScatterFoldsProblem& problem, const CudaScatterFoldsChoice& choice) {
  constexpr double of_update = 110, of_lane = 5, of_turn = 40;
  const auto steps =
      static_cast<double>(ceil_div(problem.updates, std::int64_t{choice.segments} * choice.together));
  if (choice.together == 1) return of_update * steps;
  const double lanes = choice.together;  // of which some meet, if updates are spread evenly
  const double turns = 1 + std::min(lanes - 1, lanes * lanes / (2 * static_cast<double>(problem.places)));
  return (of_update + of_lane * lanes + of_turn * turns) * steps;
}

/// Bytes that a block moves. What lies between its columns is moved with them.
double bytes_of(const CudaScatterFoldsProblem& problem, const CudaScatterFoldsChoice& choice) {
  const auto line = [&](DType dtype) {
    const std::int64_t own = choice.width * static_cast<std::int64_t>(dtype_size(dtype));
    return choice.width < problem.columns ? std::max<std::int64_t>(own, 32) : own;
  };
  const std::int64_t indices =
      problem.indices_of_update != 0
          ? problem.indices_of_update * static_cast<std::int64_t>(dtype_size(problem.index))
          : line(problem.index);
  const std::int64_t of_place = (problem.initial ? 1 : 2) * line(problem.element);
  return static_cast<double>(problem.updates * (indices + line(problem.element)) + choice.own * of_place);
}

/// What the walk and the fold of copies should take, in cycles; all blocks of a processor share what it can load. Blocks take turns
/// on the card's processors.
double cost_of(const CudaScatterFoldsProblem& problem, const CudaScatterFoldsChoice& choice) {
  constexpr double processors = 132, shared = 200 << 10, bytes_of_cycle = 24, of_copy = 0.125;
  const double copies = static_cast<double>(choice.own) * choice.width * choice.segments;
  const double together =
      std::clamp(std::floor(shared / (copies * static_cast<double>(bytes_of_sum(problem)))), 1., 8.);
  const auto blocks = static_cast<double>(problem.batches * ceil_div(problem.columns, choice.width) *
                                          ceil_div(problem.places, choice.own));
  const auto at_once = std::min(together, std::ceil(blocks / processors));
  const double moves = at_once * bytes_of(problem, choice) / bytes_of_cycle;
  return std::ceil(blocks / (processors * together)) *
         (std::max(walk_of(problem, choice), moves) + of_copy * copies);
}

}  // namespace

Reading<CudaScatterFoldsProblem> read_cuda_scatter_folds(const Kernel& kernel) {
  const Graph& body = kernel.body;
  const Node* scatter = scatter_of(kernel);
  if (scatter == nullptr) return {{}, "it is more than a scatter"};
  const Node& node = *scatter;
  CudaScatterFoldsProblem problem;
  problem.reduction = node.attributes.string("reduction");
  if (scatter_fold_named(problem.reduction) == nullptr) return {{}, "it folds nothing"};
  problem.initial = number_of(body, node.inputs[0]);
  if (body.nodes().size() != (problem.initial ? 2U : 1U)) return {{}, "it is more than a scatter"};
  problem.element = body.type(node.inputs[0]).dtype;
  problem.index = body.type(node.inputs[1]).dtype;
  problem.x = problem.initial ? 0 : body_input_number(body, node.inputs[0]);
  problem.indices = body_input_number(body, node.inputs[1]);
  problem.updates_argument = body_input_number(body, node.inputs[2]);
  problem.out = static_cast<int>(body.inputs.size());
  if (!is_float_storage(problem.element) && problem.element != DType::i64 && problem.element != DType::i32)
    return {problem, "it folds neither floats nor integers of 32 or 64 bits"};
  std::string refusal = refuse_scatter_types(body, node);
  if (!refusal.empty()) return {problem, refusal};
  if (problem.x < 0 || problem.indices < 0 || problem.updates_argument < 0)
    return {problem, "an operand is computed"};
  if (node.op == Op::scatter_elements)
    refusal = read_scattered_elements(body, node, problem);
  else
    read_tuples(body, node, problem);
  return {problem, refusal};
}

std::vector<CudaScatterFoldsChoice> cuda_scatter_folds_choices(const CudaScatterFoldsProblem& problem) {
  constexpr std::int64_t most_bytes = 96 << 10;  // of shared memory, which every card from Ampere on has
  constexpr std::size_t most_choices = 24;
  std::vector<Rated<CudaScatterFoldsChoice>> rated;
  const auto add = [&](int width, int together, int segments) {
    const std::int64_t most = most_bytes / (std::int64_t{width} * segments * bytes_of_sum(problem));
    for (const std::int64_t runs : {1, 4, 32}) {
      const std::int64_t own = std::min(most, ceil_div(problem.places, runs));
      if (own == 0) continue;
      const CudaScatterFoldsChoice choice{static_cast<int>(own), width, segments, together};
      if (std::ranges::find(rated, choice, &Rated<CudaScatterFoldsChoice>::second) == rated.end())
        rated.emplace_back(cost_of(problem, choice), choice);
    }
  };
  for (int width = 1; width <= warp; width *= 2) {
    if (width > 1 && width >= 2 * problem.columns) break;
    for (const int together : {1, warp / width})
      for (int segments = threads / (width * together); segments >= 1; segments /= 2)
        add(width, together, segments);
  }
  return best_first(std::move(rated), most_choices);
}

CudaTemplate make_cuda_scatter_folds(const CudaScatterFoldsProblem& problem,
                                     const CudaScatterFoldsChoice& choice) {
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  const std::int64_t runs = ceil_div(problem.places, choice.own);
  const std::int64_t strips = ceil_div(problem.columns, choice.width);
  launch.entry = fmt::format("scatter_{}_{}_{}into{}", problem.reduction, dtype_name(problem.element),
                             problem.updates, problem.places);
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_pointwise, embedded::cuda_vector);
  result.source.text += fmt::format(
      "constexpr int PLACES = {}, COLUMNS = {}, UPDATES = {}, INDICES = {}, OWN = {}, WIDTH = {}, SEGMENTS = "
      "{}, TOGETHER = {}, RUNS = {}, STRIPS = {};\nconstexpr bool ONTO_X = {};\n{}{}{}",
      problem.places, problem.columns, problem.updates, problem.indices_of_update, choice.own, choice.width,
      choice.segments, choice.together, runs, strips, !problem.initial, types_text(problem),
      embedded::cuda_scatter_folds, place_text(problem));
  launch.shape.set_blocks(BlockCount(problem.batches) * runs * strips);
  launch.shape.block[0] = threads;
  launch.shape.shared_bytes = static_cast<unsigned>(std::int64_t{choice.own} * choice.width *
                                                    choice.segments * bytes_of_sum(problem));
  launch.shape.programmatic = true;
  launch.pointers = {problem.out, problem.initial ? problem.updates_argument : problem.x, problem.indices,
                     problem.updates_argument};
  return result;
}

}  // namespace sylvite
