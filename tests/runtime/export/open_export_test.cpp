// Exported libraries whose functions take sizes, and whose states grow: C programs built with AddressSanitizer and UBSan, against
// the model in this process, and over many calls of mixed sizes without more memory.

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files.h"
#include "runtime/export/export.h"
#include "tests/runtime/test_session.h"
#include "tests/support/growing_decoder.h"
#include "tests/support/open_models.h"
#include "tests/support/shell.h"

namespace sylvite::open_export_test {
namespace {

using testing::HasSubstr;

/// Reads runs from a file: whether states are reset, sizes, inputs. Writes the outputs, then makes all runs in turn until there
/// are as many as wanted.
constexpr const char* driver = R"(
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "opened.h"
#ifdef HAS_SIZES
#define SIZES sizes,
#else
#define SIZES
#endif
extern size_t __sanitizer_get_current_allocated_bytes(void);
struct run { int64_t reset, sizes[4]; void *inputs[8], *outputs[8]; size_t bytes[8]; };
static struct run runs[64];
static int count;
static size_t bytes_of(const struct sylvite_tensor_info* info, const int64_t* dims) {
  size_t all = 1, now = 1;
  for (int i = 0; i < info->rank; ++i) all *= info->dims[i], now *= dims[i];
  return info->bytes / all * now;
}
static int call(sylvite_model* model, const struct run* run) {
  const int64_t* sizes = run->sizes;
  (void)sizes;
  if (run->reset) opened_reset(model);
  return opened_run(model, SIZES (const void* const*)run->inputs, run->outputs);
}
int main(int words, char** word) {
  sylvite_model* model;
  int64_t dims[8];
  FILE* in = fopen(word[2], "rb");
  FILE* out = fopen(word[3], "wb");
  if (words != 5 || opened_create(word[1], &model) != SYLVITE_OK) return puts(opened_error_message(NULL)), 1;
  opened_set_threads(1);
  for (int i = 0; i < opened_size_count(); ++i)
    printf("%s %" PRId64 "..%" PRId64 "%%%" PRId64 "\n", opened_size(i)->name, opened_size(i)->low, opened_size(i)->high,
           opened_size(i)->multiple);
  for (; fread(&runs[count].reset, 8, 1, in) == 1; ++count) {
    struct run* run = &runs[count];
    const int64_t* sizes = run->sizes;
    (void)sizes;
    if (opened_size_count() > 0 && fread(run->sizes, 8, opened_size_count(), in) == 0) return 2;
    if (run->reset) opened_reset(model);
    for (int i = 0; i < opened_input_count(); ++i) {
      if (opened_input_dims(model, SIZES i, dims) != SYLVITE_OK) return puts(opened_error_message(model)), 3;
      const size_t bytes = bytes_of(opened_input(i), dims);
      run->inputs[i] = malloc(bytes);
      if (fread(run->inputs[i], 1, bytes, in) != bytes) return 4;
    }
    for (int i = 0; i < opened_output_count(); ++i) {
      opened_output_dims(model, SIZES i, dims);
      run->bytes[i] = bytes_of(opened_output(i), dims);
      run->outputs[i] = malloc(run->bytes[i]);
    }
    if (opened_run(model, SIZES (const void* const*)run->inputs, run->outputs) != SYLVITE_OK)
      return puts(opened_error_message(model)), 5;
    for (int i = 0; i < opened_output_count(); ++i) fwrite(run->outputs[i], 1, run->bytes[i], out);
  }
  const size_t before = __sanitizer_get_current_allocated_bytes();
  for (int i = 0; i < atoi(word[4]); ++i)
    if (call(model, &runs[i % count]) != SYLVITE_OK) return puts(opened_error_message(model)), 6;
  printf("%d bytes more\n", (int)(__sanitizer_get_current_allocated_bytes() - before));
#ifdef MORE
  MORE
#endif
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < 8; ++j) free(runs[i].inputs[j]), free(runs[i].outputs[j]);
  opened_destroy(model);
  fclose(in);
  return fclose(out);
}
)";

struct GivenRun {
  bool reset = false;
  Sizes sizes;
  std::vector<Tensor> inputs;
};

