// Operators of com.microsoft that the default domain has as well, and small ones of its own.

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

void expand_dims(ImportContext& c) {
  const Sym x = c.input(0);
  const std::int64_t axis = c.constant_integer(1);
  c.output(unsqueeze(x, {normalize_axis(axis, x.rank() + 1)}));
}

/// Gauss and Jordan, with the largest element of each column as its pivot: [A | 1] becomes [1 | inverse].
void inverse(ImportContext& c) {
  constexpr std::int64_t most = 32;  // it is unrolled
  const Sym a = c.input(0);
  GraphBuilder& b = c.builder();
  if (a.rank() < 2 || a.dim(-1) != a.dim(-2)) throw ModelError("the input is no square matrix");
  const std::int64_t n = a.dim(-1);
  if (n < 1 || n > most)
    throw UnsupportedError("inverses of {0}x{0} matrices; up to {1}x{1} are supported", n, most);
  const DType dtype = a.dtype();
  Sym x = reshape(a, {a.size() / (n * n), n, n});
  const Sym row = b.iota(DType::i64, {1, n, 1}, 1);
  const Sym one = cast(apply(Op::equal, row, b.iota(DType::i64, {1, 1, n}, 2)), dtype);
  x = concat({x, broadcast_to(one, x.dims())}, 2);
  for (std::int64_t k = 0; k < n; ++k) {
    const auto at = static_cast<double>(k);
    const Sym size =
        where(apply(Op::less, row, at), b.scalar(dtype, -1), apply(Op::abs, slice(x, 2, k, k + 1)));
    const Sym is_pivot = apply(Op::equal, row, b.add(Op::arg_max, {size}, {{"axis", std::int64_t{1}}}));
    const Sym pivot = reduce(Op::reduce_sum, where(is_pivot, x, 0.0), {1});
    const Sym exchanged = where(is_pivot, slice(x, 1, k, k + 1), x);
    const Sym scaled = pivot / slice(pivot, 2, k, k + 1);
    x = where(apply(Op::equal, row, at), scaled, exchanged - slice(exchanged, 2, k, k + 1) * scaled);
  }
  c.output(reshape(slice(x, 2, n, 2 * n), a.dims()));
}

/// Distances of all rows of a from all rows of b. Of few features the differences are exact; of more a product has them, as
/// ONNX Runtime does.
void distances(ImportContext& c) {
  constexpr std::int64_t few = 32;
  const Sym a = c.input(0);
  const Sym b = c.input(1);
  const std::string metric = c.string("metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean")
    throw UnsupportedError("metric '{}' is not supported", metric);
  if (a.rank() != 2 || b.rank() != 2 || a.dim(1) != b.dim(1))
    throw ModelError("the inputs are {} and {}, expected matrices of as many columns", a.rank(), b.rank());
  Sym square;
  if (a.dim(1) <= few) {
    const Sym difference = unsqueeze(a, {2}) - unsqueeze(transpose(b, {1, 0}), {0});  // rows of b are lanes
    square = reduce(Op::reduce_sum, difference * difference, {1}, false);
  } else {
    const Sym left = reduce(Op::reduce_sum, a * a, {1});
    const Sym right = transpose(reduce(Op::reduce_sum, b * b, {1}), {1, 0});
    square = apply(Op::maximum, left + right - matmul(a, transpose(b, {1, 0})) * 2.0, 0.0);
  }
  c.output(metric == "euclidean" ? apply(Op::sqrt, square) : square);
}

/// All windows of an axis, along a new last axis.
void unfold_tensor(ImportContext& c) {
  const Sym x = c.input(0);
  const int axis = normalize_axis(c.integer("dim", -1), x.rank());
  const std::int64_t size = c.required_integer("size");
  const std::int64_t step = c.integer("step", 1);
  if (size < 1 || step < 1 || size > x.dim(axis))
    throw ModelError("windows of {} by steps of {} over {} elements", size, step, x.dim(axis));
  GraphBuilder& b = c.builder();
  const std::int64_t count = (x.dim(axis) - size) / step + 1;
  b.reserve_table({count, size});
  const Sym places =
      b.iota(DType::i64, {count, 1}, 0) * static_cast<double>(step) + b.iota(DType::i64, {size}, 0);
  std::vector<std::int64_t> order = all_axes(x.rank() + 1);
  order.erase(order.begin() + axis + 1);
  order.push_back(axis + 1);
  c.output(transpose(gather(x, places, axis), order));
}

