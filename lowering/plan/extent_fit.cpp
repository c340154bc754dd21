#include "lowering/plan/extent_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "lowering/plan/term_pair.h"

namespace sylvite {
namespace {

using FitMatrix = std::vector<std::vector<long double>>;

constexpr std::size_t most_terms = 128;   ///< more would need as many points
constexpr std::size_t most_factors = 32;  ///< beside these, products are not tried
constexpr int factors_of_product = 3;     ///< images, lines and columns

/// Column by column the row that is largest there once the columns before are gone; none where a column has no such row.
std::vector<std::size_t> independent_rows(FitMatrix matrix) {
  constexpr long double nothing = 1e-9L;  // columns are at most 1
  const std::size_t columns = matrix[0].size();
  std::vector<std::size_t> rows;
  std::vector<bool> is_used(matrix.size(), false);
  for (std::size_t column = 0; column < columns; ++column) {
    std::size_t best = matrix.size();
    for (std::size_t i = 0; i < matrix.size(); ++i)
      if (!is_used[i] &&
          (best == matrix.size() || std::abs(matrix[i][column]) > std::abs(matrix[best][column])))
        best = i;
    if (best == matrix.size() || std::abs(matrix[best][column]) < nothing) return {};
    is_used[best] = true;
    rows.push_back(best);
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      if (is_used[i]) continue;
      const long double factor = matrix[i][column] / matrix[best][column];
      for (std::size_t j = column; j < columns; ++j) matrix[i][j] -= factor * matrix[best][j];
    }
  }
  return rows;
}

/// Gauss and Jordan, with the largest pivot of a column. REQUIRES a regular matrix.
FitMatrix inverse_of(FitMatrix matrix) {
  const std::size_t size = matrix.size();
  FitMatrix inverse(size, std::vector<long double>(size, 0));
  for (std::size_t i = 0; i < size; ++i) inverse[i][i] = 1;
  for (std::size_t column = 0; column < size; ++column) {
    std::size_t pivot = column;
    for (std::size_t i = column + 1; i < size; ++i)
      if (std::abs(matrix[i][column]) > std::abs(matrix[pivot][column])) pivot = i;
    std::swap(matrix[column], matrix[pivot]);
    std::swap(inverse[column], inverse[pivot]);
    const long double scale = 1 / matrix[column][column];
    for (std::size_t j = 0; j < size; ++j) {
      matrix[column][j] *= scale;
      inverse[column][j] *= scale;
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (i == column) continue;
      const long double factor = matrix[i][column];
      for (std::size_t j = 0; j < size; ++j) {
        matrix[i][j] -= factor * matrix[column][j];
        inverse[i][j] -= factor * inverse[column][j];
      }
    }
  }
  return inverse;
}

Extent over_multiple(const FitSymbol& symbol) {
  const Extent size = Extent::symbol(symbol.name);
  return symbol.multiple > 1 ? floor_div(size, symbol.multiple) : size;
}

/// c * x + k that has `values` where x has `at`, with c and k integers.
std::optional<std::pair<std::int64_t, std::int64_t>> line_through(const std::vector<std::int64_t>& values,
                                                                  const std::vector<std::int64_t>& at) {
  const auto other = std::ranges::find_if(at, [&](std::int64_t each) { return each != at[0]; });
  if (other == at.end()) return std::nullopt;
  const std::int64_t step = *other - at[0];
  const std::int64_t rise = values[static_cast<std::size_t>(other - at.begin())] - values[0];
  if (rise == 0 || rise % step != 0) return std::nullopt;
  const std::int64_t slope = rise / step;
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::int64_t moved = 0;
    if (__builtin_mul_overflow(slope, at[i] - at[0], &moved) || moved != values[i] - values[0])
      return std::nullopt;
  }
  return std::pair{slope, values[0] - slope * at[0]};
}

/// Are `values` multiples of the divisors? Then what they are over these.
bool divide(const std::vector<std::int64_t>& values, const std::vector<std::int64_t>& divisors,
            std::vector<std::int64_t>& quotients) {
  quotients.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (divisors[i] == 0 || values[i] % divisors[i] != 0) return false;
    quotients[i] = values[i] / divisors[i];
  }
  return true;
}

/// mod(sign * x + shift, divisor).
struct Remainder {
  std::int64_t sign = 1;
  std::int64_t shift = 0;
  std::int64_t divisor = 1;
};

