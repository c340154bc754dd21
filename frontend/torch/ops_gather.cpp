// Reading and writing at computed positions.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "frontend/build/sampling.h"
#include "frontend/graph/views.h"
#include "frontend/torch/promote.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

/// The shape that all broadcast to.
Dims common_dims(const std::vector<Sym>& values) {
  Dims result;
  for (const Sym& value : values) {
    const Dims dims = value.dims();
    if (dims.size() > result.size()) result.insert(result.begin(), dims.size() - result.size(), 1);
    for (std::size_t i = 0; i < dims.size(); ++i) {
      std::int64_t& target = result[result.size() - dims.size() + i];
      if (target == 1) target = dims[i];
      if (dims[i] != 1 && dims[i] != target) throw ModelError("indices do not broadcast");
    }
  }
  return result;
}

/// Axes that are indexed by tensors, and those that are not.
struct Indexing {
  std::vector<std::int64_t> axes, others;
  std::vector<Sym> indices;
  Dims common;    ///< of the indices, broadcast
  int place = 0;  ///< where the common dims stand in the result
  Sym position;   ///< along the indexed axes as if they were one, of shape `common`

  [[nodiscard]] std::vector<std::int64_t> order() const {
    std::vector<std::int64_t> all = axes;
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }
};

Indexing read_indexing(TorchContext& c, Sym x) {
  Indexing result;
  const std::vector<Sym> given = c.tensors("indices");
  if (given.size() > static_cast<std::size_t>(x.rank()))
    throw ModelError("{} indices are given for {} axes", given.size(), x.rank());
  for (std::int64_t axis = 0; axis < x.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (i >= given.size() || !given[i]) {
      result.others.push_back(axis);
      continue;
    }
    if (given[i].dtype() == DType::boolean || given[i].dtype() == DType::u8)
      throw UnsupportedError("an index that is a mask, whose count depends on data, is not served");
    result.axes.push_back(axis);
    result.indices.push_back(cast(given[i], DType::i64));
  }
  if (result.axes.empty()) throw ModelError("no index is given");
  result.common = common_dims(result.indices);
  const bool is_adjacent =
      result.axes.back() - result.axes.front() + 1 == static_cast<std::int64_t>(result.axes.size());
  result.place = is_adjacent ? static_cast<int>(result.axes.front()) : 0;
  for (std::size_t i = 0; i < result.axes.size(); ++i) {
    const auto extent = static_cast<double>(x.dim(static_cast<int>(result.axes[i])));
    Sym index = result.indices[i];
    index = where(apply(Op::less, index, 0.0), index + extent, index);
    result.position = i == 0 ? index : result.position * extent + index;
  }
  result.position = broadcast_to(result.position, result.common);
  return result;
}

/// x with the indexed axes as its first one.
Sym flattened(Sym x, const Indexing& indexing) {
  Dims dims{1};
  for (const std::int64_t axis : indexing.axes) dims[0] *= x.dim(static_cast<int>(axis));
  for (const std::int64_t axis : indexing.others) dims.push_back(x.dim(static_cast<int>(axis)));
  return reshape(transpose(x, indexing.order()), dims);
}

/// The permutation from [others before the place, common, others behind] to [common, others].
std::vector<std::int64_t> to_front(const Indexing& indexing) {
  const auto common = static_cast<std::int64_t>(indexing.common.size());
  const auto rank = common + static_cast<std::int64_t>(indexing.others.size());
  std::vector<std::int64_t> perm;
  perm.reserve(static_cast<std::size_t>(rank));
  for (std::int64_t i = 0; i < common; ++i) perm.push_back(indexing.place + i);
  for (std::int64_t i = 0; i < rank; ++i)
    if (i < indexing.place || i >= indexing.place + common) perm.push_back(i);
  return perm;
}

