// Runs the ONNX backend tests and compares the outcomes with a checked-in list.
//
//   onnx_node_test --set node --engine interpreter --list A
//
// Exit status 0 when every outcome is the listed one. An unexpected pass fails too: run with --update to
// record it.

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "base/clock.h"
#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/passes/pass_list.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_interpreter.h"
#include "sylvite/sylvite.h"
#include "tests/onnx/case_runner.h"
#include "tests/support/checked_passes.h"
#include "tests/support/command_line.h"
#include "tests/support/interpreted_tails.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::node_test {
namespace {

namespace po = boost::program_options;

std::vector<HostValue> run_interpreter(const std::string& model_path, const ImportOptions& options,
                                       const std::vector<HostValue>& inputs, bool allows_host_steps) {
  const ImportedModel model = import_model(model_path, options);
  check_host_steps(model.host.get(), allows_host_steps);
  return interpret(model, inputs);
}

/// Everything between the importer and the code generator. What follows steps on the host is a model of its own.
std::vector<HostValue> run_plan(const std::string& model_path, const ImportOptions& options,
                                const std::vector<HostValue>& inputs, bool allows_host_steps) {
  ImportedModel model = import_model(model_path, options);
  check_host_steps(model.host.get(), allows_host_steps);
  PassRunner runner = checked_passes();
  const Plan plan = lower(run_passes(model.graph, {}, runner), {}, runner);
  InterpretedTails tails;
  return run_model(
      model.host.get(), inputs,
      [&](const std::vector<Tensor>& tensors) { return interpret_plan(plan, tensors); }, evaluate_node,
      tails.runner());
}

/// Nothing is tuned: every kernel takes its first candidate. Objects are shared by the cases through
/// `cache_folder`.
std::string cache_folder;

std::vector<HostValue> run_compiled(const std::string& model_path, const ImportOptions& options,
                                    const std::vector<HostValue>& inputs, bool allows_host_steps) {
  CompileOptions compile_options;
  compile_options.import = options;
  compile_options.set = {{"cache.dir", cache_folder}, {"db.enabled", "false"}, {"compile.threads", "1"}};
  if (!allows_host_steps) check_host_steps(import_model(model_path, options).host.get(), false);
  return compile(model_path, compile_options).run_values(inputs);
}

struct EngineRow {
  std::string name;
  std::vector<HostValue> (*run)(const std::string&, const ImportOptions&, const std::vector<HostValue>&,
                                bool);
  double seconds;
  std::size_t megabytes;
};

const EngineRow engines[] = {
    {"interpreter", run_interpreter, 20, 4096},
    {"plan", run_plan, 20, 4096},
    {"compiled", run_compiled, 240, 8192},  // a whole DenseNet without any cached kernel
};

const EngineRow& find_engine(const std::string& name) {
  for (const EngineRow& engine : engines)
    if (engine.name == name) return engine;
  throw UsageError("engine '{}' is unknown", name);
}

List parse_list(const std::string& text) {
  if (text == "A") return List::a;
  if (text == "B") return List::b;
  if (text == "all") return List::all;
  throw UsageError("list '{}' is unknown; choose A, B or all", text);
}

using Outcomes = std::map<std::string, std::string>;  ///< case -> kind

std::string expected_path(const std::string& set, const std::string& engine) {
  return fmt::format("{}/expected_{}_{}.txt", EXPECTED_FOLDER, set, engine);
}

Outcomes read_expected(const std::string& path) {
  Outcomes expected;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    std::string kind;
    words >> name >> kind;
    expected[name] = kind;
  }
  return expected;
}

void write_expected(const std::string& path, const CaseSet& set, const Outcomes& outcomes) {
  std::ofstream file(path);
  const char* cases =
      set.layout == Layout::single ? "cases of tests/data/contrib" : "ONNX backend tests (onnx 1.22.0)";
  file << "# Outcomes of the " << cases << ". Written by onnx_node_test --update.\n";
  for (const auto& [name, kind] : outcomes) file << name << ' ' << kind << '\n';
}

