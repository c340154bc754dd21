#include "lowering/plan/shared_weights.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

namespace sylvite {
namespace {

/// Writes the buffers and weights of a plan anew, in the order in which they are asked for.
class Renumbering {
 public:
  explicit Renumbering(Plan plan)
      : result_(std::move(plan)),
        buffers_(std::exchange(result_.buffers, {})),
        weights_(std::exchange(result_.weights, {})),
        moved_(buffers_.size(), -1) {}

  [[nodiscard]] bool is_weight(BufferId id) const {
    return buffers_[static_cast<std::size_t>(id)].kind == BufferKind::weight;
  }
  /// Its number from now on; a buffer that has one keeps it.
  BufferId keep(BufferId id) {
    BufferId& moved = moved_[static_cast<std::size_t>(id)];
    if (moved < 0) moved = add(id);
    return moved;
  }
  /// Another buffer like it.
  BufferId add(BufferId id) {
    Buffer buffer = buffers_[static_cast<std::size_t>(id)];
    if (is_weight(id)) {
      result_.weights.push_back(weights_[static_cast<std::size_t>(buffer.index)]);
      buffer.index = static_cast<std::int32_t>(result_.weights.size()) - 1;
    }
    result_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(result_.buffers.size()) - 1;
  }
  [[nodiscard]] const Tensor& weight(BufferId id) const {
    return weights_[static_cast<std::size_t>(buffers_[static_cast<std::size_t>(id)].index)];
  }
  [[nodiscard]] std::string type_of(BufferId id) const {
    return buffers_[static_cast<std::size_t>(id)].type.to_string();
  }

  /// With arguments from `number`; then what launches do not use, but weights that nothing else does.
  template <typename Number>
  [[nodiscard]] Plan take(const Number& number) {
    for (Launch& launch : result_.launches)
      for (BufferId& argument : launch.arguments) argument = number(argument);
    for (std::vector<Port>* ports : {&result_.inputs, &result_.states, &result_.outputs})
      for (Port& port : *ports) port.buffer = keep(port.buffer);
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (!is_weight(static_cast<BufferId>(i))) (void)keep(static_cast<BufferId>(i));
    for (std::size_t i = 0; i < result_.buffers.size(); ++i)
      if (const BufferId of = result_.buffers[i].alias_of; of >= 0) {
        const BufferId moved = keep(of);  // may add a buffer, which is no alias
        result_.buffers[i].alias_of = moved;
      }
    return std::move(result_);
  }

 private:
  Plan result_;
  std::vector<Buffer> buffers_;  ///< as they were
  std::vector<Tensor> weights_;  ///< likewise
  std::vector<BufferId> moved_;
};

}  // namespace

Plan with_weights_apart(Plan plan) {
  Renumbering buffers(std::move(plan));
  return buffers.take(
      [&](BufferId id) { return buffers.is_weight(id) ? buffers.add(id) : buffers.keep(id); });
}

Plan with_weights_shared(Plan plan) {
  Renumbering buffers(std::move(plan));
  std::unordered_map<std::string, BufferId> first;  // by tensor and type
  return buffers.take([&](BufferId id) {
    if (!buffers.is_weight(id)) return buffers.keep(id);
    const std::string text = fmt::format("{} {}", buffers.weight(id).identity(), buffers.type_of(id));
    const auto [found, is_new] = first.try_emplace(text, id);
    return buffers.keep(found->second);
  });
}

}  // namespace sylvite
