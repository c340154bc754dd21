// Kernels that serve a range of sizes on a GPU, against the interpreter.

#include "base/files.h"
#include "frontend/onnx/importer.h"
#include "runtime/alike_programs.h"
#include "runtime/kernel_menu.h"
#include "tests/gpu/gpu_test.h"
#include "tests/runtime/attention_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite::gpu_open_test {
namespace {

/// A layer of an encoder, and a convolution over as many images.
class LayerGraph {
 public:
  explicit LayerGraph(std::int64_t batch, std::int64_t rows) : batch_(batch), rows_(rows) {}

  [[nodiscard]] Graph graph() {
    const ValueId x = graph_.add_input("x", make_type(DType::f32, {batch_, rows_, width}));
    const ValueId mask = graph_.add_input("mask", make_type(DType::f32, {batch_, 1, 1, rows_}));
    const ValueId seen = graph_.add(
        Op::attention, {heads(linear(x, width)), heads(linear(x, width)), heads(linear(x, width)), mask},
        {{"causal", std::int64_t{0}}});
    const ValueId rows =
        graph_.add(Op::reshape, {graph_.add(Op::transpose, {seen}, {{"perm", Dims{0, 2, 1, 3}}})},
                   {{"shape", Dims{batch_, rows_, width}}});
    const ValueId first = norm(graph_.add(Op::add, {linear(rows, width), x}));
    const ValueId wide = graph_.add(Op::gelu, {linear(first, 4 * width)});
    graph_.outputs = {norm(graph_.add(Op::add, {linear(wide, width), first}))};
    return std::move(graph_);
  }

 private:
  static constexpr std::int64_t width = 128;

  [[nodiscard]] ValueId weight(const Dims& dims) {
    Tensor tensor = sample_tensor(DType::f32, dims, ++weights_);
    const double scale = 1.0 / std::sqrt(static_cast<double>(dims[0]));
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, tensor.as_double(i) * scale);
    return graph_.add_constant(std::move(tensor), fmt::format("w{}", weights_));
  }
  [[nodiscard]] ValueId linear(ValueId x, std::int64_t columns) {
    const std::int64_t depth = graph_.type(x).dims().back();
    return graph_.add(Op::add, {graph_.add(Op::matmul, {x, weight({depth, columns})}), weight({columns})});
  }
  [[nodiscard]] ValueId heads(ValueId x) {
    const ValueId apart = graph_.add(Op::reshape, {x}, {{"shape", Dims{batch_, rows_, 2, width / 2}}});
    return graph_.add(Op::transpose, {apart}, {{"perm", Dims{0, 2, 1, 3}}});
  }
  [[nodiscard]] ValueId norm(ValueId x) {
    return graph_.add(Op::layer_norm, {x, weight({width}), weight({width})}, {{"axis", std::int64_t{2}}});
  }

  std::int64_t batch_, rows_;
  Graph graph_;
  int weights_ = 0;
};

Graph encoder(std::int64_t batch, std::int64_t rows) {
  return LayerGraph(batch, rows).graph();
}

/// Rows of any length are folded, and turned.
Graph folds_and_turns(std::int64_t batch, std::int64_t rows) {
  Graph graph;
  const ValueId scores = graph.add_input("scores", make_type(DType::f32, {batch, 1, rows, rows}));
  const ValueId most =
      graph.add(Op::reduce_max, {scores}, {{"axes", Dims{3}}, {"keepdims", std::int64_t{1}}});
  const ValueId x = graph.add_input("x", make_type(DType::f32, {batch, rows, 96}));
  graph.outputs = {graph.add(Op::exp, {most}), graph.add(Op::transpose, {x}, {{"perm", Dims{0, 2, 1}}})};
  return graph;
}

/// Scores of pairs of rows beside a bias, and what the rows give where they lie as columns.
Graph pairs_of_rows(std::int64_t batch, std::int64_t rows) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {batch, rows, 64}));
  const ValueId bias = graph.add_input("bias", make_type(DType::f32, {batch, rows, rows}));
  const ValueId turned = graph.add(Op::transpose, {x}, {{"perm", Dims{0, 2, 1}}});
  const ValueId filter = graph.add_constant(sample_tensor(DType::f32, {40, 64}, 3), "filter");
  graph.outputs = {graph.add(Op::add, {graph.add(Op::matmul, {x, turned}), bias}),
                   graph.add(Op::relu, {graph.add(Op::matmul, {filter, turned})})};
  return graph;
}

