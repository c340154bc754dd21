#pragma once
// The forms of an algorithm: one row per formulation. Internal to lowering/.

#include <string_view>

#include "lowering/algorithms/algorithm.h"

namespace sylvite {

/// One formulation. `packings` gives the packing per body input, `build` the Funcs; both may throw
/// UnsupportedError for a kernel that the form cannot express.
struct FormRow {
  std::string_view name;
  std::vector<Packing> (*packings)(const Kernel&, const Form&);
  Algorithm (*build)(const Kernel&, const Form&);
};

/// The packing of a weight that a layout implies: what `generic` wants. Identity for dense types and
/// activations.
[[nodiscard]] std::vector<Packing> layout_packings(const Kernel& kernel);
[[nodiscard]] std::vector<Packing> generic_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_generic(const Kernel& kernel, const Form& form);
/// The generic form, but that the output copies a stage vN_tile, which computes it.
[[nodiscard]] Algorithm build_tiles(const Kernel& kernel, const Form& form);
/// The generic form with the functions of a GPU's math library.
[[nodiscard]] Algorithm build_device(const Kernel& kernel, const Form& form);
/// The generic form of a kernel of several results that lie alike, but that one stage makes all of an element's.
[[nodiscard]] Algorithm build_together(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_device_together(const Kernel& kernel, const Form& form);

/// The generic form of a kernel that ends in a scan or a scatter, but that the result itself is folded: no stage is copied.
[[nodiscard]] Algorithm build_stored_folds(const Kernel& kernel, const Form& form);

/// The place of the largest or smallest of a row, by folds that vectorise.
[[nodiscard]] Algorithm build_arg_rows(const Kernel& kernel, const Form& form);
/// Windows of poolings, a line of the input at a time.
[[nodiscard]] Algorithm build_pool_lines(const Kernel& kernel, const Form& form);

[[nodiscard]] std::vector<Packing> conv_blocked_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_conv_blocked(const Kernel& kernel, const Form& form);
[[nodiscard]] std::vector<Packing> depthwise_blocked_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_depthwise_blocked(const Kernel& kernel, const Form& form);
[[nodiscard]] std::vector<Packing> conv_rows_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_conv_rows(const Kernel& kernel, const Form& form);
[[nodiscard]] std::vector<Packing> conv_winograd_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_conv_winograd(const Kernel& kernel, const Form& form);
[[nodiscard]] std::vector<Packing> conv_tiles_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_conv_tiles(const Kernel& kernel, const Form& form);
[[nodiscard]] std::vector<Packing> conv_lines_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_conv_lines(const Kernel& kernel, const Form& form);
[[nodiscard]] std::vector<Packing> matmul_panels_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_matmul_panels(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_matmul_activations(const Kernel& kernel, const Form& form);
[[nodiscard]] std::vector<Packing> matmul_bits_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_matmul_bits(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_filter_gradient_blocked(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_attention_chunks(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_attention_rows(const Kernel& kernel, const Form& form);

}  // namespace sylvite
