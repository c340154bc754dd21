#pragma once
// Grows a random ONNX model node by node. The values of one run are known while it grows, so a growth can see
// what a value holds: square roots get no negative numbers, divisions no zeros, indices stay in range.

#include <onnx-ml.pb.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "sylvite/tensor.h"

namespace sylvite::fuzz {

/// A model with the inputs it is run with, one per graph input.
struct ModelCase {
  onnx::ModelProto model;
  std::vector<Tensor> inputs;
};

/// A value that later nodes may read.
struct Known {
  std::string name;
  Tensor sample;  ///< what it holds in the run with the case's inputs
};

/// Everything random is drawn from `seed`: equal seeds grow equal models.
class ModelGrower {
 public:
  explicit ModelGrower(std::uint32_t seed);

  /// A model of about `nodes` nodes with one to three outputs.
  [[nodiscard]] ModelCase grow(int nodes);
  /// How often the importer refused a node, by reason: a valid node among them is a bug.
  [[nodiscard]] const std::map<std::string, int>& refusals() const { return refusals_; }

  // For growths.
  [[nodiscard]] std::size_t pick(std::size_t count);  ///< uniform in [0, count)
  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high);
  [[nodiscard]] bool chance(double probability);
  template <typename T>
  [[nodiscard]] T one_of(std::initializer_list<T> items) {
    return items.begin()[pick(items.size())];
  }
  /// A value that fits, late ones more often; nullptr when a few tries find none.
  [[nodiscard]] const Known* any(const std::function<bool(const Tensor&)>& fits);
  /// The shape of a random new tensor of this rank, of modest size, sometimes with extents 1 and 0.
  [[nodiscard]] Dims random_dims(int rank);
  /// Floats of [-2, 2], some of them on a grid of quarters, integers of [-5, 5] or [0, 5].
  [[nodiscard]] Tensor random_tensor(DType dtype, const Dims& dims);
  /// Another shape that broadcasts with `dims`: leading ones dropped, some extents 1.
  [[nodiscard]] Dims broadcast_partner(const Dims& dims);

  std::string weight(const Tensor& tensor);  ///< an initializer
  std::string weight(DType dtype, const Dims& dims) { return weight(random_tensor(dtype, dims)); }
  std::string integers(const std::vector<std::int64_t>& values) { return weight(Tensor::vector_i64(values)); }
  std::string input(const Tensor& sample);  ///< a graph input
  /// An operand that is an initializer, or, less often, an input.
  std::string operand(const Tensor& tensor) { return chance(0.3) ? input(tensor) : weight(tensor); }
  /// Adds a node when it is valid and its results are finite and not too large; returns the names of its
  /// outputs, or nothing. `node` has its inputs and attributes; the outputs are named here.
  std::vector<std::string> emit(onnx::NodeProto node, int outputs = 1);

 private:
  void add_inputs();
  void choose_outputs();
  void drop_unread();
  [[nodiscard]] onnx::ModelProto model_of(const onnx::NodeProto& node) const;
  [[nodiscard]] bool is_acceptable(const std::vector<Tensor>& results) const;

  std::mt19937 random_;
  bool allows_infinities_ = false;
  std::int64_t most_elements_ = 0;
  std::int64_t most_work_ = 0;
  onnx::ModelProto model_;
  std::vector<Known> values_;
  std::map<std::string, Tensor> weights_;
  std::map<std::string, Tensor> inputs_;
  std::map<std::string, int> refusals_;
  int names_ = 0;
};

/// One way to extend a model: tries to add a node or a small group of nodes.
struct Growth {
  const char* name;
  int weight;  ///< how often it is chosen, relative to the others
  void (*grow)(ModelGrower&);
};

// In growth_*.cpp, one table per family.
[[nodiscard]] std::span<const Growth> pointwise_growths();
[[nodiscard]] std::span<const Growth> shape_growths();
[[nodiscard]] std::span<const Growth> index_growths();
[[nodiscard]] std::span<const Growth> fold_growths();
[[nodiscard]] std::span<const Growth> contraction_growths();
[[nodiscard]] std::span<const Growth> loop_growths();
[[nodiscard]] std::span<const Growth> written_growths();
[[nodiscard]] std::span<const Growth> seldom_growths();

// Node protos.
[[nodiscard]] onnx::NodeProto make_node(const std::string& op, const std::vector<std::string>& inputs);
void set_attribute(onnx::NodeProto& node, const std::string& name, std::int64_t value);
void set_attribute(onnx::NodeProto& node, const std::string& name, double value);
void set_attribute(onnx::NodeProto& node, const std::string& name, const std::string& value);
void set_attribute(onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values);

[[nodiscard]] onnx::TensorProto tensor_proto(const std::string& name, const Tensor& tensor);
void set_value_info(onnx::ValueInfoProto& info, const std::string& name, DType dtype, const Dims& dims);

}  // namespace sylvite::fuzz
