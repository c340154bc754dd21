#include <algorithm>
#include <optional>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/plan/run_extents.h"

// Index maps: each output element is read from one place. All are pure, so they inline into readers.

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::select;

/// A run of input dims and a run of output dims with the same product.
struct ReshapeGroup {
  std::vector<std::size_t> in;
  std::vector<std::size_t> out;
};

/// The finest grouping, extents of 1 left out, so that untouched dims map straight.
std::vector<ReshapeGroup> known_groups(const Dims& in, const Dims& out) {
  std::vector<ReshapeGroup> groups;
  std::size_t i = 0;
  std::size_t o = 0;
  const auto skip_ones = [](const Dims& dims, std::size_t& at) {
    while (at < dims.size() && dims[at] == 1) ++at;
  };
  for (skip_ones(in, i), skip_ones(out, o); i < in.size() && o < out.size();
       skip_ones(in, i), skip_ones(out, o)) {
    ReshapeGroup group{{i}, {o}};
    std::int64_t in_size = in[i++];
    std::int64_t out_size = out[o++];
    while (in_size != out_size) {
      if (in_size < out_size) {
        group.in.push_back(i);
        in_size *= in.at(i++);
      } else {
        group.out.push_back(o);
        out_size *= out.at(o++);
      }
    }
    groups.push_back(group);
  }
  return groups;
}

/// Of shapes with open extents: equal dims at both ends map straight, and what is between them is one group.
std::vector<ReshapeGroup> open_groups(const Shape& in, const Shape& out) {
  const std::size_t most = std::min(in.size(), out.size());
  std::size_t first = 0;
  while (first < most && in[first] == out[first]) ++first;
  std::size_t last = 0;
  while (first + last < most && in[in.size() - 1 - last] == out[out.size() - 1 - last]) ++last;
  std::vector<ReshapeGroup> groups;
  groups.reserve(first + 1 + last);
  for (std::size_t d = 0; d < first; ++d) groups.push_back({{d}, {d}});
  ReshapeGroup between;
  for (std::size_t d = first; d < in.size() - last; ++d) between.in.push_back(d);
  for (std::size_t d = first; d < out.size() - last; ++d) between.out.push_back(d);
  if (!between.in.empty()) groups.push_back(between);
  for (std::size_t d = last; d > 0; --d) groups.push_back({{in.size() - d}, {out.size() - d}});
  return groups;
}

std::vector<ReshapeGroup> reshape_groups(const Shape& in, const Shape& out) {
  return in.is_known() && out.is_known() ? known_groups(in.known(), out.known()) : open_groups(in, out);
}

Coordinates reshape_coordinates(AlgorithmBuilder& builder, const Shape& in, const Shape& out,
                                const Coordinates& at) {
  Coordinates source(in.size(), Coordinate(0));
  if (std::ranges::find(in, Extent(0)) != in.end()) return source;
  for (const ReshapeGroup& group : reshape_groups(in, out)) {
    if (group.in.size() == 1 && group.out.size() == 1) {
      source[group.in[0]] = at[group.out[0]];
      continue;
    }
    Expr linear = 0;
    for (const std::size_t d : group.out) linear = linear * builder.extent(out[d]) + at[d].full;
    for (std::size_t k = group.in.size(); k-- > 0;) {
      const Expr extent = builder.extent(in[group.in[k]]);
      source[group.in[k]] = k == 0 ? linear : linear % extent;
      linear = linear / extent;
    }
  }
  return source;
}

Expr define_slice_element(AlgorithmBuilder& builder, const Node& node, const Coordinates& at) {
  const std::vector<Extent> starts = node.attributes.extents("starts");
  const auto& steps = node.attributes.integers("steps");
  Coordinates source;
  for (std::size_t d = 0; d < at.size(); ++d) {
    source.push_back(steps[d] == 1 && starts[d].is_known()
                         ? shifted(at[d], starts[d].known())
                         : Coordinate(at[d].full * static_cast<int>(steps[d]) + builder.extent(starts[d])));
  }
  return builder.read_stored(node.inputs[0], source);
}

