#include "schedules/cuda/columns.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "schedules/cuda/card_limits.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t least_rows = 2;
constexpr std::int64_t most_column_rows = 1LL << 30;  // rows are numbered by int
constexpr int most_cluster = 8;                       // blocks
const std::vector<std::size_t> dense_order = {};
constexpr std::int64_t most_meeting_bytes = 47 << 10;  // of shared memory that each block has
constexpr std::int64_t l2_bytes = 50 << 20;            // what is larger is not there when it is read again

/// Columns that a thread takes together: 16 bytes of the floats that are read, or a divisor of the columns.
std::int64_t vector_of(const CudaColumnsProblem& problem) {
  std::int64_t size = 4;
  for (const CudaOperand& operand : problem.operands)
    if (operand.passes_by() && operand.of.dtype != DType::boolean)
      size = std::min<std::int64_t>(size, static_cast<std::int64_t>(dtype_size(operand.of.dtype)));
  std::int64_t vector = 16 / size;
  while (problem.columns % vector != 0) vector /= 2;
  return vector;
}

std::int64_t strips_of(const CudaColumnsProblem& problem, int lanes) {
  const std::int64_t width = lanes * vector_of(problem);
  return ceil_div(problem.columns, width);
}

/// Bytes of the largest result of a fold.
std::size_t part_bytes(const CudaColumnsProblem& problem) {
  return std::ranges::any_of(problem.folds,
                             [](const CudaFolds::Fold& fold) {
                               return fold.kind == FoldKind::place_of_most ||
                                      fold.kind == FoldKind::place_of_least;
                             })
             ? sizeof(std::uint64_t)
             : sizeof(float);
}

/// Where the blocks of a cluster meet: as the template's Meeting.
std::int64_t meeting_bytes(const CudaColumnsProblem& problem, const CudaColumnsChoice& choice) {
  constexpr std::int64_t total_bytes = sizeof(std::uint64_t), warp = 32;
  const std::int64_t warps = choice.lanes * choice.deep / warp, width = choice.lanes * vector_of(problem);
  const auto folds = static_cast<std::int64_t>(problem.folds.size());
  return width * (warps * static_cast<std::int64_t>(part_bytes(problem)) +
                  total_bytes * (folds + (choice.cluster > 1 ? folds : 1)));
}

bool is_read_again(const CudaColumnsProblem& problem) {
  return problem.has_row || passes_of(problem) > 1;
}

/// Are a thread's rows all under way at once, and used again?
bool holds_rows(const CudaColumnsProblem& problem, const CudaColumnsChoice& choice) {
  return is_read_again(problem) && !problem.has_open_rows &&
         std::int64_t{choice.unroll} * choice.cluster * choice.deep >= problem.rows;
}

/// All loads of a thread are used, and many are under way; what is used again is held, by as many threads as have rows.
double penalty_of_rows(const CudaColumnsProblem& problem, const CudaColumnsChoice& choice) {
  const auto under_way = static_cast<double>(choice.unroll * choice.cluster * choice.deep);
  const auto rows = static_cast<double>(problem.rows);
  if (holds_rows(problem, choice)) return 2 * std::log2(under_way / rows) + std::log2(choice.unroll / 4.) / 2;
  const bool has_all = !is_read_again(problem) && under_way <= rows;
  return (has_all ? 0 : 8) + std::log2(16. / choice.unroll);
}

/// Whole lines of 128 bytes, of which threads have all.
double penalty_of_lanes(const CudaColumnsProblem& problem, int lanes) {
  const auto vectors = static_cast<double>(problem.columns / vector_of(problem));
  return (lanes == 8 ? 0 : 1) +
         2 * std::log2(static_cast<double>(lanes * strips_of(problem, lanes)) / vectors);
}