/// Rows of any length are normed: by softmax with a mask that others share, and around their mean.
Graph norms_of_any_rows(std::int64_t batch, std::int64_t rows) {
  Graph graph;
  const ValueId scores = graph.add_input("scores", make_type(DType::f32, {batch, 3, 5, rows}));
  const ValueId mask = graph.add_input("mask", make_type(DType::f32, {batch, 1, 1, rows}));
  const ValueId x = graph.add_input("x", make_type(DType::f32, {batch, 96, rows}));
  const ValueId masked = graph.add(Op::add, {scores, mask});
  const ValueId normed = graph.add(Op::layer_norm, {x}, {{"axis", std::int64_t{2}}});
  graph.outputs = {graph.add(Op::softmax, {masked}, {{"axis", std::int64_t{3}}}),
                   graph.add(Op::log_softmax, {scores}, {{"axis", std::int64_t{3}}}),
                   graph.add(Op::mul, {normed, x})};
  return graph;
}

/// What training has: gradients of attention with the sums that they need, and of a weight whose depth is the rows.
Graph slopes(std::int64_t batch, std::int64_t rows) {
  Graph graph;
  std::vector<ValueId> inputs;
  for (const char* name : {"q", "k", "v", "g"})
    inputs.push_back(graph.add_input(name, make_type(DType::bf16, {batch, 2, rows, 64})));
  const Attributes causal = {{"causal", std::int64_t{1}}, {"scale", 0.125}};
  const ValueId sums = graph.add(Op::attention_sums, {inputs[0], inputs[1]}, causal);
  graph.outputs.push_back(sums);
  inputs.push_back(sums);
  inputs.push_back(graph.add_input("products", make_type(DType::f32, {batch, 2, rows})));
  for (std::int64_t of = 0; of < 3; ++of)
    graph.outputs.push_back(graph.add(Op::attention_gradient, inputs,
                                      {{"of", of}, {"causal", std::int64_t{1}}, {"scale", 0.125}}));
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {batch * rows, 128}));
  const ValueId g = graph.add_input("slopes", make_type(DType::bf16, {batch * rows, 256}));
  graph.outputs.push_back(graph.add(Op::matmul, {graph.add(Op::transpose, {x}, {{"perm", Dims{1, 0}}}), g}));
  return graph;
}

/// Depths of a run on templates that take f32.
Graph slopes_of_weights(std::int64_t batch, std::int64_t rows) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {batch * rows, 128}));
  const ValueId g = graph.add_input("g", make_type(DType::f32, {batch * rows, 256}));
  graph.outputs = {graph.add(Op::matmul, {graph.add(Op::transpose, {x}, {{"perm", Dims{1, 0}}}), g})};
  return graph;
}

/// What training on images has: gradients by filters of many channels, of few whose taps of a line are joined, and of each channel by
/// itself, and of poolings. Convolutions that change nothing lay channels innermost.
class ImageSlopes {
 public:
  explicit ImageSlopes(std::int64_t batch) : batch_(batch) {}

  [[nodiscard]] Graph graph(std::int64_t size) {
    const ValueId g = image("g", 64, size, size), x = image("x", 64, size, size);
    const ValueId picture = image("picture", 8, 2 * size + 1, 2 * size + 2);
    const ValueId wide = image("wide", 64, 2 * size, 2 * size);
    graph_.outputs = {by_filter(g, x, {3, 3}, 1, 1), by_filter(g, picture, {3, 4}, 2, 1),
                      by_filter(g, x, {3, 3}, 1, 64),
                      graph_.add(Op::max_pool_gradient, {g, wide},
                                 {{"kernel", Dims{3, 3}},
                                  {"strides", Dims{2, 2}},
                                  {"pads", Dims{1, 1, 1, 1}},
                                  {"dilations", Dims{1, 1}}})};
    return std::move(graph_);
  }