class OpenExport : public testing::Test {
 protected:
  [[nodiscard]] CompileOptions options(const std::string& dims, bool has_states = false) const {
    CompileOptions options = test_options(folder_.path());
    options.set["import.dims"] = dims;
    if (has_states) options.set["import.state"] = "usual";
    return options;
  }
  ExportReport exported(const std::string& model, const CompileOptions& options) {
    write_file(folder_.file("opened.onnx"), model);
    const OpenModel open = open_model(folder_.file("opened.onnx"), make_setup(options));
    ExportOptions wanted;
    wanted.folder = folder_.path();
    wanted.name = "opened";
    CompileReport compiled;
    const auto choose = [](const Imported& imported) { return choose_candidates(imported); };
    if (!open.parsed.sizes.are_fixed()) return export_open_model(open, choose, wanted, compiled);
    const Imported imported = bind_sizes(open, {});
    Built built = build_program(imported, choose(imported));
    return export_model(built, wanted);
  }
  /// What the program prints; `outputs` gets what it wrote.
  std::string run(const std::vector<GivenRun>& runs, int calls, std::string& outputs,
                  const std::string& more = "") {
    std::string file;
    bool has_sizes = false;
    for (const GivenRun& each : runs) {
      const std::int64_t reset = each.reset ? 1 : 0;
      file.append(reinterpret_cast<const char*>(&reset), sizeof(reset));
      file.append(reinterpret_cast<const char*>(each.sizes.data()), each.sizes.size() * sizeof(std::int64_t));
      for (const Tensor& input : each.inputs)
        file.append(static_cast<const char*>(input.data()), static_cast<std::size_t>(input.byte_size()));
      has_sizes = has_sizes || !each.sizes.empty();
    }
    write_file(folder_.file("runs"), file);
    std::string text = has_sizes ? "#define HAS_SIZES\n" : "";
    if (!more.empty()) text += "#define MORE " + more + "\n";
    write_file(folder_.file("main.c"), text + driver);
    output_of("cc -g -fsanitize=address,undefined -fno-sanitize-recover=all -I " + folder_.path() + " " +
              folder_.file("main.c") + " -L " + folder_.path() + " -lopened -lm -lpthread -ldl -o " +
              folder_.file("main"));
    const std::string printed =
        output_of(folder_.file("main") + " " + folder_.file("opened.weights") + " " + folder_.file("runs") +
                  " " + folder_.file("outputs") + " " + std::to_string(calls));
    outputs = read_file(folder_.file("outputs"));
    return printed;
  }
  /// The first output of each run, as the model in this process gives it.
  void expect_outputs(const std::vector<GivenRun>& runs, const std::string& outputs,
                      const CompileOptions& options) const {
    CompiledModel model = compile(folder_.file("opened.onnx"), options);
    std::size_t at = 0;
    for (const GivenRun& each : runs) {
      if (each.reset) model.reset_state();
      for (const Tensor& expected : model.run(each.inputs)) {
        const auto bytes = static_cast<std::size_t>(expected.byte_size());
        ASSERT_LE(at + bytes, outputs.size());
        Tensor actual(expected.dtype(), expected.dims());
        std::copy_n(outputs.data() + at, bytes, static_cast<char*>(actual.mutable_data()));
        expect_near(actual, expected, 1e-3);
        at += bytes;
      }
    }
    EXPECT_EQ(at, outputs.size());
  }

  TemporaryFolder folder_;
};

TEST_F(OpenExport, ATransformerTakesBatchAndLength) {
  GrowingDecoder decoder;
  decoder.has_past = false;
  decoder.style = GrowingDecoder::Style::ranges;
  decoder.layers = 1;
  const CompileOptions options = this->options("batch=1..3@1,sequence=1..40@32");
  EXPECT_THAT(exported(decoder.model().SerializeAsString(), options).warnings, testing::IsEmpty());
  std::vector<GivenRun> runs;
  for (const Sizes& sizes :
       std::vector<Sizes>{{1, 32}, {3, 40}, {1, 1}, {2, 7}, {3, 1}, {3, 5}, {1, 15}, {2, 16}})
    runs.push_back({false, sizes, {token_tensor(sizes[0], sizes[1], 0)}});
  std::string outputs;
  const std::string refusals =
      R"({const int64_t sizes[] = {7, 3}; printf("%d %s\n", opened_run(model, sizes, NULL, NULL), opened_error_message(model));})"
      R"(printf("%d %s\n", opened_run(model, NULL, NULL, NULL), opened_error_message(model));)"
      R"({const int64_t fitting[] = {1, 1}; int64_t dims[8];)"
      R"(printf("%d %s\n", opened_input_dims(model, fitting, 5, dims), opened_error_message(model));)"
      R"(printf("%d %s\n", opened_output_dims(model, fitting, 0, NULL), opened_error_message(model));})";
  EXPECT_EQ(run(runs, 900, outputs, refusals),
            "batch 1..3%1\nsequence 1..40%1\n0 bytes more\n"
            "10 run: size 0 'batch' is 7, expected 1 to 3\n1 run: sizes is null\n"
            "1 input_dims: there is no input 5; the model has 1\n"
            "1 output_dims: the place for the dims is null\n");
  expect_outputs(runs, outputs, options);
}

