#pragma once
// Builds a plan from the groups of a graph: launches in order, and a buffer for each value that reaches memory.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lowering/plan/fusion.h"
#include "lowering/plan/group_body.h"
#include "lowering/plan/joins.h"
#include "lowering/plan/plan.h"

namespace sylvite {

/// REQUIRES that the graph and the joins outlive it.
class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, const Joins& joins);

  void add_launch(const Group& group);
  /// The launches of a loop, whose body is lowered as `body`. Copies that it needs stand ahead of it, behind it, and
  /// in it.
  void add_loop(const Node& node, const Plan& body);
  /// Where each value lies, which needs no kernels. REQUIRES all launches added.
  void place(bool reuse_memory);
  [[nodiscard]] std::int64_t arena_bytes() const { return plan_.arena_bytes; }
  [[nodiscard]] Plan finish();  ///< REQUIRES place()

  // For loops and states.
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] Buffer& buffer(BufferId id) { return plan_.buffers[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// The buffer of a value that an earlier launch writes, or that is given.
  [[nodiscard]] BufferId buffer_of(ValueId id);
  BufferId add_buffer(Buffer added);
  BufferId add_weight(const std::string& name, const Tensor& tensor);
  /// The same bytes under another type.
  BufferId add_view(BufferId source, const std::string& name, const TensorType& type);
  /// The value lies there from now on.
  void set_buffer(ValueId id, BufferId buffer) { buffer_by_value_[id] = buffer; }
  /// A root that stays in the arena, because others are parts of it. REQUIRES one of kind arena.
  void keep_in_arena(BufferId root) { wholes_.insert(root); }
  [[nodiscard]] bool is_kept_in_arena(BufferId root) const { return wholes_.contains(root); }
  void set_output(std::size_t number, BufferId buffer) { plan_.outputs[number].buffer = buffer; }
  [[nodiscard]] Launch& launch(std::size_t number) { return plan_.launches[number]; }
  /// How many of a launch's arguments it reads; it writes those behind.
  [[nodiscard]] std::size_t input_count(std::size_t launch) const;
  void add_launch(Launch launch, Kernel kernel);
  /// A launch that copies all of one buffer to the other; where rows differ in length, they are cut or padded with zeros.
  void add_copy(BufferId from, BufferId to, std::int64_t rows, const std::string& reason);
  void add_plan_loop(const PlanLoop& loop) { plan_.loops.push_back(loop); }

 private:
  /// What a launch's kernel is made of, or the kernel.
  struct Origin {
    GroupBody group;
    std::optional<Kernel> kernel;
  };

  void add_port(std::vector<Port>& ports, ValueId value, BufferKind kind);
  void add_kernel(Launch& launch, Origin& origin);
  void bring_loops_together();
  BufferId add_value(ValueId id, BufferKind kind, std::int32_t index);
  BufferId add_result(ValueId id);
  BufferId add_part(ValueId id);
  std::int32_t unique_kernel(Kernel kernel);

  const Graph& graph_;
  const Joins& joins_;
  Plan plan_;
  std::vector<Origin> origins_;  ///< per launch
  std::set<BufferId> wholes_;    ///< joined concats, and what loops have windows of
  std::map<ValueId, BufferId> buffer_by_value_;
  std::map<std::string, std::int32_t> kernel_by_text_;
};

}  // namespace sylvite
