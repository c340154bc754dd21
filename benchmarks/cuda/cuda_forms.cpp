// The two templates for products on tensor cores, Hopper's warpgroups and single warps, over channels, pixels and filters: the
// first choices of each beside what they should take.
// usage: cuda_forms race [PART]     one line a choice: the problem, the template, its choice, microseconds, clocks it should take

#include <fmt/core.h>

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "benchmarks/cuda/cuda_compile.h"
#include "benchmarks/cuda/cuda_helpers.h"
#include "benchmarks/cuda/cuda_race.h"
#include "runtime/cuda/template_kernel.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/matmul_maps.h"
#include "schedules/cuda/warps.h"
#include "sylvite/graph_text.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

constexpr std::size_t first_choices = 2;  // of each template

struct Problem {
  std::string name;
  Kernel kernel;
};

struct Run {
  const Problem* problem;
  double clocks;
};

/// A convolution with bias and ReLU of square images, as large afterwards but for the stride.
Problem conv(std::int64_t images, std::int64_t channels, std::int64_t filters, std::int64_t pixels,
             std::int64_t taps, std::int64_t stride = 1) {
  const std::int64_t out = (pixels + stride - 1) / stride;
  const auto text = fmt::format(
      "graph g(%x: bf16[{0},{1},{3},{3}]@c{1}, %w: bf16[{2},{1},{4},{4}], %b: bf16[{2}]) {{ %c: "
      "bf16[{0},{2},{5},{5}]@c{2} = conv(%x, %w, %b) {{strides=[{6},{6}], pads=[{7},{7},{7},{7}], "
      "dilations=[1,1], "
      "groups=1}} %v: bf16[{0},{2},{5},{5}]@c{2} = relu(%c) return %v }}",
      images, channels, filters, pixels, taps, out, stride, taps / 2);
  return {fmt::format("conv {} {} {} {} {} {}", images, channels, filters, pixels, taps, stride),
          make_kernel(parse_graph(text), {false, true, true})};
}

Problem matmul(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  const auto text = fmt::format(
      "graph g(%x: bf16[{0},{1}], %w: bf16[{1},{2}], %b: bf16[{2}]) {{ %c: bf16[{0},{2}] = matmul(%x, %w) "
      "%v: bf16[{0},{2}] = "
      "add(%c, %b) return %v }}",
      rows, depth, columns);
  return {fmt::format("matmul {} {} {} 1 1 1", rows, depth, columns),
          make_kernel(parse_graph(text), {false, true, true})};
}

std::vector<Problem> problems() {
  std::vector<Problem> all;
  const std::vector<std::pair<std::int64_t, std::int64_t>> images = {{32, 56}, {32, 28}, {32, 14}, {32, 7},
                                                                     {1, 56},  {1, 28},  {1, 14}};
  for (const auto& [count, pixels] : images) {
    for (const std::int64_t channels :
         {16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 120, 144, 160, 200, 240, 288, 320})
      all.push_back(conv(count, channels, channels, pixels, 3));
    for (const std::int64_t channels : {24, 40, 72, 96, 160}) {
      all.push_back(conv(count, channels, channels, pixels, 1));
      all.push_back(conv(count, channels, 4 * channels, pixels, 1));
      all.push_back(conv(count, 4 * channels, channels, pixels, 1));
    }
    for (const std::int64_t channels : {24, 72}) {
      all.push_back(conv(count, channels, channels, pixels, 5));
      all.push_back(conv(count, channels, 2 * channels, pixels, 3, 2));
    }
  }
  for (const std::int64_t rows : {32, 197, 1576, 6304})
    for (const std::int64_t width : {72, 100, 192, 270, 384, 768}) {
      all.push_back(matmul(rows, width, width));
      all.push_back(matmul(rows, width, 4 * width));
      all.push_back(matmul(rows, 4 * width, width));
    }
  return all;
}

