#include "lowering/algorithms/pointwise_text.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/algorithms/pointwise_bodies.h"
#include "lowering/algorithms/strided_view.h"
#include "lowering/plan/join_bodies.h"

namespace sylvite {
namespace {

bool is_printable(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::boolean;
}

/// Of a value whose channels are one block: they lie innermost.
Dims channels_last_strides(const TensorType& type) {
  const Dims dims = type.dims();
  if (type.layout.channel_block != dims.at(1))
    throw UnsupportedError("{} has its channels in several blocks", type.to_string());
  Dims strides = dense_strides(dims);
  for (std::size_t i = 2; i < dims.size(); ++i) strides[i] *= dims[1];
  strides[1] = 1;
  return strides;
}

class Printer {
 public:
  Printer(const Graph& body, ValueId root, ValueId output, bool fast, const Graph* open)
      : body_(body), open_(open), output_dims_(body.type(output).dims()), fast_(fast) {
    names_[root] = "root";
  }

  /// The name that holds the value, printing what it needs.
  std::string value(ValueId id) {
    if (const auto found = names_.find(id); found != names_.end()) return found->second;
    const TensorType& type = body_.type(id);
    if (!is_printable(type.dtype))
      throw UnsupportedError("value '{}' is {}, C text has floats only", body_.value(id).name,
                             dtype_name(type.dtype));
    std::string name;
    if (body_.is_constant(id)) {
      name = constant(id);
    } else if (const ValueId source = before_layout(body_, id); source != id) {
      name = value(source);
    } else if (const NodeId producer = body_.value(id).producer;
               producer != no_node && has_trait(body_.node(producer).op, OpTrait::pointwise)) {
      name = node(body_.node(producer), id);
    } else {
      name = operand(id);
    }
    return names_[id] = name;
  }

  [[nodiscard]] const std::string& lines() const { return lines_; }
  [[nodiscard]] const std::vector<PointwiseOperand>& operands() const { return operands_; }
  [[nodiscard]] const std::vector<PointwiseCount>& counts() const { return counts_; }

 private:
  [[nodiscard]] bool is_count(ValueId id) const {
    const NodeId producer = open_ == nullptr ? no_node : open_->value(id).producer;
    return producer != no_node && open_->node(producer).op == Op::extents;
  }

  std::string constant(ValueId id) {
    const Tensor& tensor = *body_.value(id).constant;
    if (tensor.size() != 1)
      throw UnsupportedError("constant '{}' has {} elements, C text has one", body_.value(id).name,
                             tensor.size());
    if (is_count(id)) {
      const CountForm form = count_form(open_->node(open_->value(id).producer).attributes);
      const std::optional<std::int64_t> extent = extent_of(tensor, form);
      if (!extent) throw InternalError("constant '{}' is no extent", body_.value(id).name);
      counts_.push_back({fmt::format("count{}", counts_.size()), *extent, form, tensor.dtype()});
      return counts_.back().name;
    }
    if (tensor.dtype() == DType::boolean) return tensor.as_double(0) != 0 ? "true" : "false";
    return c_literal(tensor.as_double(0));
  }

  std::string node(const Node& node, ValueId id) {
    std::vector<std::string> x;
    x.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) x.push_back(value(input));
    const std::string& name = body_.value(id).name;
    lines_ += fmt::format("  const {} {} = {};\n", body_.type(id).dtype == DType::boolean ? "bool" : "float",
                          name, c_text(node, x, fast_));
    return name;
  }

