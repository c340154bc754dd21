#include "schedules/cuda/top_k.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/views.h"
#include "schedules/cuda/card_limits.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_row_extent = 1LL << 30;  // numbered by int
constexpr std::int64_t most_top_k_rows = (1LL << 31) - 1;
constexpr std::int64_t most_row_bytes = 32 << 10;  // bytes of numbers
constexpr std::int64_t search_bytes = 1056;        // of struct Search
constexpr int least_top_k_threads = 32, most_top_k_threads = 1024;

/// What the template knows of elements: their type in C, and their digits of 8 bits; those of 16 bits are alike in the lower
/// ones of f32.
struct Element {
  DType dtype;
  const char* type;
  int digits;
  bool is_float, is_signed;
};
constexpr Element elements[] = {
    {DType::f32, "f32", 4, true, true},         {DType::f16, "f16", 3, true, true},
    {DType::bf16, "bf16", 2, true, true},       {DType::i64, "long long", 8, false, true},
    {DType::i32, "int", 4, false, true},        {DType::i16, "short", 2, false, true},
    {DType::i8, "signed char", 1, false, true}, {DType::u64, "u64", 8, false, false},
    {DType::u32, "u32", 4, false, false},       {DType::u16, "u16", 2, false, false},
    {DType::u8, "u8", 1, false, false},
};
const Element* find_element(DType dtype) {
  const auto* found = std::ranges::find(elements, dtype, &Element::dtype);
  return found == std::end(elements) ? nullptr : found;
}

/// Of an element with its place.
std::int64_t number_bytes(const CudaTopKProblem& problem) {
  return dtype_size(problem.element) == 8 ? 16 : 8;
}
std::int64_t most_kept(const CudaTopKProblem& problem) {
  return most_row_bytes / number_bytes(problem);
}

/// Sorting all costs less than counting digits first, where little is left out.
bool sorts_all(const CudaTopKProblem& problem) {
  constexpr std::int64_t few = 256;
  if (problem.k == problem.count) return true;
  return problem.count <= std::max(few, 4 * problem.k) && problem.count <= most_kept(problem);
}

std::int64_t kept_of(const CudaTopKProblem& problem) {
  return sorts_all(problem) ? problem.count : problem.k;
}

/// Groups of elements whose largest bound what a row of so many threads takes; 0 where it takes too many for that.
std::int64_t groups_of(const CudaTopKProblem& problem, int threads) {
  constexpr std::int64_t least = 32, most = 128, of_each_taken = 4;
  std::int64_t groups = least;
  while (groups < of_each_taken * problem.k) groups *= 2;
  const bool takes_few = !sorts_all(problem) && groups <= std::min<std::int64_t>(threads, most);
  return takes_few ? groups : 0;
}

/// Threads that a row keeps busy, each with a few elements; where few rows are sorted, a thread for each pair: steps wait for each
/// other.
std::int64_t wanted_threads(const CudaTopKProblem& problem) {
  constexpr std::int64_t elements_of_a_thread = 8, threads_of_a_card = 1 << 17;
  const bool is_few = sorts_all(problem) && problem.rows * problem.count / 2 <= threads_of_a_card;
  return std::clamp<std::int64_t>(problem.count / (is_few ? 2 : elements_of_a_thread), least_top_k_threads,
                                  most_top_k_threads);
}

}  // namespace

