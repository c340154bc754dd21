#include "lowering/algorithms/form.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/kernel.h"

namespace sylvite::form_test {
namespace {

Kernel exp_kernel() {
  Graph body;
  body.outputs = {body.add(Op::exp, {body.add_input("x", make_type(DType::f32, {2}))})};
  return make_kernel(body, {false});
}

TEST(Form, TextRoundTrips) {
  for (const char* text : {"generic", "matmul_panels{mr=14,nr=32}"})
    EXPECT_EQ(Form::parse(text).to_string(), text);
  EXPECT_EQ(Form::parse("a{k=-3}").at("k"), -3);
  for (const char* text : {"", "{a=1}", "a{b=1", "a{b}", "a{b=x}"})
    EXPECT_THROW((void)Form::parse(text), ModelError) << text;
  EXPECT_THROW((void)build_algorithm(exp_kernel(), Form::parse("no_such")), UnsupportedError);
}

}  // namespace
}  // namespace sylvite::form_test
