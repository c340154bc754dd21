#pragma once
// The forms that are CUDA C++ templates, or a library's. Internal to schedules/.

#include <optional>
#include <string>

#include "lowering/algorithms/form.h"
#include "lowering/plan/kernel.h"
#include "schedules/cuda/template.h"
#include "schedules/machine.h"

namespace sylvite {

inline constexpr const char* cuda_matmul_form = "cuda_matmul";
inline constexpr const char* cuda_conv_form = "cuda_conv";
inline constexpr const char* cuda_filter_gradient_form = "cuda_filter_gradient";
inline constexpr const char* cuda_warps_matmul_form = "cuda_warps_matmul";
inline constexpr const char* cuda_warps_conv_form = "cuda_warps_conv";
inline constexpr const char* cuda_depthwise_form = "cuda_depthwise";
inline constexpr const char* cuda_depthwise_gradient_form = "cuda_depthwise_gradient";
inline constexpr const char* cuda_line_gradient_form = "cuda_line_gradient";
inline constexpr const char* cuda_grouped_form = "cuda_grouped";
inline constexpr const char* cuda_attention_form = "cuda_attention";
inline constexpr const char* cuda_warps_attention_form = "cuda_warps_attention";
inline constexpr const char* cuda_attention_gradient_form = "cuda_attention_gradient";
inline constexpr const char* cuda_concat_form = "cuda_concat";
inline constexpr const char* cuda_norm_form = "cuda_norm";
inline constexpr const char* cuda_image_norm_form = "cuda_image_norm";
inline constexpr const char* cuda_softmax_columns_form = "cuda_softmax_columns";
inline constexpr const char* cuda_row_folds_form = "cuda_row_folds";
inline constexpr const char* cuda_columns_form = "cuda_columns";
inline constexpr const char* cuda_pool_gradient_form = "cuda_pool_gradient";
inline constexpr const char* cuda_place_form = "cuda_place";
inline constexpr const char* cuda_scatter_rows_form = "cuda_scatter_rows";
inline constexpr const char* cuda_scatter_folds_form = "cuda_scatter_folds";
inline constexpr const char* cuda_top_k_form = "cuda_top_k";
inline constexpr const char* cuda_transpose_form = "cuda_transpose";
inline constexpr const char* cublaslt_form = "cublaslt";
inline constexpr const char* cudnn_form = "cudnn";

/// Each throws UnsupportedError when the template cannot take the kernel or the form's numbers.
[[nodiscard]] CudaTemplate cuda_matmul_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_conv_template(const Kernel& kernel, const Form& form);
/// What these should take, in clocks of a multiprocessor; nothing where they cannot take the kernel.
[[nodiscard]] std::optional<double> cuda_matmul_form_clocks(const Kernel& kernel, const Form& form,
                                                            const Card& card);
[[nodiscard]] std::optional<double> cuda_conv_form_clocks(const Kernel& kernel, const Form& form,
                                                          const Card& card);
/// Of windows of two bytes a number whose epilogue reads no other activations: nothing for others, where the estimate was not
/// compared with that of warpgroups.
[[nodiscard]] std::optional<double> cuda_warps_conv_form_clocks(const Kernel& kernel, const Form& form,
                                                                const Card& card);
/// Of narrow products whose epilogue reads no other activations: the same for others.
[[nodiscard]] std::optional<double> cuda_warps_matmul_form_clocks(const Kernel& kernel, const Form& form,
                                                                  const Card& card);
[[nodiscard]] CudaTemplate cuda_filter_gradient_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_warps_matmul_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_warps_conv_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_depthwise_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_depthwise_gradient_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_line_gradient_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_grouped_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_attention_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_warps_attention_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_attention_gradient_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_concat_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_norm_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_image_norm_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_softmax_columns_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_row_folds_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_columns_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_pool_gradient_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_place_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_scatter_rows_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_scatter_folds_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_top_k_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cuda_transpose_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cublaslt_template(const Kernel& kernel, const Form& form);
[[nodiscard]] CudaTemplate cudnn_template(const Kernel& kernel, const Form& form);

/// Why a machine cannot have such candidates; empty when it can.
[[nodiscard]] std::string refuse_cuda_template(const Machine& machine);
/// The same of those with Hopper's own instructions; knob schedules.hopper.
[[nodiscard]] std::string refuse_hopper_template(const Machine& machine);
/// Why tensor cores may not multiply elements of the type; empty when they may.
[[nodiscard]] std::string refuse_tf32(DType element, const Machine& machine);

/// What a form keeps of the card that it is for, as parameters of these names: multiprocessors and
/// shared_bytes. A launch and its text depend on nothing else of a card.
[[nodiscard]] Card card_of(const Form& form);

/// The form as one for cards of a compute capability, which it keeps as a parameter unless it is Hopper's.
[[nodiscard]] Form for_capability(Form form, int capability);

}  // namespace sylvite
