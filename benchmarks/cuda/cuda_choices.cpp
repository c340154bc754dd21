// Every choice of the templates for memory-bound kernels, and of those of single warps beside Hopper's, on the GPU, in turns:
// what a tuner would find with all the time in the world.
// usage: cuda_choices compile [PART]   compiles every choice; needs no GPU
//        cuda_choices race [PART]      and times them, fastest first; outputs are compared with the first
//        choice's

#include <fmt/core.h>

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "benchmarks/cuda/cuda_compile.h"
#include "benchmarks/cuda/cuda_helpers.h"
#include "benchmarks/cuda/cuda_race.h"
#include "runtime/cuda/template_kernel.h"
#include "schedules/cuda/attention_gradient.h"
#include "schedules/cuda/attention_warps.h"
#include "schedules/cuda/columns.h"
#include "schedules/cuda/conv.h"
#include "schedules/cuda/grouped.h"
#include "schedules/cuda/line_gradient.h"
#include "schedules/cuda/matmul_maps.h"
#include "schedules/cuda/norm.h"
#include "schedules/cuda/transpose.h"
#include "schedules/cuda/warps.h"
#include "sylvite/graph_text.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

struct Case {
  const char* name;
  const char* text;  ///< of the graph; T is the type
};
constexpr Case cases[] = {
    {"softmax", "(%a: T[16384,4096]) { %v: T[16384,4096] = softmax(%a) {axis=1} return %v }"},
    {"layer_norm",
     "(%a: T[16384,4096], %s: T[4096], %t: T[4096]) { %v: T[16384,4096] = layer_norm(%a, %s, %t) {axis=1} "
     "return %v }"},
    {"rms_norm",
     "(%a: T[16384,4096], %s: T[4096]) { %v: T[16384,4096] = rms_norm(%a, %s) {axis=1} return %v }"},
    {"bias_gelu_residual",
     "(%a: T[16384,4096], %b: T[4096], %c: T[16384,4096]) { %x: T[16384,4096] = add(%a, %b) %y: "
     "T[16384,4096] = "
     "gelu(%x) %v: T[16384,4096] = add(%y, %c) return %v }"},
    {"column_sum", "(%a: T[16384,4096]) { %v: T[4096] = reduce_sum(%a) {axes=[0], keepdims=0} return %v }"},
    {"depthwise_7x7",
     "(%a: T[32,96,56,56]@c96, %w: T[96,1,7,7]) { %v: T[32,96,56,56]@c96 = conv(%a, %w) {strides=[1,1], "
     "pads=[3,3,3,3], dilations=[1,1], groups=96} return %v }"},
    {"depthwise_3x3",
     "(%a: T[32,96,56,56]@c96, %w: T[96,1,3,3]) { %v: T[32,96,56,56]@c96 = conv(%a, %w) {strides=[1,1], "
     "pads=[1,1,1,1], dilations=[1,1], groups=96} return %v }"},
    {"grouped_3x3",
     "(%a: T[32,128,56,56]@c128, %w: T[128,4,3,3]) { %v: T[32,128,56,56]@c128 = conv(%a, %w) {strides=[1,1], "
     "pads=[1,1,1,1], dilations=[1,1], groups=32} return %v }"},
    {"narrow_8",
     "(%a: T[32,8,128,128]@c8, %w: T[8,8,3,3]) { %v: T[32,8,128,128]@c8 = conv(%a, %w) {strides=[1,1], "
     "pads=[1,1,1,1], dilations=[1,1], groups=1} return %v }"},
    {"narrow_16",
     "(%a: T[32,16,128,128]@c16, %w: T[16,16,3,3]) { %v: T[32,16,128,128]@c16 = conv(%a, %w) {strides=[1,1], "
     "pads=[1,1,1,1], dilations=[1,1], groups=1} return %v }"},
    {"narrow_32",
     "(%a: T[32,32,112,112]@c32, %w: T[32,32,3,3]) { %v: T[32,32,112,112]@c32 = conv(%a, %w) {strides=[1,1], "
     "pads=[1,1,1,1], dilations=[1,1], groups=1} return %v }"},
    {"matmul",
     "(%a: T[4096,4096], %w: T[4096,4096]) { %t: T[4096,4096] = transpose(%w) {perm=[1,0]} %v: T[4096,4096] "
     "= matmul(%a, %t) return %v }"},
    {"mixing",
     "(%a: T[384,196], %w: T[24576,196]) { %t: T[196,24576] = transpose(%w) {perm=[1,0]} %v: T[384,24576] "
     "= matmul(%a, %t) return %v }"},
    {"conv_3x3",
     "(%a: T[32,128,28,28]@c128, %w: T[128,128,3,3]) { %v: T[32,128,28,28]@c128 = conv(%a, %w) "
     "{strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v }"},
    {"first_filter",
     "(%a: T[128,64,112,112]@c64, %b: T[128,4,229,230]@c4) { %v: f32[264,7,64,32] = filter_gradient(%a, %b) "
     "{kernel=[7,8], strides=[2,2], pads=[0,0,0,0], dilations=[1,1], groups=1, parts=264, joined=1} return "
     "%v }"},
    {"attention",
     "(%a: T[32,12,512,64], %b: T[32,12,512,64], %c: T[32,12,512,64]) { %v: T[32,12,512,64] = attention(%a, "
     "%b, %c) return %v }"},
    {"wide_attention",
     "(%a: T[4,16,4096,128], %b: T[4,16,4096,128], %c: T[4,16,4096,128]) { %v: T[4,16,4096,128] = "
     "attention(%a, %b, %c) {causal=1} return %v }"},
    {"attention_by_q",
     "(%a: T[16,12,512,64], %b: T[16,12,512,64], %c: T[16,12,512,64], %d: T[16,12,512,64], %e: "
     "f32[16,12,512], %f: f32[16,12,512]) { %v: T[16,12,512,64] = attention_gradient(%a, %b, %c, %d, %e, %f) "
     "{of=0, causal=1} return %v }"},
    {"attention_by_k",
     "(%a: T[16,12,512,64], %b: T[16,12,512,64], %c: T[16,12,512,64], %d: T[16,12,512,64], %e: "
     "f32[16,12,512], %f: f32[16,12,512]) { %v: T[16,12,512,64] = attention_gradient(%a, %b, %c, %d, %e, %f) "
     "{of=1, causal=1} return %v }"},
    {"attention_by_v",
     "(%a: T[16,12,512,64], %b: T[16,12,512,64], %c: T[16,12,512,64], %d: T[16,12,512,64], %e: "
     "f32[16,12,512], %f: f32[16,12,512]) { %v: T[16,12,512,64] = attention_gradient(%a, %b, %c, %d, %e, %f) "
     "{of=2, causal=1} return %v }"},
    {"attention_by_q_short",
     "(%a: T[64,12,197,64], %b: T[64,12,197,64], %c: T[64,12,197,64], %d: T[64,12,197,64], %e: "
     "f32[64,12,197], %f: f32[64,12,197]) { %v: T[64,12,197,64] = attention_gradient(%a, %b, %c, %d, %e, %f) "
     "{of=0, causal=0} return %v }"},
    {"attention_by_k_short",
     "(%a: T[64,12,197,64], %b: T[64,12,197,64], %c: T[64,12,197,64], %d: T[64,12,197,64], %e: "
     "f32[64,12,197], %f: f32[64,12,197]) { %v: T[64,12,197,64] = attention_gradient(%a, %b, %c, %d, %e, %f) "
     "{of=1, causal=0} return %v }"},
    {"attention_by_q_wide",
     "(%a: T[4,16,2048,128], %b: T[4,16,2048,128], %c: T[4,16,2048,128], %d: T[4,16,2048,128], %e: "
     "f32[4,16,2048], %f: f32[4,16,2048]) { %v: T[4,16,2048,128] = attention_gradient(%a, %b, %c, %d, %e, "
     "%f) {of=0, causal=1} return %v }"},
    {"attention_by_k_wide",
     "(%a: T[4,16,2048,128], %b: T[4,16,2048,128], %c: T[4,16,2048,128], %d: T[4,16,2048,128], %e: "
     "f32[4,16,2048], %f: f32[4,16,2048]) { %v: T[4,16,2048,128] = attention_gradient(%a, %b, %c, %d, %e, "
     "%f) {of=1, causal=1} return %v }"},
    {"transpose", "(%a: T[16384,4096]) { %v: T[4096,16384] = transpose(%a) {perm=[1,0]} return %v }"},
};