 private:
  [[nodiscard]] ValueId image(const char* name, std::int64_t channels, std::int64_t lines,
                              std::int64_t columns) {
    const ValueId given = graph_.add_input(name, make_type(DType::bf16, {batch_, channels, lines, columns}));
    Tensor same(DType::bf16, {channels, channels, 1, 1});
    for (std::int64_t i = 0; i < same.size(); ++i) same.set_double(i, i % (channels + 1) == 0 ? 1 : 0);
    return graph_.add(Op::conv,
                      {given, graph_.add_constant(std::move(same), fmt::format("same as {}", name))},
                      {{"strides", Dims{1, 1}},
                       {"pads", Dims{0, 0, 0, 0}},
                       {"dilations", Dims{1, 1}},
                       {"groups", std::int64_t{1}}});
  }
  [[nodiscard]] ValueId by_filter(ValueId g, ValueId x, const Dims& kernel, std::int64_t stride,
                                  std::int64_t groups) {
    const std::int64_t joined = stride == 2 ? 1 : 0, pad = 1 - joined;
    return graph_.add(Op::filter_gradient, {g, x},
                      {{"kernel", kernel},
                       {"strides", Dims{stride, stride}},
                       {"pads", Dims(4, pad)},
                       {"dilations", Dims{1, 1}},
                       {"groups", groups},
                       {"parts", std::int64_t{3}},
                       {"joined", joined}});
  }

  std::int64_t batch_;
  Graph graph_;
};

Graph slopes_of_images(std::int64_t batch, std::int64_t size) {
  return ImageSlopes(batch).graph(size);
}

class GpuOpen : public GpuTest {
 protected:
  /// One set of kernels for all the sizes; how many were compiled for the last.
  int run_at_sizes(Graph (*graph_at)(std::int64_t, std::int64_t), const char* precision, double tolerance) {
    CompileOptions options = test_options(folder_.path());
    options.set["compile.device"] = "cuda";
    options.set["compile.precision"] = precision;
    const auto setup = make_setup(options);
    KernelMenu menu;
    const auto loaded = [&](const Sizes& sizes) { return load_graph(graph_at(sizes[0], sizes[1]), setup); };
    menu.learn(*loaded({4, 40}).plan, setup->machine);
    menu.learn(*loaded({5, 77}).plan, setup->machine);
    int compiled = 0;
    for (const Sizes& sizes : {Sizes{4, 40}, {2, 65}, {7, 64}, {3, 101}, {6, 80}}) {
      Imported imported = loaded(sizes);
      imported.plan = menu.apply(imported.plan, setup->machine);
      for (const Kernel& kernel : imported.plan->kernels)
        EXPECT_NE(kernel.open, nullptr) << default_candidate(kernel, setup->machine).form.name << "\n"
                                        << kernel.text;
      Built built = build_program(imported, choose_candidates(imported));
      compiled = built.report.compiled;
      std::vector<Tensor> inputs;
      for (const Port& port : built.program.plan().inputs)
        inputs.push_back(sample_tensor(port.type.dtype, port.type.dims(), static_cast<int>(sizes[1])));
      const std::vector<Tensor> expected = interpret(graph_at(sizes[0], sizes[1]), inputs);
      const std::vector<Tensor> results = built.program.run(inputs);
      EXPECT_EQ(results.size(), expected.size());
      for (std::size_t i = 0; i < results.size(); ++i) expect_near(results[i], expected[i], tolerance);
    }
    return compiled;
  }

  TemporaryFolder folder_;
};

TEST_F(GpuOpen, AnEncoderInBf16) {
  EXPECT_EQ(run_at_sizes(encoder, "bf16", 0.06), 0);
}

TEST_F(GpuOpen, AnEncoderInF32) {
  EXPECT_EQ(run_at_sizes(encoder, "f32", 1e-3), 0);
}

TEST_F(GpuOpen, FoldsAndTurnsOfAnyRows) {
  EXPECT_EQ(run_at_sizes(folds_and_turns, "f32", 1e-5), 0);
}

