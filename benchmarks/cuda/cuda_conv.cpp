// The template's choices for ResNet-50's convolutions against cuDNN's engines, on the GPU: bf16, batch 32,
// with bias and ReLU, and a residual where the model adds one. usage: cuda_conv race [PART] [ENGINES]
//        layers whose name contains PART; of cuDNN's engines the first ones

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "benchmarks/cuda/cuda_compile.h"
#include "benchmarks/cuda/cuda_helpers.h"
#include "benchmarks/cuda/cuda_race.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/template_kernel.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/library_conv.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

constexpr std::size_t rotated_bytes = 256 << 20;  // tensors that are rotated hold more than the cache
constexpr std::size_t most_sets = 8;
constexpr std::size_t finalists = 3;
constexpr std::size_t offered_engines = 8;  // by space cudnn
constexpr std::int64_t images = 32;

/// Names: taps, channels, lines and columns, filters, stride where it is not 1, r for a residual.
struct Layer {
  const char* name;
  int times;  ///< in the model
  std::int64_t taps, channels, extent, filters, stride = 1;
  bool residual = false;
};
constexpr Layer layers[] = {
    {"3x3_64_56", 3, 3, 64, 56, 64},
    {"3x3_128_28", 3, 3, 128, 28, 128},
    {"3x3_256_14", 5, 3, 256, 14, 256},
    {"3x3_512_7", 2, 3, 512, 7, 512},
    {"3x3_128_56_s2", 1, 3, 128, 56, 128, 2},
    {"3x3_256_28_s2", 1, 3, 256, 28, 256, 2},
    {"3x3_512_14_s2", 1, 3, 512, 14, 512, 2},
    {"1x1_64_56_64", 1, 1, 64, 56, 64},
    {"1x1_64_56_256", 1, 1, 64, 56, 256},
    {"1x1_64_56_256_r", 3, 1, 64, 56, 256, 1, true},
    {"1x1_256_56_64", 2, 1, 256, 56, 64},
    {"1x1_256_56_128", 1, 1, 256, 56, 128},
    {"1x1_128_28_512_r", 4, 1, 128, 28, 512, 1, true},
    {"1x1_512_28_128", 3, 1, 512, 28, 128},
    {"1x1_512_28_256", 1, 1, 512, 28, 256},
    {"1x1_256_14_1024_r", 6, 1, 256, 14, 1024, 1, true},
    {"1x1_1024_14_256", 5, 1, 1024, 14, 256},
    {"1x1_1024_14_512", 1, 1, 1024, 14, 512},
    {"1x1_512_7_2048_r", 3, 1, 512, 7, 2048, 1, true},
    {"1x1_2048_7_512", 2, 1, 2048, 7, 512},
    {"1x1_256_56_512_s2", 1, 1, 256, 56, 512, 2},
    {"1x1_512_28_1024_s2", 1, 1, 512, 28, 1024, 2},
    {"1x1_1024_14_2048_s2", 1, 1, 1024, 14, 2048, 2},
};

Kernel layer_kernel(const Layer& layer) {
  Graph body;
  const auto with_channels_last = [&](ValueId id) {
    TensorType& type = body.value(id).type;
    type.layout.channel_block = static_cast<int>(type.dims()[1]);
    return id;
  };
  const auto input = [&](const char* name, const Dims& dims) {
    return body.add_input(name, make_type(DType::bf16, dims));
  };
  const std::int64_t pad = layer.taps / 2;
  const ValueId x = with_channels_last(input("x", {images, layer.channels, layer.extent, layer.extent}));
  const ValueId filter = input("filter", {layer.filters, layer.channels, layer.taps, layer.taps});
  const ValueId bias = input("bias", {layer.filters});
  ValueId y = with_channels_last(body.add(Op::conv, {x, filter, bias},
                                          {{"strides", Dims{layer.stride, layer.stride}},
                                           {"pads", Dims{pad, pad, pad, pad}},
                                           {"dilations", Dims{1, 1}},
                                           {"groups", std::int64_t{1}}}));
  std::vector<bool> is_weight = {false, true, true};
  if (layer.residual) {
    const ValueId residual = with_channels_last(input("residual", body.type(y).dims()));
    y = with_channels_last(body.add(Op::add, {y, residual}));
    is_weight.push_back(false);
  }
  body.outputs = {with_channels_last(body.add(Op::relu, {y}))};
  return make_kernel(body, std::move(is_weight));
}