/// No token may be chosen that would end a sequence of as many tokens as were there before.
void block_repeats(ImportContext& c) {
  const Sym ids = c.input(0);
  const Sym scores = c.input(1);
  const std::int64_t n = c.required_integer("ngram_size");
  if (n < 1 || ids.rank() != 2 || scores.rank() != 2 || ids.dim(0) != scores.dim(0))
    throw ModelError("ngram_size, tokens and scores do not fit");
  const std::int64_t starts = ids.dim(1) + 1 - n;
  if (starts < 1) return c.output(scores);
  GraphBuilder& b = c.builder();
  Sym is_repeat = b.filled(DType::boolean, {ids.dim(0), starts}, 1);
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    is_repeat =
        apply(Op::logical_and, is_repeat,
              apply(Op::equal, slice(ids, 1, i, i + starts), slice(ids, 1, starts + i, starts + i + 1)));
  }
  const Sym last = slice(ids, 1, n - 1, n - 1 + starts);
  const Sym hits = b.add(Op::scatter_elements,
                         {b.filled(scores.dtype(), scores.dims(), 0), last, cast(is_repeat, scores.dtype())},
                         {{"axis", std::int64_t{1}}, {"reduction", std::string("max")}});
  c.output(where(apply(Op::greater, hits, 0.0), -std::numeric_limits<double>::infinity(), scores));
}

/// Of words of characters, [words, characters], each up to its first 0: the largest of what windows of its characters give. A word
/// shorter than a window is as long as one; one of no characters gives zeros.
void embed_words(ImportContext& c) {
  const Sym words = c.input(0);
  const Sym filters = c.input(1);
  const Sym embedding = c.input(3);
  if (words.rank() != 2 || filters.rank() != 4 || filters.dim(1) != 1 || embedding.rank() != 2 ||
      filters.dim(3) != embedding.dim(1))
    throw ModelError("words, filters and embeddings do not fit");
  const std::int64_t characters = words.dim(1), width = filters.dim(2);
  if (width < 1 || width > characters)
    throw ModelError("windows of {} over words of {} characters", width, characters);
  for (const auto& [name, expected] :
       {std::pair("embedding_size", filters.dim(0)), std::pair("conv_window_size", width),
        std::pair("char_embedding_size", embedding.dim(1))})
    if (const std::int64_t given = c.integer(name, expected); given != expected)
      throw ModelError("{} is {}, but the weights have {}", name, given, expected);
  GraphBuilder& b = c.builder();
  const std::int64_t windows = characters - width + 1;
  b.reserve_table({windows, width});
  const Sym start = b.iota(DType::i64, {windows, 1}, 0);
  const Sym text = gather(gather(embedding, words, 0), start + b.iota(DType::i64, {1, width}, 1), 1);
  const std::int64_t depth = width * embedding.dim(1);
  const Sym products = matmul(reshape(text, {words.dim(0), windows, depth}),
                              transpose(reshape(filters, {filters.dim(0), depth}), {1, 0}));
  const Sym values = apply(Op::tanh, products + c.input(2));
  const Sym is_end = cast(apply(Op::equal, words, 0.0), DType::i32);
  const Sym ends = concat({is_end, b.filled(DType::i32, {words.dim(0), 1}, 1)}, 1);
  const Sym length = b.add(Op::arg_max, {ends}, {{"axis", std::int64_t{1}}});  // [words, 1]
  const Sym counts = apply(Op::less_equal, reshape(start, {1, windows}) + static_cast<double>(width),
                           apply(Op::maximum, length, static_cast<double>(width)));
  const Sym among = where(unsqueeze(counts, {2}), values, -std::numeric_limits<double>::infinity());
  c.output(where(apply(Op::greater, length, 0.0), reduce(Op::reduce_max, among, {1}, false), 0.0));
}

/// MurmurHash3_x86_32 of the bytes.
std::uint32_t murmur_hash(std::string_view bytes, std::uint32_t seed) {
  const auto mixed = [](std::uint32_t word) { return std::rotl(word * 0xCC9E2D51U, 15) * 0x1B873593U; };
  std::uint32_t hash = seed;
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, 4);
    hash = std::rotl(hash ^ mixed(word), 13) * 5 + 0xE6546B64U;
  }
  std::uint32_t rest = 0;
  std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  hash ^= mixed(rest) ^ static_cast<std::uint32_t>(bytes.size());
  hash = (hash ^ (hash >> 16)) * 0x85EBCA6BU;
  hash = (hash ^ (hash >> 13)) * 0xC2B2AE35U;
  return hash ^ (hash >> 16);
}