/// What has `values` where x has `at`, if x has so many values that no other numbers have a divisor.
std::optional<Remainder> remainder_through(const std::vector<std::int64_t>& values,
                                           const std::vector<std::int64_t>& at) {
  constexpr double least_bits = 16;  // that x says of a divisor, beside the two that tell it
  const auto [least, greatest] = std::ranges::minmax_element(values);
  const auto confirming = static_cast<double>(std::set<std::int64_t>(at.begin(), at.end()).size()) - 2;
  if (*least < 0) return std::nullopt;
  for (const std::int64_t sign : {1, -1}) {
    std::int64_t divisor = 0;
    for (std::size_t i = 1; i < at.size(); ++i)
      divisor = std::gcd(divisor, (values[i] - values[0]) - sign * (at[i] - at[0]));
    if (divisor > *greatest && confirming * std::log2(static_cast<double>(divisor)) >= least_bits)
      return Remainder{sign, (values[0] - sign * at[0]) % divisor, divisor};
  }
  return std::nullopt;
}

/// What is left of one of the factors, as what fills a last window.
template <typename Factor>
std::optional<Extent> remainder_of(const std::vector<std::int64_t>& values,
                                   const std::vector<Factor>& factors) {
  for (const Factor& factor : factors)
    if (const auto left = remainder_through(values, factor.values))
      return mod(Extent(left->sign) * factor.expression + Extent(left->shift), left->divisor);
  return std::nullopt;
}

bool are_equal(const std::vector<std::int64_t>& values) {
  return std::ranges::all_of(values, [&](std::int64_t value) { return value == values[0]; });
}

/// The expression over the greatest number that divides it.
Extent without_multiple(const Extent& expression) {
  std::int64_t common = expression.constant();
  for (const Extent::Term& term : expression.terms()) common = std::gcd(common, term.coefficient);
  return common > 1 ? floor_div(expression, common) : expression;
}

/// Is it a sum with what rounds sizes? Products of such are found where it is a factor: those of polynomials are polynomials.
bool makes_products(const Extent& expression) {
  const auto is_rounded = [](const Extent::Term& term) {
    return std::ranges::any_of(
        term.factors, [](const ExtentFactor& factor) { return factor.kind != ExtentFactor::Kind::symbol; });
  };
  const std::vector<Extent::Term>& terms = expression.terms();
  return terms.size() + (expression.constant() != 0 ? 1 : 0) > 1 && std::ranges::any_of(terms, is_rounded);
}

}  // namespace

ExtentFit::ExtentFit(const std::vector<FitSymbol>& symbols, const std::vector<Dims>& points,
                     std::size_t confirming)
    : confirming_(confirming), points_(points.size()) {
  // A size that is the same at all points says nothing, and is no part of any expression.
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    std::set<std::int64_t> different;
    for (const Dims& point : points) different.insert(point[i]);
    if (different.size() < 2) continue;
    symbols_.push_back(symbols[i]);
    degrees_.push_back(static_cast<int>(different.size()) - 1);
    for (std::size_t j = 0; j < points.size(); ++j) points_[j].push_back(points[j][i] / symbols[i].multiple);
  }
  products_ = solve(terms_of_degree(1));
  if (!are_products_told()) {
    drop_followers();
    if (!followers_.empty()) products_ = solve(terms_of_degree(1));
  }
  squares_ = solve(terms_of_degree(2));
  if (squares_.rows.empty()) list_sparse_terms();
  if (!is_determined()) return;
  sizes_.resize(points.size());
  for (std::size_t j = 0; j < points.size(); ++j)
    for (std::size_t i = 0; i < symbols.size(); ++i) sizes_[j][symbols[i].name] = points[j][i];
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    factors_.push_back({over_multiple(symbols_[i]), {}});
    for (const Dims& point : points_) factors_.back().values.push_back(point[i]);
  }
}

/// The size as a sum of `terms`, which are sizes before it, where many points say so; an equal one in any case.
std::optional<Extent> ExtentFit::told_by(const Powers& terms, const std::vector<std::int64_t>& values) const {
  constexpr std::size_t least_points = 16;
  if (points_.size() >= least_points) return fit(solve(terms), values);
  for (const std::vector<int>& term : terms) {
    bool is_equal = true;
    for (std::size_t point = 0; point < points_.size(); ++point)
      is_equal = is_equal && term_at(term, point) == values[point];
    if (is_equal) return product(term, 1);
  }
  return std::nullopt;
}

