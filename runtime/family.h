#pragma once
// A family: the programs of one model whose sizes are open, one for each combination of sizes that was met. They share
// packed weights wherever these are equal, and the memory of intermediate values, as they never run at the same time.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/session.h"

namespace sylvite {

/// How candidates are chosen for the sizes to be fast at.
using Chooser = std::function<Chosen(const Imported&)>;

/// Thread safety: one thread at a time. Movable.
class Family {
 public:
  /// One program for ever: the model's sizes are fixed.
  explicit Family(Built only);
  /// No program yet. At most compile.sizes_kept are kept: the least recently used one goes.
  explicit Family(OpenModel model);
  ~Family();
  Family(Family&&) noexcept;
  Family& operator=(Family&&) noexcept;

  [[nodiscard]] const ModelSizes& sizes() const;

  /// Builds what `choose` says for `imported`, which is of this model; its program replaces one for the same sizes.
  Built& add(const Imported& imported, const Chooser& choose, const std::stop_token& stop = {});
  /// Compiles kernels that programs for other sizes will need, as many as were compiled until now or 32 at most, where ranges
  /// were given and compile.kernels_ahead does not say otherwise, and learns plans. After that, kernels of further programs are those
  /// that are compiled, wherever these serve. REQUIRES a program.
  void compile_ahead(const std::stop_token& stop = {});
  /// The same in a thread of low priority, beside runs; from then on sizes that are run often may get kernels for them alone
  /// (compile.specialize).
  void start_ahead();
  /// The program for these sizes. One that is missing is built now: stored winners where there are any, else
  /// heuristics; nothing is measured.
  [[nodiscard]] Built& at(const Sizes& sizes);
  /// The one for these inputs. Throws InputError naming input, dimension, value and range.
  [[nodiscard]] Built& of(const std::vector<Tensor>& inputs);
  [[nodiscard]] Built& of(const std::vector<HostValue>& inputs);
  [[nodiscard]] Built& of(const std::vector<DeviceTensor>& inputs);
  /// The same where no kernel is to be compiled for it, or where the model cannot be evaluated meanwhile; else nullptr, and
  /// a thread of low priority compiles them.
  [[nodiscard]] Built* compiled_of(const std::vector<Tensor>& inputs);
  [[nodiscard]] Built* compiled_of(const std::vector<HostValue>& inputs);
  /// Until threads that compile are done.
  void wait();
  [[nodiscard]] bool is_compiling() const;
  /// Ends such threads soon.
  void stop_compiling();
  /// The one that was used last. REQUIRES one.
  [[nodiscard]] Built& latest();
  [[nodiscard]] const Built& latest() const;

  /// Values that stay between runs, which all programs share: names, values, and what the model is told by in files.
  [[nodiscard]] std::vector<std::string> state_names() const;
  [[nodiscard]] std::vector<Tensor> states() const { return latest().program.states(); }
  void set_states(const std::vector<Tensor>& values) { latest().program.set_states(values); }
  [[nodiscard]] std::string model_id() const;

  /// Kernels of the first program; counts, times and warnings of all that were made; memory of those that are kept.
  [[nodiscard]] const CompileReport& report() const;

 private:
  [[nodiscard]] Built* find(const Sizes& sizes);
  [[nodiscard]] Built* find_member(const Sizes& sizes);
  [[nodiscard]] Built* compiled_at(const Sizes& sizes);

  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sylvite