void index(TorchContext& c) {
  const Sym x = c.tensor("self");
  const Indexing indexing = read_indexing(c, x);
  if (indexing.axes.size() == 1)
    return c.output(gather(x, indexing.indices[0], static_cast<int>(indexing.axes[0])));
  c.output(
      transpose(gather(flattened(x, indexing), indexing.position, 0), inverse_order(to_front(indexing))));
}

/// One mask over the first axes, and one value for all that it selects.
bool put_by_mask(TorchContext& c, Sym x, bool adds) {
  const std::vector<Sym> given = c.tensors("indices");
  if (given.size() != 1 || !given[0] || given[0].dtype() != DType::boolean) return false;
  const Sym value = cast(c.tensor("values"), x.dtype());
  if (value.size() != 1)
    throw UnsupportedError("a mask with more than one value, whose places depend on data, is not served");
  Sym mask = given[0];
  Dims dims = mask.dims();
  if (mask.rank() > x.rank()) throw ModelError("the mask has {} axes, the tensor {}", mask.rank(), x.rank());
  dims.resize(static_cast<std::size_t>(x.rank()), 1);
  mask = reshape(mask, dims);
  const Sym scalar = reshape(value, {});
  c.output(where(mask, adds ? x + scalar : scalar, x));
  return true;
}

void index_put(TorchContext& c) {
  const Sym x = c.tensor("self");
  const bool adds = c.flag("accumulate", false);
  if (put_by_mask(c, x, adds)) return;
  const Indexing indexing = read_indexing(c, x);
  Dims dims;
  for (const std::int64_t axis : indexing.others) dims.push_back(x.dim(static_cast<int>(axis)));
  dims.insert(dims.begin() + indexing.place, indexing.common.begin(), indexing.common.end());
  const Sym values = transpose(broadcast_to(cast(c.tensor("values"), x.dtype()), dims), to_front(indexing));
  const Sym flat = flattened(x, indexing);
  const Sym y = c.builder().add(Op::scatter_nd,
                                {flat, unsqueeze(indexing.position, {indexing.position.rank()}), values},
                                {{"reduction", std::string(adds ? "add" : "none")}});
  Dims ordered;
  for (const std::int64_t axis : indexing.order()) ordered.push_back(x.dim(static_cast<int>(axis)));
  c.output(transpose(reshape(y, ordered), inverse_order(indexing.order())));
}

Sym first_of(Sym x, const Dims& dims, int but) {
  for (int axis = 0; axis < x.rank(); ++axis)
    if (axis != but) x = slice(x, axis, 0, std::min(x.dim(axis), dims[static_cast<std::size_t>(axis)]));
  return x;
}

void gather_op(TorchContext& c) {
  c.ignore("sparse_grad");
  Sym x = c.tensor("self");
  Sym index = c.tensor("index");
  if (x.rank() == 0) x = reshape(x, {1});
  if (index.rank() == 0) index = reshape(index, {1});
  if (x.rank() != index.rank())
    throw ModelError("the index has {} axes, the tensor {}", index.rank(), x.rank());
  const int axis = normalize_axis(c.integer("dim"), x.rank());
  const Sym y = c.builder().add(Op::gather_elements, {first_of(x, index.dims(), axis), index},
                                {{"axis", std::int64_t{axis}}});
  c.output(reshape(y, c.result_dims()));
}

/// Self, index and source of a scatter with as many axes; the source may be larger than the index.
struct Scatter {
  Sym x, index, source;
  std::int64_t axis = 0;

  [[nodiscard]] Sym onto(Sym values, Sym sources, const std::string& reduction) const {
    return x.builder().add(Op::scatter_elements, {values, index, sources},
                           {{"axis", axis}, {"reduction", reduction}});
  }
};

