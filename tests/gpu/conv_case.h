#pragma once
// A convolution with its inputs as a form wants them, and what must come out.

#include "schedules/packings.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/conv_kernels.h"

namespace sylvite {

struct ConvCase {
  Kernel kernel;
  std::vector<Tensor> inputs;  ///< as they are stored
  Tensor reference;            ///< the interpreter's, as it is stored
  double tolerance;

  ConvCase(const ConvSpec& spec, const char* form)
      : kernel(conv_kernel(spec)),
        inputs(normal_inputs(kernel, 7)),
        reference(pack(interpret(kernel.body, inputs).at(0),
                       layout_packing(kernel.body.type(kernel.body.outputs[0])))),
        tolerance(spec.element == DType::f32 ? 2e-3 : 1e-2) {
    const std::vector<Packing> packings = packings_of(kernel, {form, {}});
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const TensorType& type = kernel.body.type(kernel.body.inputs[i]);
      inputs[i] = pack(inputs[i], packings[i].is_identity() ? layout_packing(type) : packings[i]);
    }
  }
};

}  // namespace sylvite
