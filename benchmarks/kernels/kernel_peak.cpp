// The share of the core's multiply-add peak that the default candidates of heavy kernels reach; or those of
// one space, at its heuristic point or with some parameters changed. Winograd's convolutions count the
// operations they spare: they can pass 1. "cold" reads weights from memory, as in a model.
// usage: kernel_peak [NAME-PART [THREADS [SPACE|all [cold|hot [element=bf16] [block=32] [PARAMETER=VALUE
// ...] [/ ...]]]]]. Points behind a "/" take turns with the one before it: compare only these.

#include <fmt/core.h>

#include <exception>
#include <functional>
#include <memory>

#include "base/error.h"
#include "benchmarks/kernels/kernel_runner.h"
#include "frontend/ops/op_table.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

int channel_block = 0;       // of images; that of the machine's f32 models unless given
DType element = DType::f32;  // what the rows store and multiply

Kernel conv_kernel(const Dims& x, std::int64_t out_channels, std::int64_t window, std::int64_t stride,
                   bool depthwise, Op activation) {
  Graph body;
  const Layout blocked{channel_block};
  TensorType type = make_type(element, x);
  if (x[1] >= channel_block) type.layout = blocked;
  const ValueId in = body.add_input("x", type);
  const ValueId weight =
      body.add_input("w", make_type(element, {out_channels, depthwise ? 1 : x[1], window, window}));
  const ValueId bias = body.add_input("bias", make_type(element, {out_channels}));
  const std::int64_t pad = window / 2;
  const ValueId product = body.add(Op::conv, {in, weight, bias},
                                   {{"strides", Dims{stride, stride}},
                                    {"dilations", Dims{1, 1}},
                                    {"pads", Dims{pad, pad, pad, pad}},
                                    {"groups", depthwise ? x[1] : std::int64_t{1}}});
  body.value(product).type.layout = blocked;
  const ValueId out = body.add(activation, {product});
  body.value(out).type.layout = blocked;
  body.outputs = {out};
  return make_kernel(body, {false, true, true});
}

Kernel dense_kernel(std::int64_t m, std::int64_t n, std::int64_t k, Op activation) {
  Graph body;
  const ValueId a = body.add_input("a", make_type(element, {m, k}));
  const ValueId weight = body.add_input("w", make_type(element, {k, n}));
  const ValueId bias = body.add_input("bias", make_type(element, {n}));
  const ValueId sum = body.add(Op::add, {body.add(Op::matmul, {a, weight}), bias});
  body.outputs = {body.add(activation, {sum})};
  return make_kernel(body, {false, true, true});
}

Kernel batched_kernel(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  Graph body;
  const ValueId a = body.add_input("a", make_type(element, {batch, m, k}));
  const ValueId b = body.add_input("b", make_type(element, {batch, k, n}));
  body.outputs = {body.add(Op::matmul, {a, b})};
  return make_kernel(body, {false, false});
}

/// Rows by a weight of four bits in blocks of 32, as a decoder has them for so many tokens.
Kernel bits_kernel(Op product, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t block = 32;
  Graph body;
  const ValueId a = body.add_input("a", make_type(element, {m, k}));
  const ValueId weight = body.add_input("w", make_type(DType::u8, {n, k / block, block / 2}));
  const ValueId scales = body.add_input("scales", make_type(DType::f32, {n, k / block}));
  body.outputs = {body.add(product, {a, weight, scales}, {{"bits", std::int64_t{4}}, {"block", block}})};
  return make_kernel(body, {false, true, true});
}

/// Heads as models have them: read through a transpose, and written back through one.
Kernel attention_kernel(std::int64_t length, std::int64_t heads, bool causal) {
  Graph body;
  std::vector<ValueId> inputs;
  for (const char* name : {"q", "k", "v"}) {
    const ValueId in = body.add_input(name, make_type(element, {1, length, heads, 64}));
    inputs.push_back(body.add(Op::transpose, {in}, {{"perm", Dims{0, 2, 1, 3}}}));
  }
  const ValueId out = body.add(Op::attention, inputs, {{"causal", std::int64_t{causal}}});
  body.outputs = {body.add(Op::transpose, {out}, {{"perm", Dims{0, 2, 1, 3}}})};
  return make_kernel(body, {false, false, false});
}

