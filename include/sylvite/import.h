#pragma once
// What one says to the importer of ONNX models, and what it says of a model.

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "sylvite/size_range.h"
#include "sylvite/tensor.h"

namespace sylvite {

struct ImportOptions {
  /// Sizes for symbolic dims of the model's inputs: a number or a range. Those not named have a range that goes
  /// by their name; a dim without a name is called after its input and axis, e.g. x_d0.
  std::map<std::string, SizeRange> dims;
  /// Whole shapes for inputs, by name. A symbolic dim has the same size everywhere.
  std::map<std::string, Dims> input_shapes;
  /// Inputs to bind as compile-time constants, by name: shapes, axes and limits that must be known.
  std::map<std::string, Tensor> bound_inputs;
  /// Values that stay between runs: the name of an input, and that of the output that is its next value. One * in both
  /// stands for the same text. Runs neither take nor give them. Their sizes must be known, but for one by which they grow:
  /// the end of its range is how many entries they have room for.
  std::map<std::string, std::string> states;
  /// Also pairs with names that exporters give to caches and states, such as past_key_values.0.key and present.0.key.
  bool usual_states = false;
  /// Fill initializers whose data is absent (external with no location or no file) with seeded random values,
  /// scaled by fan-in.
  bool random_weights = false;
  /// Products take little beside what moves, as on a GPU: longer transforms are products with one matrix.
  bool products_are_fast = false;
  /// Read external data through any symbolic link, and files of several hard links. Without it only a link to what lies
  /// beside the file that the model itself, a link, leads to is followed.
  bool follow_links = false;
  std::uint64_t seed = 0;
  /// Most operations that the graph may have once functions are inlined and loops unrolled. At most the
  /// default; lower it to refuse smaller models.
  std::int64_t max_nodes = 30'000;
  /// What the host steps of one run may allocate, in bytes, and compute, in scalar steps: for models and
  /// inputs that are not trusted.
  std::int64_t host_bytes = std::numeric_limits<std::int64_t>::max();
  std::int64_t host_work = std::numeric_limits<std::int64_t>::max();
};

/// A part of a model that is not compiled but run by the importer at every run: what has a shape that depends on
/// data, draws random numbers, or handles strings, sequences or optionals.
struct HostStep {
  std::string name;    ///< "operator 'name'"
  std::string reason;  ///< why it is not compiled
};

}  // namespace sylvite
