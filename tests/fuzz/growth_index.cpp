// Growths that read or write at indices, and orderings.

#include <numeric>
#include <set>

#include "frontend/onnx/tensor.h"
#include "tests/fuzz/growth_values.h"

namespace sylvite::fuzz {
namespace {

bool is_indexable(const Tensor& tensor) {
  return rank_of(tensor) > 0 && tensor.size() > 0;
}

/// Indices along an extent, some counted from its end.
std::string indices_into(ModelGrower& g, std::int64_t extent, const Dims& dims) {
  const DType dtype = g.chance(0.8) ? DType::i64 : DType::i32;
  return g.operand(random_integers(g, dtype, dims, g.chance(0.3) ? -extent : 0, extent - 1));
}

void gather(ModelGrower& g) {
  const Known* x = g.any(is_indexable);
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t axis = axis_of(g, a.sample);
  Dims dims;
  for (std::size_t i = g.pick(3); i > 0; --i) dims.push_back(g.between(1, 5));
  onnx::NodeProto node = make_node("Gather", {a.name, indices_into(g, extent_at(a.sample, axis), dims)});
  set_attribute(node, "axis", axis);
  (void)g.emit(node);
}

/// The shape of a with another extent at `axis`, and the others not larger.
Dims elements_shape(ModelGrower& g, const Tensor& a, std::int64_t axis, bool within) {
  Dims dims = a.dims();
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank_of(a) : axis);
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = g.chance(0.5) ? dims[i] : g.between(1, dims[i]);
  dims[at] = g.between(1, within ? dims[at] : 6);
  return dims;
}

void gather_elements(ModelGrower& g) {
  const Known* x = g.any(is_indexable);
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t axis = axis_of(g, a.sample);
  onnx::NodeProto node = make_node(
      "GatherElements",
      {a.name, indices_into(g, extent_at(a.sample, axis), elements_shape(g, a.sample, axis, false))});
  set_attribute(node, "axis", axis);
  (void)g.emit(node);
}

/// Index tuples into the first `depth` dims behind `from`.
Tensor tuples_into(ModelGrower& g, const Tensor& a, std::size_t from, std::size_t depth, Dims dims,
                   bool distinct) {
  dims.push_back(static_cast<std::int64_t>(depth));
  Tensor tuples(DType::i64, dims);
  std::set<std::vector<std::int64_t>> used;
  for (std::int64_t i = 0; i < tuples.size() / static_cast<std::int64_t>(depth); ++i) {
    std::vector<std::int64_t> tuple;
    for (int attempt = 0; attempt < 50; ++attempt) {
      tuple.clear();
      for (std::size_t k = 0; k < depth; ++k) tuple.push_back(g.between(0, a.dims()[from + k] - 1));
      if (!distinct || used.insert(tuple).second) break;
    }
    for (std::size_t k = 0; k < depth; ++k)
      tuples.set_int64(i * static_cast<std::int64_t>(depth) + static_cast<std::int64_t>(k), tuple[k]);
  }
  return tuples;
}

void gather_nd(ModelGrower& g) {
  const Known* x = g.any(is_indexable);
  if (x == nullptr) return;
  const Known a = *x;
  const std::size_t batch = rank_of(a.sample) > 1 && g.chance(0.3) ? 1 : 0;
  const std::size_t depth = 1 + g.pick(a.sample.dims().size() - batch);
  Dims dims(a.sample.dims().begin(), a.sample.dims().begin() + static_cast<std::ptrdiff_t>(batch));
  dims.push_back(g.between(1, 6));
  onnx::NodeProto node =
      make_node("GatherND", {a.name, g.operand(tuples_into(g, a.sample, batch, depth, dims, false))});
  if (batch > 0) set_attribute(node, "batch_dims", std::int64_t{1});
  (void)g.emit(node);
}

const char* scatter_reduction(ModelGrower& g, const Tensor& a) {
  if (!is_real(a) || g.chance(0.5)) return "none";
  return g.one_of<const char*>({"add", "mul", "max", "min"});
}

void scatter_nd(ModelGrower& g) {
  const Known* x = g.any(is_indexable);
  if (x == nullptr) return;
  const Known a = *x;
  const std::size_t depth = 1 + g.pick(a.sample.dims().size());
  const auto reduction = scatter_reduction(g, a.sample);
  std::int64_t places = 1;
  for (std::size_t i = 0; i < depth; ++i) places *= a.sample.dims()[i];
  Dims updates = {g.between(1, std::min<std::int64_t>(places, 6))};
  const bool distinct = std::string(reduction) == "none";
  if (distinct && updates[0] * 4 > places) updates[0] = 1;
  const Tensor tuples = tuples_into(g, a.sample, 0, depth, updates, distinct);
  updates.insert(updates.end(), a.sample.dims().begin() + static_cast<std::ptrdiff_t>(depth),
                 a.sample.dims().end());
  onnx::NodeProto node = make_node(
      "ScatterND", {a.name, g.operand(tuples), g.operand(g.random_tensor(a.sample.dtype(), updates))});
  set_attribute(node, "reduction", std::string(reduction));
  (void)g.emit(node);
}

void scatter_elements(ModelGrower& g) {
  const Known* x = g.any(is_indexable);
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t axis = axis_of(g, a.sample);
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank_of(a.sample) : axis);
  const auto reduction = scatter_reduction(g, a.sample);
  const bool distinct = std::string(reduction) == "none";
  const Dims dims = elements_shape(g, a.sample, axis, distinct);
  Tensor indices = random_integers(g, DType::i64, dims, 0, a.sample.dims()[at] - 1);
  if (distinct) {  // along the axis every index once
    const std::int64_t shift = g.between(0, a.sample.dims()[at] - 1);
    const Dims strides = dense_strides(dims);
    for (std::int64_t i = 0; i < indices.size(); ++i)
      indices.set_int64(i, (i / strides[at] % dims[at] + shift) % a.sample.dims()[at]);
  }
  onnx::NodeProto node = make_node(
      "ScatterElements", {a.name, g.operand(indices), g.operand(g.random_tensor(a.sample.dtype(), dims))});
  set_attribute(node, "axis", axis);
  set_attribute(node, "reduction", std::string(reduction));
  (void)g.emit(node);
}

