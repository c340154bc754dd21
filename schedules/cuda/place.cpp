#include "schedules/cuda/place.h"

#include <algorithm>
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

void read_elements(const Graph& body, const Node& node, CudaPlaceProblem& problem) {
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const Dims dims = body.type(node.inputs[0]).dims(), counts = body.type(node.inputs[1]).dims();
  std::size_t first = 0;  // dims ahead of it are batches
  while (first < axis && counts[first] == dims[first]) ++first;
  problem.batches = product(dims, 0, first);
  problem.places = product(dims, first, dims.size());
  problem.updates = product(counts, first, counts.size());
  const Dims strides = dense_strides(dims);
  problem.extents = {dims[axis]};
  problem.strides = {strides[axis]};
  for (std::size_t d = dims.size(); d-- > first;) {
    problem.counts.push_back(counts[d]);
    problem.steps.push_back(d == axis ? 0 : strides[d]);
  }
}

/// The function place_of of the template's text.
std::string place_text(const CudaPlaceProblem& problem) {
  std::string text = "DEVICE int place_of(const Index* indices, int i) {\n  int place = 0;\n";
  for (std::size_t c = 0; c < problem.extents.size(); ++c)
    text += fmt::format("  place += settled(indices[(long long)i * INDICES + {}], {}) * {};\n", c,
                        problem.extents[c], problem.strides[c]);
  for (std::size_t d = 0; d < problem.counts.size(); ++d) {
    if (problem.steps[d] != 0)
      text += fmt::format("  place += i % {} * {};\n", problem.counts[d], problem.steps[d]);
    if (d + 1 < problem.counts.size()) text += fmt::format("  i /= {};\n", problem.counts[d]);
  }
  return text + "  return place;\n}\n";
}

/// An unsigned integer that is as wide.
const char* word_of(DType dtype) {
  switch (dtype_size(dtype)) {
    case 1:
      return "u8";
    case 2:
      return "u16";
    case 4:
      return "u32";
    default:
      return "u64";
  }
}

}  // namespace

Reading<CudaPlaceProblem> read_cuda_place(const Kernel& kernel) {
  const Graph& body = kernel.body;
  const Node* scatter = scatter_of(kernel);
  if (scatter == nullptr) return {{}, "it is more than a scatter"};
  const Node& node = *scatter;
  if (node.attributes.string("reduction") != "none") return {{}, "it does not replace"};
  CudaPlaceProblem problem;
  problem.onto_zeros = number_of(body, node.inputs[0]) == 0.0;
  if (body.nodes().size() != (problem.onto_zeros ? 2U : 1U)) return {{}, "it is more than a scatter"};
  problem.element = body.type(node.inputs[0]).dtype;
  problem.index = body.type(node.inputs[1]).dtype;
  problem.x = body_input_number(body, node.inputs[0]);
  problem.indices = body_input_number(body, node.inputs[1]);
  problem.updates_argument = body_input_number(body, node.inputs[2]);
  problem.out = static_cast<int>(body.inputs.size());
  std::string refusal = refuse_scatter_types(body, node);
  if (!refusal.empty()) return {problem, std::move(refusal)};
  if ((problem.x < 0 && !problem.onto_zeros) || problem.indices < 0 || problem.updates_argument < 0)
    return {problem, "an operand is computed"};
  node.op == Op::scatter_elements ? read_elements(body, node, problem) : read_tuples(body, node, problem);
  if (node.inputs.size() == 5) {
    problem.least = body_input_number(body, node.inputs[3]);
    problem.greatest = body_input_number(body, node.inputs[4]);
    const std::int64_t parts = body.type(node.inputs[3]).element_count();
    if (problem.least < 0 || problem.greatest < 0) return {problem, "bounds are computed"};
    if (parts == 0 || problem.updates % parts != 0 || body.type(node.inputs[3]).dtype != DType::i32 ||
        body.type(node.inputs[4]) != body.type(node.inputs[3]))
      return {problem, "its bounds are of no parts"};
    problem.part = problem.updates / parts;
  }
  return {problem, ""};
}

