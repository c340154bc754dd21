#pragma once
// Numbers that depend on sizes, as expressions of them: found by what they are at a few sizes.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sylvite/extent.h"
#include "sylvite/types.h"

namespace sylvite {

/// A size by name; it is always a multiple of `multiple`.
struct FitSymbol {
  std::string name;
  std::int64_t multiple = 1;
};

/// Which expressions a fit may answer with.
enum class Certainty : std::uint8_t {
  any,
  told  ///< no products of what was suggested, and no remainders, which numbers of few values may be by chance
};

/// Thread safety: one thread at a time.
class ExtentFit {
 public:
  /// Points beyond those that determine a polynomial.
  static constexpr std::size_t usual_confirming = 2;

  /// `points` are sizes, in the order of `symbols`. None need to confirm what is found where they are all sizes that there are.
  ExtentFit(const std::vector<FitSymbol>& symbols, const std::vector<Dims>& points,
            std::size_t confirming = usual_confirming);

  /// A size that the others tell at all points, as those of parts whose sum is given: what is found holds where that does.
  struct Follower {
    Extent size;
    Extent told;
  };
  /// None where the points say what every product of sizes is without them.
  [[nodiscard]] const std::vector<Follower>& followers() const { return followers_; }
  /// Pairs of expressions of one number: what was found holds where they are equal.
  [[nodiscard]] const std::map<Extent, Extent>& equalities() const { return equalities_; }
  /// Do the points say what every product of sizes is, with those to spare that confirm it? If not, sums of at most two products
  /// are found, where there are points enough for these.
  [[nodiscard]] bool are_products_told() const { return !products_.rows.empty(); }
  /// Are there points enough to find anything?
  [[nodiscard]] bool is_determined() const { return are_products_told() || !sparse_.empty(); }
  /// What `of` says of the values that an expression has at the points.
  [[nodiscard]] std::optional<Extent> of_expression(const Extent& expression) {
    return of(values_of(expression));
  }
  /// Two expressions of one number of the model.
  void equate(const Extent& one, const Extent& other);
  /// An expression that other numbers may be, or be made of: what rounds sizes is no polynomial.
  void suggest(const Extent& expression);
  /// An expression that numbers of the model are, which are no factors of others: pads, remainders. It goes before what such
  /// numbers are by chance.
  void tell(const Extent& expression);
  /// The polynomial with integer coefficients, of the symbols over their multiples, that has `values` at the points: of
  /// degree one in each symbol, else two where there are points enough; where there are not, the only one of two terms; or
  /// what was suggested, or a multiple of products of that and of symbols, and a number, which one of the factors may
  /// multiply; or what a division of one of these leaves, where many points agree on the divisor. nullopt where there is none. The same
  /// answer for the same values at once.
  [[nodiscard]] std::optional<Extent> of(const std::vector<std::int64_t>& values,
                                         Certainty certainty = Certainty::any);
  /// The same of several numbers: `at_points` has all of them at each point. nullopt where one has none.
  [[nodiscard]] std::optional<std::vector<Extent>> of_each(const std::vector<Dims>& at_points,
                                                           Certainty certainty = Certainty::any);

 private:
  [[nodiscard]] std::vector<std::int64_t> values_of(const Extent& expression) const;
  /// Powers of the symbols, one for each term.
  using Powers = std::vector<std::vector<int>>;
  /// Terms whose coefficients follow from the values at some of the points.
  struct Basis {
    Powers terms;
    std::vector<std::size_t> rows;                  ///< those points; none: there are too few
    std::vector<std::vector<long double>> inverse;  ///< coefficients from values there
  };

  [[nodiscard]] Powers terms_of_degree(int degree) const;
  [[nodiscard]] std::optional<std::int64_t> term_at(const std::vector<int>& powers, std::size_t point) const;
  [[nodiscard]] Basis solve(Powers terms) const;
  [[nodiscard]] std::optional<Extent> fit(const Basis& basis, const std::vector<std::int64_t>& values) const;
  [[nodiscard]] Extent product(const std::vector<int>& powers, std::int64_t coefficient) const;
  void list_sparse_terms();
  [[nodiscard]] std::optional<Extent> sparse_sum(const std::vector<std::int64_t>& values) const;
  [[nodiscard]] bool is_any_function(const std::vector<int>& one, const std::vector<int>& other) const;
  /// An expression, and what it is at the points.
  struct Factor {
    Extent expression;
    std::vector<std::int64_t> values;
  };
  void drop_followers();
  [[nodiscard]] std::optional<Extent> told_by(const Powers& terms,
                                              const std::vector<std::int64_t>& values) const;
  [[nodiscard]] std::optional<Extent> polynomial_of(const std::vector<std::int64_t>& values) const;
  [[nodiscard]] std::optional<Extent> told_expression_of(const std::vector<std::int64_t>& values) const;
  [[nodiscard]] std::optional<Extent> expression_of(const std::vector<std::int64_t>& values) const;
  [[nodiscard]] static std::optional<Extent> line_along(std::span<const Factor> factors,
                                                        const std::vector<std::int64_t>& values);
  void forget_misses();
  [[nodiscard]] std::optional<Extent> known_as(const Extent& expression,
                                               const std::vector<std::int64_t>& values);
  [[nodiscard]] std::optional<Extent> product_of(const std::vector<std::int64_t>& values,
                                                 const std::vector<std::int64_t>& product,
                                                 std::vector<std::size_t>& members, std::size_t next,
                                                 int more) const;

  std::size_t confirming_;
  std::vector<FitSymbol> symbols_;
  std::vector<int> degrees_;  ///< the most that the points tell, per symbol
  std::vector<Dims> points_;  ///< over the multiples
  Basis products_;            ///< degree one in each symbol
  Basis squares_;             ///< degree two
  Powers sparse_;             ///< terms of degree two, of which sums of two are told; none: too few points
  std::vector<std::vector<std::int64_t>> sparse_values_;  ///< of each term at the points
  std::vector<SymbolValues> sizes_;                       ///< the points by name
  std::vector<Factor> factors_;                           ///< what was suggested, then the symbols
  std::vector<Factor> told_;
  std::vector<Follower> followers_;
  std::vector<Factor> follower_sizes_;  ///< the same, at the points
  std::map<std::vector<std::int64_t>, std::optional<Extent>> known_;
  std::map<Extent, Extent> equalities_;
};

/// Are the sizes that followed from others these still?
[[nodiscard]] bool hold_at(const std::vector<ExtentFit::Follower>& followers, const SymbolValues& sizes);

}  // namespace sylvite