Reading<CudaTopKProblem> read_cuda_top_k(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (kernel.kind != KernelClass::ordering) return {{}, "it orders nothing"};
  if (body.nodes().size() != 1 || body.outputs.size() != 2) return {{}, "it is more than the first of rows"};
  const Node& node = body.nodes()[0];
  const TensorType &x = body.type(node.inputs[0]), &values = body.type(node.outputs[0]);
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  CudaTopKProblem problem;
  problem.element = x.dtype;
  problem.largest = node.attributes.integer("largest") != 0;
  problem.x = body_input_number(body, node.inputs[0]);
  const int first = static_cast<int>(body.inputs.size());
  problem.values = first + (body.outputs[0] == node.outputs[0] ? 0 : 1);
  problem.indices = first + (body.outputs[1] == node.outputs[1] ? 1 : 0);
  if (find_element(x.dtype) == nullptr)
    return {problem, fmt::format("it has no order of {}", dtype_name(x.dtype))};
  if (x.layout.channel_block != 0 || values.layout.channel_block != 0)
    return {problem, "channels lie in blocks"};
  if (problem.x < 0) return {problem, "an operand is computed"};
  if (values.element_count() == 0) return {problem, "it is empty"};
  problem.count = x.dims()[axis];
  problem.k = values.dims()[axis];
  problem.inner = product(x.dims(), axis + 1, x.dims().size());
  problem.rows = values.element_count() / problem.k;
  if (problem.count > most_row_extent || problem.inner > most_row_extent || problem.rows > most_top_k_rows)
    return {problem, "the extents are large"};
  if (number_bytes(problem) > 8 && kept_of(problem) > most_kept(problem))
    return {problem, "many elements of 64 bits are taken"};
  // A thread for each of many rows beside each other reads whole lines, and takes few steps.
  constexpr std::int64_t many = 1 << 14, beside = 32, few_steps = 1024;
  if (problem.rows >= many && problem.inner >= beside && problem.count * problem.k <= few_steps)
    return {problem, "its rows are short and lie beside each other"};
  return {problem, ""};
}

std::vector<CudaTopKChoice> cuda_top_k_choices(const CudaTopKProblem& problem) {
  constexpr int well_filled = 256;
  constexpr std::int64_t enough_blocks = 132;
  const std::int64_t kept = kept_of(problem), wanted = wanted_threads(problem);
  const bool is_shared = kept <= most_kept(problem);
  std::vector<Rated<CudaTopKChoice>> rated;
  for (int threads = least_top_k_threads; threads <= most_top_k_threads; threads *= 2) {
    const std::int64_t bytes = (is_shared ? number_bytes(problem) * kept : 0) +
                               (sorts_all(problem) ? 0 : search_bytes) +
                               2 * (groups_of(problem, threads) + 1) * number_bytes(problem);
    int rows = is_shared ? std::max(1, well_filled / threads) : 1;
    while (rows > 1 && (rows * bytes > shared_without_leave || problem.rows < rows * enough_blocks))
      rows /= 2;
    const double distance = threads > wanted ? static_cast<double>(threads) / static_cast<double>(wanted)
                                             : static_cast<double>(wanted) / threads;
    rated.emplace_back(distance, CudaTopKChoice{threads, rows});
  }
  constexpr std::size_t most_choices = 4;
  return best_first(std::move(rated), most_choices);
}

CudaTemplate make_cuda_top_k(const CudaTopKProblem& problem, const CudaTopKChoice& choice) {
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = fmt::format("top_k_{}_{}of{}", dtype_name(problem.element), problem.k, problem.count);
  result.source.text =
      fmt::format("#define KERNEL {}\n{}{}", launch.entry, embedded::cuda_card, embedded::cuda_vector);
  const Element& element = *find_element(problem.element);
  result.source.text += fmt::format(
      "constexpr int COUNT = {}, K = {}, INNER = {}, THREADS = {}, ROWS_OF_BLOCK = {}, GROUPS = {}, "
      "KEY_DIGITS = {};\n"
      "constexpr long long ROWS = {};\nconstexpr bool SORTS_ALL = {}, IS_SHARED = {}, LARGEST = {}, IS_FLOAT "
      "= {}, "
      "IS_SIGNED = {};\nstruct Wide {{\n  u64 key;\n  u32 place;\n}};\ntypedef {} Number;\n"
      "typedef {} In;\nstruct Arguments {{\n  In* values;\n  long long* indices;\n  const In* x;\n}};\n{}",
      problem.count, problem.k, problem.inner, choice.threads, choice.rows,
      groups_of(problem, choice.threads), element.digits, problem.rows, sorts_all(problem),
      kept_of(problem) <= most_kept(problem), problem.largest, element.is_float, element.is_signed,
      number_bytes(problem) == 8 ? "u64" : "Wide", element.type, embedded::cuda_top_k);
  launch.shape.set_blocks(BlockCount(problem.rows).in_parts_of(choice.rows));
  launch.shape.block[0] = static_cast<unsigned>(choice.threads * choice.rows);
  launch.shape.programmatic = true;
  launch.pointers = {problem.values, problem.indices, problem.x};
  return result;
}

}  // namespace sylvite
