#include "lowering/plan/plan_interpreter.h"

#include <cstddef>
#include <cstring>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/packing.h"
#include "lowering/plan/plan_loops.h"
#include "lowering/plan/storage_order.h"

namespace sylvite {
namespace {

/// Calls visit(i, j) for each element: its index in row-major order and its index as stored by the type.
template <typename Visit>
void for_each_element(const TensorType& type, Visit visit) {
  const Dims dims = type.dims();
  const Dims strides = dense_strides(dims);
  const Dims stored = storage_strides(type.storage_dims(), has_outer_blocks(type));
  const std::int64_t block = type.layout.channel_block;
  for (std::int64_t i = 0; i < type.element_count(); ++i) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::int64_t index = i / strides[d] % dims[d];
      place += d == 1 && block > 0 ? index / block * stored[d] + index % block : index * stored[d];
    }
    visit(i, place);
  }
}

Tensor load(const TensorType& type, const std::byte* from) {
  Tensor tensor(type.dtype, type.dims());
  const std::size_t size = dtype_size(type.dtype);
  auto* to = static_cast<std::byte*>(tensor.mutable_data());
  for_each_element(type, [&](std::int64_t i, std::int64_t place) {
    std::memcpy(to + static_cast<std::size_t>(i) * size, from + static_cast<std::size_t>(place) * size, size);
  });
  return tensor;
}

void store(const Tensor& tensor, const TensorType& type, std::byte* to) {
  const Tensor stored = pack(tensor, layout_packing(type));
  if (stored.byte_size() > 0) std::memcpy(to, stored.data(), static_cast<std::size_t>(stored.byte_size()));
}

/// The memory of a plan: the arena in one piece, and the other roots each by itself.
class Memory {
 public:
  explicit Memory(const Plan& plan)
      : plan_(plan),
        arena_(static_cast<std::size_t>(plan.arena_bytes), poison),
        others_(plan.buffers.size()) {
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& buffer = plan.buffers[i];
      if (buffer.alias_of >= 0 || buffer.kind == BufferKind::arena) continue;
      others_[i].assign(static_cast<std::size_t>(buffer.type.byte_size()), poison);
      if (buffer.kind != BufferKind::weight) continue;
      write(static_cast<BufferId>(i), plan.weights.at(static_cast<std::size_t>(buffer.index)));
    }
  }

  [[nodiscard]] Tensor read(BufferId id) { return load(type(id), address(id, 0)); }
  void write(BufferId id, const Tensor& tensor) { store(tensor, type(id), address(id, 0)); }
  /// As a kernel sees it: what plan_verifier.h lets pass lies in memory alike.
  [[nodiscard]] Tensor read_as(const TensorType& seen, BufferId id, std::int64_t trip) {
    return load(seen, address(id, trip));
  }
  void write_as(const TensorType& seen, BufferId id, std::int64_t trip, const Tensor& tensor) {
    store(tensor, seen, address(id, trip));
  }

 private:
  static constexpr std::byte poison{0xAA};

  [[nodiscard]] const TensorType& type(BufferId id) const {
    return plan_.buffers[static_cast<std::size_t>(id)].type;
  }

  std::byte* address(BufferId id, std::int64_t trip) {
    const auto root = static_cast<std::size_t>(root_of(plan_, id));
    const bool in_arena = plan_.buffers[root].kind == BufferKind::arena;
    std::byte* base = in_arena ? arena_.data() + plan_.buffers[root].offset : others_[root].data();
    return base + offset_in_root(plan_, id, trip);
  }

  const Plan& plan_;
  std::vector<std::byte> arena_;
  std::vector<std::vector<std::byte>> others_;  ///< per root outside the arena
};

}  // namespace

std::vector<Tensor> interpret_plan(const Plan& plan, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> states;
  states.reserve(plan.states.size());
  for (const Port& state : plan.states) states.emplace_back(state.type.dtype, state.type.dims());
  return interpret_plan(plan, inputs, states);
}

std::vector<Tensor> interpret_plan(const Plan& plan, const std::vector<Tensor>& inputs,
                                   std::vector<Tensor>& states) {
  if (inputs.size() != plan.inputs.size())
    throw InputError("plan '{}' takes {} inputs, got {}", plan.name, plan.inputs.size(), inputs.size());
  Memory memory(plan);
  for (std::size_t i = 0; i < inputs.size(); ++i) memory.write(plan.inputs[i].buffer, inputs[i]);
  for (std::size_t i = 0; i < states.size(); ++i) memory.write(plan.states.at(i).buffer, states[i]);
  for_each_launch(plan, [&](std::size_t number, std::int64_t trip) {
    const Launch& launch = plan.launches[number];
    const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(launch.kernel));
    const std::size_t count = kernel.body.inputs.size();
    std::vector<Tensor> arguments;
    arguments.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      arguments.push_back(memory.read_as(kernel.body.type(kernel.body.inputs[i]), launch.arguments[i], trip));
    const std::vector<Tensor> results = interpret(kernel.body, arguments);
    for (std::size_t i = 0; i < results.size(); ++i)
      memory.write_as(kernel.body.type(kernel.body.outputs[i]), launch.arguments[count + i], trip,
                      results[i]);
  });
  std::vector<Tensor> outputs;
  outputs.reserve(plan.outputs.size());
  for (const Port& output : plan.outputs) outputs.push_back(memory.read(output.buffer));
  for (std::size_t i = 0; i < states.size(); ++i) states[i] = memory.read(plan.states[i].buffer);
  return outputs;
}

}  // namespace sylvite
