// Programs on a caller's memory and stream, and exported models that run without the compiler.

#include <dlfcn.h>

#include "runtime/export/embed/launcher_cuda.h"
#include "runtime/export/export.h"
#include "sylvite/graph_text.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/runtime/test_session.h"
#include "tests/support/shell.h"

namespace sylvite::cuda_export_test {
namespace {

/// A product that is a template on Hopper, a row sum with loops, and outputs that are copies.
Graph sample_graph() {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {128, 256}));
  const ValueId w = graph.add_constant(sample_tensor(DType::bf16, {256, 128}, 1));
  const ValueId b = graph.add_constant(sample_tensor(DType::bf16, {128}, 2));
  const ValueId product = graph.add(Op::gelu, {graph.add(Op::add, {graph.add(Op::matmul, {x, w}), b})});
  const ValueId wide = graph.add(Op::cast, {product}, {{"to", std::string("f32")}});
  const ValueId sum = graph.add(Op::reduce_sum, {wide}, {{"axes", std::vector<std::int64_t>{1}}});
  graph.outputs = {sum, product, x, b};
  return graph;
}

/// Tensors on the device, at addresses that are new for every object.
struct OnCard {
  std::vector<cuda::DeviceMemory> memory;
  std::vector<cuda::DevicePointer> addresses;
  cuda::Stream stream;

  explicit OnCard(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) {
      const auto bytes = static_cast<std::size_t>(tensor.byte_size());
      addresses.push_back(memory.emplace_back(bytes).address());
      cuda::driver().copy_to_device(addresses.back(), tensor.data(), bytes, stream.get());
    }
    stream.synchronize();
  }
  void expect(const std::vector<Tensor>& wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      Tensor result(wanted[i].dtype(), wanted[i].dims());
      cuda::driver().copy_to_host(result.mutable_data(), addresses[i], memory[i].size(), stream.get());
      stream.synchronize();
      expect_near(result, wanted[i], 0);
    }
  }
};

std::vector<Tensor> blank(const std::vector<Tensor>& like) {
  std::vector<Tensor> made;
  made.reserve(like.size());
  for (const Tensor& tensor : like) made.emplace_back(tensor.dtype(), tensor.dims());
  return made;
}