Scatter read_scatter(TorchContext& c, Sym source) {
  Scatter s{c.tensor("self"), c.tensor("index"), source};
  const std::int64_t given = c.integer("dim");
  if (s.x.rank() == 0) s.x = reshape(s.x, {1});
  if (s.index.rank() == 0) s.index = reshape(s.index, {1});
  if (s.source.rank() == 0) s.source = broadcast_to(s.source, s.index.dims());
  if (s.x.rank() != s.index.rank() || s.source.rank() != s.x.rank())
    throw ModelError("self, index and source have {}, {} and {} axes", s.x.rank(), s.index.rank(),
                     s.source.rank());
  s.axis = normalize_axis(given, s.x.rank());
  s.source = first_of(cast(s.source, s.x.dtype()), s.index.dims(), -1);
  return s;
}

/// `reduction` as of scatter_elements.
void scatter(TorchContext& c, Sym source, const std::string& reduction) {
  const Scatter s = read_scatter(c, source);
  c.output(reshape(s.onto(s.x, s.source, reduction), c.result_dims()));
}

void scatter_source(TorchContext& c) {
  scatter(c, c.tensor("src"), "none");
}
void scatter_value(TorchContext& c) {
  scatter(c, c.operand("value", c.tensor("self").dtype()), "none");
}
void scatter_add(TorchContext& c) {
  scatter(c, c.tensor("src"), "add");
}

/// What torch calls a reduction -> what scatter_elements does, and where that begins.
struct ScatterFold {
  std::string_view name;
  const char* reduction;
  double identity;
};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr ScatterFold scatter_folds[] = {{"sum", "add", 0},
                                         {"prod", "mul", 1},
                                         {"amax", "max", -infinity},
                                         {"amin", "min", infinity},
                                         {"mean", "add", 0}};

void scatter_reduce(TorchContext& c) {
  const std::string reduce = c.string("reduce", "");
  const auto* fold = std::ranges::find(scatter_folds, reduce, &ScatterFold::name);
  if (fold == std::end(scatter_folds)) throw UnsupportedError("reduce '{}' is not served", reduce);
  const Scatter s = read_scatter(c, c.tensor("src"));
  const DType dtype = s.x.dtype();
  const bool includes_self = c.flag("include_self", true);
  const bool is_mean = reduce == "mean";
  if (is_mean && !is_float(dtype)) throw UnsupportedError("means of integers are not served");
  if (!includes_self && std::isinf(fold->identity) && !is_float(dtype))
    throw UnsupportedError("extremes of integers without those of self are not served");
  Sym start = s.x;
  Sym counts;
  if (!includes_self || is_mean) {
    GraphBuilder& b = c.builder();
    counts = s.onto(b.filled(DType::f32, s.x.dims(), 0), b.filled(DType::f32, s.index.dims(), 1), "add");
  }
  if (!includes_self) start = where(apply(Op::greater, counts, 0.0), fold->identity, s.x);
  Sym result = s.onto(start, s.source, fold->reduction);
  if (is_mean) result = result / cast(includes_self ? counts + 1.0 : apply(Op::maximum, counts, 1.0), dtype);
  c.output(reshape(result, c.result_dims()));
}

void embedding(TorchContext& c) {
  for (const std::string_view name : {"padding_idx", "scale_grad_by_freq", "sparse"}) c.ignore(name);
  c.output(gather(c.tensor("weight"), c.tensor("indices"), 0));
}

/// Adds the rows [count, depth] of gradients to those of a table, at indices of as many elements; none go to the row of
/// padding.
void add_rows_at(TorchContext& c, Sym rows, Sym indices) {
  if (c.flag("scale_grad_by_freq", false)) throw UnsupportedError("scale_grad_by_freq is not served");
  const Sym flat = reshape(cast(indices, DType::i64), {indices.size(), 1});
  const std::int64_t padding = c.integer("padding_idx", -1);
  if (padding >= 0) rows = where(apply(Op::equal, flat, static_cast<double>(padding)), 0.0, rows);
  const Sym zeros = c.builder().filled(rows.dtype(), {c.integer("num_weights"), rows.dim(1)}, 0);
  c.output(c.builder().add(Op::scatter_nd, {zeros, flat, rows}, {{"reduction", std::string("add")}}));
}