struct Arguments {
  std::string set = "node", engine = "interpreter", list = "all", filter, shard = "0/1", cache;
  bool update = false, verbose = false;
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  po::options_description table("onnx_node_test");
  table.add_options()("help,h", "show this text");
  table.add_options()("set", po::value(&arguments.set),
                      "node, pytorch-converted, pytorch-operator, simple, light or contrib");
  table.add_options()("engine", po::value(&arguments.engine), "interpreter, plan or compiled");
  table.add_options()("list", po::value(&arguments.list), "A (float32), B (and int64, int32, bool) or all");
  table.add_options()("filter", po::value(&arguments.filter), "run cases whose names contain this");
  table.add_options()("shard", po::value(&arguments.shard), "I/N: the Ith of N parts of the cases, from 0");
  table.add_options()("cache", po::value(&arguments.cache),
                      "folder of compiled kernels; a temporary one if not given");
  table.add_options()("update", po::bool_switch(&arguments.update), "record the outcomes as expected");
  table.add_options()("verbose,v", po::bool_switch(&arguments.verbose),
                      "print a line for every case that does not pass");
  parse_options(table, argc, argv);
  return arguments;
}

/// What holds the folder of a set.
std::string data_folder(const CaseSet& set) {
  return set.layout == Layout::single ? OWN_DATA_FOLDER : DATA_FOLDER;
}

std::vector<std::string> select_cases(const Arguments& arguments) {
  const Shard shard = parse_shard(arguments.shard);
  std::vector<std::string> cases;
  const CaseSet& set = find_set(arguments.set);
  for (const std::string& name : list_cases(data_folder(set), set, parse_list(arguments.list)))
    if (name.find(arguments.filter) != std::string::npos) cases.push_back(name);
  // Neighbours share kernels, so a shard is a run of them.
  const auto at = [&](std::size_t i) {
    return cases.begin() + static_cast<std::ptrdiff_t>(cases.size() * i / shard.count);
  };
  return {at(shard.index), at(shard.index + 1)};
}

void print_summary(const std::map<std::string, int>& counts, double seconds) {
  std::string text;
  for (const auto& [kind, count] : counts) text += fmt::format("{} {}  ", kind, count);
  fmt::print("{}in {:.1f} s\n", text, seconds);
}

int run(const Arguments& arguments) {
  std::optional<TemporaryFolder> own;
  cache_folder = arguments.cache.empty() ? own.emplace().path() : arguments.cache;
  const EngineRow& engine = find_engine(arguments.engine);
  const CaseSet& set = find_set(arguments.set);
  const std::string expected_file = expected_path(set.name, engine.name);
  const Outcomes expected = read_expected(expected_file);
  Outcomes outcomes = expected;
  std::map<std::string, int> counts;
  int surprises = 0;
  const double start = steady_seconds();
  for (const std::string& name : select_cases(arguments)) {
    const Outcome outcome =
        run_case_isolated(data_folder(set), set, name, engine.run, engine.seconds, engine.megabytes);
    ++counts[outcome.kind];
    outcomes[name] = outcome.kind;
    const auto listed = expected.find(name);
    const bool is_expected = listed != expected.end() && listed->second == outcome.kind;
    if (!is_expected) ++surprises;
    const bool passes = outcome.kind == "pass" || outcome.kind == "bound" || outcome.kind == "host";
    if ((!is_expected && !arguments.update) || (arguments.verbose && !passes)) {
      fmt::print("{:12} {}{}{}\n", outcome.kind, name,
                 is_expected
                     ? ""
                     : fmt::format(" (expected {})", listed == expected.end() ? "nothing" : listed->second),
                 outcome.reason.empty() ? "" : ": " + outcome.reason);
      std::fflush(stdout);  // a run that is cut short has shown what it found
    }
  }
  print_summary(counts, steady_seconds() - start);
  if (arguments.update) {
    write_expected(expected_file, set, outcomes);
    return 0;
  }
  if (surprises > 0) fmt::print("{} outcomes differ from {}\n", surprises, expected_file);
  return surprises == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sylvite::node_test

int main(int argc, char** argv) {
  return sylvite::guarded_main("onnx_node_test", [&] {
    return sylvite::node_test::run(sylvite::node_test::parse_arguments(argc, argv));
  });
}
