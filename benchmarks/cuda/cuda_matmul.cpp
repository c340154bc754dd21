// The matmul template against every algorithm of cuBLASLt, on the GPU. cuda_matmul.py adds torch.
// usage: cuda_matmul compile        compiles every choice of every shape; needs no GPU
//        cuda_matmul race [PART]    the shapes of the table, in bursts and sustained
//        cuda_matmul serve          problems and timings by lines on stdin, for cuda_matmul.py

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "benchmarks/cuda/cuda_compile.h"
#include "benchmarks/cuda/cuda_helpers.h"
#include "benchmarks/cuda/cuda_race.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/template_kernel.h"
#include "schedules/cuda/matmul.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

constexpr std::size_t rotated_bytes = 256 << 20;  // tensors that are rotated hold more than the cache
constexpr std::size_t finalists = 3;

struct Shape {
  std::int64_t m, n, k;
};
constexpr Shape shapes[] = {{8192, 8192, 8192}, {4096, 4096, 4096}, {1024, 1024, 1024},  {4096, 768, 768},
                            {4096, 3072, 768},  {4096, 768, 3072},  {16384, 1024, 4096}, {32, 4096, 4096}};

/// out = epilogue(a b^T): plain, bias_gelu_tanh, bias_gelu or bias_residual.
Kernel dense_kernel(const Shape& shape, const std::string& epilogue, DType dtype) {
  Graph body;
  const ValueId a = body.add_input("a", make_type(dtype, {shape.m, shape.k}));
  const ValueId b = body.add_input("b", make_type(dtype, {shape.n, shape.k}));
  ValueId x = body.add(Op::matmul, {a, body.add(Op::transpose, {b}, {{"perm", Dims{1, 0}}})});
  std::vector<bool> weights = {false, true};
  if (epilogue != "plain") {
    x = body.add(Op::add, {x, body.add_input("bias", make_type(dtype, {shape.n}))});
    weights.push_back(true);
  }
  if (epilogue == "bias_gelu") x = body.add(Op::gelu, {x});
  if (epilogue == "bias_gelu_tanh") x = body.add(Op::gelu, {x}, {{"approximate", "tanh"}});
  if (epilogue == "bias_residual") {
    x = body.add(Op::add, {x, body.add_input("residual", make_type(dtype, {shape.m, shape.n}))});
    weights.push_back(false);
  }
  body.outputs = {x};
  return make_kernel(body, std::move(weights));
}

std::vector<bench::Compiled> compile_choices(const CudaMatmulProblem& problem) {
  std::vector<bench::Compiled> all;
  for (const CudaMatmulChoice& choice : cuda_matmul_choices(problem, {}))
    all.push_back({choice.to_string(), make_cuda_matmul(problem, choice, {}), {}, 0});
  bench::compile(all);
  return all;
}

/// A problem with its tensors and contenders.
class Bench {
 public:
  Bench(const bench::Helpers& helpers, const Shape& shape, const std::string& epilogue, DType dtype)
      : helpers_(helpers),
        kernel_(dense_kernel(shape, epilogue, dtype)),
        operations_(2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                    static_cast<double>(shape.k)),
        bytes_(static_cast<int>(dtype_size(dtype))),
        sets_(set_count()),
        race_(sets_.size(), operations_ / 6e8 + 3) {
    const Reading<CudaMatmulProblem> reading = read_cuda_matmul(kernel_);
    if (!reading.refusal.empty()) throw UnsupportedError("the template refuses: {}", reading.refusal);
    problem_ = reading.problem;
    for (Set& set : sets_) make_tensors(set);
    reference_ = cuda::DeviceMemory(sets_[0].back().size());
    workspace_ = cuda::DeviceMemory(64 << 20);
    if (problem_.simple_epilogue) add_library();
    add_templates();
  }

  /// A heat over all, then the fastest of each kind in turns; returns the finalists.
  std::vector<bench::Contender*> race(int rounds, std::chrono::milliseconds pause) {
    if (heat_.empty()) {
      for (bench::Contender& contender : contenders_) heat_.push_back(&contender);
      race_.turns(heat_, 5, {});
      for (const char* kind : {"own", "cublaslt"})
        for (bench::Contender* one : bench::fastest(contenders_, kind, finalists)) final_.push_back(one);
    }
    race_.turns(final_, rounds, pause);
    return final_;
  }
  [[nodiscard]] bench::Contender* best(const std::string& kind) {
    const auto found = bench::fastest(contenders_, kind, 1);
    return found.empty() ? nullptr : found[0];
  }
  [[nodiscard]] double time_once(bench::Contender& contender) { return race_.time_once(contender); }
  [[nodiscard]] double rate(double microseconds) const { return operations_ / microseconds * 1e-6; }
  [[nodiscard]] double compile_seconds() const { return compile_seconds_; }
  [[nodiscard]] int wrong() const { return wrong_; }

