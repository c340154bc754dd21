// Libraries for a GPU whose functions take sizes: their results at sizes of a range, against the model on the CPU.

#include <dlfcn.h>

#include "base/files.h"
#include "runtime/export/embed/launcher_cuda.h"
#include "runtime/export/export.h"
#include "tests/gpu/gpu_test.h"
#include "tests/runtime/test_session.h"
#include "tests/support/growing_decoder.h"
#include "tests/support/open_models.h"
#include "tests/support/shell.h"

namespace sylvite::gpu_open_export_test {
namespace {

struct GivenRun {
  Sizes sizes;
  std::vector<Tensor> inputs;
  bool resets = false;
};

class GpuOpenExport : public GpuTest {
 protected:
  [[nodiscard]] CompileOptions options(const std::string& dims, const std::string& device) const {
    CompileOptions options = test_options(folder_.path());
    options.set["import.dims"] = dims;
    options.set["compile.device"] = device;
    if (has_states_) options.set["import.state"] = "usual";
    if (device == "cuda") options.set["compile.precision"] = precision_;
    return options;
  }
  /// The library as "opened", loaded; null without a C compiler.
  void* exported(const std::string& model, const std::string& dims) {
    write_file(folder_.file("opened.onnx"), model);
    const OpenModel open = open_model(folder_.file("opened.onnx"), make_setup(options(dims, "cuda")));
    ExportOptions wanted;
    wanted.folder = folder_.path();
    wanted.name = "opened";
    CompileReport compiled;
    const ExportReport report = export_open_model(
        open, [](const Imported& imported) { return choose_candidates(imported); }, wanted, compiled);
    if (!report.warnings.empty() && report.warnings.back().find("compiled no C") != std::string::npos)
      return nullptr;
    const std::string shared = folder_.file("opened.so");
    output_of("cc -shared -o " + shared + " -Wl,--whole-archive " + folder_.path() +
              "/libopened.a -Wl,--no-whole-archive -lpthread -ldl");
    void* library = ::dlopen(shared.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << ::dlerror();
    return library;
  }

  void expect_results(void* library, const std::string& dims, const std::vector<GivenRun>& runs) {
    const auto find = [&](const char* name) { return ::dlsym(library, name); };
    const auto create = reinterpret_cast<int (*)(const char*, sylvite_model**)>(find("opened_create"));
    const auto message =
        reinterpret_cast<const char* (*)(const sylvite_model*)>(find("opened_error_message"));
    const auto run =
        reinterpret_cast<int (*)(sylvite_model*, const std::int64_t*, const void* const*, void* const*)>(
            find("opened_run"));
    const auto output_dims =
        reinterpret_cast<int (*)(sylvite_model*, const std::int64_t*, int, std::int64_t*)>(
            find("opened_output_dims"));
    const auto reset = reinterpret_cast<int (*)(sylvite_model*)>(find("opened_reset"));
    sylvite_model* model = nullptr;
    ASSERT_EQ(create(folder_.file("opened.weights").c_str(), &model), SYLVITE_OK) << message(nullptr);
    CompiledModel wanted = compile(folder_.file("opened.onnx"), options(dims, "cpu"));
    for (int turn = 0; turn < 2; ++turn)
      for (const GivenRun& each : runs) {
        if (each.resets) wanted.reset_state();
        if (each.resets) ASSERT_EQ(reset(model), SYLVITE_OK) << message(model);
        const Tensor expected = wanted.run(each.inputs).at(0);
        Dims result_dims(static_cast<std::size_t>(expected.type().shape.size()));
        ASSERT_EQ(output_dims(model, each.sizes.data(), 0, result_dims.data()), SYLVITE_OK) << message(model);
        ASSERT_EQ(result_dims, expected.dims());
        Tensor result(expected.dtype(), expected.dims());
        std::vector<const void*> inputs;
        for (const Tensor& input : each.inputs) inputs.push_back(input.data());
        void* outputs[] = {result.mutable_data()};
        ASSERT_EQ(run(model, each.sizes.data(), inputs.data(), outputs), SYLVITE_OK) << message(model);
        expect_near(result, expected, precision_ == "f32" ? 2e-3 : 1e-1);
      }
    reinterpret_cast<void (*)(sylvite_model*)>(find("opened_destroy"))(model);
  }

  TemporaryFolder folder_;
  bool has_states_ = false;
  std::string precision_ = "f32";
};

TEST_F(GpuOpenExport, ATransformerTakesBatchAndLength) {
  GrowingDecoder decoder;
  decoder.has_past = false;
  decoder.style = GrowingDecoder::Style::ranges;
  decoder.layers = 1;
  const std::string dims = "batch=1..3@1,sequence=1..80@64";
  void* library = exported(decoder.model().SerializeAsString(), dims);
  if (library == nullptr) GTEST_SKIP() << "no C compiler";
  std::vector<GivenRun> runs;
  for (const Sizes& sizes : std::vector<Sizes>{
           {1, 64}, {3, 80}, {1, 1}, {2, 7}, {3, 1}, {3, 5}, {1, 15}, {2, 16}, {1, 33}, {2, 63}, {3, 65}})
    runs.push_back({sizes, {token_tensor(sizes[0], sizes[1], 0)}});
  expect_results(library, dims, runs);
}

class GpuGrowingExport : public GpuOpenExport, public testing::WithParamInterface<const char*> {};

TEST_P(GpuGrowingExport, StatesGrowByWhatARunAdds) {
  GrowingDecoder decoder;
  decoder.layers = 1;
  has_states_ = true;
  precision_ = GetParam();
  const std::string dims = "batch=1,sequence=1..6@1,past_sequence=1..16";
  void* library = exported(decoder.model().SerializeAsString(), dims);
  if (library == nullptr) GTEST_SKIP() << "no C compiler";
  std::vector<GivenRun> runs;
  std::int64_t at = 0;
  for (const std::int64_t added : {4, 1, 1, 6, 1, 3}) {
    Tensor positions(DType::i64, {1, added}), mask(DType::i64, {1, at + added});
    for (std::int64_t i = 0; i < added; ++i) positions.set_int64(i, at + i);
    for (std::int64_t i = 0; i < mask.size(); ++i) mask.set_int64(i, 1);
    runs.push_back({{added}, {token_tensor(1, added, at), positions, mask}, at == 0});
    at += added;
  }
  expect_results(library, dims, runs);
}

INSTANTIATE_TEST_SUITE_P(Precisions, GpuGrowingExport, testing::Values("f32", "bf16"));

TEST_F(GpuOpenExport, ImagesMayHaveManySizes) {
  const std::string dims = "batch=1..8@8,lines=32..96%16,columns=32..96%16@64";
  void* library = exported(image_model("lines", "columns", {2, 1, 2}), dims);
  if (library == nullptr) GTEST_SKIP() << "no C compiler";
  std::vector<GivenRun> runs;
  for (const Sizes& sizes : std::vector<Sizes>{
           {1, 32, 48}, {8, 64, 96}, {2, 48, 64}, {5, 32, 64}, {1, 96, 96}, {7, 80, 32}, {3, 48, 80}})
    runs.push_back({sizes, {sample_tensor(DType::f32, {sizes[0], 3, sizes[1], sizes[2]})}});
  expect_results(library, dims, runs);
}

}  // namespace
}  // namespace sylvite::gpu_open_export_test
