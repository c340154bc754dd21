#include "frontend/build/fourier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/rounding.h"
#include "frontend/graph/rewrite.h"

namespace sylvite {
namespace {

/// Cosines and sines of 2 pi row column / length, [rows, columns] each.
struct FourierMatrix {
  Sym cosine, sine;
};

/// sin(2 pi part / length) for parts from 0 to the length. What is zero or one is so exactly, and what mirrors each other is equal:
/// the middle frequency of a real signal has no imaginary part, and its angle no sign of a rounding.
double sine_of_part(std::int64_t part, std::int64_t length) {
  if (2 * part > length) return -sine_of_part(length - part, length);
  const std::int64_t halves = std::min(2 * part, length - 2 * part);
  return std::sin(std::numbers::pi * static_cast<double>(halves) / static_cast<double>(length));
}

FourierMatrix fourier_matrix(GraphBuilder& b, DType dtype, std::int64_t rows, std::int64_t columns,
                             std::int64_t length) {
  b.reserve_table({2, rows, columns});
  std::vector<double> cosine;
  std::vector<double> sine;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t part = row * column % length;
      cosine.push_back(sine_of_part((4 * part + length) % (4 * length), 4 * length));
      sine.push_back(sine_of_part(part, length));
    }
  }
  return {b.reals(dtype, {rows, columns}, cosine), b.reals(dtype, {rows, columns}, sine)};
}

/// The signal cut or padded with zeros to `length` along an axis.
Sym fit_length(Sym x, int axis, std::int64_t length) {
  const std::int64_t extent = x.dim(axis);
  if (extent >= length) return slice(x, axis, 0, length);
  Dims low(static_cast<std::size_t>(x.rank()), 0);
  Dims high = low;
  high[static_cast<std::size_t>(axis)] = length - extent;
  return pad(x, low, high);
}

/// Multiplies [..., n] by [n, m] as one matrix product.
Sym times_matrix(Sym x, Sym matrix) {
  Dims dims = x.dims();
  const std::int64_t n = dims.back();
  const std::int64_t rows = n == 0 ? 0 : x.size() / n;
  dims.back() = matrix.dim(1);
  return reshape(matmul(reshape(x, {rows, n}), matrix), dims);
}

/// A signal [rows, length]; without an imaginary part where it is real.
struct Signal {
  Sym real, imaginary;
};

Signal times(const Signal& x, const FourierMatrix& m, const std::function<Sym(Sym x, Sym matrix)>& product) {
  Signal y{product(x.real, m.cosine), product(x.real, m.sine)};
  if (x.imaginary) {
    y.real = y.real - product(x.imaginary, m.sine);
    y.imaginary = y.imaginary + product(x.imaginary, m.cosine);
  }
  return y;
}

/// The largest divisor up to the root, where two short transforms take much less than one product with a matrix; else 1.
std::int64_t first_factor(const Fourier& fourier) {
  constexpr std::int64_t least_factor = 12;
  const std::int64_t least_length = fourier.is_one_product ? 2049 : 256;
  auto factor = static_cast<std::int64_t>(std::sqrt(static_cast<double>(fourier.length)));
  while (factor > 1 && fourier.length % factor != 0) --factor;
  return fourier.length >= least_length && factor >= least_factor ? factor : 1;
}

/// Of a half: the frequencies between the first and the middle come again, mirrored, with the other sign of their angle.
Signal whole_spectrum(const Signal& half, std::int64_t length) {
  const auto with_mirrored = [&](Sym part, double sign) {
    const Sym between = slice(part, -1, 1, length - length / 2);
    return concat({part, flip(between, between.rank() - 1) * sign}, part.rank() - 1);
  };
  return {with_mirrored(half.real, 1), half.imaginary ? with_mirrored(half.imaginary, -1) : Sym()};
}

Signal rows_of(const Signal& x, std::int64_t length) {
  const auto rows = [&](Sym part) { return part ? reshape(part, {part.size() / length, length}) : part; };
  return {rows(x.real), rows(x.imaginary)};
}

