#include "schedules/cuda/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/forms.h"
#include "schedules/cuda/grouped.h"
#include "schedules/cuda/matmul.h"
#include "schedules/cuda/nvrtc.h"
#include "schedules/cuda/spaces.h"

namespace sylvite {
namespace {

constexpr int hopper = 90;

/// `pack` changes the packings of weights that must lie otherwise than their layouts say; nullptr: none must.
struct TemplateRow {
  std::string_view form;
  CudaTemplate (*make)(const Kernel&, const Form&);
  void (*pack)(const Kernel&, std::vector<Packing>&) = nullptr;
  bool on_tensor_cores = false;  ///< f32 operands are rounded to TF32, unless the form says that it is exact
  std::optional<double> (*clocks)(const Kernel&, const Form&,
                                  const Card&) = nullptr;  ///< what it should take
};
constexpr TemplateRow templates[] = {
    {cuda_matmul_form, cuda_matmul_template, pack_for_cuda_matmul, true, cuda_matmul_form_clocks},
    {cuda_conv_form, cuda_conv_template, pack_for_cuda_conv, true, cuda_conv_form_clocks},
    {cuda_filter_gradient_form, cuda_filter_gradient_template, nullptr, true},
    {cuda_warps_matmul_form, cuda_warps_matmul_template, pack_for_cuda_matmul, true,
     cuda_warps_matmul_form_clocks},
    {cuda_warps_conv_form, cuda_warps_conv_template, pack_for_cuda_conv, true, cuda_warps_conv_form_clocks},
    {cuda_depthwise_form, cuda_depthwise_template, pack_for_cuda_depthwise},
    {cuda_depthwise_gradient_form, cuda_depthwise_gradient_template},
    {cuda_line_gradient_form, cuda_line_gradient_template},
    {cuda_grouped_form, cuda_grouped_template, pack_for_cuda_grouped, true},
    {cuda_attention_form, cuda_attention_template},
    {cuda_warps_attention_form, cuda_warps_attention_template},
    {cuda_attention_gradient_form, cuda_attention_gradient_template},
    {cuda_concat_form, cuda_concat_template},
    {cuda_norm_form, cuda_norm_template},
    {cuda_image_norm_form, cuda_image_norm_template},
    {cuda_softmax_columns_form, cuda_softmax_columns_template},
    {cuda_row_folds_form, cuda_row_folds_template},
    {cuda_columns_form, cuda_columns_template},
    {cuda_pool_gradient_form, cuda_pool_gradient_template},
    {cuda_place_form, cuda_place_template},
    {cuda_scatter_rows_form, cuda_scatter_rows_template},
    {cuda_scatter_folds_form, cuda_scatter_folds_template},
    {cuda_top_k_form, cuda_top_k_template},
    {cuda_transpose_form, cuda_transpose_template},
    {cublaslt_form, cublaslt_template, pack_for_cuda_matmul, true},
    {cudnn_form, cudnn_template, pack_for_cuda_conv, true},
};

const TemplateRow* find_template(const Form& form) {
  const auto* found = std::ranges::find(templates, form.name, &TemplateRow::form);
  return found == std::end(templates) ? nullptr : found;
}

constexpr const char* capability_parameter = "capability";

int capability_of(const Form& form) {
  const auto found = form.parameters.find(capability_parameter);
  return found == form.parameters.end() ? hopper : static_cast<int>(found->second);
}

}  // namespace

std::optional<CudaTemplate> cuda_template_of(const Kernel& kernel, const Candidate& candidate) {
  const TemplateRow* row = find_template(candidate.form);
  if (row == nullptr) return std::nullopt;
  CudaTemplate made = row->make(kernel, candidate.form);
  if (kernel.open && made.source.text != row->make(at_hints(kernel), candidate.form).source.text)
    throw UnsupportedError("the text of {} depends on the sizes", candidate.form.name);
  if (const int capability = capability_of(candidate.form); capability != hopper) {
    made.source.architecture = fmt::format("sm_{}", capability);
    made.launch.shape.programmatic = made.launch.shape.programmatic && capability > hopper;
  }
  return made;
}

std::optional<double> cuda_seconds_of(const Kernel& kernel, const Candidate& candidate, const Card& card) {
  constexpr double clock = 1.7e9;
  const TemplateRow* row = find_template(candidate.form);
  if (row == nullptr || row->clocks == nullptr) return std::nullopt;
  const std::optional<double> clocks = row->clocks(kernel, candidate.form, card);
  return clocks ? std::optional(*clocks / clock) : std::nullopt;
}

std::optional<std::vector<Packing>> cuda_packings_of(const Kernel& kernel, const Form& form) {
  const TemplateRow* row = find_template(form);
  if (row == nullptr) return std::nullopt;
  std::vector<Packing> packings;
  for (std::size_t i = 0; i < kernel.body.inputs.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
    packings.push_back(kernel.input_is_weight.at(i) ? layout_packing(type) : Packing());
  }
  if (row->pack != nullptr) row->pack(kernel, packings);
  return packings;
}

bool multiplies_in_tf32(const Kernel& kernel, const Candidate& candidate) {
  const TemplateRow* row = find_template(candidate.form);
  if (row == nullptr || !row->on_tensor_cores || kernel.anchor == no_node) return false;
  const auto exact = candidate.form.parameters.find("exact");
  const bool is_exact = exact != candidate.form.parameters.end() && exact->second != 0;
  return !is_exact && kernel.body.type(kernel.body.node(kernel.anchor).inputs.at(0)).dtype == DType::f32;
}

std::string refuse_cuda_template(const Machine& machine) {
  return machine.gpu ? machine.gpu_tools.missing_compiler : "it is for GPUs";
}

std::string refuse_hopper_template(const Machine& machine) {
  if (!machine.gpu || machine.gpu->capability != hopper)
    return "it is for Hopper's tensor cores (capability 9.0)";
  if (!machine.gpu_tools.hopper) return "schedules.hopper is off";
  return refuse_cuda_template(machine);
}

Form for_capability(Form form, int capability) {
  if (capability != hopper) form.parameters[capability_parameter] = capability;
  return form;
}

std::string refuse_tf32(DType element, const Machine& machine) {
  if (element != DType::f32 || machine.tf32) return "";
  return "its operands are f32, which tensor cores would round to TF32: precision = tf32 allows that";
}

Card card_of(const Form& form) {
  Card card;
  card.multiprocessors = static_cast<int>(form.at("multiprocessors"));
  card.shared_bytes = form.at("shared_bytes");
  return card;
}

}  // namespace sylvite
