#include "lowering/plan/join_bodies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

bool has_image(const Graph& body) {
  const auto is_in_blocks = [](const Value& value) { return value.type.layout.channel_block != 0; };
  const auto has_windows = [](const Node& node) {
    return has_trait(node.op, OpTrait::convolution) || has_trait(node.op, OpTrait::pooling);
  };
  return std::ranges::any_of(body.values(), is_in_blocks) || std::ranges::any_of(body.nodes(), has_windows);
}

/// Do a few vectors fit into the rows of all results? Else they go on in the next row.
bool has_long_rows(const std::vector<const Graph*>& bodies) {
  constexpr std::int64_t long_row = 64;
  return std::ranges::all_of(bodies[0]->outputs, [&](ValueId id) {
    if (bodies[0]->type(id).rank() == 0) return true;
    const std::int64_t row = bodies[0]->type(id).dims().back();
    return row >= long_row || std::ranges::any_of(bodies, [&](const Graph* body) {
             const TensorType& type = body->type(id);
             return type.rank() > 0 && type.dims().back() != row;
           });
  });
}

Axis axis_at(Rows rows, std::size_t position, std::size_t rank) {
  if (rows != Rows::of_images && position + 2 < rank) return Axis::outer;
  if (rows != Rows::of_images) return position + 1 < rank && rows == Rows::are_long ? Axis::rows : Axis::any;
  if (position == 1) return Axis::any;
  if (position == 0) return Axis::images;
  return position + 1 == rank ? Axis::pixels : Axis::lines;
}

/// nullopt where the lists differ in length.
std::optional<std::vector<Extent>> join_lists(const std::vector<const Dims*>& lists, const JoinExtent& join,
                                              const std::function<Axis(std::size_t)>& axis_of) {
  const std::size_t rank = lists[0]->size();
  if (std::ranges::any_of(lists, [&](const Dims* dims) { return dims->size() != rank; })) return std::nullopt;
  std::vector<Extent> result;
  result.reserve(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    Dims extents;
    extents.reserve(lists.size());
    for (const Dims* dims : lists) extents.push_back((*dims)[i]);
    std::optional<Extent> extent = join(extents, axis_of(i));
    if (!extent) return std::nullopt;
    result.push_back(std::move(*extent));
  }
  return result;
}

/// 1/2 is rather one over a count.
constexpr std::array count_forms = {CountForm::number, CountForm::inverse, CountForm::half};

/// Walks the bodies side by side.
class BodyJoiner {
 public:
  BodyJoiner(const std::vector<const Graph*>& bodies, const JoinExtent& join, const SuggestExtent& suggest,
             const EquateExtents& equate)
      : bodies_(bodies), first_(*bodies[0]), join_(join), suggest_(suggest), equate_(equate) {}

