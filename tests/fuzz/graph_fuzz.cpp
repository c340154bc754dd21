// Random models through every mode, compared with the interpreter.
//
//   graph_fuzz --seeds 0:2000                       grow, run, compare; exit status 0 when all agree
//   graph_fuzz --seeds 0:2000 --save cases          also write them: those that agree for compare_onnxruntime.py, the others
//                                                   for --case
//   graph_fuzz --case cases/17 --reduce             look closer at one
//
// Each case runs in a child process with limits. A failing case is reduced with --reduce and printed.

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "frontend/onnx/importer.h"
#include "tests/fuzz/case_files.h"
#include "tests/fuzz/check_sizes.h"
#include "tests/fuzz/engines.h"
#include "tests/fuzz/reduce_case.h"
#include "tests/support/command_line.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::fuzz {
namespace {

namespace po = boost::program_options;

struct Arguments {
  std::string seeds = "0:20", engines = "plan,plain-plan,default,reduce-overhead,random", budget = "2s",
              cache, save, folder;
  int nodes = 16;
  double seconds = 120;
  bool reduce = false, refusals = false, verbose = false;
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  po::options_description table("graph_fuzz");
  table.add_options()("help,h", "show this text");
  table.add_options()("seeds", po::value(&arguments.seeds), "FIRST:END of the models to grow");
  table.add_options()("nodes", po::value(&arguments.nodes), "nodes of a model, on average");
  table.add_options()(
      "engines", po::value(&arguments.engines),
      "comma separated: plan, plain-plan, gpu-plan, default, reduce-overhead, random, max-autotune, "
      "open, evaluated, size-plans, gpu-size-plans, sizes, many-sizes, cuda, cuda-sizes, "
      "cuda-many-sizes");
  table.add_options()("budget", po::value(&arguments.budget), "of max-autotune for a model");
  table.add_options()("cache", po::value(&arguments.cache),
                      "folder of compiled kernels; a temporary one if not given");
  table.add_options()("save", po::value(&arguments.save), "folder to write every case to");
  table.add_options()("case", po::value(&arguments.folder), "check a saved case instead");
  table.add_options()("limit", po::value(&arguments.seconds), "seconds a case may take");
  table.add_options()("reduce", po::bool_switch(&arguments.reduce), "make failing cases smaller");
  table.add_options()("refusals", po::bool_switch(&arguments.refusals),
                      "print why the importer refused nodes");
  table.add_options()("verbose,v", po::bool_switch(&arguments.verbose), "print every case, and the notes");
  parse_options(table, argc, argv);
  return arguments;
}

class GraphFuzz {
 public:
  explicit GraphFuzz(const Arguments& arguments) : arguments_(arguments) {
    boost::split(engines_, arguments.engines, boost::is_any_of(","));
    for (const std::string& name : engines_)
      if (find_size_check(name) == nullptr) (void)find_engine(name);
    cache_ = arguments.cache.empty() ? own_cache_.emplace().path() : arguments.cache;
    std::filesystem::create_directories(cache_);
  }

  int run() {
    if (!arguments_.folder.empty())
      (void)check(arguments_.folder, load_case(arguments_.folder), 0);
    else
      check_seeds();
    for (const auto& [kind, count] : counts_) fmt::print("{} {}  ", kind, count);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    fmt::print(
        "in {:.1f} s; {:.1f} nodes a model; {:.4f} of the elements are decided by more than noise; "
        "candidates measured: {}\n",
        seconds.count(), nodes_ / std::max(cases_, 1.0), compared_ / std::max(cases_, 1.0), trials_);
    if (arguments_.refusals)
      for (const auto& [reason, count] : refusals_) fmt::print("{:6} {}\n", count, reason);
    return counts_.size() == counts_.count("agrees") ? 0 : 1;
  }

 private:
  static std::pair<unsigned, unsigned> range_of(const std::string& text) {
    unsigned first = 0, end = 0;
    const char* const stop = text.data() + text.size();
    const auto [colon, first_error] = std::from_chars(text.data(), stop, first);
    const bool goes_on = first_error == std::errc() && colon != stop && *colon == ':';
    const auto [rest, end_error] = std::from_chars(goes_on ? colon + 1 : stop, stop, end);
    if (end_error != std::errc() || rest != stop) throw UsageError("seeds '{}' are not FIRST:END", text);
    return {first, end};
  }

  void check_seeds() {
    const auto [first, end] = range_of(arguments_.seeds);
    for (unsigned seed = first; seed < end; ++seed) {
      ModelGrower grower(seed);
      const ModelCase test =
          grower.grow(1 + static_cast<int>(grower.pick(2 * static_cast<std::size_t>(arguments_.nodes))));
      for (const auto& [reason, count] : grower.refusals()) refusals_[reason] += count;
      Expectation expected;  // none of a case that fails: what crashed in a child would crash here
      if (check(std::to_string(seed), test, seed)) {
        expected = expect(import_onnx_bytes(test.model.SerializeAsString(), ""), test.inputs);
        compared_ += expected.compared_share();
      }
      if (!arguments_.save.empty()) save_case(fmt::format("{}/{}", arguments_.save, seed), test, expected);
    }
  }

  Outcome outcome_of(const ModelCase& test, unsigned seed) const {
    const auto work = [&] { return check_case(test, engines_, {cache_, seed, arguments_.budget}); };
    const bool on_gpu =
        std::ranges::any_of(engines_, [](const std::string& name) { return name.starts_with("cuda"); });
    return run_isolated(work, arguments_.seconds, on_gpu ? 0 : 12'000);
  }

  /// False when the case fails.
  bool check(const std::string& name, const ModelCase& test, unsigned seed) {
    const Outcome outcome = outcome_of(test, seed);
    ++counts_[outcome.kind];
    ++cases_;
    nodes_ += test.model.graph().node_size();
    const bool agrees = outcome.kind == "agrees";
    if (agrees) trials_ += std::stoi(outcome.reason);
    if (agrees && !arguments_.verbose) return true;
    fmt::print("{:8} {} {}\n", outcome.kind, name, outcome.reason);
    if (!agrees) {
      const ModelCase smaller = arguments_.reduce ? reduced(test, outcome, seed) : test;
      fmt::print("{}", case_text(smaller));
    }
    std::fflush(stdout);
    return agrees;
  }

  /// Fails in the same engine and in the same way, as far as the first words of the message say.
  ModelCase reduced(const ModelCase& test, const Outcome& outcome, unsigned seed) const {
    const auto way = [](const Outcome& each) {
      return each.kind == "throws"
                 ? each.reason.substr(0, std::min(each.reason.find(": "), std::size_t{40}) + 20)
                 : each.reason.substr(0, each.reason.find(':'));
    };
    return reduce_case(test, [&](const ModelCase& smaller) {
      const Outcome again = outcome_of(smaller, seed);
      return again.kind == outcome.kind && way(again) == way(outcome);
    });
  }

  Arguments arguments_;
  std::vector<std::string> engines_;
  std::optional<TemporaryFolder> own_cache_;  ///< where the user named none
  std::string cache_;
  std::map<std::string, int> counts_;
  std::map<std::string, int> refusals_;
  int trials_ = 0;
  double cases_ = 0;
  double nodes_ = 0;
  double compared_ = 0;  ///< sum of shares
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace
}  // namespace sylvite::fuzz

int main(int argc, char** argv) {
  return sylvite::guarded_main("graph_fuzz", [&] {
    return sylvite::fuzz::GraphFuzz(sylvite::fuzz::parse_arguments(argc, argv)).run();
  });
}
