#include "runtime/alike_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "runtime/build.h"
#include "runtime/family.h"
#include "runtime/kernel_menu.h"
#include "runtime/symbolic_plans.h"
#include "tests/lowering/sample_graphs.h"
#include "tests/runtime/attention_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite::alike_programs_test {
namespace {

class AlikeProgramsTest : public testing::Test {
 protected:
  void SetUp() override { write_file(path_, attention_model()); }

  /// The model, of which enough sizes were imported to tell of others.
  [[nodiscard]] OpenModel learned() const {
    CompileOptions options = test_options(folder_.path());
    options.set["import.dims"] = "batch=1..8,sequence=1..64@24";
    OpenModel model = open_model(path_, make_setup(options));
    for (const Sizes& sizes : {Sizes{2, 24}, {3, 37}, {7, 50}, {2, 63}, {8, 20}, {5, 16}})
      (void)bind_sizes(model, sizes);
    return model;
  }
  [[nodiscard]] static Built built_at(const OpenModel& model, const Sizes& sizes) {
    const std::optional<Imported> imported = bind_known_sizes(model, sizes);
    EXPECT_TRUE(imported);
    return build_program(*imported, choose_known(*imported));
  }
  void expect_right(Built& built, const Sizes& sizes) const {
    ImportOptions options;
    options.dims = {{"batch", sizes[0]}, {"sequence", sizes[1]}};
    const std::vector<Tensor> inputs = attention_inputs(sizes[0], sizes[1]);
    expect_near(run_tensors(built, inputs).at(0), interpret(import_onnx(path_, options), inputs).at(0));
  }
  static void expect_bound_alike(const Bindings& one, const Bindings& other) {
    ASSERT_EQ(one.launches.size(), other.launches.size());
    for (std::size_t i = 0; i < one.launches.size(); ++i) {
      EXPECT_EQ(one.launches[i].sizes, other.launches[i].sizes) << i;
      ASSERT_EQ(one.launches[i].arguments.size(), other.launches[i].arguments.size());
      for (std::size_t k = 0; k < one.launches[i].arguments.size(); ++k) {
        EXPECT_EQ(one.launches[i].arguments[k].stored, other.launches[i].arguments[k].stored)
            << i << " " << k;
        EXPECT_EQ(one.launches[i].arguments[k].place, other.launches[i].arguments[k].place) << i << " " << k;
      }
    }
    EXPECT_EQ(one.arena_bytes, other.arena_bytes);
    EXPECT_EQ(one.inputs, other.inputs);
    EXPECT_EQ(one.results, other.results);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/attention.onnx";
};

TEST_F(AlikeProgramsTest, HaveTheNumbersOfProgramsThatAreMadeForTheirSizes) {
  const OpenModel model = learned();
  AlikePrograms alike;
  const Built first = built_at(model, {4, 32});
  const Relatives relatives{{&first.program}, true};
  EXPECT_FALSE(alike.at(model, {5, 33}, relatives)) << "nothing is known";
  alike.note(model, {4, 32}, first);
  int compared = 0;
  for (const Sizes& sizes : {Sizes{4, 33}, {2, 61}, {8, 16}, {5, 40}, {4, 32}}) {
    std::optional<Built> borrowed = alike.at(model, sizes, relatives);
    ASSERT_TRUE(borrowed) << sizes[0] << " " << sizes[1];
    const Built own = built_at(model, sizes);
    if (!have_kernels_alike(own.program.plan(), first.program.plan())) continue;
    ++compared;
    expect_bound_alike(borrowed->program.bindings(), own.program.bindings());
    EXPECT_EQ(plan_text(borrowed->program.plan()), plan_text(own.program.plan()));
    EXPECT_EQ(borrowed->choices, first.choices);
    EXPECT_EQ(borrowed->report.kernels, own.report.kernels);
    expect_right(*borrowed, sizes);
    std::vector<LaunchTime> profile;
    (void)borrowed->program.run(attention_inputs(sizes[0], sizes[1]), &profile);
    for (const LaunchTime& time : profile)
      EXPECT_EQ(borrowed->program.plan().kernels.at(time.kernel).id, time.kernel_id);
  }
  EXPECT_GE(compared, 3);
}

TEST_F(AlikeProgramsTest, ARetiredProgramBecomesTheNext) {
  const OpenModel model = learned();
  AlikePrograms alike;
  const Built first = built_at(model, {4, 32});
  const Relatives relatives{{&first.program}, true};
  alike.note(model, {4, 32}, first);
  for (const Sizes& sizes : {Sizes{4, 33}, {2, 61}, {8, 16}, {5, 40}, {4, 32}}) {
    AlikePrograms without;
    without.note(model, {4, 32}, first);
    const std::optional<Built> own = without.at(model, sizes, relatives);
    std::optional<Built> made = alike.at(model, sizes, relatives);
    ASSERT_TRUE(own && made) << sizes[0] << " " << sizes[1];
    expect_bound_alike(made->program.bindings(), own->program.bindings());
    EXPECT_EQ(plan_text(made->program.plan()), plan_text(own->program.plan()));
    expect_right(*made, sizes);
    expect_right(*made, sizes);  // where intermediate values lie is known then
    const ProgramCode* const code = made->program.code().get();
    EXPECT_EQ(code, first.program.code().get());
    alike.retire(std::move(made->program));
  }
}

/// The model with two inputs that know nothing of each other.
std::string two_parts_model() {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const char* name : {"rows", "columns"}) {
    add_input(graph, name, {});
    auto& shape =
        *graph.mutable_input(graph.input_size() - 1)->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.add_dim()->set_dim_param(name);
    shape.add_dim()->set_dim_value(8);
    add_node(graph, "Softmax", {name}, {std::string(name) + "_folded"});
    add_output(graph, std::string(name) + "_folded");
  }
  return model.SerializeAsString();
}

TEST_F(AlikeProgramsTest, KernelsForGivenNumbersServeWhereTheseAreTheSame) {
  write_file(path_, two_parts_model());
  CompileOptions options = test_options(folder_.path());
  options.set["import.dims"] = "rows=2..64,columns=2..64";
  const OpenModel model = open_model(path_, make_setup(options));
  for (const Sizes& sizes : {Sizes{20, 30}, {40, 50}, {33, 20}, {61, 64}, {17, 18}})
    (void)bind_sizes(model, sizes);
  std::optional<Imported> imported = bind_known_sizes(model, {32, 40});
  ASSERT_TRUE(imported);
  auto plan = std::make_shared<Plan>(*imported->plan);
  const std::shared_ptr<const Plan> own = model.plans->at({32, 40}, true);
  ASSERT_EQ(plan->kernels.size(), 2U);
  plan->kernels[0] = own->kernels[0];
  imported->plan = plan;
  const Built first = build_program(*imported, choose_known(*imported));
  const Relatives relatives{{&first.program}, true};
  AlikePrograms alike;
  alike.note(model, {32, 40}, first);
  EXPECT_TRUE(alike.at(model, {32, 50}, relatives));
  EXPECT_FALSE(alike.at(model, {33, 40}, relatives)) << "a kernel for 32 rows alone";
}

TEST_F(AlikeProgramsTest, KernelsAreComparedAgainWhereThereAreMore) {
  const OpenModel model = learned();
  AlikePrograms alike;
  const Built first = built_at(model, {4, 32});
  const Relatives relatives{{&first.program}, true};
  alike.note(model, {4, 32}, first);
  const std::int64_t before = model.menu->generation();
  for (const Dims& sizes : {Dims{20, 64}, {30, 80}}) {
    Graph other;
    const ValueId x = other.add_input("x", f32(sizes));
    other.outputs = {other.add(Op::softmax, {x}, {{"axis", std::int64_t{1}}})};
    model.menu->learn(lower(other), model.setup->machine);
  }
  ASSERT_NE(model.menu->generation(), before);
  EXPECT_FALSE(alike.at(model, {5, 33}, relatives)) << "there may be better kernels";
  alike.note(model, {4, 32}, built_at(model, {4, 32}));
  EXPECT_TRUE(alike.at(model, {5, 33}, relatives));
}

TEST_F(AlikeProgramsTest, AreNoneWhereKernelsDoNotServe) {
  const OpenModel model = learned();
  AlikePrograms alike;
  const Built first = built_at(model, {2, 17});
  const Relatives relatives{{&first.program}, true};
  alike.note(model, {2, 17}, first);
  EXPECT_TRUE(alike.at(model, {2, 18}, relatives));
  EXPECT_FALSE(alike.at(model, {1, 17}, relatives)) << "a batch of one has kernels of its own";
  EXPECT_FALSE(alike.at(model, {8, 17}, relatives)) << "too far from sizes whose kernels were compared";
  EXPECT_FALSE(alike.at(model, {2, 18}, {})) << "states and weights are those of others";
  alike.forget();
  EXPECT_FALSE(alike.at(model, {2, 18}, relatives));
}

}  // namespace
}  // namespace sylvite::alike_programs_test