/// Sizes that those before them tell leave the terms.
void ExtentFit::drop_followers() {
  Powers terms = {std::vector<int>(symbols_.size(), 0)};
  std::vector<std::size_t> dropped;
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    std::vector<std::int64_t> values;
    values.reserve(points_.size());
    for (const Dims& point : points_) values.push_back(point[i]);
    if (std::optional<Extent> told = told_by(terms, values)) {
      followers_.push_back({over_multiple(symbols_[i]), *std::move(told)});
      follower_sizes_.push_back({followers_.back().size, std::move(values)});
      dropped.push_back(i);
    } else {
      terms.push_back(terms[0]);
      terms.back()[i] = 1;
    }
  }
  for (auto i = dropped.rbegin(); i != dropped.rend(); ++i) {
    const auto place = static_cast<std::ptrdiff_t>(*i);
    symbols_.erase(symbols_.begin() + place);
    degrees_.erase(degrees_.begin() + place);
    for (Dims& point : points_) point.erase(point.begin() + place);
  }
}

/// Every product of powers up to this degree; none where they are too many.
ExtentFit::Powers ExtentFit::terms_of_degree(int degree) const {
  Powers terms = {{}};
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    Powers more;
    for (const std::vector<int>& term : terms)
      for (int power = 0; power <= std::min(degree, degrees_[i]); ++power) {
        more.push_back(term);
        more.back().push_back(power);
      }
    if (more.size() > most_terms) return {};
    terms = std::move(more);
  }
  return terms;
}

/// nullopt where it leaves 64 bits.
std::optional<std::int64_t> ExtentFit::term_at(const std::vector<int>& powers, std::size_t point) const {
  std::int64_t value = 1;
  for (std::size_t i = 0; i < powers.size(); ++i)
    for (int power = 0; power < powers[i]; ++power)
      if (__builtin_mul_overflow(value, points_[point][i], &value)) return std::nullopt;
  return value;
}

ExtentFit::Basis ExtentFit::solve(Powers terms) const {
  if (terms.empty() || points_.size() < terms.size() + confirming_) return {};
  FitMatrix matrix(points_.size(), std::vector<long double>(terms.size()));
  std::vector<long double> scales(terms.size(), 1);
  for (std::size_t j = 0; j < terms.size(); ++j) {
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const std::optional<std::int64_t> value = term_at(terms[j], i);
      if (!value) return {};
      matrix[i][j] = static_cast<long double>(*value);
      scales[j] = std::max(scales[j], std::abs(matrix[i][j]));
    }
    for (std::vector<long double>& row : matrix) row[j] /= scales[j];
  }
  Basis basis;
  basis.rows = independent_rows(matrix);
  if (basis.rows.empty()) return {};
  FitMatrix chosen;
  for (const std::size_t row : basis.rows) chosen.push_back(matrix[row]);
  basis.inverse = inverse_of(std::move(chosen));
  for (std::size_t j = 0; j < terms.size(); ++j)
    for (long double& each : basis.inverse[j]) each /= scales[j];
  basis.terms = std::move(terms);
  return basis;
}

std::optional<Extent> ExtentFit::of(const std::vector<std::int64_t>& values, Certainty certainty) {
  if (!is_determined()) return std::nullopt;
  if (are_equal(values)) return values[0];
  if (const auto known = known_.find(values); known != known_.end()) return known->second;
  std::optional<Extent> found =
      certainty == Certainty::told ? told_expression_of(values) : expression_of(values);
  if (found || certainty == Certainty::any) known_[values] = found;
  return found;
}

std::vector<std::int64_t> ExtentFit::values_of(const Extent& expression) const {
  std::vector<std::int64_t> values;
  values.reserve(sizes_.size());
  for (const SymbolValues& sizes : sizes_) values.push_back(expression.at(sizes));
  return values;
}

std::optional<std::vector<Extent>> ExtentFit::of_each(const std::vector<Dims>& at_points,
                                                      Certainty certainty) {
  std::vector<Extent> expressions;
  for (std::size_t i = 0; i < at_points.at(0).size(); ++i) {
    std::vector<std::int64_t> values;
    values.reserve(at_points.size());
    for (const Dims& each : at_points) values.push_back(each.at(i));
    std::optional<Extent> found = of(values, certainty);
    if (!found) return std::nullopt;
    expressions.push_back(*std::move(found));
  }
  return expressions;
}