Kernel case_kernel(const Case& each, const std::string& type) {
  std::string text = std::string("graph g") + each.text;
  for (std::size_t at = text.find("T["); at != std::string::npos; at = text.find("T[", at + type.size()))
    text.replace(at, 1, type);
  Graph body = parse_graph(text);
  std::vector<bool> is_weight;
  is_weight.reserve(body.inputs.size());
  for (const ValueId id : body.inputs)
    is_weight.push_back(body.type(id).rank() == 1 || body.value(id).name == "w");
  return make_kernel(body, std::move(is_weight));
}

template <typename Problem, typename Choices, typename Make>
void add_choices(const Reading<Problem>& reading, Choices choices, Make make,
                 std::vector<bench::Compiled>& all) {
  if (!reading.refusal.empty()) return;
  for (const auto& choice : choices(reading.problem))
    all.push_back({choice.to_string(), make(reading.problem, choice), {}, 0});
}

/// Hopper's, where tensor memory access reads the operands, and those of single warps: f32 both ways.
void add_products(const Reading<CudaMatmulProblem>& reading, const Card& card,
                  std::vector<bench::Compiled>& all) {
  if (!reading.refusal.empty()) return;
  CudaMatmulProblem problem = reading.problem;
  const auto hoppers = problem.windows ? cuda_conv_choices : cuda_matmul_choices;
  for (const bool exact : {false, true}) {
    problem.exact = exact && problem.element == DType::f32;
    if (refuse_tensor_maps(problem).empty() && problem.exact == exact)
      for (const CudaMatmulChoice& choice : hoppers(problem, card))
        all.push_back({fmt::format("hopper {}{}", choice.to_string(), exact ? " exact" : ""),
                       make_cuda_matmul(problem, choice, card),
                       {},
                       0});
    for (const CudaWarpsChoice& choice : cuda_warps_choices(problem, exact, card))
      all.push_back({"warps " + choice.to_string(), make_cuda_warps(problem, choice), {}, 0});
  }
}