/// Is a dim longer in every run than what pad adds on either side?
bool is_longer_than_pads(const AlgorithmBuilder& builder, const Node& node, std::size_t dim) {
  const Extent low = node.attributes.extents("low")[dim];
  const Extent high = node.attributes.extents("high")[dim];
  const std::int64_t least = least_extent(builder.kernel(), node.inputs[0], dim);
  return low.is_known() && high.is_known() && std::max(low.known(), high.known()) < least;
}

/// What is left of an index once multiples of a number of the run are taken away: vectors have no division of integers. A quotient
/// of doubles is at most one beside.
Expr rest_in_run(const Expr& index, const Extent& of, const Expr& size) {
  if (of.is_known() || DeviceMath::is_used()) return index % size;
  const Expr quotient =
      Halide::cast<int>(Halide::floor(Halide::cast<double>(index) / Halide::cast<double>(size)));
  const Expr rest = index - quotient * size;
  return select(rest < 0, rest + size, select(rest < size, rest, rest - size));
}

/// How pad fills one dim outside the input.
Expr padded_index(const AlgorithmBuilder& builder, const Node& node, std::size_t dim, const Expr& index) {
  const std::string& mode = node.attributes.string("mode");
  const Extent extent = builder.type(node.inputs[0]).shape[dim];
  const Expr last = builder.extent(extent - 1);
  if (mode == "edge") return Halide::clamp(index, 0, last);
  if (mode == "wrap") return Halide::clamp(rest_in_run(index, extent, builder.extent(extent)), 0, last);
  // reflect: a period of 2*(extent-1), without repeating the edge.
  if (extent == 1) return Expr(0);
  if (is_longer_than_pads(builder, node, dim)) {  // a remainder by a number of the run is slow
    const Expr ahead = Halide::max(index, -index);
    return Halide::clamp(Halide::min(ahead, 2 * last - ahead), 0, last);
  }
  const Expr period = builder.extent(2 * (extent - 1));
  const Expr phase = rest_in_run(index, extent, period);
  return Halide::clamp(Halide::min(phase, period - phase), 0, last);
}

/// Loops over lines are divided where the input ends: what lies inside is read as it is, as neighbours are read as vectors then.
Expr inside_first(AlgorithmBuilder& builder, const Node& node, const Coordinates& source, const Expr& index) {
  const Expr last = builder.extent(builder.type(node.inputs[0]).shape.back() - 1);
  Coordinates inside = source;
  inside.back() = Coordinate(Halide::clamp(Halide::likely(index), 0, last));
  return select(Halide::likely(index >= 0 && index <= last), builder.read(node.inputs[0], inside),
                builder.read(node.inputs[0], source));
}

/// Where the edges of lines are repeated around them, they are read as they are, for neighbours are read as vectors then.
Expr with_edges(AlgorithmBuilder& builder, const Node& node, const Coordinates& source, const Expr& index) {
  const Extent last = builder.type(node.inputs[0]).shape.back() - 1;
  Coordinates at_first = source, at_last = source;
  at_first.back() = Coordinate(0);
  at_last.back() = Coordinate(builder.extent(last));
  const Expr inside = index >= 0 && index <= builder.extent(last);
  const Expr edge =
      select(index < 0, builder.read(node.inputs[0], at_first), builder.read(node.inputs[0], at_last));
  return select(inside, builder.read(node.inputs[0], source), edge);
}

