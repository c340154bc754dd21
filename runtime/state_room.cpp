#include "runtime/state_room.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace sylvite {
namespace {

std::size_t length_number(const Program& program, const Growth& growth) {
  const std::vector<Port>& states = program.plan().states;
  return static_cast<std::size_t>(std::ranges::find(states, growth.length, &Port::name) - states.begin());
}

/// The first elements along `axis` of a tensor of `type`, the others zero.
Tensor widened(const Tensor& given, const TensorType& type, std::size_t axis) {
  Tensor wide(type.dtype, type.dims());
  std::size_t outer = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(given.dims()[i]);
  if (outer == 0 || given.size() == 0) return wide;
  const std::size_t from = static_cast<std::size_t>(given.byte_size()) / outer;
  const std::size_t to = static_cast<std::size_t>(wide.byte_size()) / outer;
  const auto* source = static_cast<const std::byte*>(given.data());
  auto* target = static_cast<std::byte*>(wide.mutable_data());
  for (std::size_t i = 0; i < outer; ++i) std::memcpy(target + i * to, source + i * from, from);
  return wide;
}

}  // namespace

std::vector<Tensor> with_room(const Program& program, const StateRoom& room, std::vector<Tensor> inputs) {
  const Growth& growth = room.growth;
  const std::int64_t length = program.state_integer(length_number(program, growth));
  if (length < 0 || length > growth.capacity - growth.added)
    throw InputError(
        "'{}' is {}, and this run adds {}: states have room for {} (see --dims); reset them to begin "
        "anew",
        growth.length, length, growth.added, growth.capacity);
  const std::vector<Port>& ports = program.plan().inputs;
  for (const GrownInput& grown : room.inputs) {
    const auto port = std::ranges::find(ports, grown.name, &Port::name);
    const auto number = static_cast<std::size_t>(port - ports.begin());
    if (number >= inputs.size() || inputs[number].type() == port->type) continue;
    Tensor& input = inputs[number];
    Dims wanted = port->type.dims();
    wanted[grown.axis] = length + grown.beyond;
    if (input.dtype() != port->type.dtype || input.dims() != wanted)
      throw InputError("input {} '{}': got {}, expected {}, since '{}' is {}", number, grown.name,
                       input.type().to_string(), make_type(port->type.dtype, wanted).to_string(),
                       growth.length, length);
    input = widened(input, port->type, grown.axis);
  }
  return inputs;
}

void make_room(Program& program, const StateRoom& room, std::int64_t runs) {
  const std::size_t number = length_number(program, room.growth);
  if (program.state_integer(number) + runs * room.growth.added <= room.growth.capacity) return;
  std::vector<Tensor> states = program.states();
  states[number] = Tensor::scalar_i64(0);
  program.set_states(states);
}

}  // namespace sylvite