class GpuExport : public GpuTest {
 protected:
  Built build(const std::string& graph) {
    CompileOptions options = test_options(folder_.path());
    options.set["compile.device"] = "cuda";
    options.set["runtime.cuda_graph"] = graph;
    return build_graph(sample_graph(), options);
  }
  /// Exported as "sample" and opened; null without a C compiler.
  void* library_of(Built& made) {
    ExportOptions options;
    options.folder = folder_.path() + "/out";
    options.name = "sample";
    const ExportReport report = export_model(made, options);
    if (!report.warnings.empty() && report.warnings.back().find("compiled no C") != std::string::npos)
      return nullptr;
    const std::string shared = options.folder + "/sample.so";
    output_of("cc -shared -o " + shared + " -Wl,--whole-archive " + options.folder +
              "/libsample.a -Wl,--no-whole-archive -lpthread -ldl");
    void* library = ::dlopen(shared.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << ::dlerror();
    return library;
  }
  /// Null where it failed.
  [[nodiscard]] sylvite_model* created(void* library) const {
    const auto create =
        reinterpret_cast<int (*)(const char*, sylvite_model**)>(::dlsym(library, "sample_create"));
    sylvite_model* model = nullptr;
    EXPECT_EQ(create((folder_.path() + "/out/sample.weights").c_str(), &model), SYLVITE_OK);
    return model;
  }
  TemporaryFolder folder_;
};

TEST_F(GpuExport, RunsOnTheCallersMemoryAndStream) {
  for (const char* graph : {"false", "true"}) {
    Built made = build(graph);
    for (const int seed : {5, 6}) {  // the second time elsewhere
      const Tensor x = sample_tensor(DType::bf16, {128, 256}, seed);
      const std::vector<Tensor> wanted = made.program.run({x});
      EXPECT_LT(error_of(wanted[1], interpret(sample_graph(), {x})[1]), 1e-2);
      OnCard inputs({x});
      OnCard outputs(blank(wanted));
      for (int times = 0; times < 2; ++times)
        made.program.run_on(outputs.stream.get(), {inputs.addresses, outputs.addresses});
      outputs.expect(wanted);
      DeviceArguments crooked = {inputs.addresses, outputs.addresses};
      crooked.inputs[0] += 2;
      EXPECT_THROW(made.program.run_on(nullptr, crooked), InputError);
    }
  }
}

/// Runs at once on two streams, each with work memory of its own.
TEST_F(GpuExport, RunsWithTheCallersWorkMemory) {
  for (const char* graph : {"false", "true"}) {
    Built made = build(graph);
    const Tensor x[] = {sample_tensor(DType::bf16, {128, 256}, 5), sample_tensor(DType::bf16, {128, 256}, 6)};
    const std::vector<Tensor> wanted[] = {made.program.run({x[0]}), made.program.run({x[1]})};
    OnCard inputs[] = {OnCard({x[0]}), OnCard({x[1]})};
    OnCard outputs[] = {OnCard(blank(wanted[0])), OnCard(blank(wanted[1]))};
    const cuda::DeviceMemory work[] = {cuda::DeviceMemory(made.program.work_bytes()),
                                       cuda::DeviceMemory(made.program.work_bytes())};
    for (int times = 0; times < 20; ++times) {
      for (const int i : {0, 1}) {
        made.program.run_on(outputs[i].stream.get(),
                            {inputs[i].addresses, outputs[i].addresses, work[i].address()});
      }
    }
    for (const int i : {0, 1}) {
      outputs[i].stream.synchronize();
      outputs[i].expect(wanted[i]);
    }
  }
}

TEST_F(GpuExport, RunsBecomePartOfACapture) {
  for (const char* graph : {"false", "true"}) {
    Built made = build(graph);
    const Tensor x = sample_tensor(DType::bf16, {128, 256}, 5);
    const std::vector<Tensor> wanted = made.program.run({x});
    OnCard inputs({x});
    OnCard outputs(blank(wanted));
    const cuda::DeviceMemory work(made.program.work_bytes());
    const DeviceArguments arguments = {inputs.addresses, outputs.addresses, work.address()};
    const auto run = [&] { made.program.run_on(outputs.stream.get(), arguments); };
    const cuda::Graph captured(outputs.stream, run);
    captured.launch(outputs.stream.get());
    outputs.stream.synchronize();
    outputs.expect(wanted);
  }
}

TEST_F(GpuExport, ExportedModelsRunWithoutTheCompiler) {
  Built made = build("false");
  void* library = library_of(made);
  if (library == nullptr) GTEST_SKIP() << "no C compiler";
  const auto message =
      reinterpret_cast<const char* (*)(const sylvite_model*)>(::dlsym(library, "sample_error_message"));
  sylvite_model* model = created(library);
  ASSERT_NE(model, nullptr) << message(nullptr);
  const Tensor x = sample_tensor(DType::bf16, {128, 256}, 7);
  const std::vector<Tensor> wanted = made.program.run({x});

  std::vector<Tensor> results = blank(wanted);
  std::vector<void*> outputs;
  outputs.reserve(results.size());
  for (Tensor& tensor : results) outputs.push_back(tensor.mutable_data());
  const void* inputs[] = {x.data()};
  const auto run = reinterpret_cast<int (*)(sylvite_model*, const void* const*, void* const*)>(
      ::dlsym(library, "sample_run"));
  for (int times = 0; times < 2; ++times)
    ASSERT_EQ(run(model, inputs, outputs.data()), SYLVITE_OK) << message(model);
  for (std::size_t i = 0; i < wanted.size(); ++i) expect_near(results[i], wanted[i], 0);

  const auto run_on_stream =
      reinterpret_cast<int (*)(sylvite_model*, const void* const*, void* const*, void*)>(
          ::dlsym(library, "sample_run_on_stream"));
  for (int places = 0; places < 2; ++places) {
    OnCard given({x});
    OnCard taken(blank(wanted));
    std::vector<void*> to;
    to.reserve(taken.addresses.size());
    for (const cuda::DevicePointer address : taken.addresses) to.push_back(reinterpret_cast<void*>(address));
    const void* from[] = {reinterpret_cast<const void*>(given.addresses[0])};
    ASSERT_EQ(run_on_stream(model, from, to.data(), taken.stream.get()), SYLVITE_OK) << message(model);
    taken.expect(wanted);
    from[0] = reinterpret_cast<const void*>(given.addresses[0] + 2);
    EXPECT_EQ(run_on_stream(model, from, to.data(), taken.stream.get()), SYLVITE_NULL_ARGUMENT);
  }
  reinterpret_cast<void (*)(sylvite_model*)>(::dlsym(library, "sample_destroy"))(model);
}

TEST_F(GpuExport, ExportedModelsKeepTheirStates) {
  CompileOptions options = test_options(folder_.path());
  options.set["compile.device"] = "cuda";
  Built made = build_graph(parse_graph("graph counter(%step: f32[3], %count: f32[3]) {\n"
                                       "  %next: f32[3] = add(%count, %step)\n"
                                       "  %twice: f32[3] = add(%next, %next)\n"
                                       "  return %twice, %next to %count\n}\n"),
                           options);
  void* library = library_of(made);
  if (library == nullptr) GTEST_SKIP() << "no C compiler";
  const auto find = [&](const char* name) { return ::dlsym(library, name); };
  const auto run =
      reinterpret_cast<int (*)(sylvite_model*, const void* const*, void* const*)>(find("sample_run"));
  const auto reset = reinterpret_cast<int (*)(sylvite_model*)>(find("sample_reset"));
  const auto copy = reinterpret_cast<int (*)(sylvite_model*, sylvite_model*)>(find("sample_copy_state"));
  const auto get = reinterpret_cast<int (*)(sylvite_model*, int, void*)>(find("sample_get_state"));
  const auto set = reinterpret_cast<int (*)(sylvite_model*, int, const void*)>(find("sample_set_state"));
  const auto destroy = reinterpret_cast<void (*)(sylvite_model*)>(find("sample_destroy"));
  EXPECT_EQ(reinterpret_cast<int (*)()>(find("sample_state_count"))(), 1);
  sylvite_model* model = created(library);
  sylvite_model* other = created(library);
  ASSERT_TRUE(model != nullptr && other != nullptr);
  const float step[3] = {1, 2, 3};
  float twice[3] = {};
  float count[3] = {};
  const void* inputs[] = {step};
  void* outputs[] = {twice};
  const auto twice_after = [&](sylvite_model* of) {
    EXPECT_EQ(run(of, inputs, outputs), SYLVITE_OK);
    return twice[2];
  };
  EXPECT_EQ(twice_after(model), 6);
  EXPECT_EQ(twice_after(model), 12);
  EXPECT_EQ(twice_after(other), 6);
  EXPECT_EQ(copy(other, model), SYLVITE_OK);
  EXPECT_EQ(twice_after(other), 18);
  EXPECT_EQ(get(model, 0, count), SYLVITE_OK);
  EXPECT_EQ(count[1], 4);
  EXPECT_EQ(set(model, 0, step), SYLVITE_OK);
  EXPECT_EQ(twice_after(model), 12);
  EXPECT_EQ(reset(model), SYLVITE_OK);
  EXPECT_EQ(twice_after(model), 6);
  EXPECT_EQ(get(model, 1, count), SYLVITE_NULL_ARGUMENT);
  destroy(model);
  destroy(other);
}

}  // namespace
}  // namespace sylvite::cuda_export_test
