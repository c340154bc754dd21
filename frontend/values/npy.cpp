#include "frontend/values/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "frontend/values/strided.h"

namespace sylvite {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t header_alignment = 64;

struct DescrRow {
  DType dtype;
  std::string_view descr;  // kind and size, without the byte order
};

constexpr std::array<DescrRow, 13> descr_table = {{
    {DType::f32, "f4"},
    {DType::f16, "f2"},
    {DType::bf16, "V2"},
    {DType::f64, "f8"},
    {DType::i8, "i1"},
    {DType::i16, "i2"},
    {DType::i32, "i4"},
    {DType::i64, "i8"},
    {DType::u8, "u1"},
    {DType::u16, "u2"},
    {DType::u32, "u4"},
    {DType::u64, "u8"},
    {DType::boolean, "b1"},
}};

struct Header {
  DType dtype = DType::f32;
  bool big_endian = false;
  bool fortran_order = false;
  Dims dims;
};

/// Reads the Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& what) : text_(text), what_(what) {}

  Header read() {
    Header header;
    int keys = 0;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      read_entry(key, header);
      ++keys;
      if (!accept(',') && peek() != '}') fail("a comma is missing");
    }
    if (keys != 3) fail("it needs descr, fortran_order and shape, once each");
    if (position_ != text_.size() && peek() != '\0') fail("text follows the dictionary");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const {
    throw ModelError("{}: malformed .npy header: {}", what_, problem);
  }

  char peek() {
    while (position_ < text_.size() &&
           std::string_view(" \t\n").find(text_[position_]) != std::string_view::npos) {
      ++position_;
    }
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++position_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("expected '{}'", wanted));
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a string");
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) fail("a string has no end");
    const std::string_view result = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return result;
  }

  std::string_view word() {
    (void)peek();
    const std::size_t start = position_;
    while (position_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[position_])) != 0)
      ++position_;
    return text_.substr(start, position_ - start);
  }

  void read_entry(std::string_view key, Header& header) {
    if (key == "descr") {
      if (peek() == '[') throw UnsupportedError("{}: structures of several fields are not tensors", what_);
      read_descr(string(), header);
    } else if (key == "fortran_order") {
      const std::string_view value = word();
      if (value != "True" && value != "False") fail("fortran_order is neither True nor False");
      header.fortran_order = value == "True";
    } else if (key == "shape") {
      header.dims = shape();
    } else {
      fail(fmt::format("unknown key '{}'", key));
    }
  }

  void read_descr(std::string_view descr, Header& header) {
    const std::string_view kind = descr.substr(std::min<std::size_t>(1, descr.size()));
    for (const DescrRow& row : descr_table) {
      if (row.descr != kind || std::string_view("<>|=").find(descr[0]) == std::string_view::npos) continue;
      header.dtype = row.dtype;
      header.big_endian = descr[0] == '>';
      return;
    }
    throw UnsupportedError(
        "{}: NumPy element type '{}' is not supported; convert it, for example with .astype('float32')",
        what_, descr);
  }

  Dims shape() {
    Dims dims;
    expect('(');
    while (!accept(')')) {
      const std::string_view digits = word();
      std::int64_t extent = 0;
      const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), extent);
      if (error != std::errc() || stop != digits.data() + digits.size()) fail("an extent is not a number");
      dims.push_back(extent);
      if (!accept(',') && peek() != ')') fail("a comma is missing in the shape");
    }
    return dims;
  }

  std::string_view text_;
  const std::string& what_;
  std::size_t position_ = 0;
};

std::size_t read_little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Boolean bytes must be 0 or 1 before anything reads them as bool.
void normalise_booleans(Tensor& tensor) {
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data());
  for (std::int64_t i = 0; i < tensor.size(); ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
}

void swap_bytes(Tensor& tensor) {
  const auto size = static_cast<std::int64_t>(dtype_size(tensor.dtype()));
  auto* bytes = static_cast<std::byte*>(tensor.mutable_data());
  for (std::int64_t i = 0; i < tensor.byte_size(); i += size) std::reverse(bytes + i, bytes + i + size);
}

/// The elements of a column-major tensor in row-major order.
Tensor from_fortran(const Tensor& stored, const Dims& dims) {
  Tensor result(stored.dtype(), dims);
  StridedCopy copy{dims, dense_strides(stored.dims()), 0, dense_strides(dims), 0};
  std::reverse(copy.strides.begin(), copy.strides.end());
  copy_strided(copy, stored.data(), result.mutable_data(), dtype_size(stored.dtype()));
  return result;
}

}  // namespace

Tensor tensor_from_npy(std::string_view bytes, const std::string& what) {
  const bool known = bytes.size() >= 10 && bytes.starts_with(magic) && bytes[6] >= 1 && bytes[6] <= 3;
  if (!known) throw ModelError("{}: not a .npy file of version 1.0 to 3.0", what);
  const std::size_t length_size = bytes[6] == 1 ? 2 : 4;
  const std::size_t start = 8 + length_size;
  if (bytes.size() < start) throw ModelError("{}: the .npy header is cut off", what);
  const std::size_t length = read_little_endian(bytes.substr(8, length_size));
  if (bytes.size() - start < length) throw ModelError("{}: the .npy header is cut off", what);
  const Header header = HeaderReader(bytes.substr(start, length), what).read();
  const std::string_view data = bytes.substr(start + length);
  const auto wanted = static_cast<std::size_t>(checked_product(header.dims, what));
  const std::size_t size = dtype_size(header.dtype);
  if (data.size() % size != 0 || data.size() / size != wanted) {
    throw ModelError("{}: {} needs {} elements of {} bytes, the file holds {} bytes", what,
                     make_type(header.dtype, header.dims).to_string(), wanted, size, data.size());
  }
  Dims stored = header.dims;
  if (header.fortran_order) std::reverse(stored.begin(), stored.end());
  Tensor tensor(header.dtype, stored);
  if (!data.empty()) std::memcpy(tensor.mutable_data(), data.data(), data.size());
  if (header.big_endian) swap_bytes(tensor);
  if (header.dtype == DType::boolean) normalise_booleans(tensor);
  return header.fortran_order ? from_fortran(tensor, header.dims) : tensor;
}

std::string tensor_to_npy(const Tensor& tensor) {
  // Narrow floats have no letter; their bytes are written, as ml_dtypes does.
  const auto row = std::find_if(descr_table.begin(), descr_table.end(),
                                [&](const DescrRow& candidate) { return candidate.dtype == tensor.dtype(); });
  const std::string_view descr = row != descr_table.end() ? row->descr : "V1";
  std::string shape;
  for (std::int64_t extent : tensor.dims()) shape += fmt::format("{},", extent);
  const char order = dtype_size(tensor.dtype()) == 1 ? '|' : '<';
  std::string header =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order, descr, shape);
  const bool is_long = header.size() > 60000;  // version 1.0 counts the header in 16 bits
  const std::size_t start = is_long ? 12 : 10;
  header.resize((start + header.size() + header_alignment) / header_alignment * header_alignment - start - 1,
                ' ');
  header += '\n';
  std::string bytes(magic);
  bytes += is_long ? '\2' : '\1';
  bytes += '\0';
  for (std::size_t i = 8; i < start; ++i) bytes += static_cast<char>(header.size() >> (8 * (i - 8)) & 0xffU);
  bytes += header;
  if (tensor.size() > 0)
    bytes.append(static_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.byte_size()));
  return bytes;
}

}  // namespace sylvite
