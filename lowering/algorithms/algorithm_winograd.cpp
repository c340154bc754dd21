#include "base/error.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/conv_parts.h"
#include "lowering/plan/winograd.h"

// Form conv_winograd{tile=m}: a 3 x 3 convolution, stride 1, into a channel-blocked output, m x m outputs at
// a time: (m+2)^2 products of n x n = (m+2) x (m+2) transformed inputs with transformed filters, each a
// matrix product over the channels. With v0 the convolution, t1 and t2 the tile's column and row, and i, j
// the product's place in the tile along x and y:
//   v0_in(d0, d1, d2, d3, d4)               the input with its zero border, as in conv_blocked
//   v0_rows(d0, i, j, t1, t2, d3, d4)       a tile's n lines (j), each transformed along x
//   v0_tiles(d0, t1, t2, d3, i, j, d4)      transformed along y, too: the left operand of product (i, j)
//   v0_fold(d0, t1, t2, d3, i, j, d4)       the accumulator; d0 and d3 are output channels. Its update folds
//                                           over r0 (channel in a fold block) and r1 (fold block)
//   v0_products(d0, t1, t2, d3, i, j, d4)   v0_fold, to be stored
//   v0_columns(d0, i, j, t1, t2, d3, d4)    transformed back along x: i is an output in the tile
//   v0                                      transformed back along y, plus the bias
// conv_winograd{columns=c,tile=m}: each line has at least c transformed tiles, of which those beside the image
// are of its border. Where products of c tiles at once are shifted inwards, they then read none that was never
// written: such values may be denormal, which are a hundred times as slow to multiply.
// What a non-finite input reaches: every output of its tiles, as NaN or infinity; directly, only its windows.

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