/// A block for each multiprocessor, where there is enough to read that the blocks of a cluster find each other in that time.
double penalty_of_blocks(const CudaColumnsProblem& problem, const CudaColumnsChoice& choice) {
  constexpr double multiprocessors = 128, least_bytes = 16 << 10;
  const auto vectors =
      static_cast<double>(problem.batch * problem.rows * problem.columns / vector_of(problem));
  const double wanted = std::clamp(vectors * 16 / least_bytes, 1., multiprocessors);
  const auto blocks = static_cast<double>(problem.batch * strips_of(problem, choice.lanes) * choice.cluster);
  const double idle = std::max(std::log2(wanted / blocks), std::log2(blocks / multiprocessors));
  return 4 * std::max(idle, 0.) + (is_read_again(problem) ? 1 : 0.25) * std::log2(choice.cluster);
}

bool is_innermost(const TensorType& type) {
  return type.layout.channel_block == 0 || is_channels_last(type);
}

/// A block of the template folds columns of one batch: with a few vectors of them most of its threads have nothing to do.
bool leaves_blocks_idle(const CudaColumnsProblem& problem, DType dtype) {
  constexpr std::int64_t many_batches = 1024, few_vectors = 48;  // smallest blocks have 128 threads
  const auto vector = static_cast<std::int64_t>(16 / dtype_size(dtype));
  return problem.batch >= many_batches && problem.rows * ceil_div(problem.columns, vector) <= few_vectors;
}

/// Extents of the fold; "" or why its dims are no batch, rows and columns.
std::string read_extents(const TensorType& type, const Dims& axes, bool is_open, CudaGroups& groups,
                         CudaColumnsProblem& problem) {
  if (!is_innermost(type)) return "channels lie in blocks";
  groups =
      ordered(type.dims(), is_channels_last(type) ? channels_last_order(type.shape.size()) : dense_order);
  std::vector<std::size_t> folded;
  for (std::size_t i = 0; i < groups.dims.size(); ++i) {
    const std::size_t dim = groups.order.empty() ? i : groups.order[i];
    if (std::ranges::find(axes, static_cast<std::int64_t>(dim)) != axes.end()) folded.push_back(i);
  }
  groups.first = folded.front();
  groups.last = folded.back() + 1;
  groups.divides_rows = groups.divides_columns = true;
  if (groups.last - groups.first != folded.size()) return "the folded dims are not neighbours";
  if (groups.last == groups.dims.size()) return "the innermost dim is folded";
  problem.batch = product(groups.dims, 0, groups.first);
  problem.rows = product(groups.dims, groups.first, groups.last);
  problem.columns = product(groups.dims, groups.last, groups.dims.size());
  if (type.element_count() == 0) return "it is empty";
  if (problem.rows < least_rows) return "the columns are short";
  if (!is_open && leaves_blocks_idle(problem, type.dtype))
    return "its many batches have few elements: a thread each folds them";
  if (problem.rows > most_column_rows || problem.columns > most_column_rows) return "the extents are large";
  return "";
}

/// Images of one pixel lie the same with their channels innermost and outermost.
bool has_one_pixel(const TensorType& type) {
  const Dims dims = type.dims();
  return is_innermost(type) && dims.size() > 2 && product(dims, 2, dims.size()) == 1;
}

/// The dims of the result, which must lie as those of `groups` that are left.
std::string read_result(const TensorType& result, const CudaGroups& groups, bool keeps, CudaGroups& after) {
  const bool is_image = !groups.order.empty();
  const bool drops_pixels = !keeps && groups.first <= 1 && groups.last + 1 == groups.dims.size();
  const bool follows = is_image ? is_channels_last(result) || drops_pixels : result.layout.channel_block == 0;
  if (!follows && !has_one_pixel(result)) return "its result lies otherwise than what is read";
  after = ordered(result.dims(), keeps ? groups.order : dense_order);
  after.first = groups.first;
  after.last = keeps ? groups.last : groups.first;
  after.divides_columns = true;
  return "";
}

/// What has a row must lie as what is folded.
std::string refuse_row(const TensorType& result, const TensorType& folded) {
  if (result.layout != folded.layout) return "its result lies otherwise than what is read";
  return is_float_storage(result.dtype) ? "" : "its result is no float";
}

