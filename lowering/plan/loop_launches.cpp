// PlanBuilder::add_loop: the launches of a loop's body, between windows that move with the trips.
//
// Stacked values and states lie in slots, one after another, each 64-byte aligned. A state has two slots that take
// turns: a trip reads one and writes the other. Where the next state is also stacked, as the hidden state of an LSTM is,
// it has a slot for each trip and one more, and the stacked value is a part of that:
//
//   slots of h:      h0  h1  h2  h3        trip t reads slot t and writes slot t + 1
//   stacked value:      [h1  h2  h3]       in reverse from the last slot to the first: h3 h2 h1 h0
//
// What does not lie so already is copied: the first state into its slot, slices that are not aligned, and results that the
// body does not compute.

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/plan_builder.h"

namespace sylvite {
namespace {

class LoopLowering {
 public:
  LoopLowering(PlanBuilder& builder, const Node& node, const Plan& body)
      : builder_(builder),
        node_(node),
        body_(body),
        trips_(node.attributes.integer("trips")),
        states_(static_cast<std::size_t>(node.attributes.integer("states"))),
        scanned_(static_cast<std::size_t>(node.attributes.integer("scanned"))),
        is_reverse_(node.attributes.integer("reverse") != 0),
        mapped_(body.buffers.size(), -1),
        written_(body.outputs.size(), -1) {}

  void run() {
    for (std::size_t i = 0; i < states_; ++i) place_state(i);
    for (std::size_t i = states_; i < states_ + scanned_; ++i) place_scanned(i);
    for (std::size_t i = states_ + scanned_; i < node_.inputs.size(); ++i)
      map_input(i, builder_.buffer_of(node_.inputs[i]));
    for (std::size_t i = states_; i < body_.outputs.size(); ++i)
      if (written_[i] < 0) place_stacked(i);
    add_body();
    for (const auto& [slots, result] : cuts_) builder_.add_copy(slots, result, trips_, "cuts slices");
  }

 private:
  [[nodiscard]] const std::string& name_of(ValueId id) const { return builder_.graph().value(id).name; }

  /// Elements of a slot.
  [[nodiscard]] static std::int64_t slot_size(const TensorType& slice) {
    const auto element = static_cast<std::int64_t>(dtype_size(slice.dtype));
    return std::max(round_up(slice.byte_size(), arena_alignment), arena_alignment) / element;
  }
  [[nodiscard]] static std::int64_t slot_bytes(const TensorType& slice) {
    return slot_size(slice) * static_cast<std::int64_t>(dtype_size(slice.dtype));
  }

  BufferId add_slots(const std::string& name, const TensorType& slice, std::int64_t count) {
    Buffer slots;
    slots.name = name + "_slots";
    slots.type = make_type(slice.dtype, {count, slot_size(slice)});
    const BufferId added = builder_.add_buffer(std::move(slots));
    builder_.keep_in_arena(added);
    return added;
  }

  BufferId add_part(BufferId slots, const std::string& name, const TensorType& type, std::int64_t offset) {
    const BufferId added = builder_.add_view(slots, name, type);
    builder_.buffer(added).alias_offset = offset;
    return added;
  }

  /// A slice that moves with the trips, from that offset on.
  BufferId add_window(BufferId slots, const std::string& name, const TensorType& type, std::int64_t offset,
                      Window window) {
    const BufferId added = add_part(slots, name, type, offset);
    builder_.buffer(added).window = window;
    return added;
  }

  /// A slice of trips that are stacked in `whole`, `first` slots from its beginning on.
  BufferId add_stacked_window(BufferId whole, const std::string& name, const TensorType& type,
                              std::int64_t first) {
    const std::int64_t bytes = slot_bytes(type);
    const std::int64_t at = is_reverse_ ? first + trips_ - 1 : first;
    return add_window(whole, name, type, at * bytes, {is_reverse_ ? -bytes : bytes, 0, 0});
  }

  void map_input(std::size_t i, BufferId buffer) { mapped(body_.inputs[i].buffer) = buffer; }
  BufferId& mapped(BufferId id) { return mapped_[static_cast<std::size_t>(id)]; }

  /// The stacked output that is also the next state i.
  [[nodiscard]] std::optional<std::size_t> stacked_as(std::size_t i) const {
    for (std::size_t k = states_; k < body_.outputs.size(); ++k)
      if (body_.outputs[k].buffer == body_.outputs[i].buffer && written_[k] < 0) return k;
    return std::nullopt;
  }

  void place_state(std::size_t i) {
    const std::optional<std::size_t> stacked = stacked_as(i);
    const TensorType& type = body_.inputs[i].type;
    const std::int64_t bytes = slot_bytes(type);
    const std::string& name = name_of(node_.outputs[i]);
    const std::int64_t count = stacked ? trips_ + 1 : 2;
    const BufferId slots = add_slots(name, type, count);
    const bool descends = stacked && is_reverse_;
    const std::int64_t first = descends ? trips_ : 0;
    const std::int64_t second = descends ? trips_ - 1 : 1;
    const std::int64_t last = stacked ? trips_ - first : trips_ % 2;
    const BufferId start = add_part(slots, name + "_first", type, first * bytes);
    builder_.add_copy(builder_.buffer_of(node_.inputs[i]), start, 1, "copies the first state");
    if (stacked) {
      const std::int64_t stride = descends ? -bytes : bytes;
      map_input(i, add_window(slots, name + "_before", type, first * bytes, {stride, 0, 0}));
      written_[i] = add_window(slots, name + "_after", type, second * bytes, {stride, 0, 0});
      written_[*stacked] = written_[i];
      set_stacked(*stacked, slots, type, descends ? 0 : bytes);
    } else {
      map_input(i, add_window(slots, name + "_before", type, 0, {bytes, 0, 2}));
      written_[i] = add_window(slots, name + "_after", type, 0, {bytes, 1, 2});
    }
    builder_.set_buffer(node_.outputs[i], add_part(slots, name, type, last * bytes));
  }