/// The transform of length first * second, of which the frequencies up to `outputs` are wanted: elements second * i + j for each j
/// by a transform of length first, turned by their places j, then one of length second over all j, for each frequency of the first.
Signal transform_by_parts(const Signal& x, const Fourier& fourier, std::int64_t first, std::int64_t outputs) {
  GraphBuilder& b = x.real.builder();
  const DType dtype = x.real.dtype();
  const std::int64_t n = fourier.length, second = n / first, rows = x.real.dim(0);
  const double scale = fourier.is_inverse ? 1.0 / static_cast<double>(n) : 1.0;
  const double sign = fourier.is_inverse ? 1 : -1;
  const std::int64_t seconds = std::min((outputs + first - 1) / first, second);
  const auto matrix = [&](std::int64_t height, std::int64_t width, std::int64_t length, double factor) {
    const FourierMatrix m = fourier_matrix(b, dtype, height, width, length);
    return FourierMatrix{m.cosine * factor, m.sine * (sign * factor)};
  };
  const auto columns_ahead = [&](Sym part) {
    return part ? transpose(reshape(part, {rows, first, second}), {0, 2, 1}) : part;
  };
  const Signal inner = times({columns_ahead(x.real), columns_ahead(x.imaginary)},
                             matrix(first, first, first, 1), times_matrix);
  const Signal turned =
      times(inner, matrix(second, first, n, 1), [](Sym part, Sym turn) { return part * turn; });
  const Signal outer = times(turned, matrix(seconds, second, second, scale),
                             [](Sym part, Sym left) { return matmul(left, part); });
  const auto in_order = [&](Sym part) {
    return slice(reshape(part, {rows, seconds * first}), 1, 0, outputs);
  };
  return {in_order(outer.real), in_order(outer.imaginary)};
}

bool expands(const Fourier& fourier) {
  return fourier.is_inverse && fourier.is_onesided;  // half a spectrum to a real signal
}

/// A transform of `length` numbers of one or two parts to `outputs` of one or two, as a matrix of real numbers.
struct RealMatrix {
  const Fourier& fourier;
  std::int64_t length, parts, outputs, made;
  /// The parts of a number lie side by side; else all first parts are ahead of the second ones.
  bool is_together;
  /// [made * outputs, parts * length]; else that transposed.
  bool is_left;
  /// Given parts that lie apart begin at multiples of so many numbers, with zeros between.
  std::int64_t unit;

  [[nodiscard]] std::int64_t places() const { return is_together ? length : round_up(length, unit); }

  /// Transforms that are alike share one constant, which its name tells.
  [[nodiscard]] Sym made_by(GraphBuilder& b, DType dtype) const {
    const std::int64_t rows = made * outputs, columns = parts * places();
    const std::string name = fmt::format("fourier {} {} {}x{} of {}x{}{}{}{}", fourier.length,
                                         dtype_name(dtype), made, outputs, parts, length,
                                         expands(fourier)     ? " whole"
                                         : fourier.is_inverse ? " back"
                                                              : "",
                                         is_together ? " together" : "",
                                         is_left    ? " left"
                                         : unit > 1 ? " aligned"
                                                    : "");
    for (std::size_t id = b.graph().values().size(); id-- > 0;)
      if (const Value& value = b.graph().value(static_cast<ValueId>(id));
          value.constant && value.name == name)
        return {b, static_cast<ValueId>(id)};
    b.reserve_table({rows, columns});
    std::vector<double> values, sines;
    for (std::int64_t part = 0; part < 4 * fourier.length; ++part)
      sines.push_back(sine_of_part(part, 4 * fourier.length));
    const auto entry = [&](std::int64_t row, std::int64_t column) {
      const auto [output, result] = number_and_part(row, outputs, made);
      const auto [place, part] = number_and_part(column, places(), parts);
      return place >= length ? 0.0 : factor(sines, place, output, part, result);
    };
    for (std::int64_t i = 0; i < (is_left ? rows : columns); ++i)
      for (std::int64_t j = 0; j < (is_left ? columns : rows); ++j)
        values.push_back(is_left ? entry(i, j) : entry(j, i));
    const Sym matrix = b.reals(dtype, is_left ? Dims{rows, columns} : Dims{columns, rows}, values);
    b.graph().value(matrix.id()).name = name;
    return matrix;
  }

 private:
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> number_and_part(std::int64_t i, std::int64_t numbers,
                                                                      std::int64_t of_number) const {
    if (is_together) return {i / of_number, i % of_number};
    return {i % numbers, i / numbers};
  }

  /// Of a half, the frequencies between the first and the middle stand for their mirror images too.
  [[nodiscard]] double factor(const std::vector<double>& sines, std::int64_t place, std::int64_t output,
                              std::int64_t part, std::int64_t result) const {
    const std::int64_t n = fourier.length, turn = place * output % n;
    const bool is_twice = expands(fourier) && place > 0 && 2 * place < n;
    const double scale = (is_twice ? 2.0 : 1.0) / (fourier.is_inverse ? static_cast<double>(n) : 1.0);
    if (part == result) return scale * sines.at(static_cast<std::size_t>((4 * turn + n) % (4 * n)));
    const double sine = scale * sines.at(static_cast<std::size_t>(4 * turn));
    return fourier.is_inverse == (result > part) ? sine : -sine;
  }
};

