// Captured PyTorch graphs as models: what the command and the C++ interface do with a .torch file, and every operation
// through lowering and as a compiled program.

#include "runtime/torch_file.h"

#include <gmock/gmock.h>

#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "frontend/passes/pass_list.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_interpreter.h"
#include "sylvite/sylvite.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torch_cases.h"

namespace sylvite::torch_file_test {
namespace {

using testing::HasSubstr;

class TorchPrograms : public testing::TestWithParam<std::string> {};

TEST_P(TorchPrograms, PlansComputeWhatTorchComputes) {
  for (const TorchCase& test : torch_cases(GetParam())) {
    const TorchGraph imported = import_torch(test.text);
    const Plan plan = lower(run_passes(imported.graph));
    expect_torch_results(interpret_plan(plan, torch_inputs(imported, test)), test, "plan");
  }
}

/// All cases of a family as one text: their names differ.
std::string joined(const std::vector<TorchCase>& cases) {
  std::string inputs, nodes, results;
  for (const TorchCase& test : cases) {
    const std::size_t begin = test.text.find('(', test.text.find("\ntorch "));
    const std::size_t brace = test.text.find(") {\n", begin);
    const std::size_t end = test.text.find("  return ");
    const std::string own = test.text.substr(begin + 1, brace - begin - 1);
    if (!own.empty()) inputs += (inputs.empty() ? "" : ", ") + own;
    nodes += test.text.substr(brace + 4, end - brace - 4);
    const std::string returned = test.text.substr(end + 9, test.text.find("\n}") - end - 9);
    results += (results.empty() ? "" : ", ") + returned;
  }
  return "torch all(" + inputs + ") {\n" + nodes + "  return " + results + "\n}\n";
}

TEST_P(TorchPrograms, CompiledComputeWhatTorchComputes) {
  const std::vector<TorchCase> cases = torch_cases(GetParam());
  TorchCase all;
  for (const TorchCase& test : cases) all.inputs.insert(test.inputs.begin(), test.inputs.end());
  const TorchGraph imported = import_torch(joined(cases));
  const TemporaryFolder folder;
  CompileOptions options;
  options.set = {{"cache.dir", folder.path() + "/cache"}, {"db.path", folder.path() + "/trials.db"}};
  options.worker_command = SYLVITE_COMMAND;
  CompiledModel model = compile(imported.graph, options);
  const std::vector<Tensor> results = model.run(torch_inputs(imported, all));
  std::size_t next = 0;
  for (const TorchCase& test : cases) {
    const auto first = results.begin() + static_cast<std::ptrdiff_t>(next);
    next += test.results.size();
    ASSERT_LE(next, results.size());
    expect_torch_results({first, first + static_cast<std::ptrdiff_t>(test.results.size())}, test, "compiled");
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TorchPrograms, testing::ValuesIn(torch_families),
                         [](const auto& family) { return family.param; });

constexpr const char* layer = R"(torch layer(%s0: int, %x: f32[s0,2], %w: f32[2,3] parameter) {
  %y: f32[s0,3] = aten.mm.default(%x, %w)
  return %y
}
)";

ImportedModel import_at_first(const TorchFile& file, const ImportOptions& options) {
  const ModelSizes sizes = torch_file_sizes(file, options);
  return import_torch_file(file, options, sizes, first_sizes(sizes));
}

TEST(TorchFile, TakesSizesAndRandomParameters) {
  const TorchFile file{layer, {}};
  ImportOptions options;
  options.dims = {{"s0", 4}};
  EXPECT_EQ(import_at_first(file, options).graph.inputs.size(), 2U);
  options.random_weights = true;
  const ImportedModel model = import_at_first(file, options);
  ASSERT_EQ(model.graph.inputs.size(), 1U);
  EXPECT_EQ(model.graph.type(model.graph.inputs[0]).to_string(), "f32[4,2]");
  options.dims = {{"s0", SizeRange(1, 4, {3})}};
  EXPECT_EQ(first_sizes(torch_file_sizes(file, options)), Sizes{3});
  options.dims = {{"s1", 4}};
  EXPECT_THROW((void)torch_file_sizes(file, options), UsageError);
}

TEST(TorchFile, WantsNumbersForWhatNoInputTells) {
  const TorchFile untold{
      "torch f(%s0: int, %s1: int, %x: f32[s0]) {\n  %y: f32[s0] = aten.relu.default(%x)\n  return %y\n}\n",
      {}};
  ImportOptions options;
  EXPECT_THROW((void)torch_file_sizes(untold, options), UsageError);
  options.dims = {{"s1", 2}};
  EXPECT_EQ(torch_file_sizes(untold, options).symbols.size(), 1U);
  const TorchFile squared{
      "torch f(%s0: int, %x: f32[s0*s0]) {\n  %y: f32[s0*s0] = aten.relu.default(%x)\n  return %y\n}\n", {}};
  options.dims = {};
  EXPECT_THROW((void)torch_file_sizes(squared, options), UsageError);
  options.dims = {{"s0", 3}};
  EXPECT_EQ(torch_file_sizes(squared, options).inputs.at(0).axes.at(0).extent, 9);
}

TEST(TorchFile, TellsSizesByMultiplesOfThem) {
  const TorchFile file{
      "torch f(%s0: int, %x: f32[2*s0+1], %y: f32[s0]) {\n  %z: f32[2*s0+1] = aten.relu.default(%x)\n"
      "  %w: f32[s0] = aten.relu.default(%y)\n  return %z, %w\n}\n",
      {}};
  const ModelSizes sizes = torch_file_sizes(file, {});
  ASSERT_EQ(sizes.symbols.size(), 1U);
  EXPECT_EQ(dims_at(sizes.inputs.at(0), {4}), (Dims{9}));
  const SizeReader reader(sizes);
  const auto read = [&](std::int64_t first, std::int64_t second) {
    const Dims dims[] = {{first}, {second}};
    Sizes found;
    reader.read(2, [&](std::size_t i) { return GivenType{DType::f32, dims[i]}; }, found);
    return found;
  };
  EXPECT_EQ(read(15, 7), Sizes{7});
  EXPECT_THROW((void)read(14, 7), InputError);
  EXPECT_THROW((void)read(15, 6), InputError);
  const ImportedModel model = import_torch_file(file, {}, sizes, {5});
  EXPECT_EQ(model.graph.type(model.graph.inputs.at(0)).to_string(), "f32[11]");
}

/// A safetensors file with w = 1, 2, ..., 6.
void write_weights(const std::string& path, const std::string& header) {
  std::string bytes(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += header;
  const float values[] = {1, 2, 3, 4, 5, 6};
  bytes.append(reinterpret_cast<const char*>(values), sizeof values);
  write_file(path, bytes);
}

TEST(TorchFile, TakesWeightsBesideItAndSizesOfARun) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/layer.torch";
  write_file(path, layer);
  write_weights(
      folder.path() + "/layer.safetensors",
      R"({"__metadata__":{"made":"by hand"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})");
  CompileOptions options;
  options.set = {{"cache.dir", folder.path() + "/cache"}, {"db.path", folder.path() + "/trials.db"}};
  options.worker_command = SYLVITE_COMMAND;
  CompiledModel model = compile(path, options);
  for (const std::int64_t rows : {1, 2, 5}) {
    Tensor x(DType::f32, {rows, 2});
    for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i));
    const Tensor y = model.run({x}).at(0);
    ASSERT_EQ(y.dims(), (Dims{rows, 3}));
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < 3; ++c)
        EXPECT_EQ(y.as_double(r * 3 + c), static_cast<double>(2 * r * (c + 1) + (2 * r + 1) * (c + 4)));
  }
}