namespace {

/// Rounds in which the blocks of a cluster look at the bounds of all parts, each warp at one of each lane.
double looks(const CudaPlaceProblem& problem, int cluster) {
  constexpr int threads = 512, worth_a_step = 4;
  const std::int64_t parts = problem.updates / problem.part;
  return static_cast<double>(ceil_div(parts, std::int64_t{threads} * cluster)) / worth_a_step;
}

}  // namespace

std::vector<CudaPlaceChoice> cuda_place_choices(const CudaPlaceProblem& problem, int most_blocks) {
  // As many blocks as fill a card, or as few as shared memory allows where there are many.
  constexpr std::int64_t enough_blocks = 264, least = 64, most = 24 << 10;
  constexpr double worth_a_step =
      1 << 19;  // indices that are read in the time that twice as many blocks take to meet
  const std::int64_t whole = problem.batches * problem.places;
  std::vector<Rated<CudaPlaceChoice>> rated;
  for (const std::int64_t blocks : {enough_blocks, enough_blocks / 2, 4 * enough_blocks}) {
    const std::int64_t own = std::min(std::clamp(ceil_div(whole, blocks), least, most), problem.places);
    for (int cluster = 1; cluster <= most_blocks; cluster *= 2) {
      if (cluster > 1 && own * cluster >= 2 * problem.places) break;
      const CudaPlaceChoice choice{static_cast<int>(own), cluster};
      if (std::ranges::find(rated, choice, &Rated<CudaPlaceChoice>::second) != rated.end()) continue;
      const auto walks = static_cast<double>(problem.batches * ceil_div(problem.places, own * cluster));
      if (problem.part != 0) {
        rated.emplace_back(looks(problem, cluster) + std::log2(cluster), choice);
        continue;
      }
      const double indices = walks * static_cast<double>(problem.updates * problem.indices_of_update);
      rated.emplace_back(std::floor(indices / worth_a_step) + std::log2(cluster), choice);
    }
  }
  const std::size_t all = rated.size();
  return best_first(std::move(rated), all);
}

CudaTemplate make_cuda_place(const CudaPlaceProblem& problem, const CudaPlaceChoice& choice) {
  constexpr int threads = 512;
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = fmt::format("place_{}_{}of{}", dtype_name(problem.element), problem.updates, problem.places);
  result.source.text =
      fmt::format("#define KERNEL {}\n{}{}", launch.entry, embedded::cuda_card, embedded::cuda_hopper);
  result.source.text += fmt::format(
      "constexpr int PLACES = {}, COLUMNS = {}, UPDATES = {}, INDICES = {}, OWN = {}, CLUSTER = {}, PART = "
      "{};\nconstexpr bool ONTO_ZEROS = {};\ntypedef {} Index;\ntypedef {} Element;\n"
      "struct Arguments {{\n  Element* out;\n  const Element* x;\n  const Index* indices;\n"
      "  const Element* updates;\n  const int *least, *greatest;\n}};\n{}{}",
      problem.places, problem.columns, problem.updates, problem.indices_of_update, choice.own, choice.cluster,
      problem.part, problem.onto_zeros, problem.index == DType::i64 ? "long long" : "int",
      word_of(problem.element), embedded::cuda_place, place_text(problem));
  launch.shape.set_blocks(BlockCount(problem.places).in_parts_of(std::int64_t{choice.own} * choice.cluster) *
                          (problem.batches * choice.cluster));
  launch.shape.cluster = static_cast<unsigned>(choice.cluster);
  launch.shape.block[0] = threads;
  launch.shape.shared_bytes = static_cast<unsigned>(4 * choice.own);
  launch.shape.programmatic = true;
  launch.pointers = {problem.out,   problem.x,       problem.indices, problem.updates_argument,
                     problem.least, problem.greatest};
  return result;
}

}  // namespace sylvite