/// Is work on all elements behind the folds done here as fast as by a launch of its own? It is where the columns stay in registers
/// of enough blocks, or where a launch takes longer.
bool pays_row(const CudaColumnsProblem& problem, std::int64_t bytes, int most_blocks) {
  constexpr std::int64_t little = 4 << 20, least_blocks = 132, least_lanes = 8;
  if (bytes <= little) return true;
  return problem.batch * strips_of(problem, least_lanes) * most_blocks >= least_blocks &&
         std::ranges::any_of(cuda_columns_choices(problem, most_blocks),
                             [&](const CudaColumnsChoice& choice) { return holds_rows(problem, choice); });
}

}  // namespace

Reading<CudaColumnsProblem> read_cuda_columns(const Kernel& kernel) {
  constexpr std::size_t most_outputs = 8;
  if (kernel.kind != KernelClass::reduction) return {{}, "it is no reduction"};
  const Graph& body = kernel.body;
  if (body.outputs.size() > most_outputs) return {{}, "it has many outputs"};
  if (std::string refusal = refuse_folds(body); !refusal.empty()) return {{}, refusal};
  FoldDims dims{folded_axes(body.node(kernel.anchor)), {}, {}, kernel.open.get()};
  if (dims.axes.empty()) return {{}, "it folds nothing"};
  const ValueId folded = folded_value(body);
  const TensorType& type = body.type(folded);
  CudaColumnsProblem problem;
  problem.out_argument = static_cast<int>(body.inputs.size());
  problem.out = body.type(body.outputs[0]).dtype;
  problem.has_row = body.type(body.outputs[0]).dims() == type.dims();
  CudaGroups& groups = dims.groups;
  std::string refusal = read_extents(type, dims.axes, kernel.open != nullptr, groups, problem);
  if (!refusal.empty()) return {problem, refusal};
  dims.number_groups = [&groups](const TensorType& number, bool keeps, CudaGroups& after) {
    return read_result(number, groups, keeps, after);
  };
  problem.has_open_rows = are_open(kernel, folded, groups, groups.first, groups.last);
  if (are_open(kernel, folded, groups, groups.last, groups.dims.size()))
    return {problem, "its columns are open"};
  if (problem.has_row) refusal = refuse_row(body.type(body.outputs[0]), type);
  if (refusal.empty()) refusal = read_folds(kernel, dims, problem);
  if (refusal.empty() && problem.has_open_rows)
    refusal = follow_rows(problem.batch, problem.rows, problem.operands);
  if (refusal.empty() && problem.batch * strips_of(problem, 1) * 8 > most_blocks_of_grid)
    refusal = "the grid would be large";
  if (refusal.empty() && cuda_columns_choices(problem, 1).empty()) refusal = "its folds are many";
  if (refusal.empty() && problem.has_row && !pays_row(problem, type.byte_size(), most_cluster))
    refusal = "its columns are few, or do not fit into registers";
  return {problem, refusal};
}

std::string CudaColumnsChoice::to_string() const {
  return fmt::format("lanes {} deep {} unroll {} cluster {}{}", lanes, deep, unroll, cluster,
                     streams ? " streams" : "");
}

std::vector<CudaColumnsChoice> cuda_columns_choices(const CudaColumnsProblem& problem, int most_blocks) {
  constexpr std::size_t most_choices = 40;
  std::vector<Rated<CudaColumnsChoice>> rated;
  const std::int64_t vector = vector_of(problem);
  const std::int64_t held = vector * held_operands(problem);
  const bool is_large = problem.batch * problem.rows * problem.columns * 16 / vector > l2_bytes;
  for (const int lanes : {8, 16, 32}) {
    for (const int deep : {8, 16, 32, 64}) {
      for (const int unroll : {4, 8, 16}) {
        for (const int cluster : {1, 2, 4, 8}) {
          const CudaColumnsChoice choice{lanes, deep, unroll, cluster, false};
          const int threads = lanes * deep;
          // What is under way fills half of the registers.
          const bool fits = threads * unroll <= 8192 && threads * unroll * held <= 32768 &&
                            meeting_bytes(problem, choice) <= most_meeting_bytes;
          if (cluster > most_blocks || threads < 128 || threads > 1024 || !fits ||
              std::int64_t{lanes} * vector % cluster != 0)
            continue;
          const double penalty = penalty_of_blocks(problem, choice) + penalty_of_lanes(problem, lanes) +
                                 penalty_of_rows(problem, choice) + std::abs(std::log2(threads / 512.));
          for (const bool streams : {false, true})
            rated.emplace_back(penalty + (streams == is_large ? 0 : 0.5),
                               CudaColumnsChoice{lanes, deep, unroll, cluster, streams});
        }
      }
    }
  }
  return best_first(std::move(rated), most_choices);
}