/// By the filter of a 3x3 or larger convolution whose padding keeps the size.
Kernel gradient_kernel(const Dims& x, std::int64_t out_channels, std::int64_t window, std::int64_t stride) {
  Graph body;
  const Layout blocked{channel_block};
  TensorType image = make_type(element, x);
  TensorType gradient = make_type(element, {x[0], out_channels, x[2] / stride, x[3] / stride});
  gradient.layout = blocked;
  if (x[1] >= channel_block) image.layout = blocked;
  const ValueId g = body.add_input("g", gradient);
  const ValueId in = body.add_input("x", image);
  const std::int64_t pad = window / 2;
  body.outputs = {body.add(Op::filter_gradient, {g, in},
                           {{"kernel", Dims{window, window}},
                            {"strides", Dims{stride, stride}},
                            {"dilations", Dims{1, 1}},
                            {"pads", Dims{pad, pad, pad, pad}}})};
  return make_kernel(body, {false, false});
}

struct Row {
  std::string name;
  double operations;
  std::function<Kernel()> kernel;
};

Row conv_row(const std::string& model, const Dims& x, std::int64_t out, std::int64_t window,
             std::int64_t stride, bool depthwise = false, Op activation = Op::relu) {
  const std::int64_t pixels = x[2] / stride * (x[3] / stride);
  const double channels = depthwise ? 1.0 : static_cast<double>(x[1]);
  return {fmt::format("{} {} {}->{} {}x{} {}x{}/{}", model, depthwise ? "depthwise" : "conv", x[1], out, x[2],
                      x[3], window, window, stride),
          2.0 * static_cast<double>(pixels) * channels * static_cast<double>(out * window * window),
          [=] { return conv_kernel(x, out, window, stride, depthwise, activation); }};
}

Row gradient_row(const Dims& x, std::int64_t out, std::int64_t window, std::int64_t stride) {
  const std::int64_t pixels = x[0] * (x[2] / stride) * (x[3] / stride);
  return {fmt::format("gradient by filter {}x{}->{} {}x{} {}x{}/{}", x[0], x[1], out, x[2], x[3], window,
                      window, stride),
          2.0 * static_cast<double>(pixels * x[1] * out * window * window),
          [=] { return gradient_kernel(x, out, window, stride); }};
}

Row dense_row(const std::string& model, std::int64_t m, std::int64_t n, std::int64_t k, Op activation) {
  return {fmt::format("{} matmul {}x{}x{} {}", model, m, n, k, op_info(activation).name),
          2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
          [=] { return dense_kernel(m, n, k, activation); }};
}