  [[nodiscard]] std::optional<Graph> body() {
    if (!std::ranges::all_of(bodies_, [&](const Graph* body) { return has_same_structure(*body); }))
      return std::nullopt;
    rows_ = has_image(first_) ? Rows::of_images : has_long_rows(bodies_) ? Rows::are_long : Rows::are_short;
    result_.name = first_.name;
    for (const ValueId input : first_.inputs) {
      const std::optional<TensorType> type = joined_type(input);
      if (!type) return std::nullopt;
      map_[input] = result_.add_input(first_.value(input).name, *type);
    }
    for (std::size_t i = 0; i < first_.nodes().size(); ++i)
      if (!add_node(i)) return std::nullopt;
    for (const ValueId id : first_.outputs) {
      const std::optional<ValueId> output = mapped(id);
      if (!output) return std::nullopt;
      result_.outputs.push_back(*output);
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool has_same_structure(const Graph& body) const {
    return first_.values().size() == body.values().size() && first_.nodes().size() == body.nodes().size() &&
           first_.inputs == body.inputs && first_.outputs == body.outputs;
  }

  /// nullopt where a constant is another one in each body, and no extent.
  [[nodiscard]] std::optional<ValueId> mapped(ValueId id) {
    if (id == no_value) return no_value;
    if (const auto found = map_.find(id); found != map_.end()) return found->second;
    const Value& first = first_.value(id);
    if (!std::ranges::all_of(bodies_, [&](const Graph* body) { return is_same_constant(*body, id); })) {
      std::optional<Attributes> extents = joined_constant(id);
      if (!extents) return std::nullopt;
      Node node{Op::extents, {}, {}, std::move(*extents), ""};
      return map_[id] = result_.add_known_node(std::move(node),
                                               {{first.name, first.type, std::nullopt, no_node}})[0];
    }
    const ValueId now = result_.add_constant(*first.constant, first.name);
    result_.value(now).type = first.type;
    return map_[id] = now;
  }

  /// Of Op::extents: what the constant is in each body.
  [[nodiscard]] std::optional<Attributes> joined_constant(ValueId id) const {
    const TensorType& type = first_.type(id);
    if (!std::ranges::all_of(bodies_, [&](const Graph* body) { return body->type(id) == type; }))
      return std::nullopt;
    for (const CountForm form : count_forms) {
      const Dims extents = extents_of(id, form);
      if (extents.size() != bodies_.size()) continue;
      std::optional<Extent> joined = join_(extents, Axis::count);
      if (!joined) return std::nullopt;
      Attributes result{{"values", std::vector<Extent>{std::move(*joined)}},
                        {"dtype", std::string(dtype_name(type.dtype))},
                        {"rank", static_cast<std::int64_t>(type.rank())},
                        {"inverse", static_cast<std::int64_t>(form == CountForm::inverse)}};
      if (form == CountForm::half) result.set("half", std::int64_t{1});
      return result;
    }
    return std::nullopt;
  }

  /// Of those bodies, from the first on, whose constant has the form.
  [[nodiscard]] Dims extents_of(ValueId id, CountForm form) const {
    Dims extents;
    for (const Graph* body : bodies_) {
      const std::optional<std::int64_t> extent = extent_of(*body->value(id).constant, form);
      if (!extent) break;
      extents.push_back(*extent);
    }
    return extents;
  }

  [[nodiscard]] std::optional<TensorType> joined_type(ValueId id) const {
    std::vector<const TensorType*> types;
    types.reserve(bodies_.size());
    for (const Graph* body : bodies_) types.push_back(&body->type(id));
    return join_types(types, rows_, join_);
  }

  /// The attribute `name` of node `number`, in which bodies differ.
  [[nodiscard]] std::optional<std::vector<Extent>> joined_attribute(std::size_t number,
                                                                    const std::string& name) const {
    if (!has_extents(first_.nodes()[number].op, name)) return std::nullopt;
    std::vector<const Dims*> lists;
    lists.reserve(bodies_.size());
    for (const Graph* body : bodies_) lists.push_back(&body->nodes()[number].attributes.integers(name));
    return join_lists(lists, join_, [&](std::size_t i) {
      if (is_around(name)) return is_edge(number, i) ? Axis::edge : Axis::none;
      return name == "pads" ? Axis::border : axis_at(rows_, i, lists[0]->size());
    });
  }

  [[nodiscard]] static bool is_around(const std::string& name) {
    return name == "low" || name == "high" || name == "starts";
  }

  /// Does the node cut or pad its input along an axis that is of another extent in another body?
  [[nodiscard]] bool is_edge(std::size_t number, std::size_t axis) const {
    const auto extent = [&](const Graph* body, const std::vector<ValueId> Node::* ids) {
      return body->type((body->nodes()[number].*ids)[0]).dims()[axis];
    };
    const auto is_other = [&](const Graph* body) {
      return extent(body, &Node::inputs) != extent(bodies_[0], &Node::inputs);
    };
    const auto is_changed = [&](const Graph* body) {
      return extent(body, &Node::inputs) != extent(body, &Node::outputs);
    };
    return std::ranges::any_of(bodies_, is_other) && std::ranges::any_of(bodies_, is_changed);
  }

  [[nodiscard]] bool has_edges(std::size_t number) const {
    const auto rank = static_cast<std::size_t>(first_.type(first_.nodes()[number].inputs[0]).rank());
    for (std::size_t axis = 0; axis < rank; ++axis)
      if (is_edge(number, axis)) return true;
    return false;
  }

  /// Are pads of a node others where images are? Those that fill images up to whole strides are of one side first.
  [[nodiscard]] bool follow_from_sizes(std::size_t number) const {
    const Node& node = first_.nodes()[number];
    const Dims &pads = node.attributes.integers("pads"), &strides = node.attributes.integers("strides");
    const ValueId image = node.inputs[0];
    for (std::size_t i = 0; i < strides.size(); ++i) {
      const auto extent = [&](const Graph* body) { return body->type(image).dims()[i + 2]; };
      const auto is_other = [&](const Graph* body) { return extent(body) != extent(bodies_[0]); };
      if (strides[i] > 1 && pads[i] != pads[i + strides.size()] && std::ranges::any_of(bodies_, is_other))
        return true;
    }
    return false;
  }

  [[nodiscard]] std::optional<Attributes> joined_attributes(std::size_t number) const {
    const Attributes& first = first_.nodes()[number].attributes;
    Attributes result = first;
    const auto has_same_names = [&](const Graph* body) {
      const Attributes& other = body->nodes()[number].attributes;
      return std::ranges::equal(
          first.items(), other.items(), {}, [](const auto& item) { return item.first; },
          [](const auto& item) { return item.first; });
    };
    if (!std::ranges::all_of(bodies_, has_same_names)) return std::nullopt;
    for (const auto& [name, value] : first.items()) {
      const auto is_equal = [&](const Graph* body) {
        return body->nodes()[number].attributes.items().at(name) == value;
      };
      const bool is_other =
          (name == "pads" && follow_from_sizes(number)) || (is_around(name) && has_edges(number));
      if (std::ranges::all_of(bodies_, is_equal) && !is_other) continue;
      std::optional<std::vector<Extent>> extents = joined_attribute(number, name);
      if (!extents) return std::nullopt;
      result.set(name, std::move(*extents));
    }
    return result;
  }

  [[nodiscard]] bool is_same_node(const Graph& body, std::size_t number) const {
    const Node& a = first_.nodes()[number];
    const Node& b = body.nodes()[number];
    return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs &&
           std::ranges::all_of(a.inputs, [&](ValueId id) {
             return id == no_value || first_.is_constant(id) == body.is_constant(id);
           });
  }

  [[nodiscard]] bool add_node(std::size_t number) {
    if (!std::ranges::all_of(bodies_, [&](const Graph* body) { return is_same_node(*body, number); }))
      return false;
    const Node& node = first_.nodes()[number];
    std::optional<Attributes> attributes = joined_attributes(number);
    if (!attributes) return false;
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs) {
      const std::optional<ValueId> input = mapped(id);
      if (!input) return false;
      inputs.push_back(*input);
    }
    if (suggest_)
      for (const TensorType& type : types_of(node.op, inputs, *attributes))
        for (const Extent& extent : type.shape) suggest_(extent);
    std::vector<Value> outputs;
    for (const ValueId id : node.outputs) {
      std::optional<TensorType> type = joined_type(id);
      if (!type) return false;
      outputs.push_back({first_.value(id).name, std::move(*type), std::nullopt, no_node});
    }
    if (node.op == Op::reshape && equate_) equate_counts(inputs[0], outputs[0].type);
    const std::vector<ValueId> added = result_.add_known_node(
        {node.op, std::move(inputs), {}, std::move(*attributes), ""}, std::move(outputs));
    for (std::size_t i = 0; i < added.size(); ++i) map_[node.outputs[i]] = added[i];
    return true;
  }

  void equate_counts(ValueId input, const TensorType& output) const {
    const std::optional<Extent> taken = element_count(result_.type(input).shape);
    const std::optional<Extent> made = element_count(output.shape);
    if (taken && made) equate_(*taken, *made);
  }

  /// What the operation makes of joined inputs; nothing where its rule wants numbers.
  [[nodiscard]] std::vector<TensorType> types_of(Op op, const std::vector<ValueId>& inputs,
                                                 const Attributes& attributes) const {
    Symbols symbols;
    try {
      return op_info(op).infer(op, result_.types(inputs), attributes, symbols);
    } catch (const Error&) {
      return {};
    }
  }

  [[nodiscard]] bool is_same_constant(const Graph& body, ValueId id) const {
    const std::optional<Tensor>& a = first_.value(id).constant;
    const std::optional<Tensor>& b = body.value(id).constant;
    if (!a || !b) return a.has_value() == b.has_value();
    return a->type() == b->type() &&
           std::memcmp(a->data(), b->data(), static_cast<std::size_t>(a->byte_size())) == 0;
  }

  const std::vector<const Graph*>& bodies_;
  const Graph& first_;
  const JoinExtent& join_;
  const SuggestExtent& suggest_;
  const EquateExtents& equate_;
  Rows rows_ = Rows::are_short;
  Graph result_;
  std::map<ValueId, ValueId> map_;
};

}  // namespace