class Bench {
 public:
  Bench(const bench::Helpers& helpers, const Layer& layer, std::size_t most_engines)
      : helpers_(helpers), kernel_(layer_kernel(layer)), sets_(set_count()), race_(sets_.size(), 15) {
    for (Set& set : sets_) make_tensors(set);
    reference_ = cuda::DeviceMemory(sets_[0].back().size());
    add_templates();
    add_engines(most_engines);
  }

  /// A heat over all, then the fastest of each kind in turns.
  void race(int rounds) {
    std::vector<bench::Contender*> turn;
    turn.reserve(contenders_.size());
    for (bench::Contender& contender : contenders_) turn.push_back(&contender);
    race_.turns(turn, 3, {});
    turn.clear();
    for (const char* kind : {"own", "cudnn"})
      for (bench::Contender* one : bench::fastest(contenders_, kind, finalists)) turn.push_back(one);
    for (bench::Contender& contender : contenders_) contender.samples.clear();
    race_.turns(turn, rounds, {});
  }
  /// Of the final.
  [[nodiscard]] const bench::Contender* best(const char* kind) {
    const auto found = bench::fastest(contenders_, kind, 1);
    return found.empty() ? nullptr : found[0];
  }
  [[nodiscard]] std::vector<bench::Contender>& contenders() { return contenders_; }
  [[nodiscard]] const std::string& engines_note() const { return engines_note_; }
  [[nodiscard]] int wrong() const { return wrong_; }

 private:
  using Set = std::vector<cuda::DeviceMemory>;  ///< inputs, then the output

  [[nodiscard]] std::size_t bytes_of(ValueId id) const {
    return static_cast<std::size_t>(kernel_.body.type(id).byte_size());
  }
  [[nodiscard]] std::size_t set_count() const {
    std::size_t bytes = bytes_of(kernel_.body.outputs[0]);
    for (const ValueId id : kernel_.body.inputs) bytes += bytes_of(id);
    return std::clamp<std::size_t>(rotated_bytes / bytes, 1, most_sets);
  }
  void make_tensors(Set& set) {
    unsigned seed = 1;
    for (const ValueId id : kernel_.body.inputs) {
      set.emplace_back(bytes_of(id));
      const Dims& dims = kernel_.body.type(id).dims();
      const bool is_filter = seed == 2;
      const double scale = is_filter ? 1 / std::sqrt(static_cast<double>(dims[1] * dims[2] * dims[3])) : 1;
      helpers_.fill(set.back(), 2, seed++, static_cast<float>(scale), race_.stream);
    }
    set.emplace_back(bytes_of(kernel_.body.outputs[0]));
  }
  [[nodiscard]] std::vector<cuda::DevicePointer> addresses(const Set& set) const {
    std::vector<cuda::DevicePointer> result;
    for (const cuda::DeviceMemory& memory : set) result.push_back(memory.address());
    return result;
  }

  void add_templates() {
    const CudaMatmulProblem problem = read_cuda_conv(kernel_).problem;
    std::vector<bench::Compiled> all;
    for (const CudaMatmulChoice& choice : cuda_conv_choices(problem, {}))
      all.push_back({choice.to_string(), make_cuda_matmul(problem, choice, {}), {}, 0});
    bench::compile(all);
    for (const bench::Compiled& one : all) {
      auto kernel = std::make_shared<cuda::TemplateKernel>(one.object);
      std::vector<cuda::Launch> launches;
      launches.reserve(sets_.size());
      for (const Set& set : sets_) launches.push_back(kernel->bind(addresses(set)));
      add("own", one.choice, [kernel, launches](std::size_t s, cuda::StreamHandle stream) {
        cuda::launch(launches[s], stream);
      });
    }
  }