std::vector<Row> rows() {
  std::vector<Row> table = {
      conv_row("resnet", {1, 3, 224, 224}, 64, 7, 2),
      conv_row("resnet", {1, 64, 56, 56}, 64, 1, 1),
      conv_row("resnet", {1, 64, 56, 56}, 64, 3, 1),
      conv_row("resnet", {1, 64, 56, 56}, 256, 1, 1),
      conv_row("resnet", {1, 256, 56, 56}, 128, 1, 1),
      conv_row("resnet", {1, 128, 56, 56}, 128, 3, 2),
      conv_row("resnet", {1, 256, 56, 56}, 512, 1, 2),
      conv_row("resnet", {1, 128, 28, 28}, 128, 3, 1),
      conv_row("resnet", {1, 512, 28, 28}, 128, 1, 1),
      conv_row("resnet", {1, 256, 14, 14}, 256, 3, 1),
      conv_row("resnet", {1, 1024, 14, 14}, 256, 1, 1),
      conv_row("resnet", {1, 256, 14, 14}, 1024, 1, 1),
      conv_row("resnet", {1, 512, 7, 7}, 512, 3, 1),
      conv_row("resnet", {1, 512, 14, 14}, 512, 3, 2),
      conv_row("vgg", {1, 64, 224, 224}, 64, 3, 1),
      conv_row("vgg", {1, 128, 112, 112}, 128, 3, 1),
      conv_row("vgg", {1, 256, 56, 56}, 256, 3, 1),
      conv_row("vgg", {1, 512, 28, 28}, 512, 3, 1),
      conv_row("vgg", {1, 512, 14, 14}, 512, 3, 1),
      conv_row("densenet", {1, 128, 28, 28}, 32, 3, 1),
      conv_row("densenet", {1, 128, 56, 56}, 32, 3, 1),
      conv_row("densenet", {1, 256, 56, 56}, 128, 1, 1),
      conv_row("squeezenet", {1, 3, 224, 224}, 64, 3, 2),
      conv_row("squeezenet", {1, 64, 13, 13}, 256, 3, 1),
      conv_row("squeezenet", {1, 512, 13, 13}, 1000, 1, 1),
      conv_row("resnet", {1, 2048, 7, 7}, 512, 1, 1),
      conv_row("resnet", {1, 512, 7, 7}, 2048, 1, 1),
      conv_row("mobilenet", {1, 16, 112, 112}, 96, 1, 1),
      conv_row("mobilenet", {1, 24, 56, 56}, 144, 1, 1),
      conv_row("efficientnet", {1, 16, 112, 112}, 96, 1, 1, false, Op::silu),
      conv_row("efficientnet", {1, 24, 56, 56}, 144, 1, 1, false, Op::silu),
      conv_row("mobilenet", {1, 160, 7, 7}, 960, 1, 1),
      conv_row("mobilenet", {1, 32, 112, 112}, 32, 3, 1, true),
      conv_row("mobilenet", {1, 96, 112, 112}, 96, 3, 2, true),
      conv_row("mobilenet", {1, 144, 56, 56}, 144, 3, 1, true),
      conv_row("mobilenet", {1, 384, 14, 14}, 384, 3, 1, true),
      conv_row("mobilenet", {1, 960, 7, 7}, 960, 3, 1, true),
      conv_row("efficientnet", {1, 672, 14, 14}, 672, 5, 1, true),
      dense_row("bert", 128, 768, 768, Op::relu),
      dense_row("bert", 128, 3072, 768, Op::gelu),
      dense_row("square", 128, 3072, 768, Op::relu),
      dense_row("bert", 128, 768, 3072, Op::relu),
      dense_row("batched", 1024, 768, 768, Op::relu),
      dense_row("batched", 1024, 3072, 768, Op::gelu),
      dense_row("batched", 1024, 768, 3072, Op::relu),
      dense_row("vit", 197, 768, 768, Op::relu),
      dense_row("vit", 197, 3072, 768, Op::gelu),
      dense_row("vit", 197, 768, 3072, Op::relu),
      dense_row("square", 1024, 1024, 1024, Op::relu),
      dense_row("resnet", 1, 1000, 2048, Op::relu),
      dense_row("vgg", 1, 4096, 25088, Op::relu),
      dense_row("gpt2", 1, 3072, 768, Op::gelu),
      dense_row("gpt2", 64, 50257, 768, Op::relu),
      dense_row("recurrent", 4, 3072, 1024, Op::sigmoid),
      dense_row("recurrent", 8, 1024, 256, Op::sigmoid),
      dense_row("recurrent", 16, 4096, 1024, Op::sigmoid),
      dense_row("recurrent", 32, 512, 128, Op::sigmoid),
      dense_row("recurrent", 32, 2048, 512, Op::sigmoid),
  };
  for (const Op product : {Op::matmul_bits, Op::quantized_matmul_bits}) {
    for (const std::int64_t m : {1, 16}) {
      table.push_back({fmt::format("decoder {} {}x2048x2048", op_info(product).name, m),
                       2.0 * static_cast<double>(m * 2048 * 2048),
                       [product, m] { return bits_kernel(product, m, 2048, 2048); }});
    }
  }
  table.push_back(gradient_row({16, 3, 176, 176}, 64, 7, 2));
  table.push_back(gradient_row({16, 64, 56, 56}, 64, 3, 1));
  table.push_back(gradient_row({2, 64, 224, 224}, 64, 3, 1));
  table.push_back(gradient_row({16, 128, 28, 28}, 128, 3, 1));
  table.push_back(gradient_row({16, 256, 28, 28}, 256, 3, 2));
  table.push_back(gradient_row({16, 256, 14, 14}, 256, 3, 1));
  table.push_back(gradient_row({16, 512, 7, 7}, 512, 3, 1));
  table.push_back({"bert matmul 12 x 128x128x64 batched", 2.0 * 12 * 128 * 128 * 64,
                   [] { return batched_kernel(12, 128, 128, 64); }});
  table.push_back({"bert matmul 12 x 128x64x128 batched", 2.0 * 12 * 128 * 128 * 64,
                   [] { return batched_kernel(12, 128, 64, 128); }});
  for (const std::int64_t length : {128, 197, 512}) {
    table.push_back({fmt::format("attention {} x {} x 64, 12 heads", length, length),
                     4.0 * 12 * 64 * static_cast<double>(length * length),
                     [length] { return attention_kernel(length, 12, false); }});
  }
  return table;
}

