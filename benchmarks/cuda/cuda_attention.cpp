// The attention template on the GPU, for cuda_attention.py, which adds torch.
// usage: cuda_attention serve   problems and timings by lines on stdin

#include <fmt/core.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "benchmarks/cuda/cuda_race.h"
#include "runtime/cuda/template_kernel.h"
#include "schedules/cuda/attention.h"
#include "schedules/cuda/nvrtc.h"
#include "tests/support/attention_kernels.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

constexpr std::size_t rotated_bytes = 256 << 20;  // tensors that are rotated hold more than the cache

/// A problem with its tensors, the same ones several times, and every choice.
class Bench {
 public:
  Bench(const AttentionSpec& spec, const std::string& folder)
      : kernel_(attention_kernel(spec)), sets_(set_count()), race_(sets_.size(), estimate(spec)) {
    const Reading<CudaAttentionProblem> reading = read_cuda_attention(kernel_);
    if (!reading.refusal.empty()) throw UnsupportedError("the template refuses: {}", reading.refusal);
    for (Set& set : sets_) make_tensors(set, folder);
    const auto start = std::chrono::steady_clock::now();
    for (const CudaAttentionChoice& choice : cuda_attention_choices(reading.problem, {}))
      add(choice.to_string(), make_cuda_attention(reading.problem, choice, {}));
    compile_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::vector<bench::Contender*> all;
    all.reserve(contenders_.size());
    for (bench::Contender& contender : contenders_) all.push_back(&contender);
    race_.turns(all, 5, std::chrono::milliseconds(12));
  }

  [[nodiscard]] const std::vector<bench::Contender>& contenders() const { return contenders_; }
  [[nodiscard]] bench::Contender& best() { return *bench::fastest(contenders_, "own", 1).at(0); }
  [[nodiscard]] double time_once() { return race_.time_once(best()); }
  [[nodiscard]] double compile_seconds() const { return compile_seconds_; }

  void write_result(const std::string& path) {
    const cuda::DeviceMemory& out = sets_[0].back();
    cuda::driver().fill_bytes(out.address(), 0xff, out.size(), race_.stream.get());
    best().run(0, race_.stream.get());
    std::string bytes(out.size(), '\0');
    cuda::driver().copy_to_host(bytes.data(), out.address(), bytes.size(), race_.stream.get());
    race_.stream.synchronize();
    write_file(path, bytes);
  }

 private:
  using Set = std::vector<cuda::DeviceMemory>;  ///< inputs, then the output

  static double estimate(const AttentionSpec& spec) {
    return 4e-8 * static_cast<double>(spec.batch * spec.heads * spec.queries * spec.keys * spec.depth) / 4 +
           5;
  }
  [[nodiscard]] std::size_t set_count() const {
    std::int64_t bytes = 0;
    for (const ValueId id : kernel_.body.inputs) bytes += kernel_.body.type(id).byte_size();
    return std::clamp<std::size_t>(rotated_bytes / static_cast<std::size_t>(bytes), 1, 8);
  }

  void make_tensors(Set& set, const std::string& folder) {
    for (const ValueId id : kernel_.body.inputs) {
      const std::string bytes = read_file(folder + "/" + kernel_.body.value(id).name + ".bin");
      if (static_cast<std::int64_t>(bytes.size()) != kernel_.body.type(id).byte_size())
        throw InputError("a tensor's file has {} bytes", bytes.size());
      set.emplace_back(bytes.size());
      cuda::driver().copy_to_device(set.back().address(), bytes.data(), bytes.size(), race_.stream.get());
      race_.stream.synchronize();
    }
    set.emplace_back(static_cast<std::size_t>(kernel_.body.type(kernel_.body.outputs[0]).byte_size()));
  }

  void add(const std::string& name, const CudaTemplate& text) {
    auto kernel = std::make_shared<cuda::TemplateKernel>(cuda::compile_cuda(text));
    std::vector<cuda::Launch> launches;
    for (const Set& set : sets_) {
      std::vector<cuda::DevicePointer> addresses;
      for (const cuda::DeviceMemory& memory : set) addresses.push_back(memory.address());
      launches.push_back(kernel->bind(addresses));
    }
    const auto run = [kernel, launches](std::size_t s, cuda::StreamHandle stream) {
      cuda::launch(launches[s], stream);
    };
    contenders_.push_back({name, "own", run, {}, {}});
  }

  Kernel kernel_;
  std::vector<Set> sets_;
  bench::Race race_;
  std::vector<bench::Contender> contenders_;
  double compile_seconds_ = 0;
};

/// Lines in: "problem BATCH HEADS ROWS DEPTH CAUSAL FUSED FOLDER", "time", each answered by one line.
int serve() {
  std::unique_ptr<Bench> bench;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, folder;
    words >> verb;
    if (verb == "problem") {
      AttentionSpec spec;
      words >> spec.batch >> spec.heads >> spec.queries >> spec.depth >> spec.causal >> spec.fused >> folder;
      spec.keys = spec.queries;
      bench.reset();
      bench = std::make_unique<Bench>(spec, folder);
      bench->write_result(folder + "/own.bin");
      std::string answer = fmt::format("compiled {:.2f}", bench->compile_seconds());
      for (const bench::Contender& each : bench->contenders())
        answer += fmt::format(" | {} {:.2f}", each.name, each.median());
      fmt::print("{}\n", answer);
    } else if (verb == "time" && bench != nullptr) {
      fmt::print("{:.3f}\n", bench->time_once());
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2 || std::string(arguments[1]) != "serve")
    throw UsageError("usage: cuda_attention {}", "serve");
  cuda::Device::get().make_current();
  return serve();
} catch (const std::exception& error) {
  fmt::print(stderr, "cuda_attention: {}\n", error.what());
  return 1;
}