TEST(TorchFile, ReadsEveryByteButZeroAsTrue) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/masked.torch";
  write_file(path,
             "torch masked(%x: bool[4], %w: bool[4] parameter) {\n"
             "  %y: bool[4] = aten.logical_and.default(%x, %w)\n  return %y\n}\n");
  write_weights(folder.path() + "/masked.safetensors",
                R"({"w":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})");  // the bytes of 1.0F
  const Tensor w = read_torch_file(path, false).weights.at("w");
  const auto* bytes = static_cast<const std::uint8_t*>(w.data());
  EXPECT_EQ(std::vector<int>(bytes, bytes + 4), (std::vector<int>{0, 0, 1, 1}));
}

TEST(TorchFile, RefusesDamagedWeights) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/layer.torch", weights = folder.path() + "/layer.safetensors";
  write_file(path, layer);
  const std::string headers[] = {
      "no JSON",
      "[]",
      "{}",
      R"({"w":7})",
      R"({"w":{"dtype":"F32","shape":[2,3]}})",
      R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,28]}})",
      R"({"w":{"dtype":"F32","shape":[2,4],"data_offsets":[0,32]}})",
      R"({"w":{"dtype":"F32","shape":[2,-3],"data_offsets":[0,24]}})",
      R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[9223372036854775783,9223372036854775807]}})"};
  for (const std::string& header : headers) {
    write_weights(weights, header);
    EXPECT_THROW((void)read_torch_file(path, false), ModelError) << header;
  }
  write_weights(weights, R"({"w":{"dtype":"F8_E4M3","shape":[2,3],"data_offsets":[0,6]}})");
  EXPECT_THROW((void)read_torch_file(path, false), UnsupportedError);
  write_file(weights, std::string(8, '\xff'));
  EXPECT_THROW((void)read_torch_file(path, false), ModelError);
  write_file(weights, "short");
  EXPECT_THROW((void)read_torch_file(path, false), ModelError);
}

TEST(TorchFile, SaysWhatItHolds) {
  const ModelFacts facts = torch_file_facts({layer, {}});
  ASSERT_EQ(facts.inputs.size(), 1U);
  EXPECT_EQ(facts.inputs[0].type, "f32[s0,2]");
  EXPECT_EQ(facts.outputs.at(0).type, "f32[s0,3]");
  EXPECT_EQ(facts.weights, 1);
  EXPECT_EQ(facts.operators.at("aten.mm.default"), 1);
}

}  // namespace
}  // namespace sylvite::torch_file_test
