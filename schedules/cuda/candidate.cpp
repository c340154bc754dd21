#include "schedules/cuda/candidate.h"

#include "schedules/cuda/forms.h"
#include "schedules/cuda/nvrtc.h"
#include "schedules/spaces/spaces.h"

namespace sylvite {
namespace {

constexpr int hopper = 90;

struct TemplateRow {
  const char* form;
  CudaTemplate (*make)(const Kernel&, const Form&);
};
constexpr TemplateRow templates[] = {
    {cuda_matmul_form, cuda_matmul_template},
    {cuda_conv_form, cuda_conv_template},
    {cuda_attention_form, cuda_attention_template},
    {cuda_norm_form, cuda_norm_template},
    {cuda_columns_form, cuda_columns_template},
    {cuda_transpose_form, cuda_transpose_template},
    {cublaslt_form, cublaslt_template},
    {cudnn_form, cudnn_template},
};

}  // namespace

std::optional<CudaTemplate> cuda_template_of(const Kernel& kernel, const Candidate& candidate) {
  for (const TemplateRow& row : templates)
    if (candidate.form.name == row.form) return row.make(kernel, candidate.form);
  return std::nullopt;
}

bool multiplies_in_tf32(const Kernel& kernel, const Candidate& candidate) {
  const std::string& form = candidate.form.name;
  const bool has_products =
      form == cuda_matmul_form || form == cuda_conv_form || form == cublaslt_form || form == cudnn_form;
  if (!has_products || kernel.anchor == no_node) return false;
  return kernel.body.type(kernel.body.node(kernel.anchor).inputs.at(0)).dtype == DType::f32;
}

std::string refuse_cuda_template(const Machine& machine) {
  if (!machine.gpu || machine.gpu->capability != hopper)
    return "it is for Hopper's tensor cores (capability 9.0)";
  return cuda::missing_nvrtc();
}

std::string refuse_tf32(DType element, const Machine& machine) {
  if (element != DType::f32 || machine.tf32) return "";
  return "its operands are f32, which tensor cores would round to TF32: precision = tf32 allows that";
}

CudaCard card_of(const Machine& machine) {
  return {machine.gpu->multiprocessors, machine.gpu->shared_bytes};
}
CudaCard card_of(const Form& form) {
  return {static_cast<int>(form.at("multiprocessors")), form.at("shared_bytes")};
}

Parameter choice_parameter(std::size_t count) {
  Parameter choice{"choice", {}};
  for (std::size_t i = 0; i < count; ++i) choice.values.push_back(static_cast<std::int64_t>(i));
  return choice;
}
std::size_t choice_number(const Point& point) {
  return static_cast<std::size_t>(get(point, "choice"));
}

}  // namespace sylvite