/// The space to measure: the one called `name`, with "all" the first. Nothing when that one does not take the
/// kernel.
std::optional<BoundSpace> find_space(const Kernel& kernel, const Machine& machine, const std::string& name) {
  for (BoundSpace& space : spaces_for(kernel, machine))
    if (name == "all" || space.name == name) return std::move(space);
  return std::nullopt;
}

/// What to measure of every row.
struct Choice {
  std::string space = "all";
  bool cold = false;
  std::vector<NamedValues> changed = {{}};  ///< of every point the parameters that are not the heuristic's
};

Choice read_choice(const std::vector<std::string>& words) {
  Choice choice;
  if (words.size() > 3) choice.space = words[3];
  choice.cold = words.size() > 4 && words[4] == "cold";
  for (std::size_t i = 5; i < words.size(); ++i) {
    if (words[i] == "/") {
      choice.changed.emplace_back();
      continue;
    }
    const std::size_t sign = words[i].find('=');
    if (sign == std::string::npos) throw UsageError("'{}' is not PARAMETER=VALUE", words[i]);
    const std::string name = words[i].substr(0, sign);
    const std::string value = words[i].substr(sign + 1);
    if (name == "element")
      element = parse_dtype(value);
    else if (name == "block")
      channel_block = std::stoi(value);
    else
      choice.changed.back()[name] = std::stol(value);
  }
  return choice;
}

/// What the share is taken of: the fastest way the core has to multiply such elements.
double (*peak_rate(const Machine& machine))() {
  if (element != DType::bf16) return fma_rate;
  return machine.amx ? amx_rate : bf16_rate;
}

/// " name=value ..."
std::string describe(const NamedValues& changed) {
  std::string text;
  for (const auto& [name, value] : changed) text += fmt::format(" {}={}", name, value);
  return text;
}

void measure(const Row& row, const Machine& machine, const Choice& choice) {
  const Kernel kernel = row.kernel();
  const std::optional<BoundSpace> space = find_space(kernel, machine, choice.space);
  if (!space) return;
  std::vector<std::unique_ptr<bench::RunnableKernel>> runnable;
  runnable.reserve(choice.changed.size());
  for (const NamedValues& changed : choice.changed) {
    runnable.push_back(std::make_unique<bench::RunnableKernel>(kernel, space->at(point_with(*space, changed)),
                                                               machine, choice.cold));
  }
  const auto timings = bench::time_kernels(runnable, 0.3, peak_rate(machine));
  for (std::size_t i = 0; i < runnable.size(); ++i) {
    const double rate = row.operations / timings[i].seconds;
    fmt::print("{:<46} {:<18} {:>8.3f} s {:>9.3f} ms {:>7.1f} GFLOP/s {:>6.2f} of peak{}\n", row.name,
               space->name, runnable[i]->compile_seconds(), timings[i].seconds * 1e3, rate / 1e9,
               rate / (timings[i].peak * machine.threads), describe(choice.changed[i]));
  }
}

}  // namespace

int main(int count, char** arguments) try {
  const std::vector<std::string> words(arguments, arguments + count);
  const Machine machine = detect_machine(count > 2 ? std::stoi(words[2]) : 1);
  channel_block = machine.vector_floats;
  const Choice choice = read_choice(words);
  fmt::print("{:<46} {:<18} {:>10} {:>12} {:>15} {:>14}\n", "kernel", "space", "compile", "best", "rate",
             "share");
  for (const Row& row : rows())
    if (count < 2 || row.name.find(words[1]) != std::string::npos) measure(row, machine, choice);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "kernel_peak: {}\n", error.what());
  return 1;
}
