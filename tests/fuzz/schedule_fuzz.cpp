// One kernel under many schedules: all must give the same answer.
//
//   schedule_fuzz --cases 300 --schedules 10
//
// The kernels come from the ONNX node tests, from the real graphs of tests/data and from random models. Each
// runs under the plain schedule and under random points of the spaces that take it, for machines of several
// makes. Where no schedule may change the order of a sum, the results must be equal to the bit, else within
// tolerance.

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>

#include "autotune/random_inputs.h"
#include "autotune/verify.h"
#include "base/error.h"
#include "frontend/onnx/importer.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/pass_list.h"
#include "lowering/plan/plan.h"
#include "runtime/kernel_runner.h"
#include "schedules/compile.h"
#include "tests/fuzz/engines.h"
#include "tests/onnx/case_runner.h"
#include "tests/support/command_line.h"

namespace sylvite::fuzz {
namespace {

namespace po = boost::program_options;

struct ScheduleArguments {
  std::size_t cases = 30, schedules = 10;
  std::string shard = "0/1";
  unsigned seed = 1;
  bool verbose = false;
};

ScheduleArguments parse_schedule_arguments(int argc, char** argv) {
  ScheduleArguments arguments;
  po::options_description table("schedule_fuzz");
  table.add_options()("help,h", "show this text");
  table.add_options()("cases", po::value(&arguments.cases), "kernels to run");
  table.add_options()("schedules", po::value(&arguments.schedules), "schedules for each");
  table.add_options()("shard", po::value(&arguments.shard), "I/N: every Nth of the cases, from the Ith");
  table.add_options()("seed", po::value(&arguments.seed), "what kernels and schedules are drawn from");
  table.add_options()("verbose,v", po::bool_switch(&arguments.verbose), "print every case");
  parse_options(table, argc, argv);
  return arguments;
}

/// Multiplications, or elements touched, of the kernel: what its plain schedule takes time for.
double kernel_work(const Kernel& kernel) {
  double work = 0;
  for (const Node& node : kernel.body.nodes()) {
    double step = 1;
    const auto elements = [&](std::size_t i) {
      return static_cast<double>(kernel.body.type(node.inputs.at(i)).element_count());
    };
    const Dims result = kernel.body.type(node.outputs[0]).dims();
    if (node.op == Op::matmul) step = static_cast<double>(kernel.body.type(node.inputs[0]).dims().back());
    if (node.op == Op::conv) step = elements(1) / static_cast<double>(std::max<std::int64_t>(result[1], 1));
    if (node.op == Op::attention) step = 2 * elements(1);
    work += step * static_cast<double>(kernel.body.type(node.outputs[0]).element_count());
  }
  return work;
}

/// Kernels of one source, each once.
class Collection {
 public:
  void add(const Plan& plan) {
    constexpr double most_work = 3e8;
    for (const Kernel& kernel : plan.kernels)
      if (kernel_work(kernel) <= most_work && ids_.insert(kernel.id).second) kernels_.push_back(kernel);
  }
  /// Up to `count` kernels; of those with many schedules first.
  [[nodiscard]] std::vector<Kernel> draw(std::size_t count, std::mt19937& random) {
    for (std::size_t i = kernels_.size(); i > 1; --i) std::swap(kernels_[i - 1], kernels_[random() % i]);
    const Machine machine = detect_machine(2);
    std::ranges::stable_partition(kernels_, [&](const Kernel& kernel) {
      std::size_t points = 0;
      for (const BoundSpace& space : spaces_for(kernel, machine)) {
        std::size_t product = 1;
        for (const Parameter& parameter : space.parameters) product *= parameter.values.size();
        points += product;
      }
      return points >= 8;
    });
    kernels_.resize(std::min(count, kernels_.size()));
    return kernels_;
  }

 private:
  std::vector<Kernel> kernels_;
  std::set<std::string> ids_;
};

Collection node_test_kernels() {
  Collection collection;
  const node_test::Engine collect = [&](const std::string& path, const ImportOptions& options,
                                        const std::vector<HostValue>& /*inputs*/,
                                        bool /*allows_host_steps*/) {
    collection.add(lower(run_passes(import_onnx(path, options))));
    return std::vector<HostValue>();
  };
  const node_test::CaseSet& set = node_test::find_set("node");
  for (const std::string& name : node_test::list_cases(ONNX_CASES, set, node_test::List::b))
    (void)node_test::run_case(node_test::load_case(ONNX_CASES, set, name), collect);
  return collection;
}

Collection model_kernels() {
  Collection collection;
  for (const auto& entry : std::filesystem::directory_iterator(REAL_MODELS)) {
    ImportOptions options;
    options.random_weights = true;
    collection.add(lower(run_passes(import_onnx(entry.path().string(), options))));
  }
  return collection;
}

Collection random_kernels() {
  Collection collection;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const ModelCase test = ModelGrower(seed).grow(12);
    collection.add(lower(run_passes(import_onnx_bytes(test.model.SerializeAsString(), ""))));
  }
  return collection;
}

std::vector<Kernel> choose_kernels(std::size_t count, std::mt19937& random) {
  std::vector<Kernel> chosen;
  const std::array sources = {node_test_kernels, model_kernels, random_kernels};
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::size_t share = (count - chosen.size()) / (sources.size() - i);
    const std::vector<Kernel> kernels = sources.at(i)().draw(share, random);
    chosen.insert(chosen.end(), kernels.begin(), kernels.end());
  }
  return chosen;
}

