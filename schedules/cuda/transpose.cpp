#include "schedules/cuda/transpose.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "base/error.h"
#include "base/rounding.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/run_extents.h"
#include "schedules/cuda/card_limits.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/extents.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

constexpr std::int64_t shortest = 16;
// Threads of single elements convert what has fewer rows, or fewer columns, as fast.
constexpr std::int64_t shortest_converted_rows = 40, shortest_converted_columns = 9;
constexpr std::int64_t longest = 1LL << 30;
constexpr int most_threads = 512;

BlockCount blocks_of(const CudaTransposeProblem& problem, const CudaTransposeChoice& choice) {
  const std::int64_t unit = problem.unit();
  return BlockCount(problem.rows).in_parts_of(choice.down * unit) *
         BlockCount(problem.columns).in_parts_of(choice.across * unit) * problem.batch;
}

/// Batches, rows and columns that lie behind each other in x, and are stored with columns ahead of rows.
void set_dense(std::int64_t batch, std::int64_t rows, std::int64_t columns, CudaTransposeProblem& problem) {
  problem.batch = batch;
  problem.rows = rows;
  problem.columns = columns;
  problem.pitch = columns;
  problem.out_pitch = rows;
  problem.batches.clear();
  if (batch > 1) problem.batches.push_back({batch, rows * columns, rows * columns});
}

/// A dim of x, or a run of them that stays together, in elements from each to the next.
struct Run {
  std::int64_t extent = 1, x_stride = 1, out_stride = 1;
};

/// In the order of the result; dims of one element are left out.
std::vector<Run> runs_of(const Dims& dims, const Dims& perm) {
  std::vector<Run> runs;
  std::int64_t last = -1;  // the dim of x at the end of the last run
  for (const std::int64_t d : perm) {
    const auto at = static_cast<std::size_t>(d);
    if (dims[at] == 1) continue;
    const bool goes_on = last >= 0 && last < d && product(dims, static_cast<std::size_t>(last) + 1, at) == 1;
    const std::int64_t step = product(dims, at + 1, dims.size());
    if (!goes_on) runs.push_back({1, step, 1});
    runs.back().extent *= dims[at];
    runs.back().x_stride = step;
    last = d;
  }
  std::int64_t behind = 1;
  for (std::size_t i = runs.size(); i-- > 0; behind *= runs[i].extent) runs[i].out_stride = behind;
  return runs;
}

/// Of a transpose; "" or why it has no rows and columns.
std::string read_perm(const Dims& dims, const Dims& perm, CudaTransposeProblem& problem) {
  std::vector<Run> runs = runs_of(dims, perm);
  if (runs.size() < 2) return "nothing changes place";
  if (runs.back().x_stride == 1) return "the innermost dim stays innermost";
  const Run rows = runs.back();
  runs.pop_back();
  std::ranges::sort(runs, std::greater(), &Run::x_stride);
  const Run columns = runs.back();
  runs.pop_back();
  problem.rows = rows.extent;
  problem.columns = columns.extent;
  problem.pitch = rows.x_stride;
  problem.out_pitch = columns.out_stride;
  for (const Run& run : runs) {
    problem.batches.push_back({run.extent, run.x_stride, run.out_stride});
    problem.batch *= run.extent;
  }
  return "";
}

/// Of a change of layout, the same.
std::string read_layouts(const TensorType& from, const TensorType& to, CudaTransposeProblem& problem) {
  const bool leaves = is_channels_last(from) && to.layout.channel_block == 0;
  const bool comes = is_channels_last(to) && from.layout.channel_block == 0;
  if (!leaves && !comes) return "channels lie in blocks";
  const Dims dims = from.dims();
  const std::int64_t pixels = product(dims, 2, dims.size());
  set_dense(dims.at(0), leaves ? pixels : dims.at(1), leaves ? dims.at(1) : pixels, problem);
  return "";
}

/// A slice of the channels of images that have them innermost.
std::string read_channel_slice(const Node& slice, const Dims& whole, const Dims& part,
                               CudaTransposeProblem& problem) {
  Dims rest = part;
  rest[1] = whole[1];
  if (rest != whole || slice.attributes.integers("steps")[1] != 1) return "more than channels are sliced";
  problem.pitch = whole[1];
  problem.offset = slice.attributes.integers("starts")[1];
  if (!problem.batches.empty()) problem.batches[0].x_stride = problem.rows * problem.pitch;
  return "";
}