  /// Runs a contender on the tensors of files in `folder`, and writes the result there.
  void run_on_files(bench::Contender& contender, const std::string& folder) {
    const Graph& body = kernel_.body;
    for (std::size_t i = 0; i < body.inputs.size(); ++i) {
      const std::string bytes = read_file(folder + "/" + body.value(body.inputs[i]).name + ".bin");
      if (bytes.size() != sets_[0][i].size()) throw InputError("a tensor's file has {} bytes", bytes.size());
      cuda::driver().copy_to_device(sets_[0][i].address(), bytes.data(), bytes.size(), race_.stream.get());
      race_.stream.synchronize();
    }
    contender.run(0, race_.stream.get());
    std::string result(sets_[0].back().size(), '\0');
    cuda::driver().copy_to_host(result.data(), sets_[0].back().address(), result.size(), race_.stream.get());
    race_.stream.synchronize();
    write_file(folder + "/" + contender.kind + ".bin", result);
  }

 private:
  using Set = std::vector<cuda::DeviceMemory>;  ///< inputs, then the output

  [[nodiscard]] std::size_t bytes_of(ValueId id) const {
    return static_cast<std::size_t>(kernel_.body.type(id).byte_size());
  }
  [[nodiscard]] std::size_t set_count() const {
    std::size_t bytes = bytes_of(kernel_.body.outputs[0]);
    for (const ValueId id : kernel_.body.inputs) bytes += bytes_of(id);
    return std::clamp<std::size_t>(rotated_bytes / bytes, 1, 8);
  }

  void make_tensors(Set& set) {
    unsigned seed = 1;
    for (const ValueId id : kernel_.body.inputs) {
      set.emplace_back(bytes_of(id));
      const bool is_weight = seed == 2;
      const double scale =
          is_weight ? 1 / std::sqrt(static_cast<double>(kernel_.body.type(id).dims().back())) : 1;
      helpers_.fill(set.back(), bytes_, seed++, static_cast<float>(scale), race_.stream);
    }
    set.emplace_back(bytes_of(kernel_.body.outputs[0]));
  }

  void add_library() {
    library_ = std::make_unique<cuda::CublasLtMatmul>(library_problem(problem_));
    for (std::size_t i = 0; i < library_->algorithm_count(); ++i) {
      const int bias = problem_.simple_epilogue->bias;
      contenders_.push_back({fmt::format("#{}", i),
                             "cublaslt",
                             [this, i, bias](std::size_t s, cuda::StreamHandle stream) {
                               const Set& set = sets_[s];
                               library_->run(i,
                                             {set[0].address(), set[1].address(),
                                              bias < 0 ? 0 : set[static_cast<std::size_t>(bias)].address(),
                                              set.back().address(), workspace_.address()},
                                             stream);
                             },
                             {},
                             {}});
    }
    contenders_[0].run(0, race_.stream.get());
    cuda::driver().copy_on_device(reference_.address(), sets_[0].back().address(), reference_.size(),
                                  race_.stream.get());
  }

  /// Every choice, bound to every set, checked against the library.
  void add_templates() {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<bench::Compiled> all = compile_choices(problem_);
    compile_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (const bench::Compiled& one : all) {
      auto kernel = std::make_shared<cuda::TemplateKernel>(one.object);
      std::vector<cuda::Launch> launches;
      for (const Set& set : sets_) {
        std::vector<cuda::DevicePointer> addresses;
        for (const cuda::DeviceMemory& memory : set) addresses.push_back(memory.address());
        launches.push_back(kernel->bind(addresses));
      }
      contenders_.push_back({one.choice,
                             "own",
                             [kernel, launches](std::size_t s, cuda::StreamHandle stream) {
                               cuda::launch(launches[s], stream);
                             },
                             {},
                             {}});
      check(contenders_.back());
    }
  }

  void check(const bench::Contender& contender) {
    const cuda::DeviceMemory& out = sets_[0].back();
    cuda::driver().fill_bytes(out.address(), 0xff, out.size(), race_.stream.get());
    contender.run(0, race_.stream.get());
    if (!library_) return race_.stream.synchronize();
    const auto difference = helpers_.compare(out, reference_, bytes_, race_.stream);
    if (difference.error < 5e-3 && difference.bad == 0) return;
    ++wrong_;
    fmt::print("WRONG {}: error {:.2g}, {} elements\n", contender.name, difference.error, difference.bad);
  }