  /// Stacked output i lies in the slots from that offset on, or is cut out of them.
  void set_stacked(std::size_t i, BufferId slots, const TensorType& slice, std::int64_t offset) {
    const ValueId value = node_.outputs[i];
    const TensorType type = builder_.graph().type(value);
    if (slot_bytes(slice) == slice.byte_size()) {
      builder_.set_buffer(value, add_part(slots, name_of(value), type, offset));
      return;
    }
    const BufferId padded = add_part(slots, name_of(value) + "_padded",
                                     make_type(type.dtype, {trips_, slot_size(slice)}), offset);
    Buffer result;
    result.name = name_of(value);
    result.type = type;
    const BufferId cut = builder_.add_buffer(std::move(result));
    builder_.set_buffer(value, cut);
    cuts_.emplace_back(padded, cut);
  }

  void place_scanned(std::size_t i) {
    const TensorType& slice = body_.inputs[i].type;
    const std::string& name = body_.inputs[i].name;
    BufferId whole = builder_.buffer_of(node_.inputs[i]);
    const BufferId root = root_of(builder_.plan(), whole);
    const bool lies_well =
        builder_.buffer(root).kind == BufferKind::arena && slot_bytes(slice) == slice.byte_size();
    if (lies_well) {
      builder_.keep_in_arena(root);
    } else {
      const BufferId slots = add_slots(name_of(node_.inputs[i]), slice, trips_);
      builder_.add_copy(whole, slots, trips_, "lays out slices");
      whole = slots;
    }
    map_input(i, add_stacked_window(whole, name, slice, 0));
  }

  void place_stacked(std::size_t i) {
    const TensorType& slice = body_.outputs[i].type;
    const BufferId slots = add_slots(name_of(node_.outputs[i]), slice, trips_);
    written_[i] = add_stacked_window(slots, body_.outputs[i].name, slice, 0);
    set_stacked(i, slots, slice, 0);
  }

  /// Is the root of the body's output i written for it alone? Then it is written where the output lies.
  [[nodiscard]] bool is_written_in_place(std::size_t i) const {
    const BufferId root = root_of(body_, body_.outputs[i].buffer);
    const Buffer& buffer = body_.buffers[static_cast<std::size_t>(root)];
    return buffer.kind == BufferKind::output && buffer.index == static_cast<std::int32_t>(i);
  }

  void add_body() {
    PlanLoop loop;
    loop.trips = trips_;
    loop.first = static_cast<std::int32_t>(builder_.plan().launches.size());
    for (std::size_t i = 0; i < written_.size(); ++i) {
      if (!is_written_in_place(i)) continue;
      const BufferId root = root_of(body_, body_.outputs[i].buffer);
      const Buffer& buffer = body_.buffers[static_cast<std::size_t>(root)];
      mapped(root) = builder_.add_view(written_[i], buffer.name, buffer.type);
    }
    for (const Launch& launch : body_.launches) {
      Launch added = launch;
      for (BufferId& argument : added.arguments) argument = buffer_for(argument);
      builder_.add_launch(std::move(added), body_.kernels[static_cast<std::size_t>(launch.kernel)]);
    }
    for (std::size_t i = 0; i < written_.size(); ++i) {
      const bool is_shared = i >= states_ && std::ranges::count(written_, written_[i]) > 1;
      if (is_shared || is_written_in_place(i)) continue;
      builder_.add_copy(buffer_for(body_.outputs[i].buffer), written_[i], 1,
                        "the body computes it for no trip");
    }
    loop.end = static_cast<std::int32_t>(builder_.plan().launches.size());
    builder_.add_plan_loop(loop);
  }

  /// What stands for a buffer of the body.
  BufferId buffer_for(BufferId id) {
    if (mapped(id) >= 0) return mapped(id);
    const Buffer& buffer = body_.buffers[static_cast<std::size_t>(id)];
    if (buffer.kind == BufferKind::weight) {
      const Tensor& weight = body_.weights[static_cast<std::size_t>(buffer.index)];
      mapped(id) = builder_.add_weight(buffer.name, weight);
      builder_.buffer(mapped(id)).type = buffer.type;
    } else if (buffer.alias_of >= 0) {
      mapped(id) = builder_.add_view(buffer_for(buffer.alias_of), buffer.name, buffer.type);
      if (buffer.alias_offset != 0) builder_.buffer(mapped(id)).alias_offset = buffer.alias_offset;
    } else {
      Buffer added;
      added.name = buffer.name;
      added.type = buffer.type;
      mapped(id) = builder_.add_buffer(std::move(added));
    }
    return mapped(id);
  }

  PlanBuilder& builder_;
  const Node& node_;
  const Plan& body_;
  std::int64_t trips_;
  std::size_t states_, scanned_;
  bool is_reverse_;
  std::vector<BufferId> mapped_;                     ///< per buffer of the body: what stands for it, or -1
  std::vector<BufferId> written_;                    ///< per output of the body: where a trip leaves it
  std::vector<std::pair<BufferId, BufferId>> cuts_;  ///< padded slots, and what is cut out of them
};

}  // namespace

void PlanBuilder::add_loop(const Node& node, const Plan& body) {
  LoopLowering(*this, node, body).run();
}

}  // namespace sylvite