std::optional<Extent> ExtentFit::polynomial_of(const std::vector<std::int64_t>& values) const {
  std::optional<Extent> found = line_along(follower_sizes_, values);
  if (!found) found = fit(products_, values);
  if (!found) found = fit(squares_, values);
  if (!found) found = sparse_sum(values);
  return found;
}

std::optional<Extent> ExtentFit::told_expression_of(const std::vector<std::int64_t>& values) const {
  std::optional<Extent> found = polynomial_of(values);
  if (!found) found = line_along(told_, values);
  if (!found) found = line_along(std::span(factors_).first(factors_.size() - symbols_.size()), values);
  return found;
}

std::optional<Extent> ExtentFit::expression_of(const std::vector<std::int64_t>& values) const {
  std::optional<Extent> found = told_expression_of(values);
  std::vector<std::size_t> members;
  if (!found && factors_.size() > symbols_.size())
    found = product_of(values, std::vector<std::int64_t>(points_.size(), 1), members, 0, factors_of_product);
  if (!found) found = remainder_of(values, factors_);
  return found;
}

/// Along sizes that others tell, it is in the size's own name: extents that are one size have one expression.
std::optional<Extent> ExtentFit::line_along(std::span<const Factor> factors,
                                            const std::vector<std::int64_t>& values) {
  for (const Factor& along : factors)
    if (const auto line = line_through(values, along.values))
      return Extent(line->first) * along.expression + Extent(line->second);
  return std::nullopt;
}

/// A multiple of the product of `members`, which has the values `product`, times at most `more` of the factors from `next` on, and
/// a number, or a multiple of the product without its last factor. What is made of expressions is made once it is found: of most
/// products nothing is.
std::optional<Extent> ExtentFit::product_of(const std::vector<std::int64_t>& values,
                                            const std::vector<std::int64_t>& product,
                                            std::vector<std::size_t>& members, std::size_t next,
                                            int more) const {
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  const auto expression = [&] {
    Extent made = 1;
    for (const std::size_t member : members) made *= factors_[member].expression;
    return made;
  };
  std::vector<std::int64_t> longer(product.size()), quotients;
  for (std::size_t i = next; i < factors_.size(); ++i) {
    const Factor& factor = factors_[i];
    std::ranges::transform(product, factor.values, longer.begin(), std::multiplies<>());
    if (std::ranges::any_of(longer, [&](std::int64_t each) { return each > largest; })) continue;
    if (const auto line = line_through(values, longer))
      return Extent(line->first) * expression() * factor.expression + Extent(line->second);
    if (divide(values, product, quotients))
      if (const auto line = line_through(quotients, factor.values))
        return (Extent(line->first) * factor.expression + Extent(line->second)) * expression();
    if (divide(values, factor.values, quotients))
      if (const auto line = line_through(quotients, product))
        return (Extent(line->first) * expression() + Extent(line->second)) * factor.expression;
    if (more == 1) continue;
    members.push_back(i);
    if (std::optional<Extent> found = product_of(values, longer, members, i, more - 1)) return found;
    members.pop_back();
  }
  return std::nullopt;
}

void ExtentFit::suggest(const Extent& said) {
  if (!is_determined() || said.is_known() || factors_.size() == most_factors) return;
  const Extent expression = without_multiple(said);
  std::vector<std::int64_t> values = values_of(expression);
  const bool is_possible =
      std::ranges::all_of(values, [](std::int64_t each) { return each > 0 && each < INT32_MAX; });
  const std::optional<Extent> known = known_as(expression, values);
  if (!is_possible || std::ranges::find(factors_, values, &Factor::values) != factors_.end()) return;
  if (known && !makes_products(*known)) return;
  // What suggests it knows better than products that have its values by chance.
  const bool is_made = !known && expression_of(values) == expression;
  known_[values] = expression;
  if (is_made && !makes_products(expression)) return;
  forget_misses();
  factors_.insert(factors_.end() - std::ssize(symbols_), {expression, std::move(values)});
}

/// What was answered for its values already, or is sure of them: lines along few values are not.
std::optional<Extent> ExtentFit::known_as(const Extent& expression, const std::vector<std::int64_t>& values) {
  std::optional<Extent> known;
  if (are_equal(values))
    known = values[0];
  else if (const auto found = known_.find(values); found != known_.end())
    known = found->second;
  if (!known) known = polynomial_of(values);
  if (known) equate(expression, *known);
  return known;
}

