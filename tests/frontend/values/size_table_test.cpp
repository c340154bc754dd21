#include "frontend/values/size_table.h"

#include <gtest/gtest.h>

namespace sylvite::size_table_test {
namespace {

TableReading counting() {
  return {"count", {3}, [](const Dims& numbers) {
            Dims values;
            for (std::int64_t i = 0; i < numbers.at(0); ++i) values.push_back(i);
            return Tensor::vector_i64(values);
          }};
}

TEST(SizeTable, FollowsFromItsReadings) {
  const Tensor table = make_size_table({counting()});
  EXPECT_EQ(table.to_int64s(), (Dims{0, 1, 2}));
  const TableReadings readings = readings_of(table);
  ASSERT_TRUE(readings);
  EXPECT_EQ(readings->at(0).rule, "count");
  EXPECT_EQ(readings->at(0).make({5}).to_int64s(), (Dims{0, 1, 2, 3, 4}));
}

TEST(SizeTable, IsKnownInEveryTensorOfItsBytes) {
  Tensor shaped;
  {
    const Tensor table = make_size_table({counting()});
    shaped = table.reshaped({1, 3});
  }
  EXPECT_TRUE(readings_of(shaped));
}

TEST(SizeTable, StaysOneWhereItIsRounded) {
  const auto doubled = [](const Tensor& table) {
    Dims values = table.to_int64s();
    for (std::int64_t& value : values) value *= 2;
    return Tensor::vector_i64(values);
  };
  const Tensor table = make_changed_table(readings_of(make_size_table({counting()})), "twice", doubled);
  EXPECT_EQ(table.to_int64s(), (Dims{0, 2, 4}));
  const TableReadings readings = readings_of(table);
  ASSERT_TRUE(readings);
  EXPECT_EQ(readings->at(0).rule, "twice of count");
  EXPECT_EQ(readings->at(0).numbers, Dims{3});
  EXPECT_EQ(readings->at(0).make({4}).to_int64s(), (Dims{0, 2, 4, 6}));
}

TEST(SizeTable, OtherTensorsAreNone) {
  EXPECT_FALSE(readings_of(Tensor::vector_i64({0, 1, 2})));
  EXPECT_FALSE(readings_of(Tensor()));
}

}  // namespace
}  // namespace sylvite::size_table_test