  /// An image in a layout of its own, perhaps a part of another, or reshaped around ones.
  [[nodiscard]] StridedView image(ValueId id) const {
    if (const Node* part = producer_if(body_, id, Op::slice)) {
      StridedView view = image(part->inputs.at(0));
      view.dims = body_.type(id).dims();
      for (std::size_t i = 0; i < view.dims.size(); ++i) {
        view.offset += part->attributes.integers("starts")[i] * view.strides[i];
        view.strides[i] *= part->attributes.integers("steps")[i];
      }
      return view;
    }
    ValueId source = id;
    while (body_.value(source).producer != no_node) {
      const Node& view = body_.node(body_.value(source).producer);
      const Dims from = body_.type(view.inputs.at(0)).dims();
      const bool keeps =
          view.op == Op::reshape && without_ones(from) == without_ones(body_.type(source).dims());
      if (!keeps)
        throw UnsupportedError("{} ahead of pointwise work is not printed as C", op_info(view.op).name);
      source = view.inputs.at(0);
    }
    const auto found = std::ranges::find(body_.inputs, source);
    if (found == body_.inputs.end())
      throw UnsupportedError("value '{}' is neither computed nor an input", body_.value(source).name);
    return {static_cast<int>(found - body_.inputs.begin()), 0, body_.type(id).dims(),
            channels_last_strides(body_.type(id))};
  }

  /// Rows, perhaps behind views that leave each row's elements side by side.
  [[nodiscard]] StridedView rows(ValueId id) const {
    const std::optional<StridedView> view = strided_view(body_, id);
    if (!view) throw UnsupportedError("value '{}' is no view of an input", body_.value(id).name);
    const bool moves = view->offset != 0 || view->strides != dense_strides(view->dims);
    if (moves && view->dims.back() != 1 && view->strides.back() > 1)
      throw UnsupportedError("value '{}' is a view whose rows lie apart", body_.value(id).name);
    return *view;
  }

  std::string operand(ValueId id) {
    const TensorType& type = body_.type(id);
    const StridedView view = type.layout.channel_block == 0 ? rows(id) : image(id);
    PointwiseOperand operand;
    operand.input = view.input;
    operand.dtype = type.dtype;
    operand.name = fmt::format("in{}_{}", operand.input, operands_.size());
    operand.strides.assign(output_dims_.size(), 0);
    const std::size_t skip = output_dims_.size() - view.dims.size();
    for (std::size_t i = 0; i < view.dims.size(); ++i)
      operand.strides[skip + i] = view.dims[i] == 1 ? 0 : view.strides[i];
    operand.offset = view.offset;
    operands_.push_back(operand);
    return type.dtype == DType::boolean ? fmt::format("({} != 0.f)", operand.name) : operand.name;
  }

  const Graph& body_;
  const Graph* open_;
  Dims output_dims_;
  bool fast_;
  std::map<ValueId, std::string> names_;
  std::vector<PointwiseOperand> operands_;
  std::vector<PointwiseCount> counts_;
  std::string lines_;
};

}  // namespace

std::string PointwiseOperand::first(const std::string& array) const {
  return offset == 0 ? array : fmt::format("({} + {}ll)", array, offset);
}

ValueId before_layout(const Graph& graph, ValueId id) {
  const auto lies_dense = [](const TensorType& type) {
    const Dims dims = type.dims();
    return type.layout.channel_block == 0 ||
           (dims.size() > 2 && type.layout.channel_block == dims[1] && product(dims, 2, dims.size()) == 1);
  };
  const Node* change = producer_if(graph, id, Op::to_layout);
  return change != nullptr && lies_dense(graph.type(id)) && lies_dense(graph.type(change->inputs[0]))
             ? change->inputs[0]
             : id;
}

PointwiseText print_pointwise(const Graph& body, ValueId root, ValueId output, const std::string& name,
                              bool fast, const Graph* open) {
  Printer printer(body, root, output, fast, open);
  const std::string result = printer.value(output);
  std::string parameters = "float root";
  for (const PointwiseOperand& operand : printer.operands()) parameters += ", float " + operand.name;
  for (const PointwiseCount& count : printer.counts()) parameters += ", float " + count.name;
  return {
      fmt::format("DEVICE float {}({}) {{\n{}  return {};\n}}\n", name, parameters, printer.lines(), result),
      printer.operands(), printer.counts()};
}

}  // namespace sylvite
