#include "lowering/plan/fitted_table.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::fitted_table_test {
namespace {

const std::vector<FitSymbol> names = {{"length", 1}};
const std::vector<Dims> points = {{4}, {19}, {7}, {33}, {12}};

/// What `value` says of lines and columns, for a square of each of the points.
std::vector<Tensor> squares(const std::function<double(std::int64_t line, std::int64_t column)>& value,
                            const std::vector<Dims>& all = points) {
  std::vector<Tensor> tables;
  for (const Dims& at : all) {
    Tensor table(DType::f32, {1, at[0], at[0]});
    for (std::int64_t i = 0; i < table.size(); ++i) table.set_double(i, value(i / at[0], i % at[0]));
    tables.push_back(std::move(table));
  }
  return tables;
}

double bias(std::int64_t line, std::int64_t column) {
  return static_cast<double>((column - line) % 5) + (column > line ? -100 : 0);
}

TEST(FittedTable, IsTheBeginningOfTheLargest) {
  ExtentFit fit(names, points);
  const std::optional<FittedTable> table = fit_table(squares(bias), fit);
  ASSERT_TRUE(table);
  const Tensor made = table->at({{"length", 21}});
  const Tensor wanted = squares(bias, {{21}}).front();
  ASSERT_EQ(made.type(), wanted.type());
  for (std::int64_t i = 0; i < made.size(); ++i) EXPECT_EQ(made.as_double(i), wanted.as_double(i));
  EXPECT_THROW((void)table->at({{"length", 34}}), UnsupportedError) << "no sample has a line 33";
}

TEST(FittedTable, NeedsABeginningOfAll) {
  ExtentFit fit(names, points);
  std::vector<Tensor> tables = squares(bias);
  tables[1].set_double(20, 7);
  EXPECT_FALSE(fit_table(tables, fit));
}

TEST(FittedTable, ABlockHasNoAxisBeyondTheWhole) {
  const Tensor whole = squares(bias, {{6}}).front();
  EXPECT_TRUE(is_leading_block(whole, whole));
  EXPECT_TRUE(is_leading_block(whole, squares(bias, {{5}}).front()));
  EXPECT_FALSE(is_leading_block(whole, squares(bias, {{7}}).front()));
  EXPECT_FALSE(is_leading_block(whole, whole.reshaped({6, 6})));
}

}  // namespace
}  // namespace sylvite::fitted_table_test
