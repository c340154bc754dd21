#pragma once
// Element types and shapes: what is known of a value before it exists.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sylvite/extent.h"

namespace sylvite {

/// Element types. The names are those of the text form; the order is free.
enum class DType : std::uint8_t {
  f32,
  f16,
  bf16,
  f64,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  boolean,
  // Storage only: moved and converted, never computed with.
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  f4e2m1,
  i4,
  u4,
  i2,
  u2
};

[[nodiscard]] std::string_view dtype_name(DType dtype);
[[nodiscard]] DType parse_dtype(std::string_view name);  ///< throws ModelError for an unknown name
[[nodiscard]] std::size_t dtype_size(DType dtype);       ///< bytes of one element in memory, 1 at least
[[nodiscard]] int dtype_bits(DType dtype);               ///< bits that count: 4 for i4; 8 for boolean
[[nodiscard]] bool is_float(DType dtype);
[[nodiscard]] bool is_half(DType dtype);  ///< f16 or bf16
[[nodiscard]] bool is_signed_integer(DType dtype);
[[nodiscard]] bool is_unsigned_integer(DType dtype);  ///< boolean is not an integer
[[nodiscard]] bool is_narrow(DType dtype);            ///< storage only; in none of the three families above
[[nodiscard]] bool is_narrow_float(DType dtype);      ///< of 8 or 4 bits
[[nodiscard]] bool is_number(DType dtype);            ///< may be computed with: neither boolean nor narrow

using Dims = std::vector<std::int64_t>;  ///< known extents, outermost first, as in ONNX

/// Extents, outermost first. Lowering accepts known ones only.
class Shape : public std::vector<Extent> {
 public:
  using std::vector<Extent>::vector;
  Shape(const Dims& dims) : vector(dims.begin(), dims.end()) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool is_known() const;          ///< is every extent a number?
  [[nodiscard]] Dims known() const;             ///< REQUIRES is_known(), else throws UnknownExtentError
  [[nodiscard]] Extent product() const;         ///< the number of elements
  [[nodiscard]] std::string to_string() const;  ///< e.g. [batch,64,2*width]
};

/// How a value lies in memory. `channel_block` = 0: dense row-major. b > 0: dimension 1 (channels, padded up
/// to a multiple of b) is split: dims are N, C/b, spatial..., b, as in oneDNN's nChw16c for b = 16 (their order in memory:
/// storage_order.h). The logical shape never changes; padded channels hold finite, unspecified values.
struct Layout {
  int channel_block = 0;
  bool operator==(const Layout&) const = default;
};

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout;

  [[nodiscard]] int rank() const { return static_cast<int>(shape.size()); }
  [[nodiscard]] Dims dims() const;  ///< REQUIRES every extent known, else throws UnknownExtentError
  [[nodiscard]] bool is_known() const { return shape.is_known(); }  ///< is every extent a number?
  [[nodiscard]] std::int64_t element_count() const;                 ///< logical elements, without padding
  [[nodiscard]] Shape storage_shape()
      const;  ///< extents as stored, outermost first, blocks and padding included
  [[nodiscard]] Dims storage_dims() const;       ///< the same as numbers
  [[nodiscard]] std::int64_t byte_size() const;  ///< bytes as stored
  [[nodiscard]] std::string to_string() const;   ///< e.g. f32[1,64,56,56] or f32[1,64,56,56]@c16
  bool operator==(const TensorType&) const = default;
};

[[nodiscard]] TensorType make_type(DType dtype, const Shape& shape);

/// Product of extents; throws ModelError when negative or over 2^62 (`what` names the thing in the message).
[[nodiscard]] std::int64_t checked_product(const Dims& dims, std::string_view what);

/// Row-major strides in elements of dense dims, outermost first.
[[nodiscard]] Dims dense_strides(const Dims& dims);

}  // namespace sylvite
