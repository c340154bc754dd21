#pragma once
// Values that stay between runs, in a file: see docs/formats.md.

#include <string>
#include <vector>

#include "lowering/plan/plan.h"
#include "sylvite/tensor.h"

namespace sylvite {

struct SavedStates {
  std::string model;  ///< Family::model_id
  std::vector<std::string> names;
  std::vector<Tensor> values;  ///< per name
};

/// What files call a model that is one program, and no file.
[[nodiscard]] std::string plan_id(const Plan& plan);

/// Throws IoError when it cannot be written; a file that was there is then as it was.
void write_states_file(const std::string& path, const SavedStates& states);

/// The values of the file. `wanted` says what the model has. Throws IoError for what is no such file, of another version
/// of the format, or damaged; InputError for states of another model.
[[nodiscard]] std::vector<Tensor> read_states_file(const std::string& path, const SavedStates& wanted);

}  // namespace sylvite