void embedding_backward(TorchContext& c) {
  const Sym grad = c.tensor("grad_output");
  const Sym indices = c.tensor("indices");
  add_rows_at(c, reshape(grad, {indices.size(), grad.dim(-1)}), indices);
}

/// Which indices are in which bag.
struct Bags {
  std::int64_t count = 0;
  std::int64_t length = -1;  ///< of each bag, where all are as long
  Sym bag_of;                ///< per index, else
  Sym is_counted;            ///< per index, where some are not: [indices, 1]

  /// A row for each index -> sums of each bag.
  [[nodiscard]] Sym sums(Sym rows) const {
    if (is_counted) rows = where(is_counted, rows, 0.0);
    const std::int64_t width = rows.dim(1);
    if (length >= 0) return reduce(Op::reduce_sum, reshape(rows, {count, length, width}), {1}, false);
    GraphBuilder& b = rows.builder();
    const Sym zeros = b.filled(rows.dtype(), {count, width}, 0);
    return b.add(Op::scatter_nd, {zeros, bag_of, rows}, {{"reduction", std::string("add")}});
  }

  /// A row for each bag -> a row for each index, zeros where that is not counted.
  [[nodiscard]] Sym rows(Sym of_bags, std::int64_t indices) const {
    const std::int64_t width = of_bags.dim(1);
    const Sym rows =
        length >= 0 ? reshape(broadcast_to(unsqueeze(of_bags, {1}), {count, length, width}), {indices, width})
                    : gather(of_bags, reshape(bag_of, {indices}), 0);
    return is_counted ? where(is_counted, rows, 0.0) : rows;
  }

  /// How many indices of each are counted, at least 1: [bags, 1].
  [[nodiscard]] Sym sizes(GraphBuilder& b, DType dtype, std::int64_t indices) const {
    return apply(Op::maximum, sums(b.filled(dtype, {indices, 1}, 1)), 1.0);
  }
};

/// Of bags that begin at multiples of one number: that number; else -1.
std::int64_t length_of_bags(Sym starts, std::int64_t bags, std::int64_t indices) {
  if (!starts.is_constant() || bags == 0 || indices % bags != 0) return -1;
  const std::int64_t length = indices / bags;
  const Tensor places = starts.constant();
  for (std::int64_t i = 0; i < places.size(); ++i)
    if (places.as_double(i) != static_cast<double>(i * length)) return -1;
  return length;
}

Bags read_bags(TorchContext& c, Sym indices, std::int64_t bags) {
  GraphBuilder& b = c.builder();
  const std::int64_t count = indices.size();
  const Sym offsets = cast(c.tensor("offsets"), DType::i64);  // with a last one it is where all end
  if (offsets.dim(0) != bags && offsets.dim(0) != bags + 1)
    throw ModelError("{} offsets for {} bags", offsets.dim(0), bags);
  const Sym starts = slice(offsets, 0, 0, bags);
  Bags read{.count = bags, .length = length_of_bags(starts, bags, count), .bag_of = {}, .is_counted = {}};
  if (read.length < 0) {  // a bag's number is how many begin up to there
    const Sym ones = b.filled(DType::i64, {bags}, 1);
    const Sym begins =
        b.add(Op::scatter_nd, {b.filled(DType::i64, {count + 1}, 0), reshape(starts, {bags, 1}), ones},
              {{"reduction", std::string("add")}});
    const Sym begun = b.add(Op::cumsum, {begins}, {{"axis", std::int64_t{0}}});
    read.bag_of = reshape(slice(begun, 0, 0, count) - 1.0, {count, 1});
  }
  const std::int64_t padding = c.integer("padding_idx", -1);
  if (padding < 0) return read;
  read.is_counted =
      apply(Op::logical_not, apply(Op::equal, reshape(indices, {count, 1}), static_cast<double>(padding)));
  return read;
}

enum BagMode : std::uint8_t { bag_sum, bag_mean, bag_max };

