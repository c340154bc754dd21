// The models of ONNX's own node tests with one thing wrong: the importer says what is wrong with the model, and never
// that it has a fault of its own.

#include <gtest/gtest.h>
#include <onnx-ml.pb.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "frontend/onnx/imported_model.h"

namespace sylvite::mutated_models_test {
namespace {

namespace fs = std::filesystem;
using Change = std::function<void(onnx::GraphProto&)>;

/// Of one attribute: gone, empty, longer, or with odd numbers.
void add_attribute_changes(int node, int attribute, std::vector<Change>& changes) {
  const auto change = [&](const std::function<void(onnx::AttributeProto&)>& apply) {
    changes.emplace_back(
        [=](onnx::GraphProto& graph) { apply(*graph.mutable_node(node)->mutable_attribute(attribute)); });
  };
  changes.emplace_back([=](onnx::GraphProto& graph) {
    graph.mutable_node(node)->mutable_attribute()->DeleteSubrange(attribute, 1);
  });
  change([](onnx::AttributeProto& a) { a.clear_ints(); });
  change([](onnx::AttributeProto& a) { a.clear_floats(); });
  change([](onnx::AttributeProto& a) { a.clear_strings(); });
  change([](onnx::AttributeProto& a) { a.clear_t(); });
  change([](onnx::AttributeProto& a) { a.set_s("odd"); });
  change([](onnx::AttributeProto& a) { a.add_ints(1); });
  for (const std::int64_t odd : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{7}, std::int64_t{1} << 62}) {
    change([=](onnx::AttributeProto& a) {
      a.set_i(odd);
      for (std::int64_t& element : *a.mutable_ints()) element = odd;
    });
  }
}

/// Of one input of the model: of another rank, or another type.
void add_input_changes(int input, std::vector<Change>& changes) {
  const auto change = [&](const std::function<void(onnx::TypeProto_Tensor&)>& apply) {
    changes.emplace_back([=](onnx::GraphProto& graph) {
      apply(*graph.mutable_input(input)->mutable_type()->mutable_tensor_type());
    });
  };
  change([](onnx::TypeProto_Tensor& type) { type.mutable_shape()->clear_dim(); });
  change([](onnx::TypeProto_Tensor& type) { type.mutable_shape()->add_dim()->set_dim_value(3); });
  change([](onnx::TypeProto_Tensor& type) {
    if (type.shape().dim_size() > 0) type.mutable_shape()->mutable_dim()->RemoveLast();
  });
  for (const std::int64_t extent : {0, 1, 5}) {
    change([=](onnx::TypeProto_Tensor& type) {
      for (auto& dim : *type.mutable_shape()->mutable_dim()) dim.set_dim_value(extent);
    });
  }
  for (const int element : {onnx::TensorProto::FLOAT, onnx::TensorProto::INT64, onnx::TensorProto::BOOL,
                            onnx::TensorProto::STRING, onnx::TensorProto::INT4})
    change([=](onnx::TypeProto_Tensor& type) { type.set_elem_type(element); });
}

/// An input of the model becomes a constant: of its own type, empty, or one number. All its elements are `number`.
void add_constant_changes(int input, std::vector<Change>& changes) {
  for (const Dims& dims : {Dims{0}, Dims{}, Dims{1}, Dims{2, 2}}) {
    for (const float number : {0.0F, 3.0F, -1.0F}) {
      changes.emplace_back([=](onnx::GraphProto& graph) {
        onnx::TensorProto& constant = *graph.add_initializer();
        constant.set_name(graph.input(input).name());
        constant.set_data_type(graph.input(input).type().tensor_type().elem_type());
        for (const std::int64_t extent : dims) constant.add_dims(extent);
        const std::int64_t count = checked_product(dims, "the constant");
        for (std::int64_t i = 0; i < count; ++i) {
          if (constant.data_type() == onnx::TensorProto::FLOAT) constant.add_float_data(number);
          if (constant.data_type() == onnx::TensorProto::INT64)
            constant.add_int64_data(static_cast<std::int64_t>(number));
          if (constant.data_type() == onnx::TensorProto::INT32)
            constant.add_int32_data(static_cast<std::int32_t>(number));
        }
      });
    }
  }
}

std::vector<Change> changes_of(const onnx::GraphProto& graph) {
  std::vector<Change> changes;
  for (int n = 0; n < graph.node_size(); ++n) {
    for (int a = 0; a < graph.node(n).attribute_size(); ++a) add_attribute_changes(n, a, changes);
    for (int i = 0; i < graph.node(n).input_size(); ++i) {
      changes.emplace_back([=](onnx::GraphProto& g) { g.mutable_node(n)->mutable_input(i)->clear(); });
      changes.emplace_back(
          [=](onnx::GraphProto& g) { g.mutable_node(n)->mutable_input()->DeleteSubrange(i, 1); });
    }
    changes.emplace_back([=](onnx::GraphProto& g) { g.mutable_node(n)->clear_output(); });
    changes.emplace_back([=](onnx::GraphProto& g) { g.mutable_node(n)->add_output("one_more"); });
  }
  for (int i = 0; i < graph.input_size(); ++i) {
    if (!graph.input(i).type().has_tensor_type()) continue;
    add_input_changes(i, changes);
    add_constant_changes(i, changes);
  }
  return changes;
}

/// What the importer says when it blames itself.
std::string fault(const std::string& bytes) {
  try {
    (void)import_model_bytes(bytes, "");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) return error.what();
  }
  return "";
}

TEST(MutatedModels, AreNoFaultOfTheImporter) {
  constexpr int most_faults = 40;
  int faults = 0;
  for (const auto& entry : fs::directory_iterator(NODE_CASES)) {
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(read_file((entry.path() / "model.onnx").string()))) << entry.path();
    for (const Change& change : changes_of(model.graph())) {
      onnx::ModelProto changed = model;
      change(*changed.mutable_graph());
      const std::string text = fault(changed.SerializeAsString());
      if (text.empty()) continue;
      ADD_FAILURE() << entry.path().filename() << ": " << text;
      if (++faults == most_faults) return;
    }
  }
}

}  // namespace
}  // namespace sylvite::mutated_models_test
