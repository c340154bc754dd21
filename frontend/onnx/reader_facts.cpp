#include "frontend/onnx/reader_facts.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace sylvite {

/// Who reads what, and which values are constants.
struct ReaderFactFinder::Index {
  std::map<std::string, const onnx::TensorProto*> constants;
  std::map<std::string, std::vector<const onnx::NodeProto*>> readers;
  std::map<std::string, int> ranks;  ///< of values whose shape the graph declares
};

namespace {

constexpr int most_nodes = 64;  ///< that are looked through behind an input
constexpr int most_axes = 64;

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

std::int64_t integer(const onnx::NodeProto& node, std::string_view name, std::int64_t otherwise) {
  const onnx::AttributeProto* attribute = find_attribute(node, name);
  return attribute != nullptr ? attribute->i() : otherwise;
}

std::optional<int> count_of(const onnx::NodeProto& node, std::string_view name) {
  const onnx::AttributeProto* attribute = find_attribute(node, name);
  if (attribute == nullptr) return {};
  return std::max(attribute->ints_size(), attribute->floats_size());
}

/// A node that reads the value as its first input.
struct Reader {
  const onnx::NodeProto& node;
  const std::map<std::string, const onnx::TensorProto*>& constants;

  [[nodiscard]] const onnx::TensorProto* constant(int input) const {
    if (node.input_size() <= input) return nullptr;
    const auto found = constants.find(node.input(input));
    return found == constants.end() ? nullptr : found->second;
  }
  /// Of a vector that the model holds, or of an attribute.
  [[nodiscard]] std::optional<int> numbers(int input, std::string_view attribute) const {
    const onnx::TensorProto* tensor = constant(input);
    if (tensor == nullptr) return count_of(node, attribute);
    const bool is_vector =
        tensor->dims_size() == 1 && tensor->dims(0) > 0 && tensor->dims(0) <= 2 * most_axes;
    return is_vector ? std::optional(static_cast<int>(tensor->dims(0))) : std::nullopt;
  }
};

ReaderFacts of_convolution(const Reader& reader) {
  const onnx::TensorProto* weights = reader.constant(1);
  if (weights == nullptr || weights->dims_size() < 3) return {};
  const bool is_transposed = reader.node.op_type() == "ConvTranspose";
  const std::int64_t groups = std::clamp<std::int64_t>(integer(reader.node, "group", 1), 1, 1 << 20);
  const std::int64_t channels = is_transposed ? weights->dims(0) : weights->dims(1) * groups;
  return {weights->dims_size(), {{1, channels}}};
}

ReaderFacts of_quantized_convolution(const Reader& reader) {
  const onnx::TensorProto* weights = reader.constant(3);
  if (weights == nullptr || weights->dims_size() < 3) return {};
  const std::int64_t groups = std::clamp<std::int64_t>(integer(reader.node, "group", 1), 1, 1 << 20);
  return {weights->dims_size(), {{1, weights->dims(1) * groups}}};
}

ReaderFacts of_gemm(const Reader& reader) {
  const onnx::TensorProto* weights = reader.constant(1);
  if (weights == nullptr || weights->dims_size() != 2) return {2, {}};
  const std::int64_t depth = weights->dims(integer(reader.node, "transB", 0) != 0 ? 1 : 0);
  return {2, {{integer(reader.node, "transA", 0) != 0 ? 0 : 1, depth}}};
}

/// Products of more axes exist; without a word of the model they are matrices.
ReaderFacts of_product(const Reader& reader) {
  const onnx::TensorProto* weights = reader.constant(1);
  if (weights == nullptr || weights->dims_size() != 2) return {};
  return {2, {{-1, weights->dims(0)}}};
}

ReaderFacts of_recurrence(const Reader& reader) {
  const onnx::TensorProto* weights = reader.constant(1);
  if (weights == nullptr || weights->dims_size() != 3) return {3, {}};
  return {3, {{2, weights->dims(2)}}};
}

ReaderFacts of_pooling(const Reader& reader) {
  const std::optional<int> axes = count_of(reader.node, "kernel_shape");
  return {axes ? std::optional(*axes + 2) : std::nullopt, {}};
}

/// The second input of Resize is a region of the image.
ReaderFacts of_resize(const Reader& reader) {
  const int first = reader.node.input_size() > 2 ? 2 : 1;
  for (int i = first; i < reader.node.input_size(); ++i)
    if (const std::optional<int> axes = reader.numbers(i, "scales")) return {axes, {}};
  return {count_of(reader.node, "scales"), {}};
}

ReaderFacts of_pad(const Reader& reader) {
  const std::optional<int> numbers = reader.numbers(1, "pads");
  return {numbers ? std::optional(*numbers / 2) : std::nullopt, {}};
}

ReaderFacts of_four_axes(const Reader& /*reader*/) {
  return {4, {}};
}

ReaderFacts of_rows(const Reader& /*reader*/) {
  return {2, {}};
}

struct FactRow {
  std::string_view operator_name;
  ReaderFacts (*facts)(const Reader& reader);
};

constexpr FactRow fact_rows[] = {
    {"Conv", of_convolution},
    {"ConvTranspose", of_convolution},
    {"ConvInteger", of_convolution},
    {"QLinearConv", of_quantized_convolution},
    {"MaxPool", of_pooling},
    {"AveragePool", of_pooling},
    {"LpPool", of_pooling},
    {"Resize", of_resize},
    {"Upsample", of_resize},
    {"Pad", of_pad},
    {"Gemm", of_gemm},
    {"MatMul", of_product},
    {"LSTM", of_recurrence},
    {"GRU", of_recurrence},
    {"RNN", of_recurrence},
    {"DepthToSpace", of_four_axes},
    {"SpaceToDepth", of_four_axes},
    {"TreeEnsembleClassifier", of_rows},
    {"TreeEnsembleRegressor", of_rows},
    {"LinearClassifier", of_rows},
    {"LinearRegressor", of_rows},
    {"SVMClassifier", of_rows},
    {"SVMRegressor", of_rows},
};

/// Their result has the shape of the value, where what else they read are constants.
constexpr std::string_view shapeless[] = {
    "Scaler",
    "Imputer",
    "Normalizer",
    "InstanceNormalization",
    "LRN",
    "Softmax",
    "Dropout",
    "Cast",
    "Relu",
    "Identity",
    "QuantizeLinear",
    "DequantizeLinear",
    "Clip",
    "Sigmoid",
    "Tanh",
    "Neg",
    "Log",
    "Exp",
    "Sqrt",
    "Pow",
    "Add",
    "Sub",
    "Mul",
    "Div",
};

/// Walks from a value to those behind it.
class FactWalk {
 public:
  FactWalk(const std::map<std::string, const onnx::TensorProto*>& constants,
           const std::map<std::string, std::vector<const onnx::NodeProto*>>& readers,
           const std::map<std::string, int>& ranks)
      : constants_(constants), readers_(readers), ranks_(ranks) {}