Expr pad_element(AlgorithmBuilder& builder, const Node& node, const Coordinates& at) {
  const std::vector<Extent> low = node.attributes.extents("low");
  const std::vector<Extent> high = node.attributes.extents("high");
  const auto& interior = node.attributes.integers("interior");
  const std::string& mode = node.attributes.string("mode");
  const Shape& shape = builder.type(node.inputs[0]).shape;
  const Halide::Type type = compute_type_of(builder.type(node.inputs[0]).dtype);
  const bool has_value = node.inputs.size() > 1 && node.inputs[1] != no_value;
  Expr value = has_value
                   ? builder.read(node.inputs[1], Coordinates(builder.type(node.inputs[1]).shape.size(), 0))
                   : Halide::Internal::make_zero(type);
  if (std::ranges::find(shape, Extent(0)) != shape.end()) return value;
  Coordinates source;
  Expr inside, line_index;
  for (std::size_t d = 0; d < at.size(); ++d) {
    const auto step = static_cast<int>(interior.empty() ? 1 : interior[d] + 1);
    if (low[d] == 0 && high[d] == 0 && step == 1) {
      source.push_back(at[d]);
      continue;
    }
    const Expr index = at[d].full - builder.extent(low[d]);
    if (mode != "constant") {
      source.emplace_back(padded_index(builder, node, d, index));
      if (d + 1 == at.size()) line_index = index;
      continue;
    }
    Expr here = index >= 0 && index <= builder.extent((shape[d] - 1) * step);
    if (step != 1) here = here && index % step == 0;
    inside = inside.defined() ? inside && here : here;
    // The clamp keeps reads in range where the value is not used.
    source.emplace_back(Halide::clamp(step == 1 ? index : index / step, 0, builder.extent(shape[d] - 1)));
  }
  if (line_index.defined() && mode == "edge") return with_edges(builder, node, source, line_index);
  if (line_index.defined() && !DeviceMath::is_used()) return inside_first(builder, node, source, line_index);
  const Expr element = builder.read(node.inputs[0], source);
  return inside.defined() ? select(inside, element, value) : element;
}

struct ConcatPart {
  Expr element;
  Extent end;  ///< along the axis
};

/// Makes bits of elements that are all stored bf16, so that to choose one is no arithmetic on any target, and
/// says so; else each becomes what it is computed as.
bool take_bits(std::vector<ConcatPart>& parts) {
  const bool are_stored = std::all_of(parts.begin(), parts.end(),
                                      [](const ConcatPart& part) { return part.element.type().is_bfloat(); });
  for (auto& [element, end] : parts) {
    if (!element.type().is_bfloat()) continue;
    element = are_stored ? Halide::reinterpret<std::uint16_t>(element) : from_storage(element, DType::bf16);
  }
  return are_stored;
}

Expr concat_element(AlgorithmBuilder& builder, const Node& node, const Coordinates& at) {
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  std::vector<ConcatPart> parts;
  Extent offset = 0;
  for (const ValueId input : node.inputs) {
    const Extent extent = builder.type(input).shape.at(axis);
    if (extent == 0) continue;
    Coordinates source = at;
    source[axis] = offset.is_known() ? shifted(at[axis], -offset.known())
                                     : Coordinate(at[axis].full - builder.extent(offset));
    Coordinate& moved = source[axis];
    moved.full = Halide::clamp(moved.full, 0, builder.extent(extent - 1));
    if (moved.block > 0)
      moved.outer = Halide::clamp(moved.outer, 0, builder.extent(floor_div(extent - 1, moved.block)));
    offset += extent;
    parts.push_back({builder.read_stored(input, source), offset});
  }
  if (parts.empty()) return Halide::Internal::make_zero(compute_type_of(builder.type(node.outputs[0]).dtype));
  const bool are_bits = take_bits(parts);
  Expr result = parts.back().element;
  const Coordinate& along = at[axis];
  for (std::size_t i = parts.size() - 1; i-- > 0;) {
    // Between blocks the choice is made once per block.
    const bool whole_blocks = along.block > 0 && parts[i].end.known() % along.block == 0;
    const Expr before = whole_blocks ? along.outer < static_cast<int>(parts[i].end.known() / along.block)
                                     : along.full < builder.extent(parts[i].end);
    result = select(before, parts[i].element, result);
  }
  return are_bits ? Halide::reinterpret(Halide::BFloat(16), result) : result;
}

Expr movement_element(AlgorithmBuilder& builder, const Node& node, const Coordinates& at) {
  const ValueId in = node.inputs.front();
  switch (node.op) {
    case Op::reshape:
      return builder.read_stored(
          in, reshape_coordinates(builder, builder.type(in).shape, builder.type(node.outputs[0]).shape, at));
    case Op::transpose: {
      const auto& perm = node.attributes.integers("perm");
      Coordinates source(at.size());
      for (std::size_t d = 0; d < at.size(); ++d) source[static_cast<std::size_t>(perm[d])] = at[d];
      return builder.read_stored(in, source);
    }
    case Op::broadcast_to:
      return builder.read_stored(in, builder.broadcast_coordinates(in, at));
    case Op::slice:
      return define_slice_element(builder, node, at);
    case Op::pad:
      return pad_element(builder, node, at);
    case Op::concat:
      return concat_element(builder, node, at);
    case Op::to_layout:
      return builder.read_stored(in, at);
    default:
      throw UnsupportedError("operation {} has no Halide algorithm", op_info(node.op).name);
  }
}

