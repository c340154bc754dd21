#include "sylvite/types.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/rounding.h"

namespace sylvite {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t size;
  int bits;
};

constexpr std::array<DTypeRow, 23> dtype_table = {{
    {DType::f32, "f32", 4, 32},
    {DType::f16, "f16", 2, 16},
    {DType::bf16, "bf16", 2, 16},
    {DType::f64, "f64", 8, 64},
    {DType::i8, "i8", 1, 8},
    {DType::i16, "i16", 2, 16},
    {DType::i32, "i32", 4, 32},
    {DType::i64, "i64", 8, 64},
    {DType::u8, "u8", 1, 8},
    {DType::u16, "u16", 2, 16},
    {DType::u32, "u32", 4, 32},
    {DType::u64, "u64", 8, 64},
    {DType::boolean, "bool", 1, 8},
    {DType::f8e4m3fn, "f8e4m3fn", 1, 8},
    {DType::f8e4m3fnuz, "f8e4m3fnuz", 1, 8},
    {DType::f8e5m2, "f8e5m2", 1, 8},
    {DType::f8e5m2fnuz, "f8e5m2fnuz", 1, 8},
    {DType::f8e8m0, "f8e8m0", 1, 8},
    {DType::f4e2m1, "f4e2m1", 1, 4},
    {DType::i4, "i4", 1, 4},
    {DType::u4, "u4", 1, 4},
    {DType::i2, "i2", 1, 2},
    {DType::u2, "u2", 1, 2},
}};

const DTypeRow& row_of(DType dtype) {
  return dtype_table.at(static_cast<std::size_t>(dtype));
}

}  // namespace

std::string_view dtype_name(DType dtype) {
  return row_of(dtype).name;
}

DType parse_dtype(std::string_view name) {
  for (const DTypeRow& row : dtype_table)
    if (row.name == name) return row.dtype;
  throw ModelError("unknown element type '{}'", name);
}

std::size_t dtype_size(DType dtype) {
  return row_of(dtype).size;
}

int dtype_bits(DType dtype) {
  return row_of(dtype).bits;
}

bool is_float(DType dtype) {
  return dtype <= DType::f64;
}
bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

bool is_signed_integer(DType dtype) {
  return dtype >= DType::i8 && dtype <= DType::i64;
}
bool is_unsigned_integer(DType dtype) {
  return dtype >= DType::u8 && dtype <= DType::u64;
}
bool is_narrow(DType dtype) {
  return dtype > DType::boolean;
}
bool is_narrow_float(DType dtype) {
  return dtype >= DType::f8e4m3fn && dtype <= DType::f4e2m1;
}
bool is_number(DType dtype) {
  return dtype < DType::boolean;
}

bool Shape::is_known() const {
  return std::ranges::all_of(*this, [](const Extent& extent) { return extent.is_known(); });
}

Dims Shape::known() const {
  Dims result;
  result.reserve(size());
  for (const Extent& extent : *this) result.push_back(extent.known());
  return result;
}

Extent Shape::product() const {
  if (is_known()) return checked_product(known(), "tensor");
  Extent result = 1;
  for (const Extent& extent : *this) result *= extent;
  return result;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (const Extent& extent : *this) text += (text.size() > 1 ? "," : "") + extent.to_string();
  return text + ']';
}

Dims TensorType::dims() const {
  return shape.known();
}

std::int64_t TensorType::element_count() const {
  return checked_product(dims(), "tensor");
}

Shape TensorType::storage_shape() const {
  if (layout.channel_block == 0) return shape;
  if (shape.size() < 2)
    throw InternalError("a blocked layout needs a channel dimension, got {}", to_string());
  Shape stored = shape;
  stored[1] = ceil_div(shape[1], layout.channel_block);
  stored.emplace_back(layout.channel_block);
  return stored;
}

Dims TensorType::storage_dims() const {
  return storage_shape().known();
}

std::int64_t TensorType::byte_size() const {
  Dims bytes = storage_dims();
  bytes.push_back(static_cast<std::int64_t>(dtype_size(dtype)));
  return checked_product(bytes, "tensor");
}

std::string TensorType::to_string() const {
  std::string text = fmt::format("{}{}", dtype_name(dtype), shape.to_string());
  if (layout.channel_block > 0) text += fmt::format("@c{}", layout.channel_block);
  return text;
}

TensorType make_type(DType dtype, const Shape& shape) {
  return {dtype, shape, {}};
}

std::int64_t checked_product(const Dims& dims, std::string_view what) {
  constexpr std::int64_t limit = std::int64_t{1} << 62;
  std::int64_t product = 1;
  bool empty = false;
  for (std::int64_t extent : dims) {
    if (extent < 0) throw ModelError("{}: extent {} is negative", what, extent);
    if (extent == 0) empty = true;
    const std::int64_t factor = std::max<std::int64_t>(extent, 1);
    if (product > limit / factor) throw ModelError("{}: the product of its extents overflows", what);
    product *= factor;
  }
  return empty ? 0 : product;
}

Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

}  // namespace sylvite