/// What strides round, and how many pixels a mean has, differs at each size; the model has other kernels at some.
/// One image of each of these sizes.
std::vector<GivenRun> image_runs(const std::vector<Sizes>& all) {
  std::vector<GivenRun> runs;
  runs.reserve(all.size());
  for (const Sizes& sizes : all)
    runs.push_back({false, sizes, {sample_tensor(DType::f32, {1, 3, sizes[0], sizes[1]})}});
  return runs;
}

TEST_F(OpenExport, ImagesMayHaveAnySize) {
  const CompileOptions options = this->options("batch=1,lines=33..60,columns=50..70@64");
  const ExportReport report = exported(image_model("lines", "columns", {2, 1, 2}), options);
  EXPECT_LE(report.programs, 8);
  const std::vector<GivenRun> runs = image_runs({{33, 50}, {60, 70}, {47, 61}, {34, 64}, {57, 53}, {60, 50}});
  std::string outputs;
  EXPECT_THAT(run(runs, 100, outputs), HasSubstr("0 bytes more\n"));
  expect_outputs(runs, outputs, options);
}

/// How many kernels the exported library has.
std::size_t count_kernels(const std::string& folder) {
  const std::string source = read_file(folder + "/opened.c");
  const std::string_view declared = "extern int sylvite_";
  std::size_t count = 0;
  for (std::size_t at = source.find(declared); at != std::string::npos; at = source.find(declared, at + 1))
    ++count;
  return count;
}

TEST_F(OpenExport, ProgramsOfImagesShareKernels) {
  const std::string model = image_model("lines", "columns", {2, 1, 1, 2, 1, 2, 1});
  (void)exported(model, this->options("batch=1,lines=64,columns=96"));
  const std::size_t fixed = count_kernels(folder_.path());
  const CompileOptions options = this->options("batch=1..4@1,lines=32..160%32@64,columns=32..160%32@96");
  EXPECT_GT(exported(model, options).programs, 1);
  EXPECT_LE(count_kernels(folder_.path()), 2 * fixed);
  std::vector<GivenRun> runs;
  for (const Sizes& each :
       std::vector<Sizes>{{1, 32, 32}, {1, 64, 96}, {4, 160, 160}, {2, 32, 160}, {3, 128, 64}})
    runs.push_back({false, each, {sample_tensor(DType::f32, {each[0], 3, each[1], each[2]})}});
  std::string outputs;
  EXPECT_THAT(run(runs, 20, outputs), HasSubstr("0 bytes more\n"));
  expect_outputs(runs, outputs, options);
}

TEST_F(OpenExport, ImagesMayBeResized) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 3, 1, 1});
  name_axis(*graph.mutable_input(0), 2, "lines");
  name_axis(*graph.mutable_input(0), 3, "columns");
  const auto resize = [&](const char* from, const char* to, const char* mode,
                          const std::vector<float>& scales) {
    const std::string name = std::string(to) + "_scales";
    add_floats(graph, name, {4}, scales);
    set_text(add_node(graph, "Resize", {from, "", name}, {to}), "mode", mode);
  };
  resize("x", "wide", "linear", {1, 1, 2, 1.5});
  add_node(graph, "Relu", {"wide"}, {"work"});
  resize("work", "y", "nearest", {1, 1, 1, 2});
  add_output(graph, "y");
  const CompileOptions options = this->options("lines=33..63@48,columns=34..62%2@40");
  const ExportReport report = exported(model.SerializeAsString(), options);
  EXPECT_LE(report.programs, 6);
  const std::vector<GivenRun> runs =
      image_runs({{33, 34}, {63, 62}, {47, 60}, {34, 44}, {57, 54}, {60, 50}, {33, 34}});
  std::string outputs;
  EXPECT_THAT(run(runs, 100, outputs), HasSubstr("0 bytes more\n"));
  expect_outputs(runs, outputs, options);
}

