#pragma once
// Steps on the host with a tail: those that need values of the run are done one by one, and the rest is the tail.

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/tail.h"

namespace sylvite {

using NamedValues = std::vector<std::pair<std::string, HostValue>>;

/// Of a model at its sizes. Thread safety: const use is safe.
class TailSteps {
 public:
  /// `model` and `options` must live as long.
  TailSteps(const ParsedModel& model, const Sizes& sizes, const ImportOptions& options)
      : model_(model), sizes_(sizes), options_(options) {}
  TailSteps(const TailSteps&) = delete;
  TailSteps& operator=(const TailSteps&) = delete;

  /// `known` names values that no run changes.
  void prepare(const std::vector<DeferredNode>& nodes, std::set<std::string> known);
  [[nodiscard]] const std::set<std::string>& known() const { return known_; }
  /// The outputs of the model, from what the graph gave and the model's inputs. Nothing where steps are to be done one by one:
  /// where no tail serves them.
  [[nodiscard]] std::optional<std::vector<HostValue>> run(const NamedValues& values,
                                                          const Evaluation& evaluation,
                                                          const TailRunner& run_tail) const;

 private:
  struct Split {
    std::vector<DeferredNode> now;
    std::vector<const onnx::NodeProto*> rest;
    std::vector<std::string> made;     ///< by what runs now, and wanted
    std::vector<TailValue> reads;      ///< of the tail: names, weights, and what is known of other runs
    std::vector<std::string> outputs;  ///< of the tail
    bool is_complete = false;          ///< `reads` have what is known of them
  };
  using Values = std::map<std::string, const HostValue*>;

  /// Per node: does it read strings that are given, or made of such?
  [[nodiscard]] std::vector<bool> steps_of_strings(const Values& values) const;
  /// Which steps are left for the tail, and the numbers that make it.
  struct Left {
    std::vector<bool> steps;
    std::set<std::string> numbers;
  };
  [[nodiscard]] Left steps_left(const Values& values) const;
  /// The same, found once where it does not depend on numbers.
  [[nodiscard]] const Left& known_steps_left(const Values& values, Left& now) const;
  [[nodiscard]] Split& split(const std::vector<bool>& is_left, const Values& values) const;
  void find_interfaces(Split& split, const Values& values) const;
  /// The first extents of inputs, here and at other sizes.
  struct Rows {
    std::int64_t here = 0;
    std::int64_t there = 0;
  };
  [[nodiscard]] Rows rows(const Values& values, Sizes& beside) const;
  void guess_rows(const Rows& rows, const Values& values, std::vector<TailValue>& reads) const;
  [[nodiscard]] std::map<std::string, TailShape> other_shapes(const Sizes& beside) const;
  void complete(Split& split, const Values& values, const OnnxGraphImporter& importer) const;
  [[nodiscard]] std::optional<std::vector<TailValue>> read(const Split& split,
                                                           const std::set<std::string>& numbers,
                                                           const Values& values) const;
  [[nodiscard]] std::optional<std::vector<HostValue>> run_tail(Tail& tail, const Split& split,
                                                               const std::vector<TailValue>& reads,
                                                               Values& values,
                                                               const TailRunner& run_tail) const;

  const ParsedModel& model_;
  const Sizes& sizes_;
  const ImportOptions& options_;
  std::vector<DeferredNode> nodes_;
  std::vector<std::set<std::string>> reads_;  ///< of each node
  std::set<std::string> known_;
  bool follows_inputs_ = false;     ///< no step waits for what it is itself
  bool waits_for_numbers_ = false;  ///< some step does
  mutable std::mutex mutex_;
  mutable std::optional<Left> left_;
  mutable std::map<std::vector<bool>, Split> splits_;  ///< by which nodes are left for the tail
};

}  // namespace sylvite