/// Of a slice ahead of the transpose; "" or why its columns are no part of longer rows.
std::string read_slice(const Graph& body, const Node& slice, CudaTransposeProblem& problem) {
  const TensorType &from = body.type(slice.inputs[0]), &to = body.type(slice.outputs[0]);
  const Dims whole = from.dims(), part = to.dims();
  if (is_channels_last(from) && is_channels_last(to)) return read_channel_slice(slice, whole, part, problem);
  if (from.layout.channel_block != 0 || to.layout.channel_block != 0) return "channels lie in blocks";
  std::size_t cut = 0;
  while (cut < whole.size() && whole[cut] == part[cut]) ++cut;
  const bool is_one =
      cut < whole.size() && std::equal(whole.begin() + static_cast<std::ptrdiff_t>(cut) + 1, whole.end(),
                                       part.begin() + static_cast<std::ptrdiff_t>(cut) + 1);
  if (!is_one || slice.attributes.integers("steps")[cut] != 1) return "more than a run of a dim is sliced";
  const bool are_dense =
      problem.batches.size() < 2 && problem.pitch == problem.columns && problem.out_pitch == problem.rows;
  // The first dim of the columns.
  if (!are_dense || product(part, cut, part.size()) != problem.columns)
    return "not the columns alone are sliced";
  const std::int64_t behind = product(whole, cut + 1, whole.size());
  problem.pitch = whole[cut] * behind;
  problem.offset = slice.attributes.integers("starts")[cut] * behind;
  if (!problem.batches.empty()) problem.batches[0].x_stride = problem.rows * problem.pitch;
  return "";
}

/// At most so many squares of a tile's side, a power of two, of which at least half have elements.
int fitting(int most, std::int64_t extent, std::int64_t unit) {
  constexpr int least = 4;
  while (most > least && most / 2 * unit >= extent) most /= 2;
  return most;
}

/// The function that says where a batch begins: the outermost dim's extent is not in it, so that runs may give that.
std::string batch_text(const CudaTransposeProblem& problem) {
  std::string text = "DEVICE void add_batch(Extents e, long long rest, long long& x, long long& out) {\n";
  for (std::size_t i = problem.batches.size(); i-- > 0;) {
    const std::string index = i == 0 ? "rest" : fmt::format("rest % e.extent{}", i);
    text +=
        fmt::format("  x += {0} * e.x_stride{1};\n  out += {0} * e.out_stride{1};\n", "(" + index + ")", i);
    if (i > 0) text += fmt::format("  rest /= e.extent{};\n", i);
  }
  return text + "}\n";
}

std::string types_text(const CudaTransposeProblem& problem, const std::string& element) {
  if (problem.work)
    return fmt::format("typedef {0} Narrow;\ntypedef {1} From;\ntypedef {0} To;\n",
                       dtype_name(problem.work->to), dtype_name(problem.work->from));
  const auto name = [](const std::optional<DType>& type, const std::string& other) {
    return type ? std::string(dtype_name(*type)) : other;
  };
  return fmt::format("typedef {} Narrow;\ntypedef {} From;\ntypedef {} To;\n",
                     name(problem.widens ? problem.widens : problem.narrows, "f32"),
                     name(problem.widens, problem.narrows ? "f32" : element),
                     name(problem.narrows, problem.widens ? "f32" : element));
}

std::string work_text(const CudaTransposeProblem& problem) {
  std::string result = "x", functions;
  if (problem.work) {
    functions = fmt::format("{}{}{}", embedded::cuda_pointwise, problem.work->ahead.function,
                            problem.work->behind.function);
    result = "behind(ahead(0.f, x))";
  }
  return fmt::format("{}DEVICE float work(float x) {{\n  return {};\n}}\nconstexpr bool WORKS = {};\n",
                     functions, result, problem.work.has_value());
}

std::vector<CudaExtent> extents_of(const CudaTransposeProblem& problem) {
  std::vector<CudaExtent> extents;
  const auto add = [&](std::string name, std::int64_t value) {
    extents.push_back({std::move(name), value, problem.is_open});
  };
  add("rows", problem.rows);
  add("columns", problem.columns);
  add("pitch", problem.pitch);
  add("offset", problem.offset);
  add("out_pitch", problem.out_pitch);
  for (std::size_t i = 0; i < problem.batches.size(); ++i) {
    const CudaTransposeProblem::Dim& dim = problem.batches[i];
    if (i > 0) add(fmt::format("extent{}", i), dim.extent);
    add(fmt::format("x_stride{}", i), dim.x_stride);
    add(fmt::format("out_stride{}", i), dim.out_stride);
  }
  return extents;
}

/// What is read and written; "" or why not.
std::string read_types(DType from, DType to, CudaTransposeProblem& problem) {
  if (from == to) {
    problem.bytes = static_cast<int>(dtype_size(from));
    return problem.bytes == 2 || problem.bytes == 4 ? "" : "its elements have neither 2 nor 4 bytes";
  }
  if (is_half(from) && to == DType::f32)
    problem.widens = from;
  else if (from == DType::f32 && is_half(to))
    problem.narrows = to;
  else
    return "it converts other numbers than those of 16 bits and f32";
  return "";
}

