#pragma once
// A small GPT-2 as exporters write it: caches that a concat extends, with shapes and masks computed from sizes.

#include <cmath>
#include <string>
#include <vector>

#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite {

struct GrowingDecoder {
  /// Where the mask and the positions come from.
  enum class Style {
    tables,  ///< a table of what may be seen, cut by sizes; inputs attention_mask and position_ids
    ranges   ///< Range from the length on, compared; no inputs but tokens and caches
  };
  Style style = Style::tables;
  bool has_past = true;
  std::int64_t layers = 2;
  std::int64_t heads = 2;
  std::int64_t head = 16;
  std::int64_t tokens = 61;
  std::int64_t positions = 640;

  [[nodiscard]] onnx::ModelProto model() const;

 private:
  class Builder;
};

class GrowingDecoder::Builder {
 public:
  explicit Builder(const GrowingDecoder& decoder) : of_(decoder), model_(empty_model(17)) {}

  onnx::ModelProto build() {
    inputs();
    std::string x = node("Add", {node("Gather", {weight("wte", {of_.tokens, width()}), "input_ids"}),
                                 node("Gather", {weight("wpe", {of_.positions, width()}), positions()})});
    for (std::int64_t layer = 0; layer < of_.layers; ++layer) {
      layer_ = std::to_string(layer);
      x = node("Add", {x, attention(normed(x))});
      const std::string wide = node("MatMul", {normed(x), weight("fc" + layer_, {width(), 2 * width()})});
      const std::string half = node("Mul", {wide, real("half", 0.5F)});
      const std::string erf = node("Erf", {node("Div", {wide, real("root", std::sqrt(2.0F))})});
      const std::string gelu = node("Mul", {half, node("Add", {erf, real("one", 1)})});
      x = node("Add", {x, node("MatMul", {gelu, weight("out" + layer_, {2 * width(), width()})})});
    }
    add_node(graph(), "MatMul", {normed(x), weight("head", {width(), of_.tokens})}, {"logits"});
    add_output(graph(), "logits");
    for (const std::string& cache : caches_) {
      onnx::ValueInfoProto& output = *graph().add_output();
      add_value(output, cache, {0, of_.heads, 0, of_.head});
      rename(output, 0, "batch");
      rename(output, 2, total());
    }
    return model_;
  }

 private:
  [[nodiscard]] std::int64_t width() const { return of_.heads * of_.head; }
  [[nodiscard]] bool has_tables() const { return of_.style == Style::tables; }
  [[nodiscard]] std::string total() const {
    return has_tables() ? "past_sequence + sequence" : "total_sequence";
  }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  static void rename(onnx::ValueInfoProto& value, int axis, const std::string& name) {
    auto& dim = *value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(axis);
    dim.set_dim_param(name);
  }
  void open_input(const std::string& name, const std::vector<std::string>& names, int type) {
    add_input(graph(), name, std::vector<std::int64_t>(names.size(), 0), type);
    for (std::size_t axis = 0; axis < names.size(); ++axis)
      rename(*graph().mutable_input(graph().input_size() - 1), static_cast<int>(axis), names[axis]);
  }
  void inputs() {
    open_input("input_ids", {"batch", "sequence"}, onnx::TensorProto::INT64);
    if (has_tables()) {
      open_input("position_ids", {"batch", "sequence"}, onnx::TensorProto::INT64);
      open_input("attention_mask", {"batch", of_.has_past ? total() : "sequence"}, onnx::TensorProto::INT64);
    }
    for (std::int64_t layer = 0; of_.has_past && layer < of_.layers; ++layer) {
      for (const char* kind : {"key", "value"}) {
        const std::string name = "past_key_values." + std::to_string(layer) + "." + kind;
        add_input(graph(), name, {0, of_.heads, 0, of_.head});
        rename(*graph().mutable_input(graph().input_size() - 1), 0, "batch");
        rename(*graph().mutable_input(graph().input_size() - 1), 2, "past_sequence");
      }
    }
  }

  std::string node(const std::string& op, const std::vector<std::string>& inputs) {
    const std::string name = "n" + std::to_string(count_++);
    last_ = &add_node(graph(), op, inputs, {name});
    return name;
  }
  std::string weight(const std::string& name, const std::vector<std::int64_t>& dims) {
    std::vector<float> values;
    std::int64_t size = 1;
    for (const std::int64_t dim : dims) size *= dim;
    for (std::int64_t i = 0; i < size; ++i)
      values.push_back(0.4F * std::sin(1.3F * static_cast<float>(i + 17 * seed_)));
    ++seed_;
    add_floats(graph(), name, dims, values);
    return name;
  }
  std::string real(const std::string& name, float value) {
    const std::string unique = name + std::to_string(count_++);
    add_floats(graph(), unique, {}, {value});
    return unique;
  }
  std::string integers(const std::vector<std::int64_t>& values) {
    const std::string name = "i" + std::to_string(count_++);
    add_integers(graph(), name, values);
    return name;
  }
  std::string scalar(std::int64_t value) {
    const std::string name = integers({value});
    graph().mutable_initializer(graph().initializer_size() - 1)->clear_dims();
    return name;
  }
  /// An extent, of rank 0.
  std::string size(const std::string& of, std::int64_t axis) {
    return node("Gather", {node("Shape", {of}), scalar(axis)});
  }
  std::string listed(const std::string& number) { return node("Unsqueeze", {number, integers({0})}); }

