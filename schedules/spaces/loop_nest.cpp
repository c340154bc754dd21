#include "schedules/spaces/loop_nest.h"

#include <algorithm>
#include <array>

#include "base/rounding.h"
#include "frontend/graph/evaluation_work.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

double product(const Dims& dims) {
  double result = 1;
  for (const std::int64_t extent : dims) result *= static_cast<double>(extent);
  return result;
}

double work_of(const Graph& body) {
  double work = 0;
  for (const Node& node : body.nodes()) {
    double elements = product(body.type(node.outputs.front()).dims());
    if (!node.inputs.empty() && !has_trait(node.op, OpTrait::view)) {
      const bool folds = has_trait(node.op, OpTrait::reduction);
      if (folds) elements = product(body.type(node.inputs.front()).dims());
    }
    work += elements * static_cast<double>(op_info(node.op).facts.cost) * terms_of(body, node);
  }
  return work;
}

bool is_elementwise(const Kernel& kernel) {
  return std::all_of(kernel.body.nodes().begin(), kernel.body.nodes().end(), [](const Node& node) {
    return has_trait(node.op, OpTrait::pointwise) || node.op == Op::broadcast_to || node.op == Op::batch_norm;
  });
}

/// Copies elements and computes nothing.
bool only_moves(const Graph& body) {
  return std::ranges::all_of(body.nodes(), [](const Node& node) {
    return has_trait(node.op, OpTrait::movement) || has_trait(node.op, OpTrait::gather) ||
           node.op == Op::to_layout;
  });
}

/// Whether a node whose input and output have the same extent along a logical dim moves elements along it.
bool moves_along(const Node& node, std::size_t dim) {
  const auto at = [&](const char* name) { return node.attributes.integers(name).at(dim); };
  if (node.op == Op::transpose) return at("perm") != static_cast<std::int64_t>(dim);
  if (node.op == Op::slice) return at("steps") != 1;
  if (node.op == Op::pad) return at("low") != 0;
  return false;
}

/// How many innermost dims a node of dense values leaves where they are.
std::size_t kept_dims(const Graph& body, const Node& node) {
  const Dims from = body.type(node.inputs.front()).dims();
  const Dims to = body.type(node.outputs.front()).dims();
  std::size_t most = std::min(from.size(), to.size());
  if (node.op == Op::concat) most = to.size() - 1 - static_cast<std::size_t>(node.attributes.integer("axis"));
  for (std::size_t kept = 0; kept < most; ++kept) {
    const std::size_t dim = to.size() - 1 - kept;
    if (from[from.size() - 1 - kept] != to[dim] || moves_along(node, dim)) return kept;
  }
  return most;
}

/// How many innermost dims of the output all nodes leave where they are. At least 1.
std::size_t kept_run(const Graph& body, std::size_t rank) {
  constexpr std::array ops = {Op::slice, Op::concat, Op::transpose, Op::reshape, Op::pad};
  std::size_t run = rank;
  for (const Node& node : body.nodes()) {
    if (std::ranges::find(ops, node.op) == ops.end()) return 1;
    run = std::min(run, kept_dims(body, node));
  }
  return std::max<std::size_t>(run, 1);
}

bool is_dense(const Graph& body) {
  return std::ranges::all_of(body.values(),
                             [](const Value& value) { return value.type.layout.channel_block == 0; });
}

bool has_remainders(const Graph& body) {
  return std::ranges::any_of(body.nodes(), [](const Node& node) { return node.op == Op::mod; });
}

}  // namespace

std::size_t common_run(const Kernel& kernel, const Dims& extents) {
  if (!is_elementwise(kernel)) return is_dense(kernel.body) ? kept_run(kernel.body, extents.size()) : 1;
  std::size_t run = extents.size();
  const int out_block = kernel.body.type(kernel.body.outputs.front()).layout.channel_block;
  for (const Value& value : kernel.body.values()) {
    if (value.constant && value.constant->size() == 1) continue;
    const Dims own = loop_extents(value.type);
    if (std::all_of(own.begin(), own.end(), [](std::int64_t extent) { return extent == 1; })) continue;
    // Another layout, or a vector that lies along channels (batch_norm) or along the innermost loop.
    if (value.type.layout.channel_block != out_block) return 1;
    if (value.type.rank() == 1 && (out_block > 0 || own[0] != extents[0])) return 1;
    const auto extent_at = [&](std::size_t d) { return d < own.size() ? own[d] : 1; };
    std::size_t same = 0;
    while (same < run && extent_at(same) == extents[same]) ++same;
    std::size_t absent = 0;
    while (absent < run && extent_at(absent) == 1) ++absent;
    run = std::max(same, absent);
  }
  return std::max<std::size_t>(run, 1);
}

bool is_pure_dim(const Halide::Func& func, std::size_t position) {
  const std::vector<Halide::Expr>& arguments = func.update_args(0);
  const auto* variable = arguments.at(position).as<Halide::Internal::Variable>();
  return variable != nullptr && variable->name == func.args().at(position).name();
}

