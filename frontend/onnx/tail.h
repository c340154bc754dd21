#pragma once
// What follows values that are known only when the model runs, as a model of its own whose sizes are open: it is compiled as other
// models are, and only the operations that need such values run on the host.
//
//   NonZero -> Gather(x) -> MatMul -> Relu        NonZero runs on the host; the tail is Gather -> MatMul -> Relu, with a
//                                                 size for how many there are
//
// A tail is made of a run. Few integers that a step waits for, as shapes, pads and ends of slices, are sizes, too; other numbers,
// as scales and conditions, are constants of a tail that is made for them once a second run has them. Sizes that differ from run
// to run are open, those that were equal in all runs are one size, and the rest are numbers; a run that does not fit makes the
// tail anew. Where it has steps on the host of its own, it has a tail, too.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/onnx/graph_import.h"
#include "frontend/onnx/imported_model.h"

namespace sylvite {

/// Has such a value few elements?
[[nodiscard]] bool is_few(const Dims& dims);
/// May the elements of such a value be sizes: a few integers?
[[nodiscard]] bool may_be_sizes(DType dtype, const Dims& dims);
/// Those of one that may: none is too large.
[[nodiscard]] bool are_sizes(const Tensor& value);

/// How an element that is a size stands as an extent, which is one at least: zero as 1, and those below zero without their sign.
struct SizeCode {
  std::int64_t factor = 1;  ///< or -1
  std::int64_t shift = 0;

  [[nodiscard]] std::int64_t extent(std::int64_t element) const { return (element - shift) * factor; }
};

/// The shape of a value, and its elements where they may be sizes.
struct TailShape {
  Dims dims;
  std::vector<std::int64_t> elements = {};

  [[nodiscard]] static TailShape of(const Tensor& value);
  bool operator==(const TailShape&) const = default;
};

/// A value that a tail reads.
struct TailValue {
  std::string name;
  Tensor value;                         ///< in this run
  bool is_known = false;                ///< before the run: a weight, or made of sizes
  bool is_number = false;               ///< the tail is one for this value alone
  std::optional<TailShape> other = {};  ///< as it may be in another run
};

/// A tail at the sizes of one run.
struct TailCall {
  std::shared_ptr<const ParsedModel> model;
  std::vector<HostValue> inputs;
};

/// A tail: the same nodes in all runs. Thread safety: one thread at a time.
class Tail {
 public:
  /// `nodes` are of the model, in order; `outputs` what they give.
  Tail(const ParsedModel& model, std::vector<const onnx::NodeProto*> nodes, std::vector<std::string> outputs)
      : model_(model), nodes_(std::move(nodes)), outputs_(std::move(outputs)) {
    model_.tails = nullptr;  // this is one of them
  }

  /// Nothing where the tail does not serve such a run.
  [[nodiscard]] std::optional<TailCall> call(const std::vector<TailValue>& values);
  /// It cannot be run: call() returns nothing from now on.
  void give_up() { is_given_up_ = true; }

 private:
  /// How the tail takes a value.
  enum class Form { constant, sizes, input };
  /// Of each value: the extents, and the elements where they may be sizes; in each run that the tail was made of.
  struct Slots {
    std::size_t first = 0;
    std::size_t rank = 0;
    std::size_t elements = 0;
  };

  void begin(const std::vector<TailValue>& values);
  [[nodiscard]] bool is_alike(const std::vector<TailValue>& values) const;
  [[nodiscard]] std::vector<std::int64_t> row_of(const std::vector<TailValue>& values, bool is_other) const;
  [[nodiscard]] bool fits(const std::vector<TailValue>& values, const std::vector<std::int64_t>& row) const;
  void make(const std::vector<TailValue>& values);
  void choose_forms();
  void choose_symbols();
  [[nodiscard]] bool is_open(std::size_t slot) const;
  /// Of an element; nothing where it was above zero and below, or no size.
  [[nodiscard]] std::optional<SizeCode> code_of(std::size_t slot) const;
  [[nodiscard]] std::span<const SizeCode> codes_of(const Slots& slots) const;
  [[nodiscard]] bool are_size_slots(const Slots& slots) const;
  [[nodiscard]] ParsedModel written(const std::vector<TailValue>& values) const;
  void write_value(const TailValue& value, std::size_t i, onnx::GraphProto& graph,
                   ImportOptions& options) const;
  /// Values that sizes are made of, which the tail does not know yet.
  [[nodiscard]] std::set<std::string> sizes_missing(const ParsedModel& model) const;

  ParsedModel model_;  ///< whose tail it is
  std::vector<const onnx::NodeProto*> nodes_;
  std::vector<std::string> outputs_;
  std::vector<TailValue> first_;  ///< of the run that it was first made of
  std::vector<Slots> slots_;
  std::vector<std::vector<std::int64_t>> rows_;
  std::vector<bool> varies_;            ///< the bytes of known values
  std::set<std::string> sizes_wanted_;  ///< values whose elements are sizes
  std::vector<Form> forms_;
  std::vector<int> symbols_;     ///< of each slot; -1: a number
  std::vector<SizeCode> codes_;  ///< of each slot
  std::shared_ptr<const ParsedModel> made_;
  bool is_given_up_ = false;
};

/// The tails of one model: for each set of nodes that is left for them, of values without elements, whose tail is another
/// one, and of numbers. Thread safe.
class TailStore {
 public:
  /// `use` has the tail for itself. Nothing where there are too many.
  template <typename Use>
  auto with(const ParsedModel& model, const std::vector<const onnx::NodeProto*>& nodes,
            const std::vector<std::string>& outputs, const std::vector<TailValue>& values, const Use& use) {
    Key key = {nodes, {}, {}};
    for (const TailValue& value : values) {
      key.is_empty.push_back(value.value.size() == 0);
      if (value.is_number)
        key.numbers.append(static_cast<const char*>(value.value.data()),
                           static_cast<std::size_t>(value.value.byte_size()));
    }
    const std::scoped_lock lock(mutex_);
    constexpr std::size_t most = 64;
    if (tails_.size() >= most && !tails_.contains(key)) return std::invoke_result_t<Use, Tail&>();
    return use(tails_.try_emplace(std::move(key), model, nodes, outputs).first->second);
  }

  /// Did a run have this value, which steps wait for and which is no sizes? False for all but a few values of the name.
  [[nodiscard]] bool is_met_again(const std::string& name, const Tensor& value);

  /// How long steps on the host took, done one by one: in the longest run, or a tenth of all runs together, since short ones that
  /// come again and again are worth a tail, too.
  [[nodiscard]] double step_seconds() const { return step_seconds_; }
  void note_step_seconds(double seconds) {
    constexpr double share = 0.1;
    const double all = all_seconds_ += seconds;
    step_seconds_ = std::max({step_seconds_.load(), seconds, share * all});
  }

 private:
  struct Key {
    std::vector<const onnx::NodeProto*> nodes;
    std::vector<bool> is_empty;
    std::string numbers;  ///< their bytes
    auto operator<=>(const Key&) const = default;
  };

  std::atomic<double> step_seconds_ = 0;
  std::atomic<double> all_seconds_ = 0;
  std::mutex mutex_;
  std::map<Key, Tail> tails_;
  std::map<std::string, std::vector<Tensor>> numbers_;  ///< by name
};

}  // namespace sylvite
