#include "schedules/spaces/gpu/nest.h"

#include <set>

namespace sylvite {

void gpu_thread_each(ScheduleWriter& writer, const std::string& definition,
                     const std::vector<std::string>& loops, std::int64_t threads) {
  if (loops.empty()) {
    writer.add("{}.gpu_single_thread();", definition);
    return;
  }
  std::string fused = loops.front();
  for (std::size_t i = 1; i < loops.size(); ++i) {
    const std::string next = fmt::format("all{}", i);
    writer.add("{}.fuse({}, {}, {});", definition, fused, loops[i], next);
    fused = next;
  }
  writer.add(
      "{}.split({}, block, thread, {}, TailStrategy::GuardWithIf).gpu_blocks(block).gpu_threads(thread);",
      definition, fused, threads);
}

void gpu_whole_stage(ScheduleWriter& writer, const std::string& name, const Halide::Func& func) {
  writer.add("{}.compute_root();", name);
  std::vector<std::string> loops;
  for (const Halide::Var& var : func.args()) loops.push_back(var.name());
  gpu_thread_each(writer, name, loops, gpu_block_threads);
  for (int update = 0; update < func.num_update_definitions(); ++update) {
    const std::string definition = fmt::format("{}.update({})", name, update);
    std::vector<std::string> pure;
    for (std::size_t d = 0; d < loops.size(); ++d)
      if (is_pure_dim(func, d)) pure.push_back(loops[d]);
    std::string order;
    for (const Halide::RVar& variable : func.rvars(update)) order += variable.name() + ", ";
    for (const std::string& loop : pure) order += loop + ", ";
    if (!pure.empty() && !order.empty())
      writer.add("{}.reorder({});", definition, order.substr(0, order.size() - 2));
    gpu_thread_each(writer, definition, pure, gpu_block_threads);
  }
}

void gpu_whole_kernel(ScheduleWriter& writer, const Kernel& kernel) {
  const Algorithm algorithm = build_algorithm(kernel, Form{});
  std::set<std::string> outputs;  // of which one may have updates: what is written in place
  for (const ValueId output : kernel.body.outputs) outputs.insert(output_stage(kernel, output));
  for (const auto& [name, func] : algorithm.stages)
    if (func.has_update_definition() && !outputs.contains(name)) gpu_whole_stage(writer, name, func);
  for (const ValueId output : kernel.body.outputs) {
    const std::string name = output_stage(kernel, output);
    gpu_whole_stage(writer, name, algorithm.stages.at(name));
  }
}

}  // namespace sylvite
