#include "schedules/cuda/attention.h"

#include <algorithm>
#include <array>
#include <numbers>
#include <tuple>

#include "base/error.h"
#include "base/rounding.h"
#include "schedules/cuda/attention_text.h"
#include "schedules/cuda/sources.h"

// The heads of schedules/cuda/attention.cuh and attention_f32.cuh.

namespace sylvite {
namespace {

constexpr int query_stages = 2;  // of the kernel that walks the keys
constexpr int consumer_rows = 64;
constexpr int most_whole_keys = 208;  // whose scores fit into registers
constexpr int registers = 65536;      // of a multiprocessor
constexpr int product_overhead = 26;  // registers that a product takes beside its sums
constexpr int registers_beside_sums =
    40;  // that the kernel for f32 takes beside queries, scores and sums, at least

bool is_f32(const CudaAttentionProblem& problem) {
  return problem.element == DType::f32;
}

int width_of(const CudaAttentionProblem& problem) {
  const std::int64_t unit = is_f32(problem) ? 32 : 64;
  return static_cast<int>(round_up(std::max(problem.depth, problem.value_depth), unit));
}

int shared_bytes(const CudaAttentionProblem& problem, const CudaAttentionChoice& choice) {
  constexpr int padding_of_f32 = 16 + 4;  // floats after a row of keys and of values
  if (is_f32(problem)) return 2 * choice.block * (2 * width_of(problem) + padding_of_f32) * 4;
  const int row = width_of(problem) * 2;
  const int queries = consumer_rows * choice.consumers * row, keys = choice.block * row;
  if (choice.whole_keys) return 1024 + queries + 2 * keys + 16;
  const int barriers = 8 * (2 * query_stages + 4 * choice.stages) + 4 * query_stages;
  return 1024 + (query_stages + 1) * queries + 2 * choice.stages * keys + barriers;
}

BlockCount tiles_of(const CudaAttentionProblem& problem, const CudaAttentionChoice& choice) {
  return BlockCount(problem.queries).in_parts_of(std::int64_t{consumer_rows} * choice.consumers) *
         (problem.heads * problem.batch);
}

/// "%0, %1, ..." and the operands that they stand for.
struct Registers {
  std::string names, operands;
};
Registers registers_of(const char* array, int count) {
  Registers result;
  for (int i = 0; i < count; ++i) {
    result.names += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    result.operands += fmt::format("{}\"+f\"({}[{}])", i == 0 ? "" : ", ", array, i);
  }
  return result;
}

}  // namespace

std::string attention_products(DType element, int score_columns, int value_columns) {
  const int scores = score_columns / 2, results = value_columns / 2;
  const Registers s = registers_of("s", scores), o = registers_of("o", results);
  const std::string_view type = dtype_name(element);
  return fmt::format(
             "DEVICE void multiply_scores(float (&s)[{0}], u64 q, u64 k, int add) {{\n"
             "  asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %{5}, 0;\\n\"\n"
             "    \"wgmma.mma_async.sync.aligned.m64n{1}k16.f32.{2}.{2} {{{3}}}, %{0}, %{4}, p, 1, 1, 0, "
             "0;}}\"\n"
             "    : {6}\n    : \"l\"(q), \"l\"(k), \"r\"(add));\n}}\n",
             scores, score_columns, type, s.names, scores + 1, scores + 2, s.operands) +
         fmt::format(
             "DEVICE void multiply_values(float (&o)[{0}], const u32* p, u64 v, int add) {{\n"
             "  asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %{4}, 0;\\n\"\n"
             "    \"wgmma.mma_async.sync.aligned.m64n{1}k16.f32.{2}.{2} {{{3}}}, {{%{0}, %{6}, %{7}, %{8}}}, "
             "%{9}, p, 1, 1, 1;}}\"\n"
             "    : {5}\n    : \"r\"(p[0]), \"r\"(p[1]), \"r\"(p[2]), \"r\"(p[3]), \"l\"(v), "
             "\"r\"(add));\n}}\n",
             results, 2 * results, type, o.names, results + 5, o.operands, results + 1, results + 2,
             results + 3, results + 4);
}

CudaTensorMap attention_map(const CudaAttentionExtents& extents, DType element,
                            const CudaAttentionProblem::Operand& operand, std::int64_t depth,
                            std::int64_t rows, int box_rows) {
  constexpr std::int64_t bytes = 2;
  CudaTensorMap map;
  map.argument = operand.argument;
  map.offset = operand.offset * bytes;
  map.dtype = element;
  const std::int64_t dims[4] = {depth, rows, extents.heads / operand.share, extents.batch};
  std::copy_n(dims, 4, map.dims);
  const std::int64_t pitches[3] = {operand.row * bytes, operand.head * bytes, operand.batch * bytes};
  std::copy_n(pitches, 3, map.pitches);
  map.box[0] = 64;
  map.box[1] = box_rows;
  return map;
}

namespace {

std::string refuse_f32_choice(const CudaAttentionProblem& problem, const CudaAttentionChoice& choice,
                              const Card& card) {
  if (choice.whole_keys || choice.consumers != 1 || choice.stages != 2 || choice.block % 8 != 0)
    return "f32 goes through two stages of blocks of a multiple of 8 keys, with one warpgroup";
  const int held = choice.block / 2 + width_of(problem) + registers_beside_sums;
  if (held > registers / (128 * choice.resident))
    return "the scores do not fit into the registers of so many blocks";
  const std::int64_t bytes =
      static_cast<std::int64_t>(shared_bytes(problem, choice) + 1024) * choice.resident;
  return bytes > card.shared_bytes + 1024 ? "it does not fit into shared memory" : "";
}

/// What is alike in the launches of all kernels.
CudaTemplate template_of(const CudaAttentionProblem& problem, const CudaAttentionChoice& choice,
                         bool with_lies) {
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = attention_entry(problem);
  result.source.text = fmt::format("#define KERNEL {}\n{}", launch.entry, embedded::cuda_card);
  if (!is_f32(problem)) result.source.text += embedded::cuda_hopper;
  result.source.text += attention_constants(problem, choice, width_of(problem));
  result.source.text += attention_arguments(problem, with_lies);
  result.source.text += embedded::cuda_attention_scores;
  launch.shape.shared_bytes = static_cast<unsigned>(shared_bytes(problem, choice));
  launch.shape.programmatic = true;
  launch.pointers = {problem.mask ? problem.mask->argument : -1};
  launch.numbers = extent_numbers(attention_extents(problem, with_lies));
  return result;
}

CudaTemplate make_f32(const CudaAttentionProblem& problem, const CudaAttentionChoice& choice) {
  CudaTemplate result = template_of(problem, choice, true);
  result.source.text += attention_lies(problem);
  result.source.text += embedded::cuda_attention_f32;
  result.launch.shape.set_blocks(tiles_of(problem, choice));
  result.launch.shape.block[0] = 128;
  for (const CudaAttentionProblem::Operand* operand : {&problem.q, &problem.k, &problem.v, &problem.out})
    result.launch.pointers.push_back(operand->argument);
  return result;
}

/// Blocks that leave the least keys of the last one empty; a block costs as much as a few keys by itself.
std::vector<CudaAttentionChoice> f32_choices(const CudaAttentionProblem& problem) {
  constexpr std::int64_t cost_of_block = 8;
  std::vector<int> blocks = {64, 48, 40, 32, 72, 80};
  const auto cost = [&](int block) { return ceil_div(problem.keys, block) * (block + cost_of_block); };
  std::stable_sort(blocks.begin(), blocks.end(), [&](int a, int b) { return cost(a) < cost(b); });
  std::vector<CudaAttentionChoice> choices;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const int resident : {3, 4, 2, 1})
      if (resident == 3 || i < 2 || width_of(problem) > 64)
        choices.push_back({false, 1, blocks[i], 2, resident});
  }
  return choices;
}