/// The only node that moves what others work on; nullptr where there are more.
const Node* only_movement(const Graph& body) {
  const Node* found = nullptr;
  for (const Node& node : body.nodes()) {
    if (has_trait(node.op, OpTrait::pointwise)) continue;
    if (found != nullptr) return nullptr;
    found = &node;
  }
  return found;
}

/// Work on single numbers around `turn`; "" or why it is other work.
std::string read_work_around(const Graph& body, const Node& turn, CudaTransposeProblem& problem) {
  CudaTransposeProblem::Work work;
  work.from = body.type(body.inputs[0]).dtype;
  work.to = body.type(body.outputs[0]).dtype;
  if (!is_float_storage(work.from) || !is_float_storage(work.to))
    return "it works on other numbers than floats";
  if (body.type(body.inputs[0]).dims() != body.type(turn.inputs[0]).dims())
    return "it works on broadcast numbers";
  try {
    work.ahead = print_pointwise(body, no_value, turn.inputs[0], "ahead", is_half(work.to));
    work.behind = print_pointwise(body, turn.outputs[0], body.outputs[0], "behind", is_half(work.to));
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  if (work.ahead.operands.size() != 1 || work.ahead.operands[0].offset != 0 ||
      !work.behind.operands.empty() || !work.ahead.counts.empty() || !work.behind.counts.empty())
    return "its work is on more than single numbers";
  problem.bytes = static_cast<int>(dtype_size(work.to));
  problem.work = std::move(work);
  return "";
}

/// What a body does, one behind the other.
struct Steps {
  const Node *turn = nullptr, *slice = nullptr;
};
std::optional<Steps> read_steps(const Graph& body) {
  Steps steps;
  int casts = 0;
  ValueId last = body.inputs.size() == 1 ? body.inputs[0] : no_value;
  for (const Node& node : body.nodes()) {
    if (node.inputs.size() != 1 || node.inputs[0] != last || node.outputs.size() != 1) return std::nullopt;
    last = node.outputs[0];
    if (node.op == Op::cast && casts++ == 0) continue;
    const bool slices = node.op == Op::slice && steps.turn == nullptr;
    const Node*& place = slices ? steps.slice : steps.turn;
    if (place != nullptr) return std::nullopt;
    place = &node;
  }
  return steps.turn != nullptr ? std::optional(steps) : std::nullopt;
}

/// Of any extents.
Reading<CudaTransposeProblem> read_order(const Graph& body) {
  if (body.inputs.size() != 1 || body.outputs.size() != 1) return {{}, "it is more than a transpose"};
  std::optional<Steps> steps = read_steps(body);
  const bool works = !steps;
  if (works) steps = Steps{only_movement(body)};
  if (steps->turn == nullptr) return {{}, "it is more than a transpose"};
  const Node& node = *steps->turn;
  const TensorType &type = body.type(node.inputs[0]), &out = body.type(node.outputs[0]);
  CudaTransposeProblem problem;
  std::string refusal = works ? "it is more than a transpose" : "it is no transpose";
  // A reshape of what has its channels innermost is a change of layout ahead of a reshape that moves nothing.
  const bool is_change = node.op == Op::to_layout ||
                         (node.op == Op::reshape && is_channels_last(type) && out.layout.channel_block == 0);
  if (is_change) refusal = read_layouts(type, out, problem);
  if (node.op == Op::transpose)
    refusal = type.layout.channel_block == 0 && out.layout.channel_block == 0
                  ? read_perm(type.dims(), node.attributes.integers("perm"), problem)
                  : "channels lie in blocks";
  if (refusal.empty() && steps->slice != nullptr) refusal = read_slice(body, *steps->slice, problem);
  if (refusal.empty() && works)
    refusal = read_work_around(body, node, problem);
  else if (refusal.empty())
    refusal = read_types(body.type(body.inputs[0]).dtype, body.type(body.outputs[0]).dtype, problem);
  if (!refusal.empty()) return {problem, refusal};
  return {problem, type.element_count() == 0 ? "it is empty" : ""};
}

bool is_short(const CudaTransposeProblem& problem) {
  const bool converts = problem.widens || problem.narrows || problem.work;
  return problem.rows < (converts ? shortest_converted_rows : shortest) ||
         problem.columns < (converts ? shortest_converted_columns : shortest);
}

}  // namespace