namespace {

std::string results_text(const CudaColumnsProblem& problem) {
  std::string finish;
  if (problem.has_row)
    finish = fmt::format(
        "  float x[VECTOR];\n#pragma unroll\n  for (int j = 0; j < VECTOR; j++) {{\n"
        "    const Folds& folds = of[j];\n    x[j] = {};\n  }}\n"
        "  store_vector<STREAM_STORES>(a.out + (batch * e.rows + row) * COLUMNS + column, x);\n",
        epilogue_call(problem));
  return result_functions(problem) +
         fmt::format(
             "DEVICE void finish(const Arguments& a, long long batch, long long row, int column, const Item& "
             "item, const Folds (&of)[VECTOR]) {{\n  [[maybe_unused]] const Extents e = "
             "extents_of(a);\n{}}}\n"
             "DEVICE void finish_numbers(const Arguments& a, long long batch, int column, const Folds& "
             "folds) "
             "{{\n  [[maybe_unused]] const Extents e = extents_of(a);\n{}}}\n",
             finish, numbers_text(problem, "batch * COLUMNS + column"));
}

std::vector<CudaExtent> extents_of(const CudaColumnsProblem& problem) {
  std::vector<CudaExtent> extents = {{"rows", problem.rows, problem.has_open_rows}};
  std::ranges::copy(counted_extents(problem), std::back_inserter(extents));
  return extents;
}

}  // namespace

CudaTemplate make_cuda_columns(const CudaColumnsProblem& problem, const CudaColumnsChoice& choice) {
  const auto vector = static_cast<int>(vector_of(problem));
  const std::int64_t strips = strips_of(problem, choice.lanes);
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = entry_name(fmt::format("columns_{}", dtype_name(problem.out)), problem.has_open_rows,
                            {problem.rows, problem.columns});
  result.source.text = fmt::format("#define KERNEL {}\n{}{}{}{}", launch.entry, embedded::cuda_card,
                                   embedded::cuda_hopper, embedded::cuda_pointwise, embedded::cuda_vector);
  result.source.text += fmt::format(
      "constexpr int COLUMNS = {}, STRIPS = {}, VECTOR = {}, LANES = {}, DEEP = {}, UNROLL = {}, CLUSTER = "
      "{}, PART_BYTES = {};\n"
      "constexpr bool HELD = {}, HAS_ROW = {}, HAS_NUMBERS = {}, STREAM_LOADS = {}, STREAM_STORES = "
      "STREAM_LOADS;\ntypedef {} Out;\n",
      problem.columns, strips, vector, choice.lanes, choice.deep, choice.unroll, choice.cluster,
      part_bytes(problem), holds_rows(problem, choice), problem.has_row, !problem.numbers.empty(),
      choice.streams, dtype_name(problem.out));
  const std::vector<const CudaOperand*> operands = operands_of(problem);
  const std::vector<DType> further = further_results(problem);
  const std::vector<CudaExtent> extents = extents_of(problem);
  result.source.text += arguments_text(operands, extents, further);
  result.source.text += embedded::cuda_fold_keys;
  result.source.text += folds_text(problem) +
                        items_text(problem, vector, "long long batch, long long row, int column") +
                        results_text(problem);
  result.source.text += embedded::cuda_folds;
  result.source.text += embedded::cuda_columns;
  launch.shape.set_blocks(BlockCount(problem.batch) * strips * choice.cluster);
  launch.shape.block[0] = static_cast<unsigned>(choice.lanes * choice.deep);
  launch.shape.cluster = static_cast<unsigned>(choice.cluster);
  launch.shape.programmatic = true;
  pass_arguments(launch, problem.out_argument, operands, extents, further.size());
  return result;
}

}  // namespace sylvite