/// Tensors by the names of their strides.
std::array<std::pair<const char*, const CudaAttentionProblem::Operand*>, 4> lying(
    const CudaAttentionProblem& problem) {
  return {{{"q", &problem.q}, {"k", &problem.k}, {"v", &problem.v}, {"out", &problem.out}}};
}

/// Whether pairs of a mask are read; `is_open`: its strides are, so that pairs of it may lie beside their boundaries.
std::string mask_pairs_text(const std::optional<CudaAttentionProblem::Mask>& given, std::int64_t keys,
                            bool is_open) {
  const CudaAttentionProblem::Mask mask = given.value_or(CudaAttentionProblem::Mask{});
  const bool is_even = !is_open && (mask.batch | mask.head | mask.row | keys) % 2 == 0;
  return fmt::format("constexpr int MASK_PAIRS = {:d};\n", is_even && mask.dtype != DType::boolean);
}

}  // namespace

std::string attention_mask_type(const std::optional<CudaAttentionProblem::Mask>& mask) {
  const DType dtype = mask.value_or(CudaAttentionProblem::Mask{}).dtype;
  return fmt::format("constexpr int MASKED = {:d};\ntypedef {} Mask;\n", mask.has_value(),
                     dtype == DType::boolean ? "u8" : dtype_name(dtype));
}