/// Sums or means of rows of the weights. The other results are of use for gradients alone, which read the offsets again.
void embedding_bag(TorchContext& c) {
  for (const std::string_view name : {"scale_grad_by_freq", "sparse", "include_last_offset"}) c.ignore(name);
  const Sym weight = c.tensor("weight");
  const Sym indices = cast(c.tensor("indices"), DType::i64);
  if (c.integer("mode", bag_sum) == bag_max)
    throw UnsupportedError("bags of which the largest is taken are not served");
  const Bags bags = read_bags(c, indices, c.result_dims_of_rank(2)[0]);
  Sym rows = gather(weight, reshape(indices, {indices.size()}), 0);
  if (const Sym factors = c.optional("per_sample_weights"))
    rows = rows * reshape(factors, {indices.size(), 1});
  Sym sums = bags.sums(rows);
  if (c.integer("mode", bag_sum) == bag_mean)
    sums = sums / bags.sizes(c.builder(), sums.dtype(), indices.size());
  c.outputs({sums, Sym(), Sym(), Sym()});
}

void embedding_bag_backward(TorchContext& c) {
  for (const std::string_view name : {"offset2bag", "bag_size", "maximum_indices", "sparse"}) c.ignore(name);
  Sym grad = c.tensor("grad");
  const Sym indices = cast(c.tensor("indices"), DType::i64);
  if (c.integer("mode") == bag_max)
    throw UnsupportedError("bags of which the largest is taken are not served");
  const Bags bags = read_bags(c, indices, grad.dim(0));
  if (c.integer("mode") == bag_mean) grad = grad / bags.sizes(c.builder(), grad.dtype(), indices.size());
  Sym rows = bags.rows(grad, indices.size());
  if (const Sym factors = c.optional("per_sample_weights"))
    rows = rows * reshape(factors, {indices.size(), 1});
  add_rows_at(c, rows, indices);
}

void index_select(TorchContext& c) {
  const Sym x = c.tensor("self");
  const Sym index = c.tensor("index");
  const std::int64_t axis = c.integer("dim");
  if (x.rank() == 0) return c.output(x);
  c.output(gather(x, reshape(index, {index.size()}), normalize_axis(axis, x.rank())));
}

/// How many of the sorted numbers are before each value: below it, or, where `right` says so, not above it. Those that are
/// not comparable are behind all.
void search(TorchContext& c, Sym sorted) {
  constexpr std::int64_t most = 4096;  // each is compared with all
  const Sym values = c.tensor("self");
  const bool is_right = c.flag("right", false) || c.string("side", "left") == "right";
  const DType result = c.flag("out_int32", false) ? DType::i32 : DType::i64;
  const std::int64_t n = sorted.dim(-1);
  if (n > most) throw UnsupportedError("{} sorted numbers, at most {} are served", n, most);
  const DType common = promoted(sorted, values);
  Dims line(static_cast<std::size_t>(values.rank()) + 1, 1);
  if (sorted.rank() > 1) {  // a row of them for each row of values
    line = sorted.dims();
    line.insert(line.end() - 1, 1);
  }
  line.back() = n;
  const Sym is_behind = apply(is_right ? Op::greater : Op::greater_equal, reshape(cast(sorted, common), line),
                              unsqueeze(cast(values, common), {-1}));
  const Sym is_before = cast(apply(Op::logical_not, is_behind), result);
  c.output(reduce(Op::reduce_sum, is_before, {values.rank()}, false));
}

void search_sorted(TorchContext& c) {
  search(c, c.tensor("sorted_sequence"));
}
void bucketize(TorchContext& c) {
  search(c, c.tensor("boundaries"));
}

void masked_fill(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(where(cast(c.tensor("mask"), DType::boolean), c.operand("value", x.dtype()), x));
}