TEST_F(OpenExport, SizesThatArePaddedInAnotherWayHaveOtherPrograms) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 4, 1});
  name_axis(*graph.mutable_input(0), 2, "n");
  onnx::NodeProto& node = add_node(graph, "MaxPool", {"x"}, {"y"});
  set_text(node, "auto_pad", "SAME_UPPER");
  set_integers(node, "kernel_shape", {2});
  set_integers(node, "strides", {3});
  add_output(graph, "y");
  const CompileOptions options = this->options("n=17..29");
  exported(model.SerializeAsString(), options);
  std::vector<GivenRun> runs;
  for (std::int64_t size = 17; size <= 29; ++size)
    runs.push_back({false, {size}, {sample_tensor(DType::f32, {1, 4, size})}});
  std::string outputs;
  EXPECT_THAT(run(runs, 10, outputs), HasSubstr("0 bytes more\n"));
  expect_outputs(runs, outputs, options);
}

/// A convolution that sees what is before alone, whose end is cut off again: a slice from 0 on.
TEST_F(OpenExport, WhatWindowsAddIsSlicedOff) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 12, 1});
  name_axis(*graph.mutable_input(0), 0, "batch");
  name_axis(*graph.mutable_input(0), 2, "n");
  add_floats(graph, "filters", {12, 1, 4}, std::vector<float>(48, 0.25F));
  onnx::NodeProto& node = add_node(graph, "Conv", {"x", "filters"}, {"longer"});
  set_integers(node, "pads", {3, 3});
  set_integer(node, "group", 12);
  add_integers(graph, "begin", {0});
  add_integers(graph, "end", {-3});
  add_integers(graph, "axis", {2});
  add_node(graph, "Slice", {"longer", "begin", "end", "axis"}, {"seen"});
  add_node(graph, "Sigmoid", {"seen"}, {"gate"});
  add_node(graph, "Mul", {"seen", "gate"}, {"y"});
  add_output(graph, "y");
  const CompileOptions options = this->options("batch=1..4@1,n=1..40@40");
  EXPECT_LE(exported(model.SerializeAsString(), options).programs, 12);
  std::vector<GivenRun> runs;
  for (const Sizes& sizes : std::vector<Sizes>{{1, 40}, {4, 9}, {3, 10}, {2, 1}, {4, 40}, {1, 1}, {3, 17}})
    runs.push_back({false, sizes, {sample_tensor(DType::f32, {sizes[0], 12, sizes[1]})}});
  std::string outputs;
  EXPECT_THAT(run(runs, 10, outputs), HasSubstr("0 bytes more\n"));
  expect_outputs(runs, outputs, options);
}

TEST_F(OpenExport, ImagesHaveAProgramForEachSize) {
  const CompileOptions options = this->options("batch=1..3@1,side=16..32%16@32");
  exported(image_model("side", "side", {1}), options);
  std::vector<GivenRun> runs;
  for (const Sizes& sizes : std::vector<Sizes>{{1, 32}, {3, 32}, {3, 16}, {2, 16}, {2, 32}})
    runs.push_back({false, sizes, {sample_tensor(DType::f32, {sizes[0], 3, sizes[1], sizes[1]})}});
  std::string outputs;
  EXPECT_EQ(run(runs, 100, outputs), "batch 1..3%1\nside 16..32%16\n0 bytes more\n");
  expect_outputs(runs, outputs, options);
}