void arg_extreme(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_number(t) && is_indexable(t); });
  if (x == nullptr) return;
  onnx::NodeProto node = make_node(g.chance(0.5) ? "ArgMax" : "ArgMin", {x->name});
  set_attribute(node, "axis", axis_of(g, x->sample));
  set_attribute(node, "keepdims", g.between(0, 1));
  if (g.chance(0.3)) set_attribute(node, "select_last_index", std::int64_t{1});
  (void)g.emit(node);
}

void top_k(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return is_number(t) && is_indexable(t); });
  if (x == nullptr) return;
  const Known a = *x;
  const std::int64_t axis = axis_of(g, a.sample);
  const std::int64_t k = g.between(1, std::min<std::int64_t>(extent_at(a.sample, axis), 9));
  onnx::NodeProto node = make_node("TopK", {a.name, g.integers({k})});
  set_attribute(node, "axis", axis);
  set_attribute(node, "largest", g.between(0, 1));
  (void)g.emit(node, 2);
}

void cumulative(ModelGrower& g) {
  const Known* x =
      g.any([](const Tensor& t) { return is_indexable(t) && (is_real(t) || t.dtype() == DType::i64); });
  if (x == nullptr) return;
  const Known a = *x;
  onnx::NodeProto node = make_node("CumSum", {a.name, g.weight(Tensor::scalar_i64(axis_of(g, a.sample)))});
  set_attribute(node, "exclusive", g.between(0, 1));
  set_attribute(node, "reverse", g.between(0, 1));
  (void)g.emit(node);
}

void one_hot(ModelGrower& g) {
  const Known* x =
      g.any([](const Tensor& t) { return t.dtype() == DType::i64 && t.size() <= 400 && rank_of(t) <= 3; });
  if (x == nullptr) return;
  const Known a = *x;
  onnx::NodeProto node = make_node("OneHot", {a.name, g.integers({g.between(1, 8)}),
                                              g.weight(Tensor::of<float>(DType::f32, {2}, {-0.5F, 1.5F}))});
  set_attribute(node, "axis", g.between(-1, rank_of(a.sample)));
  (void)g.emit(node);
}

void reverse_sequence(ModelGrower& g) {
  const Known* x = g.any([](const Tensor& t) { return rank_of(t) >= 2 && t.size() > 0; });
  if (x == nullptr) return;
  const Known a = *x;
  const bool time_first = g.chance(0.5);
  const std::int64_t batch = a.sample.dims()[time_first ? 1 : 0];
  const std::int64_t time = a.sample.dims()[time_first ? 0 : 1];
  onnx::NodeProto node =
      make_node("ReverseSequence", {a.name, g.weight(random_integers(g, DType::i64, {batch}, 1, time))});
  set_attribute(node, "time_axis", std::int64_t{time_first ? 0 : 1});
  set_attribute(node, "batch_axis", std::int64_t{time_first ? 1 : 0});
  (void)g.emit(node);
}

constexpr Growth index_table[] = {
    {"gather", 4, gather},
    {"gather_elements", 2, gather_elements},
    {"gather_nd", 2, gather_nd},
    {"scatter_nd", 2, scatter_nd},
    {"scatter_elements", 2, scatter_elements},
    {"arg_extreme", 2, arg_extreme},
    {"top_k", 2, top_k},
    {"cumulative", 2, cumulative},
    {"one_hot", 1, one_hot},
    {"reverse_sequence", 1, reverse_sequence},
};

}  // namespace

std::span<const Growth> index_growths() {
  return index_table;
}

}  // namespace sylvite::fuzz