Dims loop_extents(const TensorType& type) {
  Dims extents = type.storage_dims();
  std::reverse(extents.begin(), extents.end());
  return extents;
}

KernelFacts facts_of(const Kernel& kernel, const Machine& machine) {
  const Graph& body = kernel.body;
  const ValueId out = body.outputs.front();
  KernelFacts facts;
  facts.output = output_stage(kernel, out);
  facts.extents = loop_extents(body.type(out));
  facts.loops = run_extents(kernel, out);
  facts.anchor = kernel.anchor == no_node ? nullptr : &body.node(kernel.anchor);
  if (facts.anchor != nullptr) facts.anchor_value = body.value(facts.anchor->outputs.front()).name;
  std::size_t widest = 1;
  const bool computes = !only_moves(body);
  for (const Value& value : body.values()) {
    const DType dtype = value.type.dtype;
    const bool as_f32 = dtype == DType::f16 || (dtype == DType::bf16 && computes) || is_narrow_float(dtype);
    widest = std::max(widest, as_f32 ? 4 : dtype_size(value.type.dtype));
  }
  facts.lanes = machine.vector_floats * 4 / static_cast<int>(widest);
  // No instruction divides integers in vectors: LLVM takes each lane apart, for minutes where there are 64.
  if (has_remainders(body)) facts.lanes = std::min(facts.lanes, machine.vector_floats);
  facts.work = work_of(body);
  return facts;
}

KernelFacts element_facts(const Kernel& kernel, const Machine& machine) {
  KernelFacts facts = facts_of(kernel, machine);
  if (kernel.body.outputs.size() > 1) facts.output = together_stage;
  return facts;
}

std::string refuse_elements(const Kernel& kernel) {
  const Graph& body = kernel.open ? *kernel.open : kernel.body;
  for (const Node& node : body.nodes())
    if (!update_stages(node.op).empty()) return "the kernel folds";
  if (!results_lie_alike(body)) return "the results do not lie alike";
  for (const ValueId output : body.outputs) {
    const NodeId producer = body.value(output).producer;
    if (body.outputs.size() > 1 && (producer == no_node || body.node(producer).outputs.size() != 1))
      return "the kernel has several outputs";
  }
  return "";
}

double vector_seconds(double work, const Machine& machine, double threads) {
  constexpr double vectors_per_second = 2e9;
  constexpr double fork_seconds = 5e-6;
  return work / machine.vector_floats / vectors_per_second / threads + (threads > 1 ? fork_seconds : 0);
}

std::int64_t task_count(const KernelFacts& facts, const Machine& machine, std::int64_t tasks_per_thread) {
  constexpr double least_work = 32 << 10;
  if (machine.threads < 2 || facts.work < least_work) return 0;
  return machine.threads * tasks_per_thread;
}

LoopNest::LoopNest(ScheduleWriter& writer, std::string stage, const std::vector<RunExtent>& extents)
    : writer_(writer), stage_(std::move(stage)) {
  for (std::size_t i = 0; i < extents.size(); ++i) loops_.push_back({"d" + std::to_string(i), extents[i]});
}

std::string LoopNest::fresh(const std::string& stem) {
  return stem + std::to_string(names_++);
}

std::string LoopNest::shifting_tail(const RunExtent& run, std::int64_t factor) {
  if (run.is_multiple_of(factor)) return "TailStrategy::RoundUp";
  shifts_ = true;
  return "TailStrategy::ShiftInwards";
}

void LoopNest::fuse_inner(std::size_t count) {
  // Of a loop whose inner one is open, indices take divisions by numbers that the compiler does not know.
  for (std::size_t i = 1; i < count && loops_.size() > 1 && !loops_[0].run.is_open; ++i) {
    const std::string fused = fresh("f");
    writer_.add("{}.fuse({}, {}, {});", stage_, loops_[0].name, loops_[1].name, fused);
    loops_[1] = {fused, loops_[0].run.fused_with(loops_[1].run)};
    loops_.erase(loops_.begin());
  }
}

void LoopNest::drop_unit_loops() {
  while (loops_.size() > 1 && loops_[0].is_one()) fuse_inner(2);
}

void LoopNest::reorder() {
  std::string order;
  for (const std::string& name : inner_) order += (order.empty() ? "" : ", ") + name;
  for (const Loop& loop : loops_) order += (order.empty() ? "" : ", ") + loop.name;
  writer_.add("{}.reorder({});", stage_, order);
}

void LoopNest::move_inside(std::size_t position) {
  if (position == 0) return;
  std::rotate(loops_.begin(), loops_.begin() + static_cast<std::ptrdiff_t>(position),
              loops_.begin() + static_cast<std::ptrdiff_t>(position) + 1);
  reorder();
}

void LoopNest::move_outside() {
  if (loops_.size() < 2) return;
  std::rotate(loops_.begin(), loops_.begin() + 1, loops_.end());
  reorder();
}

