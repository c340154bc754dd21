#pragma once
// Runs of a model whose states grow: is there room for what a run adds, and inputs of which the program takes as much as
// the states have room for.

#include <vector>

#include "frontend/onnx/imported_model.h"
#include "runtime/program.h"
#include "sylvite/tensor.h"

namespace sylvite {

/// Of a program of capacity_form.
struct StateRoom {
  Growth growth;
  std::vector<GrownInput> inputs;
};

/// The inputs of a run as the program takes them: those that are as long as the states are now, in memory as long as the states
/// can be. Inputs of that size already stay. Throws InputError where the states have no room for the run, or an input has
/// another size than the states are long.
[[nodiscard]] std::vector<Tensor> with_room(const Program& program, const StateRoom& room,
                                            std::vector<Tensor> inputs);

/// Begins anew when the states have no room for `runs` more: for measurements that run a program again and again.
void make_room(Program& program, const StateRoom& room, std::int64_t runs = 1);

}  // namespace sylvite