void add_filter_gradient(const Kernel& kernel, const Card& card, std::vector<bench::Compiled>& all) {
  add_choices(read_cuda_line_gradient(kernel), cuda_line_gradient_choices, make_cuda_line_gradient, all);
  const Reading<CudaMatmulProblem> reading = read_cuda_filter_gradient(kernel);
  if (!reading.refusal.empty()) return;
  for (const CudaMatmulChoice& choice : cuda_filter_gradient_choices(reading.problem, card))
    all.push_back({"hopper " + choice.to_string(), make_cuda_matmul(reading.problem, choice, card), {}, 0});
}

void add_attention(const Kernel& kernel, const Card& card, std::vector<bench::Compiled>& all) {
  const Reading<CudaAttentionProblem> reading = read_cuda_attention(kernel);
  if (!reading.refusal.empty()) return;
  for (const CudaAttentionChoice& choice : cuda_attention_choices(reading.problem, card))
    all.push_back({choice.to_string(), make_cuda_attention(reading.problem, choice, card), {}, 0});
  for (const CudaAttentionWarpsChoice& choice : attention_warps_choices(reading.problem, card))
    all.push_back({choice.to_string(), make_attention_warps(reading.problem, choice), {}, 0});
}

std::vector<CudaAttentionGradientChoice> attention_gradient_choices(
    const CudaAttentionGradientProblem& problem) {
  return cuda_attention_gradient_choices(problem, true);
}

std::vector<bench::Compiled> compile_choices(const Kernel& kernel) {
  std::vector<bench::Compiled> all;
  Card card;
  card.multiprocessors = 132;
  card.shared_bytes = 227 << 10;
  add_choices(read_cuda_norm(kernel), cuda_norm_choices, make_cuda_norm, all);
  const auto columns_choices = [](const CudaColumnsProblem& problem) {
    return cuda_columns_choices(problem);
  };
  add_choices(read_cuda_columns(kernel), columns_choices, make_cuda_columns, all);
  add_choices(read_cuda_depthwise(kernel), cuda_depthwise_choices, make_cuda_depthwise, all);
  const auto grouped_choices = [&](const CudaGroupedProblem& problem) {
    return cuda_grouped_choices(problem, problem.element == DType::f32, card);
  };
  add_choices(read_cuda_grouped(kernel), grouped_choices, make_cuda_grouped, all);
  add_choices(read_cuda_transpose(kernel), cuda_transpose_choices, make_cuda_transpose, all);
  add_products(read_cuda_matmul(kernel), card, all);
  add_products(read_cuda_conv(kernel), card, all);
  add_filter_gradient(kernel, card, all);
  add_attention(kernel, card, all);
  add_choices(read_cuda_attention_gradient(kernel), attention_gradient_choices, make_cuda_attention_gradient,
              all);
  bench::compile(all);
  return all;
}