  void add_engines(std::size_t most) {
    const LibraryConvProblem problem = read_library_conv(kernel_).problem;
    const auto start = std::chrono::steady_clock::now();
    library_ = std::make_unique<cuda::CudnnConv>(problem);
    std::size_t possible = 0;
    for (std::size_t i = 0; i < std::min(most, library_->engine_count()); ++i) {
      try {
        const cuda::DeviceMemory& workspace = workspaces_.emplace_back(library_->workspace_bytes(i));
        std::vector<std::function<void(cuda::StreamHandle)>> runs;
        for (const Set& set : sets_) {
          const auto at = [&](int argument) {
            return argument < 0 ? 0 : set[static_cast<std::size_t>(argument)].address();
          };
          runs.push_back(library_->bind(
              i, {at(problem.images_argument), at(problem.filter_argument), at(problem.bias_argument),
                  at(problem.residual_argument), at(problem.out_argument), workspace.address()}));
        }
        add("cudnn", fmt::format("engine {}", i),
            [runs](std::size_t s, cuda::StreamHandle stream) { runs[s](stream); });
        ++possible;
      } catch (const UnsupportedError&) {
        continue;
      }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    engines_note_ = fmt::format("{} engines proposed, {} of the first {} possible, ready in {:.1f} s",
                                library_->engine_count(), possible, most, seconds);
  }

  /// The first contender's result is what the others' are compared with.
  void add(const char* kind, const std::string& name,
           const std::function<void(std::size_t, cuda::StreamHandle)>& run) {
    contenders_.push_back({name, kind, run, {}, {}});
    const cuda::DeviceMemory& out = sets_[0].back();
    cuda::driver().fill_bytes(out.address(), 0xff, out.size(), race_.stream.get());
    run(0, race_.stream.get());
    if (contenders_.size() == 1)
      cuda::driver().copy_on_device(reference_.address(), out.address(), out.size(), race_.stream.get());
    const auto difference = helpers_.compare(out, reference_, 2, race_.stream);
    if (difference.error < 5e-3) return;
    ++wrong_;
    fmt::print("WRONG {} {}: error {:.2g}\n", kind, name, difference.error);
  }

  const bench::Helpers& helpers_;
  Kernel kernel_;
  std::vector<Set> sets_;
  bench::Race race_;
  cuda::DeviceMemory reference_;
  std::unique_ptr<cuda::CudnnConv> library_;
  std::vector<cuda::DeviceMemory> workspaces_;
  std::vector<bench::Contender> contenders_;
  std::string engines_note_;
  int wrong_ = 0;
};

double operations(const Layer& layer) {
  const std::int64_t out = layer.extent / layer.stride;
  return 2.0 *
         static_cast<double>(images * out * out * layer.filters * layer.channels * layer.taps * layer.taps);
}

int race_all(const std::string& part, std::size_t most_engines) {
  const bench::Helpers helpers;
  int wrong = 0, raced = 0;
  double own_sum = 0, library_sum = 0, logarithms = 0;
  fmt::print("cuDNN {}\n", cuda::cudnn_version());
  for (const Layer& layer : layers) {
    if (std::string(layer.name).find(part) == std::string::npos) continue;
    Bench bench(helpers, layer, most_engines);
    bench.race(9);
    wrong += bench.wrong();
    fmt::print("{}: {}\n", layer.name, bench.engines_note());
    for (const char* kind : {"own", "cudnn"})
      for (const bench::Contender* one : bench::fastest(bench.contenders(), kind, finalists))
        fmt::print("  {:<6} {:<30} {:>8.2f} us\n", kind, one->name, one->median());
    const bench::Contender* own = bench.best("own");
    const bench::Contender* library = bench.best("cudnn");
    if (own != nullptr && library != nullptr) {
      fmt::print("RESULT {} x{} own {:.2f} us {:.0f} TFLOP/s ({}) cudnn {:.2f} us ({}) ratio {:.3f}\n",
                 layer.name, layer.times, own->median(), operations(layer) / own->median() * 1e-6, own->name,
                 library->median(), library->name, library->median() / own->median());
      own_sum += layer.times * own->median();
      library_sum += layer.times * library->median();
      logarithms += std::log(library->median() / own->median());
      ++raced;
    }
    std::fflush(stdout);
  }
  if (raced > 0)
    fmt::print("SUM own {:.1f} us cudnn {:.1f} us geometric mean {:.3f}\n", own_sum, library_sum,
               std::exp(logarithms / raced));
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2 || std::string(arguments[1]) != "race")
    throw UsageError("usage: cuda_conv {}", "race [PART] [ENGINES]");
  cuda::Device::get().make_current();
  return race_all(count > 2 ? arguments[2] : "", count > 3 ? std::stoul(arguments[3]) : offered_engines);
} catch (const std::exception& error) {
  fmt::print(stderr, "cuda_conv: {}\n", error.what());
  return 1;
}
