// Linear algebra of small matrices: what LAPACK does, as loops over columns. Matrices are [batch, rows, columns] here.

#include <algorithm>
#include <cmath>
#include <utility>

#include "frontend/graph/loop_builder.h"
#include "frontend/torch/torch_complex.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

/// Beyond, a trip for each column takes longer than LAPACK's blocks.
constexpr std::int64_t most_columns = 128;

/// The dims of the batch, and all of them as one.
Dims batch_dims(const Dims& dims) {
  if (dims.size() < 2) throw ModelError("a matrix of {} axes", dims.size());
  return {dims.begin(), dims.end() - 2};
}

Sym as_batch(Sym x, const Dims& batch) {
  Dims dims = batch;
  std::int64_t count = 1;
  for (const std::int64_t extent : batch) count *= extent;
  const std::int64_t rows = x.dim(-2), columns = x.dim(-1);
  dims.insert(dims.end(), {rows, columns});
  return reshape(broadcast_to(x, dims), {count, rows, columns});
}

Sym matrices(Sym x) {
  if (!is_float(x.dtype())) throw UnsupportedError("matrices of {} are not served", dtype_name(x.dtype()));
  if (x.size() == 0) throw UnsupportedError("matrices without elements are not served");
  if (std::min(x.dim(-2), x.dim(-1)) > most_columns)
    throw UnsupportedError("matrices of more than {} columns are left to LAPACK", most_columns);
  return as_batch(x, batch_dims(x.dims()));
}

Sym square_matrices(Sym x) {
  if (x.dim(-2) != x.dim(-1))
    throw UnsupportedError("matrices of {} rows and {} columns are not served", x.dim(-2), x.dim(-1));
  return matrices(x);
}

/// Numbers of rows [rows, 1], and of columns [1, columns].
Sym row_numbers(Sym x) {
  return x.builder().iota(DType::i64, {x.dim(1), 1}, 0);
}
Sym column_numbers(Sym x) {
  return x.builder().iota(DType::i64, {1, x.dim(2)}, 1);
}

Sym at(Sym x, Sym number, int axis) {
  return gather(x, reshape(number, {1}), axis);
}

/// 0, 1, ..., for the trips of a loop.
Sym trip_numbers(GraphBuilder& b, std::int64_t trips) {
  return b.iota(DType::i64, {trips}, 0);
}

/// The first place along the last axis that is bad, counted from 1, or 0: LAPACK's info, of [batch, n].
Sym first_bad(Sym is_bad) {
  const Sym bad = cast(is_bad, DType::i32);
  const std::int64_t n = bad.dim(1);
  const Sym place = bad.builder().iota(DType::i32, {1, n}, 1) + 1.0;
  const Sym first = reduce(Op::reduce_min, where(is_bad, place, static_cast<double>(n + 1)), {1}, false);
  return where(apply(Op::equal, first, static_cast<double>(n + 1)), 0.0, first);
}

// Cholesky

struct Root {
  Sym lower;   ///< [batch, n, n]
  Sym pivots;  ///< [batch, n], whose roots are the diagonal
};

/// Reads the lower triangle.
Root root_of(Sym a) {
  GraphBuilder& b = a.builder();
  const Sym rows = row_numbers(a);
  const LoopSpec spec{a.dim(1), false, {{a}, {trip_numbers(b, a.dim(1))}}};
  const TripValues found = run_loop(b, spec, [&](const TripValues& trip) -> TripValues {
    const Sym rest = trip.states[0], k = trip.slices[0];
    const Sym column = at(rest, k, 2);
    const Sym pivot = at(column, k, 1);
    const Sym scaled = where(apply(Op::less, rows, k), 0.0, column / apply(Op::sqrt, pivot));
    return {{rest - scaled * swap_axes(scaled, 1, 2)}, {squeeze(scaled, {2}), squeeze(pivot, {1, 2})}};
  });
  return {transpose(found.slices[0], {1, 2, 0}), transpose(found.slices[1], {1, 0})};
}

void cholesky(TorchContext& c) {
  c.ignore("check_errors");
  const bool is_upper = c.flag("upper", false);
  const Sym x = c.tensor("self");
  const Sym a = square_matrices(x);
  const Root root = root_of(is_upper ? swap_axes(a, 1, 2) : a);
  const Sym is_bad = apply(Op::logical_not, apply(Op::greater, root.pivots, 0.0));
  c.outputs({reshape(is_upper ? swap_axes(root.lower, 1, 2) : root.lower, x.dims()),
             reshape(first_bad(is_bad), batch_dims(x.dims()))});
}