/// No sum or product of floats: no schedule can round differently.
bool must_be_bit_equal(const Kernel& kernel) {
  return std::ranges::none_of(kernel.body.nodes(), [&](const Node& node) {
    const bool is_float_result = is_float(kernel.body.type(node.outputs[0]).dtype);
    const bool orders = node.op == Op::reduce_max || node.op == Op::reduce_min || node.op == Op::max_pool ||
                        has_trait(node.op, OpTrait::gather) || has_trait(node.op, OpTrait::pointwise) ||
                        has_trait(node.op, OpTrait::movement) || has_trait(node.op, OpTrait::creation);
    return is_float_result && !(orders && !has_trait(node.op, OpTrait::scatter));
  });
}

std::vector<Tensor> run_candidate(const Kernel& kernel, const Candidate& candidate, const Machine& machine,
                                  const std::vector<Tensor>& inputs) {
  const std::string object = compile_to_object(kernel, candidate, machine.target);
  ColdWeights weights(inputs, 0);
  KernelRunner runner(kernel, candidate, object, machine.target, inputs, weights, machine.threads);
  runner.call();
  return runner.outputs();
}

/// What one kernel's schedules came to.
struct Tally {
  int same = 0;     ///< equal to the bit
  int close = 0;    ///< within tolerance
  int refused = 0;  ///< candidates that Halide did not take
};

std::string difference(const Kernel& kernel, const std::vector<Tensor>& actual,
                       const std::vector<Tensor>& expected, Tally& tally) {
  bool is_same = true;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const TensorType& type = kernel.body.type(kernel.body.outputs[i]);
    const double exact = output_error(type, actual[i], expected[i], {0, 0});
    if (exact == 0) continue;
    is_same = false;
    const double error = output_error(type, actual[i], expected[i], {1e-4, 1e-5});
    if (error > 1) return fmt::format("output {} is {:.3g} times what is allowed off", i, error);
    if (must_be_bit_equal(kernel)) return fmt::format("output {} is not equal to the bit ({:.3g})", i, error);
  }
  ++(is_same ? tally.same : tally.close);
  return "";
}

Outcome check_kernel(const Kernel& kernel, std::size_t schedules, unsigned seed) {
  Tally tally;
  Candidate candidate;
  try {
    Machine machine = detect_machine(2);
    const int lanes = machine.vector_floats;
    const std::vector<Tensor> inputs = random_inputs(kernel);
    const std::vector<Tensor> expected = run_candidate(kernel, reference_candidate(kernel), machine, inputs);
    std::mt19937 random(seed);
    std::set<std::string> tried;
    for (int attempt = 0; attempt < 40 && tried.size() < schedules; ++attempt) {
      machine.threads = 1 << (random() % 3);
      machine.vector_floats = random() % 2 == 0 ? lanes : std::max(lanes / 2, 4);
      candidate = random_candidate(kernel, machine, random);
      if (!tried.insert(candidate.to_string()).second) continue;
      std::vector<Tensor> actual;
      try {
        actual = run_candidate(kernel, candidate, machine, inputs);
      } catch (const CompileError&) {
        ++tally.refused;
        tried.erase(candidate.to_string());
        continue;
      }
      const std::string text = difference(kernel, actual, expected, tally);
      if (!text.empty())
        return {"differs", fmt::format("{}\n{}{}", text, kernel.text, candidate.to_string())};
    }
  } catch (const std::exception& error) {
    return {"throws", fmt::format("{}\n{}{}", error.what(), kernel.text, candidate.to_string())};
  }
  return {"agrees", fmt::format("{} {} {}", tally.same, tally.close, tally.refused)};
}

int run(const ScheduleArguments& arguments) {
  const Shard shard = parse_shard(arguments.shard);
  const auto start = std::chrono::steady_clock::now();
  std::mt19937 random(arguments.seed);
  const std::vector<Kernel> kernels = choose_kernels(arguments.cases, random);
  std::map<std::string, int> counts;
  Tally total;
  int few = 0;
  for (std::size_t i = shard.index; i < kernels.size(); i += shard.count) {
    const auto seed = arguments.seed + static_cast<unsigned>(i);
    const Outcome outcome =
        run_isolated([&] { return check_kernel(kernels[i], arguments.schedules, seed); }, 300, 12'000);
    ++counts[outcome.kind];
    Tally tally;
    if (outcome.kind == "agrees") {
      std::istringstream(outcome.reason) >> tally.same >> tally.close >> tally.refused;
      total.same += tally.same;
      total.close += tally.close;
      total.refused += tally.refused;
      if (static_cast<std::size_t>(tally.same) + static_cast<std::size_t>(tally.close) < arguments.schedules)
        ++few;
    }
    if (outcome.kind != "agrees" || arguments.verbose) {
      fmt::print("{:8} {} {} {}\n", outcome.kind, kernels[i].id, kernel_class_name(kernels[i].kind),
                 outcome.reason);
      std::fflush(stdout);
    }
  }
  for (const auto& [kind, count] : counts) fmt::print("{} {}  ", kind, count);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print(
      "in {:.1f} s; schedules equal to the bit {}, within tolerance {}, not taken by Halide {}; kernels with "
      "fewer than {} schedules {}\n",
      seconds.count(), total.same, total.close, total.refused, arguments.schedules, few);
  return counts.size() == counts.count("agrees") ? 0 : 1;
}

}  // namespace
}  // namespace sylvite::fuzz

int main(int argc, char** argv) {
  return sylvite::guarded_main("schedule_fuzz", [&] {
    return sylvite::fuzz::run(sylvite::fuzz::parse_schedule_arguments(argc, argv));
  });
}