/// A step on the host: hashes are of texts and of keys, not of what networks compute.
void murmur_hash3(ImportContext& c) {
  const DType dtype = c.integer("positive", 1) != 0 ? DType::u32 : DType::i32;
  const auto seed = static_cast<std::uint32_t>(c.integer("seed", 0));
  const auto write = [&](const Dims& dims, const auto& bytes_of) {
    Tensor hashes(dtype, dims);
    for (std::int64_t i = 0; i < hashes.size(); ++i) {
      const std::uint32_t hash = murmur_hash(bytes_of(i), seed);
      std::memcpy(static_cast<char*>(hashes.mutable_data()) + 4 * i, &hash, 4);
    }
    c.output(c.builder().constant(hashes));
  };
  if (c.is_strings(0)) {
    const StringTensor& texts = c.strings(0);
    return write(texts.dims, [&](std::int64_t i) {
      return std::string_view(texts.values.at(static_cast<std::size_t>(i)));
    });
  }
  const DType type = c.input(0).dtype();
  const auto size = static_cast<std::int64_t>(dtype_size(type));
  if (size != 4 && size != 8)
    throw UnsupportedError("keys are {}, supported are those of 4 and 8 bytes", dtype_name(type));
  const Tensor keys = c.constant(0);
  write(keys.dims(), [&](std::int64_t i) {
    return std::string_view(static_cast<const char*>(keys.data()) + i * size, static_cast<std::size_t>(size));
  });
}

/// The cheapest way through a matrix of costs from its first element to its last, by steps to the next row, the next column or
/// both: rows and columns of its elements. A step on the host: how long the way is depends on the costs.
void align_by_costs(ImportContext& c) {
  const Sym x = c.input(0);
  if (x.dtype() != DType::f32 || x.rank() < 2 || x.rank() > 3 || (x.rank() == 3 && x.dim(0) != 1))
    throw ModelError("the input is no f32 matrix of costs");
  const Tensor costs = c.constant(0);
  const Dims& dims = costs.dims();
  const std::int64_t rows = dims[dims.size() - 2], columns = dims.back();
  const std::int64_t width = columns + 1;
  c.builder().reserve_table({rows + 1, width});
  const std::span<const float> cost = costs.view<float>();
  std::vector<float> total(static_cast<std::size_t>((rows + 1) * width),
                           std::numeric_limits<float>::infinity());
  std::vector<std::int8_t> step(total.size());
  const auto at = [=](std::int64_t row, std::int64_t column) {
    return static_cast<std::size_t>(row * width + column);
  };
  total[0] = 0;
  for (std::int64_t row = 1; row <= rows; ++row) {
    for (std::int64_t column = 1; column <= columns; ++column) {
      const float both = total[at(row - 1, column - 1)], down = total[at(row - 1, column)],
                  right = total[at(row, column - 1)];
      const bool is_both = both < down && both < right, is_down = down < both && down < right;
      step[at(row, column)] = is_both ? 0 : is_down ? 1 : 2;
      total[at(row, column)] = (is_both   ? both
                                : is_down ? down
                                          : right) +
                               cost[static_cast<std::size_t>((row - 1) * columns + column - 1)];
    }
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> way;
  for (std::int64_t row = rows, column = columns; row > 0 && column > 0;) {
    way.emplace_back(row - 1, column - 1);
    const std::int8_t taken = step[at(row, column)];
    if (taken != 2) --row;
    if (taken != 1) --column;
  }
  const auto length = static_cast<std::int64_t>(way.size());
  Tensor result(DType::i32, {2, length});
  for (std::int64_t i = 0; i < length; ++i) {
    const auto& [row, column] = way[static_cast<std::size_t>(length - 1 - i)];
    result.set_int64(i, row);
    result.set_int64(length + i, column);
  }
  c.output(c.builder().constant(result));
}

/// Those that mean what the default domain's do.
constexpr std::string_view shared[] = {"DequantizeLinear", "GatherND", "GridSample", "Pad",
                                       "QuantizeLinear",   "Trilu"};

std::vector<OnnxOp> make_rows() {
  std::vector<OnnxOp> rows{{"CDist", 1, distances, microsoft},
                           {"DynamicTimeWarping", 1, align_by_costs, microsoft},
                           {"ExpandDims", 1, expand_dims, microsoft},
                           {"Inverse", 1, inverse, microsoft},
                           {"MurmurHash3", 1, murmur_hash3, microsoft},
                           {"NGramRepeatBlock", 1, block_repeats, microsoft},
                           {"UnfoldTensor", 1, unfold_tensor, microsoft},
                           {"WordConvEmbedding", 1, embed_words, microsoft}};
  for (const auto family : {onnx_gather_ops(), onnx_quantization_ops(), onnx_resize_ops(), onnx_shape_ops()})
    for (const OnnxOp& op : family)
      if (op.domain.empty() && std::find(std::begin(shared), std::end(shared), op.name) != std::end(shared))
        rows.push_back({op.name, 1, op.import, microsoft});
  return rows;
}

}  // namespace

std::span<const OnnxOp> onnx_contrib_other_ops() {
  static const std::vector<OnnxOp> rows = make_rows();
  return rows;
}

}  // namespace sylvite
