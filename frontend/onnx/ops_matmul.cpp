// Matrix products in all their spellings.

#include "frontend/onnx/einsum.h"
#include "frontend/onnx/matmul.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

void matmul_op(ImportContext& c) {
  c.output(numpy_matmul(c.input(0), c.input(1)));
}

void gemm_op(ImportContext& c) {
  c.output(gemm(c));
}

void einsum_op(ImportContext& c) {
  c.output(einsum(c.string("equation", ""), c.inputs()));
}

const OnnxOp matmul_rows[] = {
    {"Einsum", 12, einsum_op},
    {"Gemm", 6, gemm_op},
    {"MatMul", 1, matmul_op},
};

}  // namespace

std::span<const OnnxOp> onnx_matmul_ops() {
  return matmul_rows;
}

}  // namespace sylvite