// Triangular systems

struct Triangle {
  bool is_upper = false;
  bool has_ones = false;  ///< on the diagonal, whatever is there
};

/// X of A X = B, of [batch, n, n] and [batch, n, m]: a row of X a trip, whose products leave the rows behind it.
Sym solve_triangle(Sym a, Sym rights, const Triangle& triangle) {
  GraphBuilder& b = a.builder();
  const Sym rows = row_numbers(a);
  const std::int64_t n = a.dim(1);
  const LoopSpec spec{n, triangle.is_upper, {{rights}, {transpose(a, {2, 0, 1}), trip_numbers(b, n)}}};
  const TripValues found = run_loop(b, spec, [&](const TripValues& trip) -> TripValues {
    const Sym rest = trip.states[0], column = unsqueeze(trip.slices[0], {2}), k = trip.slices[1];
    Sym x = at(rest, k, 1);
    if (!triangle.has_ones) x = x / at(column, k, 1);
    const Sym is_behind = triangle.is_upper ? apply(Op::less, rows, k) : apply(Op::greater, rows, k);
    return {{rest - where(is_behind, column, 0.0) * x}, {squeeze(x, {1})}};
  });
  return transpose(found.slices[0], {1, 0, 2});
}

void solve_triangular(TorchContext& c) {
  const Dims dims = c.result_dims();
  const Dims batch = batch_dims(dims);
  Triangle triangle{c.flag("upper"), c.flag("unitriangular", false)};
  (void)square_matrices(c.tensor("self"));
  Sym a = as_batch(c.tensor("self"), batch);
  Sym b = as_batch(c.tensor("B"), batch);
  if (c.flag("left", true)) return c.output(reshape(solve_triangle(a, b, triangle), dims));
  triangle.is_upper = !triangle.is_upper;
  const Sym x = solve_triangle(swap_axes(a, 1, 2), swap_axes(b, 1, 2), triangle);
  c.output(reshape(swap_axes(x, 1, 2), dims));
}

// Elimination

struct Factors {
  Complex packed;  ///< [batch, n, n]: the lower factor without its ones, and the upper one
  Sym pivots;      ///< [batch, n] i64: the row that was exchanged with each
};

/// Of both parts, or of the one there is.
template <typename Function>
Complex of_parts(Complex x, const Function& function) {
  return {function(x.re), x.im ? function(x.im) : Sym()};
}

/// By which LAPACK picks pivots.
Sym size_of(Complex x) {
  return x.im ? apply(Op::abs, x.re) + apply(Op::abs, x.im) : apply(Op::abs, x.re);
}

/// The factors of the columns so far, and what is left of the others, when column k is done.
Complex next_factors(Complex rest, Sym k, const std::pair<Sym, Sym>& numbers) {
  const auto& [rows, columns] = numbers;
  const Complex row = of_parts(rest, [&](Sym x) { return at(x, k, 1); });
  const Complex column = of_parts(rest, [&](Sym x) { return at(x, k, 2); });
  const Complex pivot = of_parts(row, [&](Sym x) { return at(x, k, 2); });
  const Complex divisor{where(apply(Op::equal, size_of(pivot), 0.0), 1.0, pivot.re), pivot.im};
  const Sym is_below = apply(Op::greater, rows, k);
  const Complex factor = of_parts(over(column, divisor), [&](Sym x) { return where(is_below, x, 0.0); });
  const Sym is_later = apply(Op::greater, columns, k);
  const Complex taken = times(factor, of_parts(row, [&](Sym x) { return where(is_later, x, 0.0); }));
  const Sym is_factor = apply(Op::logical_and, apply(Op::equal, columns, k), is_below);
  return {where(is_factor, factor.re, rest.re - taken.re),
          rest.im ? where(is_factor, factor.im, rest.im - taken.im) : Sym()};
}

