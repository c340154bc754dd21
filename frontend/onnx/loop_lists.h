#pragma once
// Lists to which each trip of a loop appends a tensor: what is appended is stacked. Tensors that trips put rows behind: these are
// joined once.

#include <optional>
#include <vector>

#include "frontend/onnx/import_context.h"

namespace sylvite {

/// Of each state: does the body append one value to it, and do nothing else with it?
[[nodiscard]] std::vector<bool> appended_states(const onnx::GraphProto& body);

/// What the host carries from trip to trip. A tensor that the body does nothing with but to put rows behind it is given to each trip
/// as it was at first, so that its rows are copied once instead of in each trip.
class CarriedStates {
 public:
  CarriedStates(const onnx::GraphProto& body, std::vector<OnnxBinding> first);
  [[nodiscard]] std::size_t count() const { return now_.size(); }
  /// What the next trip is given.
  [[nodiscard]] const std::vector<OnnxBinding>& now() const { return now_; }
  /// `results` of a trip: its condition, then the states.
  void take(ImportContext& c, const std::vector<OnnxBinding>& results);
  [[nodiscard]] std::vector<OnnxBinding> last(ImportContext& c) const;

 private:
  std::vector<OnnxBinding> now_;
  std::vector<bool> grows_;
  std::vector<std::vector<Sym>> rows_;  ///< of each trip, of states that grow
};

/// The list with a value for each element of the first axis behind it.
[[nodiscard]] OnnxBinding with_appended(const OnnxBinding& list, Sym stacked);

/// The value whose elements along the first axis these are, in order and all of them; nothing for others.
[[nodiscard]] std::optional<Sym> stacked_values(GraphBuilder& builder, const std::vector<Sym>& values);

}  // namespace sylvite
