#include "lowering/algorithms/algorithm.h"

#include <array>

#include "base/error.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/problems.h"
#include "lowering/plan/run_extents.h"

namespace sylvite {
namespace {

/// Templates add their row here; their builders are in algorithm_NAME.cpp.
constexpr std::array forms = {
    FormRow{"generic", generic_packings, build_generic},
    FormRow{"device", generic_packings, build_device},
    FormRow{"together", generic_packings, build_together},
    FormRow{"device_together", generic_packings, build_device_together},
    FormRow{"tiles", generic_packings, build_tiles},
    FormRow{"stored_folds", generic_packings, build_stored_folds},
    FormRow{"arg_rows", generic_packings, build_arg_rows},
    FormRow{"pool_lines", generic_packings, build_pool_lines},
    FormRow{"matmul_panels", matmul_panels_packings, build_matmul_panels},
    FormRow{"matmul_activations", generic_packings, build_matmul_activations},
    FormRow{"matmul_bits", matmul_bits_packings, build_matmul_bits},
    FormRow{"conv_blocked", conv_blocked_packings, build_conv_blocked},
    FormRow{"conv_tiles", conv_tiles_packings, build_conv_tiles},
    FormRow{"conv_lines", conv_lines_packings, build_conv_lines},
    FormRow{"conv_winograd", conv_winograd_packings, build_conv_winograd},
    FormRow{"depthwise_blocked", depthwise_blocked_packings, build_depthwise_blocked},
    FormRow{"conv_rows", conv_rows_packings, build_conv_rows},
    FormRow{"filter_gradient_blocked", generic_packings, build_filter_gradient_blocked},
    FormRow{"attention_chunks", generic_packings, build_attention_chunks},
    FormRow{"attention_rows", generic_packings, build_attention_rows},
};

const FormRow& form_row(const Form& form) {
  for (const FormRow& row : forms)
    if (row.name == form.name) return row;
  throw UnsupportedError("no form of an algorithm is called '{}'", form.name);
}

}  // namespace

std::vector<Packing> layout_packings(const Kernel& kernel) {
  std::vector<Packing> packings;
  for (std::size_t i = 0; i < kernel.body.inputs.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
    packings.push_back(kernel.input_is_weight.at(i) ? layout_packing(type) : Packing());
  }
  return packings;
}

std::vector<Packing> input_packings(const Kernel& kernel, const Form& form) {
  return form_row(form).packings(kernel, form);
}

Algorithm build_algorithm(const Kernel& kernel, const Form& form) {
  try {
    if (!kernel.open) return form_row(form).build(kernel, form);
    Kernel symbolic = kernel;
    symbolic.body = *kernel.open;
    symbolic.anchor = open_anchor(kernel);
    return form_row(form).build(symbolic, form);
  } catch (const Halide::Error& error) {
    throw InternalError("kernel {}, form {}: {}", kernel.id, form.to_string(), error.what());
  }
}

}  // namespace sylvite