  const bench::Helpers& helpers_;
  Kernel kernel_;
  double operations_;
  int bytes_;
  std::vector<Set> sets_;
  bench::Race race_;
  CudaMatmulProblem problem_;
  cuda::DeviceMemory reference_, workspace_;
  std::unique_ptr<cuda::CublasLtMatmul> library_;
  std::vector<bench::Contender> contenders_;
  std::vector<bench::Contender*> heat_, final_;
  double compile_seconds_ = 0;
  int wrong_ = 0;
};

std::string shape_text(const Shape& shape) {
  return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
}

void compile_all() {
  for (const Shape& shape : shapes) {
    const CudaMatmulProblem problem = read_cuda_matmul(dense_kernel(shape, "bias_gelu", DType::bf16)).problem;
    const auto start = std::chrono::steady_clock::now();
    const std::vector<bench::Compiled> all = compile_choices(problem);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fmt::print("{}: {} choices in {:.1f} s\n", shape_text(shape), all.size(), seconds);
    for (const bench::Compiled& one : all)
      fmt::print("  {:<30} {:.2f} s {} bytes\n", one.choice, one.seconds, one.object.image.size());
  }
}

void print_final(Bench& bench, const std::string& name, const char* pace,
                 const std::vector<bench::Contender*>& final) {
  for (const bench::Contender* one : final)
    fmt::print("  {:<9} {:<9} {:<34} {:>9.2f} us {:>7.1f} TFLOP/s\n", pace, one->kind, one->name,
               one->median(), bench.rate(one->median()));
  const bench::Contender* own = bench.best("own");
  const bench::Contender* library = bench.best("cublaslt");
  if (own != nullptr && library != nullptr)
    fmt::print("RESULT {} {} own {:.1f} cublaslt {:.1f} ratio {:.3f}\n", name, pace,
               bench.rate(own->median()), bench.rate(library->median()), library->median() / own->median());
}

int race_all(const std::string& part) {
  const bench::Helpers helpers;
  int wrong = 0;
  for (const Shape& shape : shapes) {
    for (const char* epilogue : {"plain", "bias_gelu_tanh"}) {
      const std::string name = shape_text(shape) + " " + epilogue;
      if (name.find(part) == std::string::npos) continue;
      Bench bench(helpers, shape, epilogue, DType::bf16);
      fmt::print("{}: compiled in {:.1f} s\n", name, bench.compile_seconds());
      print_final(bench, name, "sustained", bench.race(9, {}));
      print_final(bench, name, "burst", bench.race(9, std::chrono::milliseconds(12)));
      wrong += bench.wrong();
      std::fflush(stdout);
    }
  }
  return wrong == 0 ? 0 : 1;
}

/// Lines in: "problem M N K EPILOGUE DTYPE FOLDER", "time own|cublaslt", each answered by one line.
int serve() {
  const bench::Helpers helpers;
  std::unique_ptr<Bench> bench;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, kind;
    words >> verb;
    if (verb == "problem") {
      Shape shape{};
      std::string epilogue, dtype, folder;
      words >> shape.m >> shape.n >> shape.k >> epilogue >> dtype >> folder;
      bench.reset();
      bench = std::make_unique<Bench>(helpers, shape, epilogue, parse_dtype(dtype));
      bench->race(5, std::chrono::milliseconds(12));
      std::string answer = fmt::format("compiled {:.2f} wrong {}", bench->compile_seconds(), bench->wrong());
      for (const char* each : {"own", "cublaslt"}) {
        bench::Contender* best = bench->best(each);
        if (best == nullptr) continue;
        bench->run_on_files(*best, folder);
        answer += fmt::format(" {} {:.2f} ({})", each, best->median(), best->name);
      }
      fmt::print("{}\n", answer);
    } else if (verb == "time" && bench != nullptr) {
      words >> kind;
      bench::Contender* best = bench->best(kind);
      fmt::print("{:.3f}\n", best == nullptr ? 0.0 : bench->time_once(*best));
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) try {
  const std::string verb = count > 1 ? arguments[1] : "";
  if (verb == "compile") return compile_all(), 0;
  if (verb != "race" && verb != "serve")
    throw UsageError("usage: cuda_matmul {}", "compile|race [PART]|serve");
  cuda::Device::get().make_current();
  return verb == "serve" ? serve() : race_all(count > 2 ? arguments[2] : "");
} catch (const std::exception& error) {
  fmt::print(stderr, "cuda_matmul: {}\n", error.what());
  return 1;
}