void add_choices(const Problem& problem, const Card& card, std::vector<bench::Compiled>& all,
                 std::vector<Run>& runs) {
  const bool is_conv = problem.kernel.kind == KernelClass::convolution;
  const Reading<CudaMatmulProblem> reading =
      is_conv ? read_cuda_conv(problem.kernel) : read_cuda_matmul(problem.kernel);
  if (!reading.refusal.empty()) throw UsageError("{}: {}", problem.name, reading.refusal);
  const auto add = [&](const std::string& name, CudaTemplate text, double clocks) {
    all.push_back({name, std::move(text), {}, 0});
    runs.push_back({&problem, clocks});
  };
  if (refuse_tensor_maps(reading.problem).empty()) {
    auto choices = (is_conv ? cuda_conv_choices : cuda_matmul_choices)(reading.problem, card);
    choices.resize(std::min(first_choices, choices.size()));
    for (const CudaMatmulChoice& choice : choices)
      add("hopper " + choice.to_string(), make_cuda_matmul(reading.problem, choice, card),
          (is_conv ? cuda_conv_clocks : cuda_matmul_clocks)(reading.problem, choice, card));
  }
  auto choices = cuda_warps_choices(reading.problem, false, card);
  choices.resize(std::min(first_choices, choices.size()));
  for (const CudaWarpsChoice& choice : choices)
    add("warps " + choice.to_string(), make_cuda_warps(reading.problem, choice),
        cuda_warps_clocks(reading.problem, choice, card));
}

/// Microseconds a run of each of one problem's choices, in turns.
std::vector<double> times_of(const bench::Helpers& helpers, const Kernel& kernel,
                             const bench::Compiled* first, std::size_t count) {
  constexpr int rounds = 5;
  bench::Race race(1, 40);
  std::vector<cuda::DeviceMemory> memory;
  std::vector<cuda::DevicePointer> addresses;
  const auto add = [&](ValueId id) {
    memory.emplace_back(static_cast<std::size_t>(kernel.body.type(id).byte_size()));
    addresses.push_back(memory.back().address());
    helpers.fill(memory.back(), 2, static_cast<unsigned>(memory.size()), 1, race.stream);
  };
  for (const ValueId id : kernel.body.inputs) add(id);
  add(kernel.body.outputs[0]);
  std::vector<std::unique_ptr<cuda::TemplateKernel>> kernels;
  std::vector<bench::Contender> contenders;
  for (std::size_t i = 0; i < count; ++i) {
    kernels.push_back(std::make_unique<cuda::TemplateKernel>(first[i].object));
    const cuda::Launch launch = kernels.back()->bind(addresses);
    contenders.push_back({first[i].choice,
                          "",
                          [launch](std::size_t, cuda::StreamHandle stream) { cuda::launch(launch, stream); },
                          {},
                          {}});
  }
  std::vector<bench::Contender*> turn;
  for (bench::Contender& contender : contenders) turn.push_back(&contender);
  race.turns(turn, rounds, {});
  std::vector<double> times;
  for (const bench::Contender& contender : contenders) times.push_back(contender.median());
  return times;
}

}  // namespace

int main(int count, char** arguments) try {
  const std::string verb = count > 1 ? arguments[1] : "", part = count > 2 ? arguments[2] : "";
  if (verb != "race" && verb != "list") throw UsageError("usage: cuda_forms {}", "race|list [PART]");
  Card card;
  card.multiprocessors = 132;
  card.shared_bytes = 227 << 10;
  std::vector<Problem> all = problems();
  std::erase_if(all, [&](const Problem& problem) { return problem.name.find(part) == std::string::npos; });
  std::vector<bench::Compiled> compiled;
  std::vector<Run> runs;
  for (const Problem& problem : all) add_choices(problem, card, compiled, runs);
  std::vector<double> times(runs.size());
  if (verb == "race") {
    bench::compile(compiled);
    cuda::Device::get().make_current();
    const bench::Helpers helpers;
    for (std::size_t i = 0, end = 0; i < runs.size(); i = end) {
      for (end = i; end < runs.size() && runs[end].problem == runs[i].problem;) ++end;
      std::ranges::copy(times_of(helpers, runs[i].problem->kernel, &compiled[i], end - i),
                        times.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i)
    fmt::print("{} {} {:.2f} {:.0f}\n", runs[i].problem->name, compiled[i].choice, times[i], runs[i].clocks);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "cuda_forms: {}\n", error.what());
  return 1;
}