TEST_F(GpuOpen, NormsOfAnyRows) {
  EXPECT_EQ(run_at_sizes(norms_of_any_rows, "f32", 1e-4), 0);
}

TEST_F(GpuOpen, SlopesOfAnyRows) {
  EXPECT_EQ(run_at_sizes(slopes, "f32", 0.1), 0);
}

TEST_F(GpuOpen, SlopesOfWeights) {
  EXPECT_EQ(run_at_sizes(slopes_of_weights, "f32", 2e-3), 0);
}

TEST_F(GpuOpen, SlopesOfImages) {
  EXPECT_EQ(run_at_sizes(slopes_of_images, "f32", 0.1), 0);
}

TEST_F(GpuOpen, NormsOfAnyRowsInBf16) {
  EXPECT_EQ(run_at_sizes(norms_of_any_rows, "bf16", 0.1), 0);
}

TEST_F(GpuOpen, ProductsWithColumnsOfARun) {
  EXPECT_EQ(run_at_sizes(pairs_of_rows, "bf16", 0.1), 0);
}

/// Enough of them that most plans follow from others: programs of one structure differ in their launches.
TEST_F(GpuOpen, AModelAtManySizes) {
  const std::string path = folder_.path() + "/attention.onnx";
  write_file(path, attention_model());
  CompileOptions options = test_options(folder_.path());
  options.set["compile.device"] = "cuda";
  options.set["import.dims"] = "batch=1..8,sequence=1..64@24";
  CompiledModel model = compile(path, options);
  for (int i = 0; i < 40; ++i) {
    const std::int64_t batch = 2 + i % 5, sequence = 17 + i * 7 % 15;
    ImportOptions at_sizes;
    at_sizes.dims = {{"batch", batch}, {"sequence", sequence}};
    const std::vector<Tensor> inputs = attention_inputs(batch, sequence);
    expect_near(model.run(inputs).at(0), interpret(import_onnx(path, at_sizes), inputs).at(0), 1e-3);
  }
}

/// Those of one program with other numbers: at sizes where its kernels serve, no plan is made.
TEST_F(GpuOpen, ProgramsWithTheKernelsOfOthers) {
  const std::string path = folder_.path() + "/attention.onnx";
  write_file(path, attention_model());
  CompileOptions options = test_options(folder_.path());
  options.set["compile.device"] = "cuda";
  options.set["import.dims"] = "batch=1..8,sequence=1..64@24";
  const OpenModel model = open_model(path, make_setup(options));
  for (const Sizes& sizes : {Sizes{2, 24}, {3, 37}, {7, 50}, {2, 63}, {8, 20}, {5, 16}})
    (void)bind_sizes(model, sizes);
  const std::optional<Imported> imported = bind_known_sizes(model, {4, 40});
  ASSERT_TRUE(imported);
  Built first = build_program(*imported, choose_known(*imported));
  const Tensor answer = first.program.run(attention_inputs(4, 40)).at(0);
  AlikePrograms alike;
  alike.note(model, {4, 40}, first);
  for (const Sizes& sizes : {Sizes{4, 33}, {3, 61}, {8, 64}, {5, 40}, {4, 40}}) {
    std::optional<Built> borrowed = alike.at(model, sizes, {{&first.program}, true});
    ASSERT_TRUE(borrowed) << sizes[0] << " " << sizes[1];
    const std::vector<Tensor> inputs = attention_inputs(sizes[0], sizes[1]);
    ImportOptions at_sizes;
    at_sizes.dims = {{"batch", sizes[0]}, {"sequence", sizes[1]}};
    const std::vector<Tensor> expected = interpret(import_onnx(path, at_sizes), inputs);
    std::vector<LaunchTime> profile;
    expect_near(borrowed->program.run(inputs).at(0), expected.at(0), 1e-3);
    expect_near(borrowed->program.run(inputs, &profile).at(0), expected.at(0), 1e-3);
    EXPECT_EQ(profile.size(), borrowed->program.plan().launches.size());
    expect_near(first.program.run(attention_inputs(4, 40)).at(0), answer, 0);
  }
}

}  // namespace
}  // namespace sylvite::gpu_open_test
