#pragma once
// Inputs for a model: from files, else random from a seed.

#include <map>
#include <string>
#include <vector>

#include "cli/options.h"
#include "runtime/session.h"

namespace sylvite {

/// --input and --seed.
void add_input_options(Options& options);
/// --check, for verbs whose outputs can be compared.
void add_check_option(Options& options);

/// One value per input of the model, in order: from --input NAME=FILE (.npy or .pb), else drawn by the generator
/// of frontend/onnx/weights.h: floats of unit variance; integers below 1000 and the extent they index, where
/// they index one, else 0 or 1. The same seed, name and type give the same values everywhere. An optional that
/// is not given has no value. Throws UsageError for unknown names, InputError naming the input for a wrong dtype
/// or shape, and for strings or a sequence that is not given.
[[nodiscard]] std::vector<HostValue> make_inputs(const Options& options, const Imported& imported);

/// The same for the inputs of the model's graph alone, which are tensors.
[[nodiscard]] std::vector<Tensor> make_graph_inputs(const Options& options, const Imported& imported);

/// NAME=FILE assignments as tensors, by name.
[[nodiscard]] std::map<std::string, Tensor> read_named_tensors(const std::vector<std::string>& assignments,
                                                               const std::string& option);

}  // namespace sylvite