Factors factors_of(Complex a) {
  GraphBuilder& b = a.re.builder();
  const Sym rows = row_numbers(a.re), columns = column_numbers(a.re);
  const auto states = [](Complex x) { return x.im ? std::vector<Sym>{x.re, x.im} : std::vector<Sym>{x.re}; };
  const auto parts = [](const std::vector<Sym>& found) {
    return Complex{found[0], found.size() > 1 ? found[1] : Sym()};
  };
  const LoopSpec spec{a.re.dim(1), false, {states(a), {trip_numbers(b, a.re.dim(1))}}};
  const TripValues found = run_loop(b, spec, [&](const TripValues& trip) -> TripValues {
    const Sym k = trip.slices[0];
    const Complex given = parts(trip.states);
    const Sym size = size_of(of_parts(given, [&](Sym x) { return at(x, k, 2); }));
    const Sym sizes = where(apply(Op::less, rows, k), -1.0, size);
    const Sym best = b.add(Op::arg_max, {sizes}, {{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{1}}});
    const Sym from = where(apply(Op::equal, rows, k), best, where(apply(Op::equal, rows, best), k, rows));
    const Complex exchanged = of_parts(given, [&](Sym x) {
      return b.add(Op::gather_elements, {x, broadcast_to(from, x.dims())}, {{"axis", std::int64_t{1}}});
    });
    return {states(next_factors(exchanged, k, {rows, columns})), {squeeze(best, {1, 2})}};
  });
  return {parts(found.states), transpose(found.slices[0], {1, 0})};
}

/// What exchanges, one after the other, make of the order of rows [batch, n]: the row that comes to each place.
Sym order_of(Sym pivots) {
  GraphBuilder& b = pivots.builder();
  const std::int64_t batch = pivots.dim(0), n = pivots.dim(1);
  const Sym places = b.iota(DType::i64, {1, n}, 1);
  const LoopSpec spec{
      n, false, {{broadcast_to(places, {batch, n})}, {transpose(pivots, {1, 0}), trip_numbers(b, n)}}};
  const TripValues found = run_loop(b, spec, [&](const TripValues& trip) -> TripValues {
    const Sym order = trip.states[0], other = unsqueeze(trip.slices[0], {1}), k = trip.slices[1];
    const Sym theirs = b.add(Op::gather_elements, {order, other}, {{"axis", std::int64_t{1}}});
    const Sym moved = where(apply(Op::equal, places, other), at(order, k, 1), order);
    return {{where(apply(Op::equal, places, k), theirs, moved)}, {}};
  });
  return found.states[0];
}

Sym rows_in_order(Sym x, Sym order) {
  return x.builder().add(Op::gather_elements, {x, broadcast_to(unsqueeze(order, {2}), x.dims())},
                         {{"axis", std::int64_t{1}}});
}

/// What linalg_lu_factor_ex gives.
std::vector<Complex> factorized(TorchContext& c, Complex x) {
  c.ignore("check_errors");
  if (!c.flag("pivot", true)) throw UnsupportedError("factors without exchanges of rows are not served");
  const Complex a = of_parts(x, square_matrices);
  const Factors factors = factors_of(a);
  const Dims dims = x.re.dims();
  Dims line = dims;
  line.pop_back();
  const Sym is_diagonal = apply(Op::equal, row_numbers(a.re), column_numbers(a.re));
  const Sym diagonal = reduce(Op::reduce_sum, where(is_diagonal, size_of(factors.packed), 0.0), {2}, false);
  return {of_parts(factors.packed, [&](Sym each) { return reshape(each, dims); }),
          {reshape(cast(factors.pivots + 1.0, DType::i32), line), Sym()},
          {reshape(first_bad(apply(Op::equal, diagonal, 0.0)), batch_dims(dims)), Sym()}};
}

void factorize(TorchContext& c) {
  const std::vector<Complex> found = factorized(c, {c.tensor("A"), Sym()});
  c.outputs({found[0].re, found[1].re, found[2].re});
}

/// X of A X = B, or of A^T X = B.
Sym solve_by_factors(Sym packed, Sym order, Sym b, bool is_transposed) {
  constexpr Triangle lower{false, true}, upper{true, false};
  if (!is_transposed)
    return solve_triangle(packed, solve_triangle(packed, rows_in_order(b, order), lower), upper);
  const Sym turned = swap_axes(packed, 1, 2);
  const Sym y = solve_triangle(turned, solve_triangle(turned, b, {false, false}), {true, true});
  GraphBuilder& builder = b.builder();
  const Sym places = broadcast_to(builder.iota(DType::i64, {1, order.dim(1)}, 1), order.dims());
  const Sym back = builder.add(Op::scatter_elements, {places, order, places},
                               {{"axis", std::int64_t{1}}, {"reduction", std::string("none")}});
  return rows_in_order(y, back);
}

void solve_factorized(TorchContext& c) {
  const Dims dims = c.result_dims();
  const Dims batch = batch_dims(dims);
  (void)square_matrices(c.tensor("LU"));
  const Sym packed = as_batch(c.tensor("LU"), batch);
  const Sym pivots =
      squeeze(as_batch(unsqueeze(cast(c.tensor("pivots"), DType::i64), {-1}), batch), {2}) - 1.0;
  const Sym b = as_batch(c.tensor("B"), batch);
  const bool is_transposed = c.flag("adjoint", false);
  if (c.flag("left", true))
    return c.output(reshape(solve_by_factors(packed, order_of(pivots), b, is_transposed), dims));
  const Sym x = solve_by_factors(packed, order_of(pivots), swap_axes(b, 1, 2), !is_transposed);
  c.output(reshape(swap_axes(x, 1, 2), dims));
}

