#pragma once
// A Kernel's algorithm as Halide Funcs, without any schedule.
//
// Conventions that schedules rely on:
// - Every Func of body value `vN` is named `vN`; pure vars are d0 (innermost in storage) to dK. A value in a
//   blocked layout has its channel-in-block as d0 and its block number just inside the batch dim.
// - An operation that folds (reductions, matmul, conv, pooling, scans, scatters) has a stage vN_fold. Its
//   update 0 is the fold, over an RDom whose r0 is the innermost (fastest in storage) folded dim; vN itself
//   is pure. Normalisations have vN_max, vN_exp, vN_sum, ...: see the file that builds the operation.
// - The Func of an output value is the stage that output_stage() names: vN itself, or vN_out, which only
//   converts to the stored type, for f16, bf16 and boolean. It is pure, but where it is written in place. Every other stage may be inlined
//   unless it has updates.
// - A form other than "generic" documents its own extra stages in the file that builds it.

#include <Halide.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/algorithms/form.h"
#include "lowering/plan/kernel.h"
#include "lowering/plan/packing.h"

namespace sylvite {

struct Algorithm {
  std::vector<Halide::ImageParam> inputs;  ///< in the order of kernel.body.inputs, extents and strides set
  std::vector<Halide::Param<int>> sizes;   ///< of an open kernel, in the order of Kernel::sizes
  std::vector<Halide::Func> outputs;  ///< in the order of kernel.body.outputs; one may be a tuple of several
  std::map<std::string, Halide::Func> stages;  ///< every Func a schedule may name, outputs included
};

/// The stage that writes all outputs in the form "together".
inline constexpr std::string_view together_stage = "results";

/// Have all results of a body one shape and layout? The form "together" asks for that.
[[nodiscard]] bool results_lie_alike(const Graph& body);

/// The stage that writes body output `id`; see above.
[[nodiscard]] std::string output_stage(const Kernel& kernel, ValueId id);

/// The packing that `form` wants for each body input (identity for activations). No Halide involved.
[[nodiscard]] std::vector<Packing> input_packings(const Kernel& kernel, const Form& form);

/// Throws UnsupportedError naming the operation or dtype when the form cannot express the kernel, UnknownExtentError
/// when it needs the number of an extent that is open. What it makes of an open kernel does not depend on its sizes.
[[nodiscard]] Algorithm build_algorithm(const Kernel& kernel, const Form& form);

}  // namespace sylvite
