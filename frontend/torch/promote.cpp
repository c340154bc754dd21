#include "frontend/torch/promote.h"

#include <algorithm>

namespace sylvite {
namespace {

/// boolean, integer, float
int kind_of(DType dtype) {
  return dtype == DType::boolean ? 0 : is_float(dtype) ? 2 : 1;
}

DType wider(DType a, DType b) {
  if (a == b) return a;
  if (kind_of(a) != kind_of(b)) return kind_of(a) > kind_of(b) ? a : b;
  if (kind_of(a) == 2) {
    if (dtype_size(a) == dtype_size(b)) return DType::f32;  // f16 and bf16
    return dtype_size(a) > dtype_size(b) ? a : b;
  }
  if (is_unsigned_integer(a) == is_unsigned_integer(b)) return dtype_size(a) > dtype_size(b) ? a : b;
  const DType with_sign = is_unsigned_integer(a) ? b : a;
  const DType without = is_unsigned_integer(a) ? a : b;
  if (dtype_size(with_sign) > dtype_size(without)) return with_sign;
  return dtype_size(without) == 1 ? DType::i16 : dtype_size(without) == 2 ? DType::i32 : DType::i64;
}

/// That of a tensor beside a number of a kind.
DType beside_number(DType tensor, int kind) {
  if (kind_of(tensor) >= kind) return tensor;
  return kind == 2 ? DType::f32 : DType::i64;
}

}  // namespace

DType promoted(Sym a, Sym b) {
  if ((a.rank() == 0) == (b.rank() == 0)) return wider(a.dtype(), b.dtype());
  const DType many = a.rank() == 0 ? b.dtype() : a.dtype();
  const DType one = a.rank() == 0 ? a.dtype() : b.dtype();
  return kind_of(many) >= kind_of(one) ? many : one;
}

TorchPair pair_as(TorchContext& c, DType to, std::string_view self, std::string_view other) {
  return {c.operand(self, to), c.operand(other, to)};
}

TorchPair pair_with_number(TorchContext& c, DType to) {
  const auto is_beyond = [&](std::string_view name) {
    if (!c.is_whole(name)) return false;
    Tensor number(to, {});
    number.set_int64(0, c.integer(name));
    return c.is_open_size(name) || number.as_double(0) != static_cast<double>(c.integer(name));
  };
  return pair_as(c, is_half(to) && (is_beyond("self") || is_beyond("other")) ? DType::f32 : to);
}

TorchPair pair_of_factors(TorchContext& c, DType to) {
  const auto is_wider = [&](std::string_view name) {
    if (!c.is_tensor(name)) return c.is_real(name);
    const Sym x = c.tensor(name);
    return x.rank() == 0 && is_float(x.dtype()) && dtype_size(x.dtype()) > 2;
  };
  return is_half(to) && (is_wider("self") || is_wider("other")) ? pair_as(c, DType::f32)
                                                                : pair_with_number(c, to);
}

Sym narrowed(Sym x, DType to) {
  if (x.dtype() != DType::f32 || !is_half(to)) return cast(x, to);
  return x.builder().add(Op::cast, {x}, {{"to", std::string(dtype_name(to))}, {"rounds", std::int64_t{0}}});
}

TorchPair promoted_pair(TorchContext& c, std::string_view self, std::string_view other) {
  if (c.is_tensor(self) && c.is_tensor(other))
    return pair_as(c, promoted(c.tensor(self), c.tensor(other)), self, other);
  const bool is_first = c.is_tensor(self);
  const Sym tensor = c.tensor(is_first ? self : other);
  const std::string_view number = is_first ? other : self;
  const int kind = c.is_real(number) ? 2 : c.is_boolean(number) ? 0 : 1;
  return pair_as(c, beside_number(tensor.dtype(), kind), self, other);
}

}  // namespace sylvite
