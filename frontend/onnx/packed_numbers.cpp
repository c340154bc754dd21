#include "frontend/onnx/packed_numbers.h"

namespace sylvite {
namespace {

/// The numbers that bytes of i32 [..., bytes, 1, N] hold, [..., bytes, numbers of a byte, N].
Sym unpacked(Sym bytes, std::int64_t bits) {
  GraphBuilder& b = bytes.builder();
  if (bits == 8) return bytes;
  const Sym shifts = b.iota(DType::i32, {8 / bits, 1}, 0) * static_cast<double>(bits);
  return apply(Op::bitwise_and, apply(Op::shift_right, bytes, shifts),
               b.scalar(DType::i32, static_cast<double>((1 << bits) - 1)));
}

}  // namespace

Sym unpacked_rows(Sym bytes, std::int64_t bits) {
  Dims dims = bytes.dims();
  dims.back() *= 8 / bits;
  // The unpacked axis stands before one that has one element.
  return reshape(unpacked(unsqueeze(cast(bytes, DType::i32), {-2, -1}), bits), dims);
}

}  // namespace sylvite
