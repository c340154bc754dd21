#include "schedules/cuda/choice_space.h"
#include "schedules/cuda/depthwise_gradient.h"
#include "schedules/cuda/grouped.h"
#include "schedules/cuda/pool_gradient.h"
#include "schedules/cuda/spaces.h"

// Convolutions of groups as spaces: depthwise ones, gradients of their filters and of poolings, and those on tensor cores.

namespace sylvite {
namespace {

Form depthwise_form(const CudaDepthwiseChoice& choice) {
  return {cuda_depthwise_form,
          {{"vector", choice.vector},
           {"tile_y", choice.tile_y},
           {"tile_x", choice.tile_x},
           {"lanes", choice.lanes},
           {"threads", choice.threads}}};
}

Form depthwise_gradient_form(const CudaDepthwiseGradientChoice& choice) {
  return {cuda_depthwise_gradient_form,
          {{"vector", choice.vector}, {"lanes", choice.lanes}, {"deep", choice.deep}}};
}

Form pool_gradient_form(const CudaPoolGradientChoice& choice) {
  return {cuda_pool_gradient_form,
          {{"vector", choice.vector},
           {"threads", choice.threads},
           {"lines", choice.lines},
           {"columns", choice.columns}}};
}

Form grouped_form(const CudaGroupedChoice& choice) {
  return {cuda_grouped_form,
          {{"tile_z", choice.tile_z},
           {"tile_y", choice.tile_y},
           {"tile_x", choice.tile_x},
           {"outputs", choice.outputs},
           {"columns", choice.columns},
           {"pixels", choice.pixels},
           {"parts", choice.parts},
           {"exact", choice.exact ? 1 : 0}}};
}

Binding bind_grouped(const Kernel& kernel, const Machine& machine) {
  if (std::string refusal = refuse_cuda_template(machine); !refusal.empty()) return {refusal};
  const Reading<CudaGroupedProblem> reading = read_cuda_grouped(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const bool exact = reading.problem.element == DType::f32 && !machine.tf32;
  std::vector<CudaGroupedChoice> choices = cuda_grouped_choices(reading.problem, exact, *machine.gpu);
  if (choices.empty()) return {"its filters and windows do not fit into shared memory"};
  return bind_choices(*machine.gpu, std::move(choices), grouped_form);
}

int number(const Form& form, const char* name) {
  return static_cast<int>(form.at(name));
}

}  // namespace

const Space cuda_depthwise_space = {
    "cuda_depthwise",
    bind_template<read_cuda_depthwise, cuda_depthwise_choices, depthwise_form>,
    {},
    Space::Open::extents};
const Space cuda_depthwise_gradient_space = {
    cuda_depthwise_gradient_form,
    bind_template<read_cuda_depthwise_gradient, cuda_depthwise_gradient_choices, depthwise_gradient_form>,
    {},
    Space::Open::extents};
const Space cuda_pool_gradient_space = {
    cuda_pool_gradient_form,
    bind_template<read_cuda_pool_gradient, cuda_pool_gradient_choices, pool_gradient_form>,
    {},
    Space::Open::extents};
const Space cuda_grouped_space = {"cuda_grouped", bind_grouped, {}, Space::Open::extents};

CudaTemplate cuda_depthwise_template(const Kernel& kernel, const Form& form) {
  const CudaGroupedProblem problem = require_problem(read_cuda_depthwise(kernel), cuda_depthwise_form);
  return make_cuda_depthwise(problem, {number(form, "vector"), number(form, "tile_y"), number(form, "tile_x"),
                                       number(form, "lanes"), number(form, "threads")});
}

CudaTemplate cuda_depthwise_gradient_template(const Kernel& kernel, const Form& form) {
  const CudaDepthwiseGradientProblem problem =
      require_problem(read_cuda_depthwise_gradient(kernel), cuda_depthwise_gradient_form);
  return make_cuda_depthwise_gradient(problem,
                                      {number(form, "vector"), number(form, "lanes"), number(form, "deep")});
}

CudaTemplate cuda_pool_gradient_template(const Kernel& kernel, const Form& form) {
  const CudaPoolGradientProblem problem =
      require_problem(read_cuda_pool_gradient(kernel), cuda_pool_gradient_form);
  return make_cuda_pool_gradient(problem, {number(form, "vector"), number(form, "threads"),
                                           number(form, "lines"), number(form, "columns")});
}

CudaTemplate cuda_grouped_template(const Kernel& kernel, const Form& form) {
  const CudaGroupedProblem problem = require_problem(read_cuda_grouped(kernel), cuda_grouped_form);
  return make_cuda_grouped(problem, {number(form, "tile_y"), number(form, "tile_x"), number(form, "outputs"),
                                     number(form, "columns"), number(form, "pixels"), number(form, "parts"),
                                     number(form, "tile_z"), number(form, "exact") != 0});
}

}  // namespace sylvite