/// A run-time index into [0, extent): negative ones count from the end, those out of range clamp.
Expr safe_index(const AlgorithmBuilder& builder, const Expr& index, const Extent& extent) {
  const Expr whole = cast<int>(index);
  const Expr positive = select(whole < 0, whole + builder.extent(extent), whole);
  return Halide::clamp(positive, 0, builder.extent(max(extent - 1, 0)));
}

Coordinates gather_source(AlgorithmBuilder& builder, const Node& node, const Coordinates& at) {
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const Extent& extent = builder.type(node.inputs[0]).shape.at(axis);
  if (node.op == Op::gather_elements) {
    Coordinates source = at;
    source[axis] = safe_index(builder, builder.read(node.inputs[1], at), extent);
    return source;
  }
  const std::size_t index_rank = builder.type(node.inputs[1]).shape.size();
  const auto first = at.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto last = first + static_cast<std::ptrdiff_t>(index_rank);
  Coordinates source(at.begin(), first);
  source.emplace_back(safe_index(builder, builder.read(node.inputs[1], Coordinates(first, last)), extent));
  source.insert(source.end(), last, at.end());
  return source;
}

/// The element that index tuple `tuple_at` (without its last coordinate) of `indices` names, after `lead`
/// batch dims.
Coordinates indexed_source(AlgorithmBuilder& builder, ValueId indices, const Coordinates& tuple_at,
                           const Shape& shape, std::size_t lead) {
  Coordinates source(tuple_at.begin(), tuple_at.begin() + static_cast<std::ptrdiff_t>(lead));
  const std::int64_t count = builder.type(indices).shape.back().known();
  for (std::int64_t k = 0; k < count; ++k) {
    Coordinates at = tuple_at;
    at.emplace_back(static_cast<int>(k));
    const Extent& extent = shape[lead + static_cast<std::size_t>(k)];
    source.emplace_back(safe_index(builder, builder.read(indices, at), extent));
  }
  return source;
}

Coordinates gather_nd_source(AlgorithmBuilder& builder, const Node& node, const Coordinates& at) {
  const std::size_t tuple_rank = builder.type(node.inputs[1]).shape.size() - 1;
  const auto split = at.begin() + static_cast<std::ptrdiff_t>(tuple_rank);
  Coordinates source = indexed_source(builder, node.inputs[1], Coordinates(at.begin(), split),
                                      builder.type(node.inputs[0]).shape,
                                      static_cast<std::size_t>(node.attributes.integer("batch_dims")));
  source.insert(source.end(), split, at.end());
  return source;
}

Expr combine_scattered(const std::string& reduction, const Expr& old, const Expr& update) {
  if (reduction == "none") return update;
  const bool is_bool = update.type().is_bool();
  if (reduction == "add") return is_bool ? old || update : strict_add(old, update);
  if (reduction == "mul") return is_bool ? old && update : strict_mul(old, update);
  if (reduction == "max") return is_bool ? old || update : nan_max(old, update);
  if (reduction == "min") return is_bool ? old && update : nan_min(old, update);
  throw UnsupportedError("scatter: no reduction is called '{}'", reduction);
}

bool scatters_by_elements(const Node& node) {
  return node.op == Op::scatter_elements || node.op == Op::write_elements;
}

/// The dim of the data along which updates stay where dim d of them says: all of it, each element by itself. None where places
/// are looked up, and the same one may be written twice.
std::optional<std::size_t> kept_dim(AlgorithmBuilder& builder, const Node& node, std::size_t d) {
  const TensorType& type = builder.type(node.outputs.front());
  const TensorType& updates = builder.type(node.inputs[2]);
  std::size_t dim = d;
  if (scatters_by_elements(node)) {
    if (d == static_cast<std::size_t>(node.attributes.integer("axis"))) return std::nullopt;
  } else {
    const Shape& indices = builder.type(node.inputs[1]).shape;
    if (d + 1 < indices.size()) return std::nullopt;
    dim = d - (indices.size() - 1) + static_cast<std::size_t>(indices.back().known());
  }
  const bool is_dense = type.layout == Layout{} && updates.layout == Layout{};
  return is_dense && updates.shape[d] == type.shape[dim] ? std::optional(dim) : std::nullopt;
}

