// Every row of both tables can be left out: what follows is right without it.

#include "lowering/passes/pass_list.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/passes/pass_list.h"
#include "tests/lowering/passes/pass_samples.h"

namespace sylvite::pass_list_test {
namespace {

/// A way to compile, and how much of a result's size its rounding may take.
struct Setting {
  std::string name;
  FrontendOptions precision;
  LoweringOptions lowering;
  double tolerance = 1e-4;
};

std::vector<Setting> settings() {
  Setting blocked{"f32, in blocks", {}, {}};
  Setting narrow{"bf16, for tensor cores", {}, {}, 0.1};
  narrow.precision.narrow = DType::bf16;
  narrow.lowering.multiply_patches = true;
  narrow.lowering.image_layout = ImageLayout::channels_last;
  narrow.lowering.refuse_template = [](const Kernel&) { return ""; };
  Setting divided{"without templates for attention", {}, {}};
  divided.lowering.refuse_template = [](const Kernel& kernel) {
    return kernel.kind == KernelClass::attention ? "it is attention" : "";
  };
  Setting whole_heads{"with a template for heads of whole vectors", {}, {}};
  whole_heads.lowering.refuse_template = [](const Kernel& kernel) {
    const bool is_odd = kernel.kind == KernelClass::attention &&
                        kernel.body.type(kernel.body.node(kernel.anchor).inputs[0]).dims().back() % 8 != 0;
    return is_odd ? "its heads are odd" : "";
  };
  Setting quantized{"8 bits", {}, {}, 0.1};
  quantized.precision.quantize = true;
  Setting widened{"weights of a few bits widened before", {}, {}};
  widened.lowering.widen_bits = true;
  return {blocked, narrow, divided, whole_heads, quantized, widened};
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& pass : frontend_passes()) names.emplace_back(pass.name);
  for (const auto& pass : lowering_passes()) names.emplace_back(pass.name);
  return names;
}

double largest(const Tensor& tensor) {
  double result = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) result = std::max(result, std::abs(tensor.as_double(i)));
  return result;
}

void expect_near(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].dims(), expected[i].dims());
    const double allowed = tolerance * std::max(1.0, largest(expected[i]));
    for (std::int64_t k = 0; k < actual[i].size(); ++k)
      ASSERT_NEAR(actual[i].as_double(k), expected[i].as_double(k), allowed) << "output " << i << " at " << k;
  }
}

/// Which passes of lowering change a graph with a state, whose plan computes what the graph does.
std::vector<std::string> changes_of_states() {
  const Graph graph = cached();
  PassRunner runner;
  const Plan plan = lower(graph, {}, runner);
  std::vector<Tensor> inputs = random_inputs(graph);
  std::vector<Tensor> states = {inputs.back()};
  std::vector<Tensor> plan_states = states;
  inputs.pop_back();
  expect_near(interpret_plan(plan, inputs, plan_states), interpret(graph, inputs, states), 1e-6);
  expect_near(plan_states, states, 1e-6);
  std::vector<std::string> changed;
  for (const PassReport& report : runner.reports())
    if (report.result == PassResult::changed) changed.emplace_back(report.name);
  return changed;
}

TEST(PassList, IsRightWithoutAnyOneRow) {
  std::set<std::string_view> changed;
  const std::vector<std::string> names = all_names();
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const Graph& graph : {greatest(),          shared_heads(),
                             residual_network(),  encoder(1),
                             patches(),           signal(),
                             metaformer_blocks(), pixels(),
                             met_pairs(),         bits(),
                             gradients(),         sums(),
                             scaled_channels(),   kept_statistics(),
                             one_channel(),       windows(),
                             read_places(),       pairs(),
                             told_groups(),       members(),
                             grouped_channels(),  neighbours(),
                             mean_of_models(),    neighbouring_channels()}) {
    const std::vector<Tensor> inputs = random_inputs(graph);
    const std::vector<Tensor> expected = interpret(graph, inputs);
    for (const Setting& setting : settings()) {
      for (const std::string& name : names) {
        SCOPED_TRACE(graph.name + " without " + name + ", " + setting.name);
        PassOptions options;
        options.disabled.insert(name);
        options.check_finds = true;
        PassRunner runner(options, known);
        const Graph after = run_passes(graph, setting.precision, runner);
        const Plan plan = lower(after, setting.lowering, runner);
        ASSERT_EQ(runner.reports().size(), names.size());
        for (const PassReport& report : runner.reports()) {
          EXPECT_EQ(report.result == PassResult::disabled, report.name == name);
          if (report.result == PassResult::changed) changed.insert(report.name);
        }
        expect_near(interpret(after, inputs), expected, setting.tolerance);
        expect_near(interpret_plan(plan, inputs), interpret(after, inputs), setting.tolerance / 10);
      }
    }
  }
  const std::vector<std::string> by_states = changes_of_states();
  changed.insert(by_states.begin(), by_states.end());
  // The graphs give the rows of lowering something to do, but for those of other orders, of parts, of much, of large products and of what
  // only some templates take; the frontend's are tested one by one elsewhere.
  for (const auto& pass : lowering_passes())
    if (pass.name != "order_rows" && pass.name != "align_rows" && pass.name != "bound_scatters" &&
        pass.name != "divide_variances" && pass.name != "divide_expectations" &&
        pass.name != "join_batches" && pass.name != "split_gates" && pass.name != "extend_work")
      EXPECT_TRUE(changed.contains(pass.name)) << pass.name;
}

TEST(PassList, KeepsTheNamesAndTypesOfInputsAndOutputs) {
  for (Graph graph : {residual_network(), patches(), signal()}) {
    graph.output_names = {"first"};
    for (const Setting& setting : settings()) {
      PassRunner runner;
      const Graph after =
          runner.run(lowering_passes(), run_passes(graph, setting.precision, runner), setting.lowering);
      ASSERT_EQ(after.outputs.size(), graph.outputs.size());
      for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
        EXPECT_EQ(after.output_name(i), graph.output_name(i)) << setting.name;
        EXPECT_EQ(after.type(after.outputs[i]), graph.type(graph.outputs[i])) << setting.name;
      }
      EXPECT_EQ(after.value(after.inputs[0]).name, "image");
      EXPECT_EQ(after.type(after.inputs[0]), graph.type(graph.inputs[0]));
    }
  }
}

TEST(PassList, NamesEachRowOnce) {
  const std::vector<std::string> names = all_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(PassList, LoweringVerifiesWhatItsPassesMake) {
  Graph graph = residual_network();
  graph.value(graph.outputs[0]).type.dtype = DType::i32;  // not what its rule says
  EXPECT_THROW((void)lower(graph), InternalError);
}

}  // namespace
}  // namespace sylvite::pass_list_test