// Householder's reflections

/// The triangle that is left, and for each column what it was reflected by: 1 - factor v v^T.
struct Reflections {
  Sym rest;     ///< [batch, m, n]
  Sym vectors;  ///< [k, batch, m]
  Sym factors;  ///< [k, batch]
};

Reflections reflect(Sym a) {
  GraphBuilder& b = a.builder();
  const Sym rows = row_numbers(a);
  const std::int64_t count = std::min(a.dim(1), a.dim(2));
  const LoopSpec spec{count, false, {{a}, {trip_numbers(b, count)}}};
  const TripValues found = run_loop(b, spec, [&](const TripValues& trip) -> TripValues {
    const Sym rest = trip.states[0], k = trip.slices[0];
    const Sym column = at(rest, k, 2);
    const Sym first = at(column, k, 1);
    const Sym below = where(apply(Op::greater, rows, k), column, 0.0);
    const Sym square = reduce(Op::reduce_sum, below * below, {1});
    const Sym is_done = apply(Op::equal, square, 0.0);
    const Sym length = apply(Op::sqrt, first * first + square);
    const Sym next = where(apply(Op::less, first, 0.0), length, -length);
    const Sym factor = where(is_done, 0.0, (next - first) / where(is_done, 1.0, next));
    const Sym v = where(apply(Op::equal, rows, k), 1.0, below / where(is_done, 1.0, first - next));
    return {{rest - factor * v * reduce(Op::reduce_sum, v * rest, {1})},
            {squeeze(v, {2}), squeeze(factor, {1, 2})}};
  });
  return {found.states[0], found.slices[0], found.slices[1]};
}

/// The first columns of the product of all reflections.
Sym orthogonal(const Reflections& r, std::int64_t columns) {
  GraphBuilder& b = r.rest.builder();
  const std::int64_t batch = r.rest.dim(0), rows = r.rest.dim(1);
  const Sym is_one = apply(Op::equal, b.iota(DType::i64, {rows, 1}, 0), b.iota(DType::i64, {1, columns}, 1));
  const Sym unit = broadcast_to(cast(is_one, r.rest.dtype()), {batch, rows, columns});
  const LoopSpec spec{r.vectors.dim(0), true, {{unit}, {r.vectors, r.factors}}};
  const TripValues found = run_loop(b, spec, [](const TripValues& trip) -> TripValues {
    const Sym q = trip.states[0], v = unsqueeze(trip.slices[0], {2}),
              factor = unsqueeze(trip.slices[1], {1, 2});
    return {{q - factor * v * reduce(Op::reduce_sum, v * q, {1})}, {}};
  });
  return found.states[0];
}

void qr(TorchContext& c) {
  const Sym x = c.tensor("A");
  const std::string mode = c.string("mode", "reduced");
  const Reflections reflections = reflect(matrices(x));
  const std::int64_t kept = c.result_dims_of_rank(x.dims().size(), 1)[x.dims().size() - 2];
  const Sym triangle = slice(reflections.rest, 1, 0, kept);
  const Sym is_below = apply(Op::greater, row_numbers(triangle), column_numbers(triangle));
  const Sym r = reshape(where(is_below, 0.0, triangle), c.result_dims(1));
  if (mode == "r") return c.outputs({c.builder().filled(x.dtype(), c.result_dims(0), 0), r});
  c.outputs({reshape(orthogonal(reflections, kept), c.result_dims(0)), r});
}

const TorchOp linalg_rows[] = {
    {"aten.linalg_cholesky_ex.default", "self upper check_errors", cholesky},
    {"aten.linalg_lu_factor_ex.default", "A pivot check_errors", factorize},
    {"aten.linalg_lu_solve.default", "LU pivots B left adjoint", solve_factorized},
    {"aten.linalg_qr.default", "A mode", qr},
    {"aten.linalg_solve_triangular.default", "self B upper left unitriangular", solve_triangular},
};

}  // namespace

void factorize_complex(ComplexContext& c) {
  c.results = factorized(c.re, c.value("A"));
}

std::span<const TorchOp> torch_linalg_ops() {
  return linalg_rows;
}

}  // namespace sylvite