void grid_sampler(TorchContext& c) {
  Sampling sampling;
  constexpr SampleMode modes[] = {SampleMode::linear, SampleMode::nearest, SampleMode::cubic};
  constexpr SamplePadding paddings[] = {SamplePadding::zeros, SamplePadding::border,
                                        SamplePadding::reflection};
  const std::int64_t mode = c.integer("interpolation_mode");
  const std::int64_t padding = c.integer("padding_mode");
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
    throw ModelError("mode {} or padding {} is unknown", mode, padding);
  sampling.mode = modes[mode];
  sampling.padding = paddings[padding];
  sampling.align_corners = c.flag("align_corners");
  sampling.pulls_positions = true;
  c.output(grid_sample(c.tensor("input"), c.tensor("grid"), sampling));
}

constexpr std::string_view grid_schema = "input grid interpolation_mode padding_mode align_corners";
constexpr std::string_view put_schema = "self indices values accumulate";
constexpr std::string_view embedding_schema = "weight indices padding_idx scale_grad_by_freq sparse";

constexpr std::string_view bag_schema =
    "weight indices offsets scale_grad_by_freq mode sparse per_sample_weights include_last_offset "
    "padding_idx";

/// What is above (triu) or below (tril) a diagonal stays.
void triangle(TorchContext& c, Op kept) {
  const Sym x = c.tensor("self");
  GraphBuilder& b = c.builder();
  if (x.rank() < 2) throw ModelError("{} has no diagonal", x.rank());
  const Sym rows = b.iota(DType::i64, {x.dim(-2), 1}, 0) + static_cast<double>(c.integer("diagonal", 0));
  const Sym columns = b.iota(DType::i64, {1, x.dim(-1)}, 1);
  c.output(where(apply(kept, columns, rows), x, b.scalar(x.dtype(), 0)));
}
void triu(TorchContext& c) {
  triangle(c, Op::greater_equal);
}
void tril(TorchContext& c) {
  triangle(c, Op::less_equal);
}

const TorchOp gather_rows[] = {
    {"aten._embedding_bag.default", bag_schema, embedding_bag},
    {"aten._embedding_bag_backward.default",
     "grad indices offsets offset2bag bag_size maximum_indices num_weights scale_grad_by_freq mode sparse "
     "per_sample_weights padding_idx",
     embedding_bag_backward},
    {"aten._embedding_bag_forward_only.default", bag_schema, embedding_bag},
    {"aten._unsafe_index.Tensor", "self indices", index},
    {"aten._unsafe_index_put.default", put_schema, index_put},
    {"aten.bucketize.Tensor", "self boundaries out_int32 right", bucketize},
    {"aten.embedding.default", embedding_schema, embedding},
    {"aten.embedding_dense_backward.default",
     "grad_output indices num_weights padding_idx scale_grad_by_freq", embedding_backward},
    {"aten.gather.default", "self dim index sparse_grad", gather_op},
    {"aten.grid_sampler_2d.default", grid_schema, grid_sampler},
    {"aten.grid_sampler_3d.default", grid_schema, grid_sampler},
    {"aten.index.Tensor", "self indices", index},
    {"aten.index_put.default", put_schema, index_put},
    {"aten.index_select.default", "self dim index", index_select},
    {"aten.masked_fill.Scalar", "self mask value", masked_fill},
    {"aten.masked_fill.Tensor", "self mask value", masked_fill},
    {"aten.scatter.src", "self dim index src", scatter_source},
    {"aten.scatter.value", "self dim index value", scatter_value},
    {"aten.scatter_add.default", "self dim index src", scatter_add},
    {"aten.scatter_reduce.two", "self dim index src reduce include_self", scatter_reduce},
    {"aten.searchsorted.Tensor", "sorted_sequence self out_int32 right side", search_sorted},
    {"aten.tril.default", "self diagonal", tril},
    {"aten.triu.default", "self diagonal", triu},
};

}  // namespace

std::span<const TorchOp> torch_gather_ops() {
  return gather_rows;
}

}  // namespace sylvite