/// The parts of a spectrum along its last axis, one behind the other, each filled up to so many numbers.
Sym parts_in_a_row(Sym x, std::int64_t places) {
  GraphBuilder& b = x.builder();
  const int last = x.rank() - 1;
  const Node* const joined = producer_if(b.graph(), x.id(), Op::concat);
  const bool is_joined = joined != nullptr && joined->attributes.integer("axis") == last &&
                         static_cast<std::int64_t>(joined->inputs.size()) == x.dim(-1) &&
                         b.graph().type(joined->inputs[0]).dims().back() == 1;
  const std::vector<ValueId> made = is_joined ? joined->inputs : std::vector<ValueId>{};
  std::vector<Sym> parts;
  for (int i = 0; i < static_cast<int>(x.dim(-1)); ++i) {
    const Sym part = is_joined ? Sym(b, made[static_cast<std::size_t>(i)]) : slice(x, -1, i, i + 1);
    parts.push_back(fit_length(part, last - 1, places));
  }
  return concat(parts, last - 1);
}

/// One product. Where much lies behind the axis the matrix stands on the left, and nothing is moved. The parts of a real signal's
/// spectrum lie ahead of the axis and other parts behind, so that between the transforms along two neighbouring axes they stay.
Sym transform_at_once(Sym x, int axis, const Fourier& fourier, std::int64_t outputs) {
  constexpr std::int64_t least_behind = 64, vector = 8, least_aligned = 128;
  GraphBuilder& b = x.builder();
  const int rank = x.rank();
  std::int64_t ahead = 1, behind = 1;
  for (int d = 0; d < rank - 1; ++d) (d < axis ? ahead : behind) *= d == axis ? 1 : x.dim(d);
  const bool is_left = behind >= least_behind && behind % vector == 0;
  const std::int64_t parts = x.dim(-1), made = expands(fourier) ? 1 : 2;
  const bool is_aligned =
      fourier.is_one_product && !is_left && expands(fourier) && x.dim(axis) >= least_aligned;
  const RealMatrix matrix{fourier, x.dim(axis),          parts,   outputs,
                          made,    !fourier.is_onesided, is_left, is_aligned ? vector : 1};
  std::vector<std::int64_t> order, back(static_cast<std::size_t>(rank));
  const auto add_range = [&](int first, int last) {
    for (int d = first; d < last; ++d) order.push_back(d);
  };
  add_range(0, axis);
  if (!is_left) add_range(axis + 1, rank - 1);
  for (const int d : {matrix.is_together ? axis : rank - 1, matrix.is_together ? rank - 1 : axis})
    order.push_back(d);
  if (is_left) add_range(axis + 1, rank - 1);
  Dims dims;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<int>(order[i]);
    back[static_cast<std::size_t>(from)] = static_cast<std::int64_t>(i);
    dims.push_back(from == axis ? outputs : from == rank - 1 ? matrix.made : x.dim(from));
  }
  const Sym given = is_aligned && axis == rank - 2 ? parts_in_a_row(x, matrix.places())
                                                   : transpose(fit_length(x, axis, matrix.places()), order);
  const Sym own = matrix.made_by(b, x.dtype());
  const std::int64_t numbers = matrix.parts * matrix.places();
  const Sym y = is_left ? matmul(own, reshape(given, {ahead, numbers, behind}))
                        : matmul(reshape(given, {ahead * behind, numbers}), own);
  return transpose(reshape(y, dims), back);
}

/// Two products, of a signal along the axis ahead of the parts.
Sym transform_in_two(Sym x, const Fourier& fourier, std::int64_t first, std::int64_t outputs) {
  const std::int64_t n = fourier.length;
  const Sym real = squeeze(slice(x, -1, 0, 1), {-1});
  const Sym imaginary = x.dim(-1) == 2 ? squeeze(slice(x, -1, 1, 2), {-1}) : Sym();
  const Signal given = expands(fourier) ? whole_spectrum({real, imaginary}, n) : Signal{real, imaginary};
  const Signal made = transform_by_parts(rows_of(given, n), fourier, first, outputs);
  Dims dims = real.dims();
  dims.back() = outputs;
  dims.push_back(1);
  if (expands(fourier)) return reshape(made.real, dims);
  return concat({reshape(made.real, dims), reshape(made.imaginary, dims)}, real.rank());
}

}  // namespace

Sym fourier_transform(Sym x, int axis, const Fourier& fourier) {
  const int at = axis < 0 ? axis + x.rank() : axis;
  const std::int64_t n = fourier.length;
  const Sym fitted = fit_length(x, at, expands(fourier) ? n / 2 + 1 : n);
  const std::int64_t outputs = fourier.is_onesided && !fourier.is_inverse ? n / 2 + 1 : n;
  const std::int64_t first = first_factor(fourier);
  if (first == 1 || x.size() == 0) return transform_at_once(fitted, at, fourier, outputs);
  return swap_axes(transform_in_two(swap_axes(fitted, at, -2), fourier, first, outputs), at, -2);
}

}  // namespace sylvite
