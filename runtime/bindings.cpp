#include "runtime/bindings.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/storage_order.h"
#include "schedules/packings.h"

namespace sylvite {
namespace {

/// A kernel as its candidate wants it called.
struct Signature {
  std::vector<Packing> packings;    ///< per body input
  std::vector<Argument> arguments;  ///< places not yet known
  bool is_empty = false;
};

const Buffer& root_buffer(const Plan& plan, BufferId id) {
  return plan.buffers.at(static_cast<std::size_t>(root_of(plan, id)));
}

Argument shaped(DType dtype, Dims stored, bool has_outer_blocks) {
  if (checked_product(stored, "buffer") > std::numeric_limits<std::int32_t>::max())
    throw UnsupportedError("{}: more than 2^31 elements in one buffer", make_type(dtype, stored).to_string());
  return {dtype, std::move(stored), has_outer_blocks, {}, {}};
}

Argument stored(const Kernel& kernel, ValueId id) {
  const TensorType& type = kernel.body.type(id);
  return shaped(type.dtype, type.storage_dims(), has_outer_blocks(kernel, id));
}

Signature signature_of(const Kernel& kernel, const Candidate& candidate) {
  Signature signature;
  signature.packings = packings_of(kernel, candidate.form);
  for (std::size_t i = 0; i < kernel.body.inputs.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
    const Packing& packing = signature.packings.at(i);
    signature.arguments.push_back(is_layout(packing, type)
                                      ? stored(kernel, kernel.body.inputs[i])
                                      : shaped(type.dtype, packing.packed_dims(type.dims()), false));
  }
  for (const ValueId output : kernel.body.outputs) signature.arguments.push_back(stored(kernel, output));
  signature.is_empty = std::ranges::all_of(
      kernel.body.outputs, [&](ValueId output) { return kernel.body.type(output).element_count() == 0; });
  return signature;
}

/// Of what is no weight.
Location unpacked_place(const Plan& plan, BufferId id) {
  const Buffer& root = root_buffer(plan, id);
  if (root.kind != BufferKind::arena && root.kind != BufferKind::state) return {root.kind, root.index};
  const std::int64_t bytes = root.kind == BufferKind::arena ? plan.arena_bytes : plan.state_bytes;
  if (root.offset < 0 || root.offset + root.type.byte_size() > bytes)
    throw InternalError("buffer '{}' lies outside the {}", root.name,
                        root.kind == BufferKind::arena ? "arena" : "states");
  return {root.kind, root.offset + offset_in_root(plan, id)};
}

Location place_of(const Plan& plan, BufferId id, const Packing& packing, PackedWeights& weights) {
  const Buffer& root = root_buffer(plan, id);
  if (root.kind == BufferKind::weight) {
    const Packing& wanted = packing.is_identity() ? layout_packing(root.type) : packing;
    return {root.kind, static_cast<std::int64_t>(weights.want(root.index, wanted))};
  }
  if (!packing.is_identity())
    throw InternalError("buffer '{}' is not a weight and cannot be packed", root.name);
  return unpacked_place(plan, id);
}

BoundLaunch bind_launch(const Plan& plan, const Launch& launch, const Signature& signature,
                        PackedWeights& weights) {
  const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(launch.kernel));
  BoundLaunch bound{signature.arguments, kernel.body.inputs.size(), kernel.sizes, signature.is_empty};
  if (launch.arguments.size() != bound.arguments.size()) {
    throw InternalError("launch '{}' has {} arguments, its kernel takes {}", launch.name,
                        launch.arguments.size(), bound.arguments.size());
  }
  for (std::size_t i = 0; i < bound.arguments.size(); ++i) {
    const Packing packing = i < signature.packings.size() ? signature.packings[i] : Packing{};
    bound.arguments[i].place = place_of(plan, launch.arguments[i], packing, weights);
    if (const Window* window = window_of(plan, launch.arguments[i])) bound.arguments[i].window = *window;
  }
  return bound;
}

}  // namespace

cuda::SymbolicAddress symbolic(const Location& place) {
  const auto number = static_cast<std::uint64_t>(place.number);
  switch (place.kind) {
    case BufferKind::weight:
      return {cuda::Region::weight, static_cast<std::uint32_t>(number), 0};
    case BufferKind::input:
      return {cuda::Region::input, static_cast<std::uint32_t>(number), 0};
    case BufferKind::output:
      return {cuda::Region::output, static_cast<std::uint32_t>(number), 0};
    case BufferKind::arena:
      return {cuda::Region::arena, 0, number};
    case BufferKind::state:
      return {cuda::Region::state, 0, number};
  }
  throw InternalError("corrupt kind of place {}", static_cast<int>(place.kind));
}

bool has_own_memory(const Bindings& bindings, std::size_t output) {
  return bindings.outputs[output] == Location{BufferKind::output, static_cast<std::int64_t>(output)};
}

const Tensor& weight_of(const Bindings& bindings, PackedWeights::Slot slot) {
  const auto own = bindings.own_weights.find(slot);
  return own != bindings.own_weights.end() ? own->second : bindings.weights->at(slot);
}

Bindings bind_plan(const Plan& plan, const std::vector<Candidate>& candidates) {
  if (candidates.size() != plan.kernels.size()) {
    throw InternalError("{} candidates given for a plan with {} kernels", candidates.size(),
                        plan.kernels.size());
  }
  std::vector<Signature> signatures;
  signatures.reserve(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i)
    signatures.push_back(signature_of(plan.kernels[i], candidates[i]));
  Bindings bindings;
  bindings.weights = std::make_shared<PackedWeights>();
  bindings.arena_bytes = plan.arena_bytes;
  for (const Port& input : plan.inputs) bindings.inputs.push_back(input.type);
  for (const Port& output : plan.outputs) bindings.results.push_back(output.type);
  for (const Launch& launch : plan.launches) {
    const Signature& signature = signatures.at(static_cast<std::size_t>(launch.kernel));
    bindings.launches.push_back(bind_launch(plan, launch, signature, *bindings.weights));
  }
  for (const Port& output : plan.outputs) bindings.outputs.push_back(unpacked_place(plan, output.buffer));
  const ArenaPlaces arena(plan, true);
  for (std::size_t i = 0; i < arena.roots().size(); ++i) {
    const Buffer& root = plan.buffers[static_cast<std::size_t>(arena.roots()[i])];
    bindings.values.push_back({root.offset, root.type.byte_size(), arena.ranges()[i]});
  }
  return bindings;
}

}  // namespace sylvite