std::optional<TensorType> join_types(const std::vector<const TensorType*>& types, Rows rows,
                                     const JoinExtent& join) {
  std::vector<Dims> dims;
  std::vector<const Dims*> lists;
  dims.reserve(types.size());
  lists.reserve(types.size());
  TensorType result = *types[0];
  for (const TensorType* type : types) {
    if (type->dtype != result.dtype || type->layout != result.layout) return std::nullopt;
    lists.push_back(&dims.emplace_back(type->dims()));
  }
  const std::optional<std::vector<Extent>> shape =
      join_lists(lists, join, [&](std::size_t i) { return axis_at(rows, i, lists[0]->size()); });
  if (!shape) return std::nullopt;
  if (result.layout.channel_block != 0 && !shape->at(1).is_known()) return std::nullopt;
  result.shape.assign(shape->begin(), shape->end());
  return result;
}

std::optional<std::int64_t> extent_of(const Tensor& constant, CountForm form) {
  const DType dtype = constant.dtype();
  if (constant.size() != 1 || !is_number(dtype)) return std::nullopt;
  constexpr double most = std::numeric_limits<std::int32_t>::max();
  const double value = constant.as_double(0);
  if (form != CountForm::number && !is_float(dtype)) return std::nullopt;
  if (form != CountForm::inverse) {
    const double extent = form == CountForm::half ? 2 * value : value;
    const bool is_one = extent >= 1 && extent <= most && extent == std::floor(extent);
    return is_one ? std::optional(static_cast<std::int64_t>(extent)) : std::nullopt;
  }
  if (!(value > 1 / most) || !(value < 1)) return std::nullopt;
  const auto extent = static_cast<std::int64_t>(std::llround(1 / value));
  Tensor inverse(dtype, constant.dims());
  inverse.set_double(0, 1.0 / static_cast<double>(extent));
  return inverse.as_double(0) == value ? std::optional(extent) : std::nullopt;
}

CountForm count_form(const Attributes& extents) {
  if (extents.integer("inverse") != 0) return CountForm::inverse;
  return extents.has("half") ? CountForm::half : CountForm::number;
}

std::optional<ConstantExtent> constant_extent(const Tensor& constant) {
  for (const CountForm form : count_forms)
    if (const std::optional<std::int64_t> extent = extent_of(constant, form))
      return ConstantExtent{*extent, form};
  return std::nullopt;
}

std::optional<Graph> join_bodies(const std::vector<const Graph*>& bodies, const JoinExtent& join,
                                 const SuggestExtent& suggest, const EquateExtents& equate) {
  return BodyJoiner(bodies, join, suggest, equate).body();
}

std::optional<Extent> element_count(const Shape& shape) {
  try {
    Extent count = 1;
    for (const Extent& extent : shape) count *= extent;
    return count;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace sylvite
