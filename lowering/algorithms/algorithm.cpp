#include "lowering/algorithms/algorithm.h"

#include <array>

#include "base/error.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/conv_tiles.h"
#include "lowering/algorithms/problems.h"

namespace sylvite {
namespace {

/// Templates add their row here; their builders are in algorithm_NAME.cpp.
constexpr std::array forms = {
    FormRow{"generic", generic_packings, build_generic},
    FormRow{"device", generic_packings, build_device},
    FormRow{"tiles", generic_packings, build_tiles},
    FormRow{"matmul_panels", matmul_panels_packings, build_matmul_panels},
    FormRow{"matmul_activations", generic_packings, build_matmul_activations},
    FormRow{"conv_blocked", conv_blocked_packings, build_conv_blocked},
    FormRow{"conv_tiles", conv_tiles_packings, build_conv_tiles},
    FormRow{"conv_lines", conv_lines_packings, build_conv_lines},
    FormRow{"conv_winograd", conv_winograd_packings, build_conv_winograd},
    FormRow{"depthwise_blocked", depthwise_blocked_packings, build_depthwise_blocked},
    FormRow{"conv_rows", conv_rows_packings, build_conv_rows},
    FormRow{"attention_rows", generic_packings, build_attention_rows},
    FormRow{"cuda_matmul", cuda_matmul_packings, build_no_algorithm},
    FormRow{"cublaslt", cuda_matmul_packings, build_no_algorithm},
    FormRow{"cuda_attention", generic_packings, build_no_algorithm},
    FormRow{"cuda_norm", generic_packings, build_no_algorithm},
    FormRow{"cuda_columns", generic_packings, build_no_algorithm},
    FormRow{"cuda_transpose", generic_packings, build_no_algorithm},
    FormRow{"cuda_conv", cuda_conv_packings, build_no_algorithm},
    FormRow{"cudnn", cuda_conv_packings, build_no_algorithm},
};

const FormRow& form_row(const Form& form) {
  for (const FormRow& row : forms)
    if (row.name == form.name) return row;
  throw UnsupportedError("no form of an algorithm is called '{}'", form.name);
}

}  // namespace

std::span<const FormRow> form_table() {
  return forms;
}

std::vector<Packing> layout_packings(const Kernel& kernel) {
  std::vector<Packing> packings;
  for (std::size_t i = 0; i < kernel.body.inputs.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
    Packing packing;
    if (type.layout.channel_block > 0 && kernel.input_is_weight.at(i)) {
      packing.factors.assign(type.shape.size(), 1);
      packing.factors[1] = type.layout.channel_block;
      for (int d = 0; d < type.rank(); ++d) packing.order.push_back(2 * d);
      packing.order.push_back(3);
    }
    packings.push_back(packing);
  }
  return packings;
}

std::vector<Packing> cuda_matmul_packings(const Kernel& kernel, const Form& /*form*/) {
  std::vector<Packing> packings = layout_packings(kernel);
  const RightWeight weight = weight_for_tensor_cores(kernel);
  for (std::size_t i = 0; i < packings.size(); ++i) {
    if (weight.id == no_value || kernel.body.inputs[i] != weight.id) continue;
    const auto size = static_cast<std::int64_t>(dtype_size(kernel.body.type(weight.id).dtype));
    const std::int64_t unit = row_unit_bytes / size;
    packings[i] = weight.is_transposed ? Packing{{1, unit}, {0, 2, 3}} : Packing{{unit, 1}, {2, 0, 1}};
  }
  return packings;
}

std::vector<Packing> cuda_conv_packings(const Kernel& kernel, const Form& /*form*/) {
  std::vector<Packing> packings = layout_packings(kernel);
  const ValueId filter = kernel.body.node(kernel.anchor).inputs.at(1);
  for (std::size_t i = 0; i < packings.size(); ++i)
    if (kernel.body.inputs[i] == filter) packings[i] = {{1, 1, 1, 1}, {0, 4, 6, 2}};
  return packings;
}

Algorithm build_no_algorithm(const Kernel& /*kernel*/, const Form& form) {
  throw UnsupportedError("form '{}' is no pipeline: Halide has no algorithm of it", form.name);
}

std::vector<Packing> input_packings(const Kernel& kernel, const Form& form) {
  return form_row(form).packings(kernel, form);
}

Algorithm build_algorithm(const Kernel& kernel, const Form& form) {
  try {
    return form_row(form).build(kernel, form);
  } catch (const Halide::Error& error) {
    throw InternalError("kernel {}, form {}: {}", kernel.id, form.to_string(), error.what());
  }
}

}  // namespace sylvite