/// Runs of all choices on the same tensors, which are larger than the cache.
void race(const bench::Helpers& helpers, const Kernel& kernel, const std::vector<bench::Compiled>& all) {
  constexpr int rounds = 5;
  constexpr std::size_t shown = 14;
  bench::Race race(1, 130);
  std::vector<cuda::DeviceMemory> memory;
  std::vector<cuda::DevicePointer> addresses;
  double bytes = 0;
  int element = 4;
  const auto add = [&](ValueId id) {
    element = static_cast<int>(dtype_size(kernel.body.type(id).dtype));
    memory.emplace_back(static_cast<std::size_t>(kernel.body.type(id).byte_size()));
    addresses.push_back(memory.back().address());
    bytes += static_cast<double>(memory.back().size());
    helpers.fill(memory.back(), element, static_cast<unsigned>(memory.size()), 1, race.stream);
    // Sums of attention: so large, about 12, that weights are below 1.
    if (kernel.kind == KernelClass::attention && element == 4)
      cuda::driver().fill_bytes(memory.back().address(), 0x41, memory.back().size(), race.stream.get());
  };
  for (const ValueId id : kernel.body.inputs) add(id);
  add(kernel.body.outputs[0]);
  const cuda::DeviceMemory& out = memory.back();
  const cuda::DeviceMemory expected(out.size());
  std::vector<std::unique_ptr<cuda::TemplateKernel>> kernels;
  std::vector<bench::Contender> contenders;
  for (const bench::Compiled& one : all) {
    kernels.push_back(std::make_unique<cuda::TemplateKernel>(one.object));
    const cuda::Launch launch = kernels.back()->bind(addresses);
    contenders.push_back({one.choice,
                          "",
                          [launch](std::size_t, cuda::StreamHandle stream) { cuda::launch(launch, stream); },
                          {},
                          {}});
    cuda::driver().fill_bytes(out.address(), 0xff, out.size(), race.stream.get());
    contenders.back().run(0, race.stream.get());
    if (kernels.size() == 1)
      cuda::driver().copy_on_device(expected.address(), out.address(), out.size(), race.stream.get());
    const auto difference = helpers.compare(out, expected, element, race.stream);
    if (!(difference.error < 5e-3)) fmt::print("WRONG {}: error {:.2g}\n", one.choice, difference.error);
  }
  std::vector<bench::Contender*> turn;
  turn.reserve(contenders.size());
  for (bench::Contender& contender : contenders) turn.push_back(&contender);
  race.turns(turn, rounds, {});
  turn = bench::fastest(contenders, "", shown);
  race.turns(turn, 2 * rounds, {});
  for (const bench::Contender* one : bench::fastest(contenders, "", contenders.size()))
    fmt::print("  {:<46} {:>8.2f} us {:>6.3f} TB/s\n", one->name, one->median(),
               bytes / one->median() * 1e-6);
}

}  // namespace

int main(int count, char** arguments) try {
  const std::string verb = count > 1 ? arguments[1] : "";
  const std::string part = count > 2 ? arguments[2] : "";
  if (verb != "compile" && verb != "race") throw UsageError("usage: cuda_choices {}", "compile|race [PART]");
  std::unique_ptr<bench::Helpers> helpers;
  if (verb == "race") {
    cuda::Device::get().make_current();
    helpers = std::make_unique<bench::Helpers>();
  }
  for (const Case& each : cases) {
    for (const char* type : {"f32", "bf16"}) {
      const std::string name = fmt::format("{} {}", each.name, type);
      if (name.find(part) == std::string::npos) continue;
      const Kernel kernel = case_kernel(each, type);
      const auto start = std::chrono::steady_clock::now();
      const std::vector<bench::Compiled> all = compile_choices(kernel);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      fmt::print("{}: {} choices compiled in {:.1f} s\n", name, all.size(), seconds);
      if (helpers && !all.empty()) race(*helpers, kernel, all);
      std::fflush(stdout);
    }
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "cuda_choices: {}\n", error.what());
  return 1;
}