Reading<CudaTransposeProblem> read_cuda_transpose(const Kernel& kernel) {
  Reading<CudaTransposeProblem> reading = read_order(kernel.body);
  CudaTransposeProblem& problem = reading.problem;
  if (!reading.refusal.empty()) return reading;
  problem.is_open = kernel.open && !only_batches_are_open(kernel);
  // Whether they are short decides for all runs of an open kernel.
  const CudaTransposeProblem hinted = kernel.open ? read_order(at_hints(kernel).body).problem : problem;
  if (is_short(hinted)) return {problem, "the transposed dims are short"};
  const bool is_large = problem.rows > longest || problem.pitch > longest || problem.out_pitch > longest ||
                        blocks_of(problem, {}).value() > most_blocks_of_grid;
  if (is_large || (problem.is_open && kernel.body.type(kernel.body.inputs[0]).element_count() > longest))
    return {problem, "the extents are large"};
  return {problem, ""};
}

int CudaTransposeProblem::unit() const {
  if (is_open) return 1;
  std::int64_t steps = std::gcd(16 / bytes, std::gcd(std::gcd(rows, pitch), std::gcd(offset, out_pitch)));
  bool has_whole_rows = true;
  for (const Dim& dim : batches) {
    steps = std::gcd(steps, std::gcd(dim.x_stride, dim.out_stride));
    has_whole_rows = has_whole_rows && dim.x_stride >= pitch;
  }
  while (columns % steps != 0 && !(has_whole_rows && offset + round_up(columns, steps) <= pitch)) steps /= 2;
  return static_cast<int>(steps);
}

std::string CudaTransposeChoice::to_string() const {
  return fmt::format("down {} across {} streams {}{}", down, across, streams,
                     rows_first ? " rows first" : "");
}

std::vector<CudaTransposeChoice> cuda_transpose_choices(const CudaTransposeProblem& problem) {
  constexpr std::int64_t enough_blocks = 264;  // two for each multiprocessor
  constexpr int most_shared = 48 << 10;
  constexpr std::pair<int, int> whole_vectors[] = {{16, 16}, {32, 16}, {8, 16}, {16, 32}, {16, 8}, {8, 8}};
  const int line = 128 / (problem.unit() * problem.bytes);  // vectors
  const std::pair<int, int> short_vectors[] = {{line, line}};
  const std::span<const std::pair<int, int>> tiles =
      line == 8 ? std::span<const std::pair<int, int>>(whole_vectors) : short_vectors;
  std::vector<CudaTransposeChoice> choices;
  for (const auto& [most_down, most_across] : tiles) {
    const int down = fitting(most_down, problem.rows, problem.unit());
    const int across = fitting(most_across, problem.columns, problem.unit());
    if (down * across * problem.unit() * problem.unit() * problem.bytes > most_shared) continue;
    for (const bool rows_first : {true, false})
      for (const int streams : {0, 3})
        if (const CudaTransposeChoice choice = {down, across, rows_first, streams};
            std::ranges::find(choices, choice) == choices.end())
          choices.push_back(choice);
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [&](const CudaTransposeChoice& a, const CudaTransposeChoice& b) {
                     return std::min(blocks_of(problem, a).value(), enough_blocks) >
                            std::min(blocks_of(problem, b).value(), enough_blocks);
                   });
  return choices;
}

CudaTemplate make_cuda_transpose(const CudaTransposeProblem& problem, const CudaTransposeChoice& choice) {
  const char* element = problem.bytes == 2 ? "u16" : "u32";
  const int vector = problem.unit() * problem.bytes, squares = choice.down * choice.across;
  const char* unit_bits = vector == 16 ? "uint4" : vector == 8 ? "uint2" : vector == 4 ? "u32" : "u16";
  const std::string types = types_text(problem, element);
  const int per_thread = std::max(1, squares / most_threads);
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry =
      entry_name(fmt::format("transpose_{}", element), problem.is_open, {problem.rows, problem.columns});
  const std::vector<CudaExtent> extents = extents_of(problem);
  result.source.text = fmt::format(
      "#define KERNEL {}\n{}{}typedef {} Element;\ntypedef {} Unit;\n{}struct Arguments {{\n  To* out;\n  "
      "const From* x;\n{}}};\n{}"
      "constexpr int UNIT = {}, DOWN = {}, ACROSS = {}, PER_THREAD = {};\n"
      "constexpr bool ROWS_FIRST = {}, STREAM_LOADS = {}, STREAM_STORES = {};\n{}{}",
      launch.entry, embedded::cuda_card, embedded::cuda_vector, element, unit_bits, types,
      extent_members(extents), extents_text(extents), problem.unit(), choice.down, choice.across, per_thread,
      choice.rows_first, (choice.streams & 1) != 0, (choice.streams & 2) != 0,
      batch_text(problem) + work_text(problem), embedded::cuda_transpose);
  launch.shape.set_blocks(blocks_of(problem, choice));
  launch.shape.block[0] = static_cast<unsigned>(squares / per_thread);
  launch.shape.programmatic = true;
  launch.pointers = {problem.out_argument, problem.argument};
  launch.numbers = extent_numbers(extents);
  return result;
}

}  // namespace sylvite