/// Where updates are read: along kept dims where the result is, along the others all in order.
Coordinates places_of_updates(AlgorithmBuilder& builder, const Node& node) {
  const TensorType& updates = builder.type(node.inputs[2]);
  const Coordinates whole = AlgorithmBuilder::coordinates_of(builder.type(node.outputs.front()));
  Coordinates at(updates.shape.size());
  std::vector<int> folded;
  for (std::size_t d = 0; d < at.size(); ++d) {
    const std::optional<std::size_t> dim = kept_dim(builder, node, d);
    if (dim)
      at[d] = whole[*dim];
    else
      folded.push_back(static_cast<int>(d));
  }
  if (folded.empty()) return at;
  const ReducedDims over = builder.reduce_over(updates, folded);
  for (std::size_t i = 0; i < folded.size(); ++i) at[static_cast<std::size_t>(folded[i])] = over.at[i];
  return at;
}

/// By a stage of the result's name and `suffix`; without one it is the result.
void define_scatter_as(AlgorithmBuilder& builder, const Node& node, const std::string& suffix) {
  const ValueId out = node.outputs.front();
  const TensorType& type = builder.type(out);
  const Coordinates at = places_of_updates(builder, node);
  Coordinates target = at;
  if (scatters_by_elements(node)) {
    const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
    target[axis] = safe_index(builder, builder.read(node.inputs[1], at), type.shape[axis]);
  } else {
    const std::size_t tuple_rank = builder.type(node.inputs[1]).shape.size() - 1;
    const auto split = at.begin() + static_cast<std::ptrdiff_t>(tuple_rank);
    target = indexed_source(builder, node.inputs[1], Coordinates(at.begin(), split), type.shape, 0);
    target.insert(target.end(), split, at.end());
  }
  const std::string& reduction = node.attributes.string("reduction");
  const std::vector<Halide::Var> vars = AlgorithmBuilder::vars_of(type);
  Halide::Func folded = builder.stage(builder.name(out) + suffix);
  const std::vector<Expr> where = AlgorithmBuilder::arguments_of(type, target);
  const Expr update = builder.read(node.inputs[2], at);
  if (writes_in_place(node.op)) {
    // What is not written stays as it is: the result lies where the input does, and is of the stored type.
    folded(vars) = Halide::undef(halide_type_of(type.dtype));
    const Expr old = from_storage(folded(where), type.dtype);
    folded(where) = to_storage(combine_scattered(reduction, old, update), type.dtype);
    builder.set(out, folded);
    return;
  }
  folded(vars) = builder.read(node.inputs[0], AlgorithmBuilder::coordinates_of(type));
  folded(where) = combine_scattered(reduction, folded(where), update);
  if (suffix.empty()) return builder.set(out, folded);
  builder.define(out, [&](const Coordinates&) { return Expr(folded(vars)); });
}

}  // namespace

void define_movement(AlgorithmBuilder& builder, const Node& node) {
  builder.define(node.outputs.front(),
                 [&](const Coordinates& at) { return movement_element(builder, node, at); });
}

void define_gather(AlgorithmBuilder& builder, const Node& node) {
  builder.define(node.outputs.front(), [&](const Coordinates& at) {
    const bool nd = node.op == Op::gather_nd;
    return builder.read_stored(node.inputs[0],
                               nd ? gather_nd_source(builder, node, at) : gather_source(builder, node, at));
  });
}

void define_scatter(AlgorithmBuilder& builder, const Node& node) {
  define_scatter_as(builder, node, writes_in_place(node.op) ? "" : "_fold");
}

void define_stored_scatter(AlgorithmBuilder& builder, const Node& node) {
  define_scatter_as(builder, node, "");
}

}  // namespace sylvite
