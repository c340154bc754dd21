// States that grow where nothing can be written in place: an output is as long as they are, and sums run from their end.

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files.h"
#include "runtime/export/export.h"
#include "runtime/family.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite::copied_states_test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t width = 4;

/// present = past and new; sums = those of present from each row to the last.
onnx::ModelProto sums_from_the_end() {
  onnx::ModelProto model = empty_model(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "new", {1, 0, width});
  add_input(graph, "past", {1, 0, width});
  name_axis(*graph.mutable_input(0), 1, "count");
  name_axis(*graph.mutable_input(1), 1, "length");
  add_output(graph, "sums");
  add_value(*graph.add_output(), "present", {1, 0, width});
  name_axis(*graph.mutable_output(1), 1, "length + count");
  set_integers(add_node(graph, "Constant", {}, {"axis"}), "value_ints", {1});
  set_integer(add_node(graph, "Concat", {"past", "new"}, {"present"}), "axis", 1);
  set_integer(add_node(graph, "CumSum", {"present", "axis"}, {"sums"}), "reverse", 1);
  return model;
}

class CopiedStates : public testing::Test {
 protected:
  [[nodiscard]] CompileOptions options() const {
    CompileOptions options = test_options(folder_.path());
    options.set["import.dims"] = "count=1..4@1,length=1..8";
    options.set["import.state"] = "past=present";
    return options;
  }
  [[nodiscard]] std::string path() const {
    write_file(folder_.path() + "/sums.onnx", sums_from_the_end().SerializeAsString());
    return folder_.path() + "/sums.onnx";
  }
  /// Gives `count` rows, and expects the sums of all rows since `first`.
  void expect_sums(CompiledModel& model, std::int64_t count) {
    Tensor rows(DType::f32, {1, count, width});
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      given_.push_back(static_cast<double>((7 * given_.size()) % 11));
      rows.set_double(i, given_.back());
    }
    const Tensor sums = model.run({rows}).at(0);
    const auto length = static_cast<std::int64_t>(given_.size()) / width;
    ASSERT_EQ(sums.dims(), (Dims{1, length, width}));
    for (std::int64_t column = 0; column < width; ++column) {
      double sum = 0;
      for (std::int64_t row = length; row-- > 0;) {
        sum += given_[static_cast<std::size_t>(row * width + column)];
        EXPECT_EQ(sums.as_double(row * width + column), sum) << row << " of " << length;
      }
    }
  }

  TemporaryFolder folder_;
  std::vector<double> given_;
};

TEST_F(CopiedStates, GoOnAtEveryLength) {
  CompiledModel model = compile(path(), options());
  for (const std::int64_t count : {1, 2, 1, 3}) expect_sums(model, count);
  EXPECT_EQ(model.state("length").as_int64(0), 7);
  EXPECT_EQ(model.state("past").dims(), (Dims{1, 8, width}));
  try {
    (void)model.run({Tensor(DType::f32, {1, 2, width})});
    FAIL() << "there is no room";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), InputError("").code());
    EXPECT_THAT(error.what(), HasSubstr("'length' is 7, and this run adds 2: states have room for 8"));
  }
  expect_sums(model, 1);
  model.set_state("length", Tensor::scalar_i64(3));
  given_.resize(3 * width);
  expect_sums(model, 2);
  model.reset_state();
  given_.clear();
  expect_sums(model, 4);
}

TEST_F(CopiedStates, AreNotExported) {
  const OpenModel model = open_model(path(), make_setup(options()));
  const auto choose = [](const Imported& imported) { return choose_candidates(imported); };
  ExportOptions where;
  where.folder = folder_.path() + "/lib";
  CompileReport report;
  EXPECT_THROW((void)export_open_model(model, choose, where, report), UnsupportedError);
}

}  // namespace
}  // namespace sylvite::copied_states_test