/// Rows, behind those of a cache that is empty at first.
TEST_F(OpenExport, RangesMayBeginAtNone) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const char* name : {"x", "past"}) {
    add_input(graph, name, {2, 1, 16});
    name_axis(*graph.mutable_input(graph.input_size() - 1), 1, std::string(name) + "_rows");
  }
  set_integer(add_node(graph, "Concat", {"past", "x"}, {"present"}), "axis", 1);
  set_integers(add_node(graph, "Transpose", {"past"}, {"turned"}), "perm", {0, 2, 1});
  add_node(graph, "MatMul", {"x", "turned"}, {"scores"});
  add_node(graph, "MatMul", {"scores", "past"}, {"mixed"});
  for (const char* name : {"present", "mixed", "scores"}) add_output(graph, name);
  const CompileOptions options = this->options("x_rows=0..20@4,past_rows=0..40@8");
  exported(model.SerializeAsString(), options);
  std::vector<GivenRun> runs;
  for (const Sizes& sizes :
       std::vector<Sizes>{{4, 0}, {4, 4}, {0, 0}, {1, 0}, {0, 7}, {20, 40}, {1, 1}, {17, 0}, {3, 20}})
    runs.push_back(
        {false,
         sizes,
         {sample_tensor(DType::f32, {2, sizes[0], 16}), sample_tensor(DType::f32, {2, sizes[1], 16})}});
  std::string outputs;
  EXPECT_EQ(run(runs, 900, outputs), "x_rows 0..20%1\npast_rows 0..40%1\n0 bytes more\n");
  expect_outputs(runs, outputs, options);
}

/// Prompts and single tokens, one state.
TEST_F(OpenExport, StatesGrowByWhatARunAdds) {
  GrowingDecoder decoder;
  decoder.layers = 1;
  const CompileOptions options = this->options("batch=1,sequence=1..6@1,past_sequence=1..16", true);
  exported(decoder.model().SerializeAsString(), options);
  std::vector<GivenRun> runs;
  std::int64_t at = 0;
  for (const std::int64_t added : {4, 1, 1, 6, 1, 3}) {
    Tensor positions(DType::i64, {1, added});
    for (std::int64_t i = 0; i < added; ++i) positions.set_int64(i, at + i);
    Tensor mask(DType::i64, {1, at + added});
    for (std::int64_t i = 0; i < mask.size(); ++i) mask.set_int64(i, 1);
    runs.push_back({at == 0, {added}, {token_tensor(1, added, at), positions, mask}});
    at += added;
  }
  std::string outputs;
  const std::string refusal = R"({int length = 0; int64_t beyond = INT64_MAX;)"
                              R"(printf("%d %s\n", call(model, &runs[5]), opened_error_message(model));)"
                              R"(while (opened_state(length)->rank > 0) ++length;)"
                              R"(opened_set_state(model, length, &beyond);)"
                              R"(printf("%d\n", call(model, &runs[5]));})";
  EXPECT_EQ(run(runs, 600, outputs, refusal),
            "sequence 1..6%1\n0 bytes more\n"
            "11 run: 'past_sequence' is 16, and this run adds 3: states have room for 16\n11\n");
  expect_outputs(runs, outputs, options);
}

TEST_F(OpenExport, StatesGrowByOneTokenWithoutSizes) {
  GrowingDecoder decoder;
  decoder.style = GrowingDecoder::Style::ranges;
  const CompileOptions options = this->options("batch=1,sequence=1,past_sequence=1..16", true);
  exported(decoder.model().SerializeAsString(), options);
  std::vector<GivenRun> runs;
  runs.reserve(16);
  for (std::int64_t at = 0; at < 16; ++at) runs.push_back({at == 0, {}, {token_tensor(1, 1, at)}});
  std::string outputs;
  EXPECT_EQ(run(runs, 100000, outputs), "0 bytes more\n");
  expect_outputs(runs, outputs, options);
}

TEST_F(OpenExport, TooManyProgramsAreRefused) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {});
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param(
      "n");
  add_node(graph, "Shape", {"x"}, {"shape"});
  set_integer(add_node(graph, "Cast", {"shape"}, {"count"}), "to", onnx::TensorProto::FLOAT);
  add_node(graph, "Sqrt", {"count"}, {"root"});
  add_node(graph, "Div", {"x", "root"}, {"y"});  // by no extent
  add_output(graph, "y");
  try {
    exported(model.SerializeAsString(), options("n=16..400"));
    FAIL() << "385 programs";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("would need more than 64 programs"));
  }
}

}  // namespace
}  // namespace sylvite::open_export_test