ConvProblem require_winograd(const Kernel& kernel, int tile) {
  Reading<ConvProblem> reading = read_winograd(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("a Winograd convolution cannot take the kernel: {}", reading.refusal);
  // Tiles may reach over the last lines and columns, padding or not; over open ones in some run.
  ConvProblem& problem = reading.problem;
  const auto leaves_tail = [&](std::int64_t extent) { return extent == open_extent || extent % tile != 0; };
  problem.padded = problem.padded || leaves_tail(problem.out_height) || leaves_tail(problem.out_width);
  return problem;
}

int tile_of(const Form& form) {
  return static_cast<int>(form.at("tile"));
}

/// Packed: output channel in block, channel, i, j, block.
Packing transformed_filter_packing(const ConvProblem& problem, int tile) {
  return {{1, 1, problem.block, 1}, {4, 0, 2, 6, 5}, tile};
}

/// The sum of the terms with a coefficient, lowest last, so that each further one is a multiply-add.
class Sum {
 public:
  void add(double coefficient, const Expr& term) {
    if (coefficient == 0.0) return;
    const Expr scaled = coefficient == 1.0 ? term : term * static_cast<float>(coefficient);
    total_ = total_.defined() ? scaled + total_ : scaled;
  }
  [[nodiscard]] Expr total() const { return total_.defined() ? total_ : Expr(0.0F); }

 private:
  Expr total_;
};

/// transform.input * values. Rows in pairs share the sums of their even and their odd columns.
std::vector<Expr> transform_inputs(const WinogradTransform& transform, const std::vector<Expr>& values) {
  const Matrix& rows = transform.input;
  const std::size_t size = rows.size();
  std::vector<Expr> result;
  const auto plain_row = [&](std::size_t row) {
    Sum sum;
    for (std::size_t k = size; k-- > 0;) sum.add(rows[row][k], values[k]);
    return sum.total();
  };
  result.push_back(plain_row(0));
  for (std::size_t row = 1; row + 1 < size; row += 2) {
    const double lead =
        rows[row][size - 3];  // the highest odd column; divided out, its term needs no product
    Sum even;
    Sum odd;
    for (std::size_t k = size; k-- > 0;) {
      if (k % 2 == 0) even.add(rows[row][k], values[k]);
      if (k % 2 == 1) odd.add(rows[row][k] / lead, values[k]);
    }
    const Expr scaled = odd.total() * static_cast<float>(lead);
    result.push_back(even.total() + scaled);
    result.push_back(even.total() - scaled);
  }
  result.push_back(plain_row(size - 1));
  return result;
}

/// transform.output * products. Columns in pairs are added for even rows, subtracted for odd ones.
std::vector<Expr> transform_outputs(const WinogradTransform& transform, const std::vector<Expr>& products) {
  std::vector<Expr> result;
  for (std::size_t row = 0; row < transform.output.size(); ++row) {
    const std::vector<double>& factors = transform.output[row];
    Sum sum;
    sum.add(factors.back(), products.back());
    for (std::size_t k = 1; k + 2 < factors.size(); k += 2)
      sum.add(factors[k], row % 2 == 0 ? products[k] + products[k + 1] : products[k] - products[k + 1]);
    sum.add(factors.front(), products.front());
    result.push_back(sum.total());
  }
  return result;
}

/// `at(k)` for k = 0 .. count-1.
template <typename At>
std::vector<Expr> each(int count, At at) {
  std::vector<Expr> values;
  values.reserve(static_cast<std::size_t>(count));
  for (int k = 0; k < count; ++k) values.push_back(at(k));
  return values;
}

/// The variables of all stages.
struct Vars {
  Var d0{"d0"}, d3{"d3"}, d4{"d4"}, i{"i"}, j{"j"}, t1{"t1"}, t2{"t2"};
};

Func define_tiles(AlgorithmBuilder& builder, const ConvProblem& problem, const WinogradTransform& transform) {
  const auto [d0, d3, d4, i, j, t1, t2] = Vars();
  const std::string& name = builder.name(problem.anchor);
  const int tile = transform.tile;
  const Func source = define_source(builder, problem, border_of(problem));
  Func rows = builder.stage(name + "_rows");
  Func tiles = builder.stage(name + "_tiles");
  const Expr x = t1 * tile - builder.extent(problem.pad_left);
  const Expr y = t2 * tile - builder.extent(problem.pad_top);
  const auto pixel = [&](int k) { return source(d0, x + k, y + j, d3, d4); };
  rows(d0, i, j, t1, t2, d3, d4) = Halide::mux(i, transform_inputs(transform, each(transform.size(), pixel)));
  const auto row = [&](int k) { return rows(d0, i, k, t1, t2, d3, d4); };
  tiles(d0, t1, t2, d3, i, j, d4) = Halide::mux(j, transform_inputs(transform, each(transform.size(), row)));
  return tiles;
}

Func define_products(AlgorithmBuilder& builder, const ConvProblem& problem, const Func& tiles) {
  const auto [d0, d3, d4, i, j, t1, t2] = Vars();
  const std::string& name = builder.name(problem.anchor);
  Func fold = builder.stage(name + "_fold");
  Func products = builder.stage(name + "_products");
  const Halide::RDom r = reduction_domain({problem.fold_block, problem.channels / problem.fold_block});
  const int ratio = problem.source_block / problem.fold_block;
  const Expr lane = ratio == 1 ? Expr(r[0]) : r[1] % ratio * problem.fold_block + r[0];
  const Expr block = ratio == 1 ? Expr(r[1]) : r[1] / ratio;
  fold(d0, t1, t2, d3, i, j, d4) = 0.0F;
  fold(d0, t1, t2, d3, i, j, d4) +=
      tiles(lane, t1, t2, block, i, j, d4) *
      builder.parameter(problem.weight)(d0, r[1] * problem.fold_block + r[0], i, j, d3);
  products(d0, t1, t2, d3, i, j, d4) = fold(d0, t1, t2, d3, i, j, d4);
  return products;
}

Func define_columns(AlgorithmBuilder& builder, const ConvProblem& problem, const WinogradTransform& transform,
                    const Func& products) {
  const auto [d0, d3, d4, i, j, t1, t2] = Vars();
  Func columns = builder.stage(builder.name(problem.anchor) + "_columns");
  const auto product = [&](int k) { return products(d0, t1, t2, d3, k, j, d4); };
  columns(d0, i, j, t1, t2, d3, d4) =
      Halide::mux(i, transform_outputs(transform, each(transform.size(), product)));
  return columns;
}

}  // namespace

std::vector<Packing> conv_winograd_packings(const Kernel& kernel, const Form& form) {
  const ConvProblem problem = require_winograd(kernel, tile_of(form));
  return conv_packings(kernel, problem, transformed_filter_packing(problem, tile_of(form)));
}

Algorithm build_conv_winograd(const Kernel& kernel, const Form& form) {
  const WinogradTransform& transform = winograd_transform(tile_of(form));
  const ConvProblem problem = require_winograd(kernel, transform.tile);
  AlgorithmBuilder builder(kernel, conv_winograd_packings(kernel, form));
  builder.define_before(kernel.anchor);
  Func tiles = define_tiles(builder, problem, transform);
  if (form.parameters.contains("columns")) {
    const auto columns = static_cast<int>(form.at("columns"));
    const Expr across = (builder.extent(problem.anchor, 3) + (transform.tile - 1)) / transform.tile;
    tiles.bound(Var("t1"), Halide::min(across - columns, 0), Halide::max(across, columns));
  }
  const Func products = define_products(builder, problem, tiles);
  const Func columns = define_columns(builder, problem, transform, products);
  define_product(builder, problem, [&](const std::vector<Expr>& d) -> Expr {
    const auto column = [&](int k) {
      return columns(d[0], d[1] % transform.tile, k, d[1] / transform.tile, d[2] / transform.tile, d[3],
                     d[4]);
    };
    return Halide::mux(d[2] % transform.tile, transform_outputs(transform, each(transform.size(), column)));
  });
  builder.define_rest();
  return builder.finish();
}

}  // namespace sylvite