std::int64_t LoopNest::vectorize_inner(std::int64_t lanes, std::int64_t vectors) {
  if (loops_.empty() || loops_[0].run.least < 2) return 1;
  Loop& inner = loops_[0];
  const std::int64_t vector = std::min(lanes, inner.run.least);
  const std::int64_t count = std::max<std::int64_t>(1, std::min(vectors, inner.run.least / vector));
  const std::int64_t step = vector * count;
  const std::string rest = fresh("o");
  const std::string chunk = fresh("i");
  const std::string lane = fresh("v");
  writer_.add("{}.split({}, {}, {}, {}, {});", stage_, inner.name, rest, chunk, step,
              shifting_tail(inner.run, step));
  if (count > 1) {
    writer_.add("{}.split({}, {}u, {}, {}, TailStrategy::RoundUp).vectorize({}).unroll({}u);", stage_, chunk,
                chunk, lane, vector, lane, chunk);
    inner_.insert(inner_.begin(), {lane, chunk + "u"});
  } else {
    writer_.add("{}.vectorize({});", stage_, chunk);
    inner_.insert(inner_.begin(), chunk);
  }
  inner = {rest, inner.run.steps(step)};
  return step;
}

std::int64_t LoopNest::mask_inner(std::int64_t lanes) {
  Loop& inner = loops_[0];
  const std::string rest = fresh("o");
  const std::string lane = fresh("v");
  writer_.add("{}.split({}, {}, {}, {}, TailStrategy::Predicate).vectorize({});", stage_, inner.name, rest,
              lane, lanes, lane);
  inner_.insert(inner_.begin(), lane);
  inner = {rest, inner.run.steps(lanes)};
  return lanes;
}

void LoopNest::unroll_inner(std::int64_t lanes) {
  const Loop inner = loops_.front();
  const std::string rest = fresh("o");
  const std::string lane = fresh("v");
  writer_.add("{}.split({}, {}, {}, {}, {}).vectorize({}).unroll({});", stage_, inner.name, rest, lane, lanes,
              shifting_tail(inner.run, lanes), lane, rest);
  inner_.insert(inner_.begin(), {lane, rest});
  loops_.erase(loops_.begin());
}

std::int64_t LoopNest::tile(std::size_t position, std::int64_t factor) {
  Loop& loop = loops_.at(position);
  const std::int64_t used = std::min(factor, loop.run.least);
  if (used < 2) return 1;
  const std::string outer = fresh("o");
  const std::string inner = fresh("i");
  writer_.add("{}.split({}, {}, {}, {}, {}).unroll({});", stage_, loop.name, outer, inner, used,
              shifting_tail(loop.run, used), inner);
  loop = {outer, loop.run.steps(used)};
  inner_.push_back(inner);
  reorder();
  return used;
}

void LoopNest::block(std::size_t position, std::int64_t factor) {
  const Loop loop = loops_.at(position);
  const std::string outer = fresh("o");
  const std::string inner = fresh("i");
  writer_.add("{}.split({}, {}, {}, {}, {});", stage_, loop.name, outer, inner, factor,
              shifting_tail(loop.run, factor));
  loops_[position] = {inner, RunExtent(factor)};
  loops_.insert(loops_.begin() + static_cast<std::ptrdiff_t>(position) + 1, {outer, loop.run.steps(factor)});
}

std::int64_t LoopNest::task_size(const RunExtent& run, std::int64_t tasks) {
  constexpr std::int64_t most_shorter = 16;  // runs that are shorter have little to share
  const std::int64_t size = ceil_div(run.extent, tasks);
  return run.is_open ? std::clamp(run.least / 2, ceil_div(size, most_shorter), size) : size;
}

void LoopNest::parallelize(std::int64_t tasks, std::size_t keep) {
  if (tasks < 2) return;
  bool is_fused = false;
  while (loops_.size() > keep + 1 && loops_.back().run.extent < tasks) {
    Loop& outer = loops_.back();
    Loop& inner = loops_[loops_.size() - 2];
    const std::string fused = fresh("f");
    writer_.add("{}.fuse({}, {}, {});", stage_, inner.name, outer.name, fused);
    inner = {fused, inner.run.fused_with(outer.run)};
    loops_.pop_back();
    is_fused = true;
  }
  if (loops_.size() <= keep || loops_.back().run.extent < 2) return;
  Loop& outer = loops_.back();
  const std::int64_t size = task_size(outer.run, tasks);
  if (outer.run.extent / tasks < 2 || size < 2) {
    writer_.add("{}.parallel({});", stage_, outer.name);
    return;
  }
  const std::string task = fresh("t");
  const std::string rest = fresh("o");
  // Two loops that shift, one inside the other and fused between, are more than Halide's bounds follow: it
  // would take the inner one's step for its whole extent.
  const bool divides = outer.run.is_multiple_of(size);
  const char* tail = divides                                      ? "TailStrategy::RoundUp"
                     : outer.run.is_open || (is_fused && shifts_) ? "TailStrategy::GuardWithIf"
                                                                  : "TailStrategy::ShiftInwards";
  writer_.add("{}.split({}, {}, {}, {}, {}).parallel({});", stage_, outer.name, task, rest, size, tail, task);
  outer = {rest, size};
}

}  // namespace sylvite