std::string attention_constants(const CudaAttentionProblem& problem, const CudaAttentionChoice& choice,
                                int width) {
  std::string text = fmt::format("#define WHOLE_KEYS {}\n", choice.whole_keys ? 1 : 0);
  const auto define = [&](const char* name, std::int64_t value) {
    text += fmt::format("constexpr int {} = {};\n", name, value);
  };
  define("HEADS", problem.heads);
  define("KEY_SHARE", problem.k.share);
  define("VALUE_SHARE", problem.v.share);
  define("WIDTH", width);
  define("KEYS_IN_L2", rows_in_l2(2 * static_cast<std::int64_t>(dtype_size(problem.element)) * width));
  define("CAUSAL", problem.causal);
  define("BLOCK", choice.block);
  define("CONSUMERS", choice.consumers);
  define("STAGES", choice.stages);
  define("BLOCKS_PER_MULTIPROCESSOR", choice.resident);
  text += attention_mask_type(problem.mask) + mask_pairs_text(problem.mask, problem.keys, problem.is_open);
  text += fmt::format("constexpr float SCALE = {:a}f;\n",
                      static_cast<float>(problem.scale * std::numbers::log2e));
  return text + fmt::format("typedef {} Element;\n", dtype_name(problem.element));
}

std::vector<CudaExtent> attention_extents(const CudaAttentionProblem& problem, bool with_lies) {
  const bool is_open = problem.is_open;
  std::vector<CudaExtent> extents = {{"batch", problem.batch, is_open},
                                     {"queries", problem.queries, is_open},
                                     {"keys", problem.keys, is_open}};
  add_mask_extents(problem.mask, is_open, extents);
  if (!with_lies) return extents;
  for (const auto& [name, operand] : lying(problem)) add_lie_extents(name, *operand, is_open, extents);
  return extents;
}

void add_mask_extents(const std::optional<CudaAttentionProblem::Mask>& given, bool is_open,
                      std::vector<CudaExtent>& extents) {
  const CudaAttentionProblem::Mask mask = given.value_or(CudaAttentionProblem::Mask{});
  is_open = is_open && given.has_value();
  extents.push_back({"mask_batch", mask.batch, is_open});
  extents.push_back({"mask_share", mask.share, is_open});
  extents.push_back({"mask_period", mask.period, is_open});
  extents.push_back({"mask_head", mask.head, is_open});
  extents.push_back({"mask_row", mask.row, is_open});
}

void add_lie_extents(const std::string& name, const CudaAttentionProblem::Operand& operand, bool is_open,
                     std::vector<CudaExtent>& extents) {
  extents.push_back({name + "_batch", operand.batch, is_open});
  extents.push_back({name + "_head", operand.head, is_open});
}

std::int64_t rows_in_l2(std::int64_t bytes_of_row) {
  constexpr std::int64_t l2_for_heads = 24 << 20;
  return l2_for_heads / bytes_of_row;
}

std::string attention_arguments(const CudaAttentionProblem& problem, bool with_lies) {
  const std::vector<CudaExtent> extents = attention_extents(problem, with_lies);
  const std::string operands = with_lies ? "  const Element *q, *k, *v;\n  Element* out;\n" : "";
  return "struct Arguments {\n  const Mask* mask;\n" + operands + extent_members(extents) + "};\n" +
         extents_text(extents);
}

std::string lie_text() {
  return "struct Lie {\n  long long offset, batch, head, row;\n  int share;\n"
         "  template <class T>\n  __device__ constexpr long long at(const T& tile) const {\n"
         "    return offset + tile.batch * batch + tile.head / share * head;\n  }\n};\n";
}

std::string lie_text(const char* name, const CudaAttentionProblem::Operand& operand) {
  return fmt::format(
      "DEVICE Lie lie_{0}(const Extents& e) {{\n  return {{{1}, e.{0}_batch, e.{0}_head, {2}, {3}}};\n}}\n",
      name, operand.offset, operand.row, operand.share);
}