void ExtentFit::equate(const Extent& one, const Extent& other) {
  if (one != other) equalities_.try_emplace(one, other);
}

void ExtentFit::tell(const Extent& expression) {
  if (!is_determined() || expression.is_known()) return;
  std::vector<std::int64_t> values = values_of(expression);
  if (known_as(expression, values)) return;
  forget_misses();
  known_[values] = expression;
  told_.push_back({expression, std::move(values)});
}

/// They may be made of what is told now.
void ExtentFit::forget_misses() {
  std::erase_if(known_, [](const auto& each) { return !each.second; });
}

std::optional<Extent> ExtentFit::fit(const Basis& basis, const std::vector<std::int64_t>& values) const {
  if (basis.rows.empty()) return std::nullopt;
  constexpr long double largest = 1e15L;
  std::vector<std::int64_t> coefficients;
  for (const std::vector<long double>& row : basis.inverse) {
    long double coefficient = 0;
    for (std::size_t i = 0; i < row.size(); ++i)
      coefficient += row[i] * static_cast<long double>(values[basis.rows[i]]);
    if (std::abs(coefficient) > largest) return std::nullopt;
    coefficients.push_back(std::llround(coefficient));
  }
  // Exactly at every point, whatever rounding did above.
  for (std::size_t point = 0; point < points_.size(); ++point) {
    std::int64_t total = 0;
    for (std::size_t j = 0; j < coefficients.size(); ++j) {
      std::int64_t product = 0;
      const std::optional<std::int64_t> term = term_at(basis.terms[j], point);
      if (!term || __builtin_mul_overflow(coefficients[j], *term, &product) ||
          __builtin_add_overflow(total, product, &total))
        return std::nullopt;
    }
    if (total != values[point]) return std::nullopt;
  }
  Extent total;
  for (std::size_t j = 0; j < coefficients.size(); ++j)
    if (coefficients[j] != 0) total += product(basis.terms[j], coefficients[j]);
  return total;
}

Extent ExtentFit::product(const std::vector<int>& powers, std::int64_t coefficient) const {
  Extent product(coefficient);
  for (std::size_t i = 0; i < symbols_.size(); ++i)
    for (int power = 0; power < powers[i]; ++power) product *= over_multiple(symbols_[i]);
  return product;
}

void ExtentFit::list_sparse_terms() {
  constexpr std::size_t least_points = 4;  // two coefficients, and which two
  if (points_.size() < least_points + confirming_) return;
  sparse_ = terms_of_degree(2);
  if (sparse_.empty()) sparse_ = terms_of_degree(1);
  std::erase_if(sparse_, [&](const std::vector<int>& term) {
    std::vector<std::int64_t> values;
    for (std::size_t point = 0; point < points_.size(); ++point)
      if (const std::optional<std::int64_t> value = term_at(term, point)) values.push_back(*value);
    const bool is_too_large = values.size() < points_.size();
    if (!is_too_large) sparse_values_.push_back(std::move(values));
    return is_too_large;
  });
}

std::optional<Extent> ExtentFit::sparse_sum(const std::vector<std::int64_t>& values) const {
  const std::optional<std::vector<ScaledTerm>> found = only_sum_of_two(sparse_values_, values);
  if (!found || (found->size() == 2 && is_any_function(sparse_[(*found)[0].term], sparse_[(*found)[1].term])))
    return std::nullopt;
  Extent total;
  for (const ScaledTerm& each : *found) total += product(sparse_[each.term], each.coefficient);
  return total;
}

/// Do they differ in one symbol alone, of which the points have two values? Every function of it is a line through these.
bool ExtentFit::is_any_function(const std::vector<int>& one, const std::vector<int>& other) const {
  std::vector<std::size_t> different;
  for (std::size_t i = 0; i < one.size(); ++i)
    if (one[i] != other[i]) different.push_back(i);
  return different.size() == 1 && degrees_[different[0]] == 1;
}

bool hold_at(const std::vector<ExtentFit::Follower>& followers, const SymbolValues& sizes) {
  return std::ranges::all_of(
      followers, [&](const ExtentFit::Follower& each) { return each.size.at(sizes) == each.told.at(sizes); });
}

}  // namespace sylvite