  std::string past_length() { return of_.has_past ? size("past_key_values.0.key", 2) : scalar(0); }
  std::string positions() {
    if (has_tables()) return "position_ids";
    const std::string past = past_length();
    const std::string all = node("Range", {past, node("Add", {past, size("input_ids", 1)}), scalar(1)});
    return node("Unsqueeze", {all, integers({0})});
  }
  std::string normed(const std::string& x) {
    const std::string scale = "scale" + std::to_string(count_++);
    add_floats(graph(), scale, {width()}, std::vector<float>(static_cast<std::size_t>(width()), 1));
    return node("LayerNormalization", {x, scale});
  }
  std::string split_heads(const std::string& x) {
    const std::string shape =
        node("Concat", {listed(size(x, 0)), listed(size(x, 1)), integers({of_.heads}), integers({of_.head})});
    set_integer(*last_, "axis", 0);
    const std::string heads = node("Transpose", {node("Reshape", {x, shape})});
    set_integers(*last_, "perm", {0, 2, 1, 3});
    return heads;
  }
  std::string extended(const std::string& rows, const std::string& kind) {
    if (!of_.has_past) return rows;
    const std::string next = "present." + layer_ + "." + kind;
    onnx::NodeProto& concat =
        add_node(graph(), "Concat", {"past_key_values." + layer_ + "." + kind, rows}, {next});
    set_integer(concat, "axis", -2);
    caches_.push_back(next);
    return next;
  }
  std::string hidden(const std::string& scores, const std::string& q, const std::string& k) {
    const std::string low = real("low", -3.4028235e38F);
    const std::string all = size(k, 2);
    const std::string first = node("Sub", {all, size(q, 2)});
    if (!has_tables()) {
      const std::string rows = node("Range", {first, all, scalar(1)});
      const std::string row = node("Unsqueeze", {rows, integers({1})});
      const std::string column = node("Range", {scalar(0), all, scalar(1)});
      return node("Where", {node("LessOrEqual", {column, row}), scores, low});
    }
    if (table_.empty()) {
      table_ = "seen";
      onnx::TensorProto& table = *graph().add_initializer();
      table.set_name(table_);
      table.set_data_type(onnx::TensorProto::BOOL);
      for (const std::int64_t dim : {std::int64_t{1}, std::int64_t{1}, of_.positions, of_.positions})
        table.add_dims(dim);
      for (std::int64_t i = 0; i < of_.positions; ++i)
        for (std::int64_t j = 0; j < of_.positions; ++j) table.add_int32_data(j <= i ? 1 : 0);
    }
    const std::string rows = node("Slice", {table_, listed(first), listed(all), integers({2})});
    const std::string seen = node("Slice", {rows, integers({0}), listed(all), integers({3})});
    const std::string chosen = node("Where", {seen, scores, low});
    const std::string given = node("Cast", {node("Unsqueeze", {"attention_mask", integers({1, 2})})});
    set_integer(*last_, "to", onnx::TensorProto::FLOAT);
    return node("Add", {chosen, node("Mul", {node("Sub", {real("one", 1), given}), low})});
  }
  std::string attention(const std::string& x) {
    const std::string qkv = node("MatMul", {x, weight("qkv" + layer_, {width(), 3 * width()})});
    const std::vector<std::string> parts = {"q" + layer_, "k" + layer_, "v" + layer_};
    onnx::NodeProto& split = add_node(graph(), "Split", {qkv, integers({width(), width(), width()})}, parts);
    set_integer(split, "axis", 2);
    const std::string q = split_heads(parts[0]);
    const std::string k = extended(split_heads(parts[1]), "key");
    const std::string v = extended(split_heads(parts[2]), "value");
    const std::string turned = node("Transpose", {k});
    set_integers(*last_, "perm", {0, 1, 3, 2});
    const std::string scores =
        node("Div", {node("MatMul", {q, turned}), real("root", std::sqrt(static_cast<float>(of_.head)))});
    const std::string weights = node("Softmax", {hidden(scores, q, k)});
    set_integer(*last_, "axis", -1);
    const std::string mixed = node("Transpose", {node("MatMul", {weights, v})});
    set_integers(*last_, "perm", {0, 2, 1, 3});
    const std::string joined = node("Reshape", {mixed, integers({0, 0, width()})});
    return node("MatMul", {joined, weight("proj" + layer_, {width(), width()})});
  }

  const GrowingDecoder& of_;
  onnx::ModelProto model_;
  onnx::NodeProto* last_ = nullptr;
  std::vector<std::string> caches_;
  std::string layer_, table_;
  int count_ = 0;
  int seed_ = 1;
};

inline onnx::ModelProto GrowingDecoder::model() const {
  return Builder(*this).build();
}

}  // namespace sylvite