std::string attention_lies(const CudaAttentionProblem& problem) {
  std::string text = lie_text();
  for (const auto& [name, operand] : lying(problem)) text += lie_text(name, *operand);
  return text +
         fmt::format("constexpr int DEPTH = {}, VALUE_DEPTH = {};\n", problem.depth, problem.value_depth);
}

std::string attention_entry(const CudaAttentionProblem& problem) {
  return entry_name(fmt::format("attention_{}", dtype_name(problem.element)), problem.is_open,
                    {problem.batch, problem.heads, problem.queries, problem.keys, problem.depth});
}

std::string CudaAttentionChoice::to_string() const {
  if (consumers == 1 && !whole_keys) return fmt::format("f32 {} x{}", block, resident);
  if (whole_keys) return fmt::format("whole {} x{}", block, resident);
  return fmt::format("ring {}x{} s{}", consumer_rows * consumers, block, stages);
}

std::string refuse_cuda_attention(const CudaAttentionProblem& problem, const CudaAttentionChoice& choice,
                                  const Card& card) {
  if (is_f32(problem)) return refuse_f32_choice(problem, choice, card);
  if (choice.whole_keys) {
    if (choice.block < problem.keys || choice.block % 16 != 0 || choice.block > most_whole_keys)
      return "all keys of a head are one block, a multiple of 16 up to 208";
    if (choice.consumers != 1) return "a block with all keys has one warpgroup";
    if (choice.block / 2 + product_overhead > registers / (128 * choice.resident) / 8 * 8)
      return "the scores do not fit into the registers of so many blocks";
  } else {
    if (choice.block % 64 != 0 || choice.block > 128) return "a block is 64 or 128 keys";
    if (choice.consumers < 2 || choice.consumers > 3) return "2 or 3 consumers take turns";
    if (choice.consumers == 3 && width_of(problem) > 64) return "3 consumers have registers for 64 columns";
  }
  const std::int64_t bytes = static_cast<std::int64_t>(shared_bytes(problem, choice)) * choice.resident;
  if (bytes > card.shared_bytes) return "it does not fit into shared memory";
  return "";
}

CudaTemplate make_cuda_attention(const CudaAttentionProblem& problem, const CudaAttentionChoice& choice,
                                 const Card& card) {
  if (const std::string refusal = refuse_cuda_attention(problem, choice, card); !refusal.empty())
    throw UnsupportedError("attention {} cannot be made: {}", choice.to_string(), refusal);
  if (is_f32(problem)) return make_f32(problem, choice);
  CudaTemplate result = template_of(problem, choice, false);
  result.source.text += attention_products(problem.element, choice.block, width_of(problem));
  result.source.text += embedded::cuda_attention;
  LaunchSpec& launch = result.launch;
  launch.shape.set_blocks(tiles_of(problem, choice));
  if (!choice.whole_keys) launch.shape.most = static_cast<unsigned>(card.multiprocessors);
  launch.shape.block[0] = static_cast<unsigned>(128 * (choice.whole_keys ? 1 : choice.consumers + 1));
  const int queries = consumer_rows * choice.consumers;
  launch.maps = {
      attention_map(problem, problem.element, problem.q, problem.depth, problem.queries, queries),
      attention_map(problem, problem.element, problem.k, problem.depth, problem.keys, choice.block),
      attention_map(problem, problem.element, problem.v, problem.value_depth, problem.keys, choice.block),
      attention_map(problem, problem.element, problem.out, problem.value_depth, problem.queries,
                    consumer_rows)};
  return result;
}

std::vector<CudaAttentionChoice> cuda_attention_choices(const CudaAttentionProblem& problem,
                                                        const Card& card) {
  std::vector<CudaAttentionChoice> choices;
  if (is_f32(problem)) choices = f32_choices(problem);
  const auto all_keys =
      static_cast<int>(round_up(std::min<std::int64_t>(problem.most_keys, 4096), std::int64_t{16}));
  for (const int resident : {4, 3, 5, 2}) choices.push_back({true, 1, all_keys, 1, resident});
  for (const int stages : {4, 3, 2}) choices.push_back({false, 3, 128, stages, 1});
  for (const int stages : {2, 3}) choices.push_back({false, 2, 128, stages, 1});
  choices.push_back({false, 2, 64, 3, 1});
  std::erase_if(choices, [&](const CudaAttentionChoice& choice) {
    return !refuse_cuda_attention(problem, choice, card).empty();
  });
  return choices;
}

}  // namespace sylvite