  ReaderFacts walk(const std::string& value) {
    ReaderFacts facts;
    if (!seen_.insert(value).second || seen_.size() > most_nodes) return facts;
    if (const auto found = readers_.find(value); found != readers_.end())
      for (const onnx::NodeProto* node : found->second) add(facts, of(*node, value));
    if (const auto declared = ranks_.find(value); declared != ranks_.end()) facts.rank = declared->second;
    return facts;
  }

 private:
  static void add(ReaderFacts& facts, const ReaderFacts& further) {
    if (!facts.rank) facts.rank = further.rank;
    facts.extents.insert(further.extents.begin(), further.extents.end());
  }

  [[nodiscard]] bool is_alone(const onnx::NodeProto& node, const std::string& value) const {
    return std::ranges::all_of(node.input(), [&](const std::string& other) {
      return other == value || other.empty() || constants_.contains(other);
    });
  }

  ReaderFacts of(const onnx::NodeProto& node, const std::string& value) {
    if (node.output_size() == 0) return {};
    if (node.op_type() == "BatchNormalization" && node.input(0) == value) return of_batch_norm(node);
    if (std::ranges::find(shapeless, node.op_type()) != std::end(shapeless))
      return is_alone(node, value) ? walk(node.output(0)) : ReaderFacts{};
    if (node.input(0) != value) return {};
    if (node.op_type() == "Transpose") return of_transpose(node);
    const auto* row = std::ranges::find(fact_rows, node.op_type(), &FactRow::operator_name);
    return row != std::end(fact_rows) ? row->facts({node, constants_}) : ReaderFacts{};
  }

  ReaderFacts of_batch_norm(const onnx::NodeProto& node) {
    ReaderFacts facts = walk(node.output(0));
    const onnx::TensorProto* scale = Reader{node, constants_}.constant(1);
    if (scale != nullptr && scale->dims_size() == 1) facts.extents.emplace(1, scale->dims(0));
    return facts;
  }

  ReaderFacts of_transpose(const onnx::NodeProto& node) {
    const onnx::AttributeProto* perm = find_attribute(node, "perm");
    if (perm == nullptr || perm->ints_size() > most_axes) return {};
    const int rank = perm->ints_size();
    ReaderFacts facts{rank, {}};
    for (const auto& [axis, extent] : walk(node.output(0)).extents) {
      const int place = axis < 0 ? axis + rank : axis;
      if (place < 0 || place >= rank) continue;
      const std::int64_t from = perm->ints(place);
      if (from >= 0 && from < rank) facts.extents.emplace(static_cast<int>(from), extent);
    }
    return facts;
  }

  const std::map<std::string, const onnx::TensorProto*>& constants_;
  const std::map<std::string, std::vector<const onnx::NodeProto*>>& readers_;
  const std::map<std::string, int>& ranks_;
  std::set<std::string> seen_;
};

}  // namespace

ReaderFactFinder::ReaderFactFinder(const onnx::GraphProto& graph) : index_(std::make_unique<Index>()) {
  for (const onnx::TensorProto& tensor : graph.initializer()) index_->constants[tensor.name()] = &tensor;
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& input : node.input()) index_->readers[input].push_back(&node);
    const onnx::AttributeProto* value =
        node.op_type() == "Constant" ? find_attribute(node, "value") : nullptr;
    if (value != nullptr && node.output_size() == 1) index_->constants[node.output(0)] = &value->t();
  }
  for (const auto* list : {&graph.value_info(), &graph.output()})
    for (const onnx::ValueInfoProto& value : *list)
      if (value.type().has_tensor_type() && value.type().tensor_type().has_shape())
        index_->ranks[value.name()] = value.type().tensor_type().shape().dim_size();
}

ReaderFactFinder::~ReaderFactFinder() = default;

ReaderFacts ReaderFactFinder::facts_of(const std::string& value) const {
  ReaderFacts facts = FactWalk(index_->constants, index_->readers, index_->ranks).walk(value);
  if (facts.rank > most_axes) facts.rank.reset();
  return facts;
}

}  // namespace sylvite
