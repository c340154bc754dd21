#include "tests/fuzz/check_sizes.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "frontend/onnx/importer.h"
#include "lowering/plan/plan_interpreter.h"
#include "runtime/session.h"
#include "tests/fuzz/case_files.h"
#include "tests/fuzz/open_case.h"

namespace sylvite::fuzz {
namespace {

constexpr int few_combinations = 5;
constexpr int many_combinations = 40;  // enough to know of most what they are, without an import

/// The model's own sizes, then others: near ones, multiples, one and none.
std::vector<NamedSizes> drawn_sizes(const OpenCase& open, int combinations, std::mt19937& random) {
  std::vector<NamedSizes> result = {open.original};
  while (static_cast<int>(result.size()) < combinations) {
    NamedSizes sizes = open.original;
    for (auto& [name, size] : sizes) {
      const std::int64_t others[] = {
          size, size + 1, size + 2, size + 5, 2 * size, 3 * size, std::max<std::int64_t>(size / 2, 1), 1, 0};
      size = others[random() % std::size(others)];
    }
    result.push_back(sizes);
  }
  return result;
}

/// A file with open sizes, and what is asked of it.
struct OpenRun {
  OpenCase open;
  std::string path;
  std::vector<NamedSizes> sizes;
  CompileOptions options;
};

OpenRun make_run(OpenCase open, const EngineOptions& options, int combinations, std::mt19937& random) {
  OpenRun run{std::move(open), fmt::format("{}/open_{}.onnx", options.cache_folder, ::getpid()), {}, {}};
  run.sizes = drawn_sizes(run.open, combinations, random);
  for (const auto& [name, size] : run.open.original)
    run.options.import.dims[name] = SizeRange(0, 4 * size + 8, {size});
  run.options.mode = "default";
  run.options.set = {{"cache.dir", options.cache_folder},
                     {"db.enabled", "false"},
                     {"compile.threads", "2"},
                     {"tune.compile_jobs", "1"}};
  write_file(run.path, run.open.test.model.SerializeAsString());
  return run;
}

using Answers = std::function<std::vector<Tensor>(const NamedSizes&, const std::vector<Tensor>& inputs)>;

/// Sizes at which the model is not valid are passed over.
std::string compare(const OpenRun& run, const Answers& answers, EngineNotes& notes) {
  for (const NamedSizes& sizes : run.sizes) {
    const ModelCase fixed = at_sizes(run.open, sizes);
    Expectation expected;
    try {
      expected = expect(import_onnx_bytes(fixed.model.SerializeAsString(), ""), fixed.inputs);
    } catch (const Error&) {
      continue;
    }
    const auto where = [&] { return fmt::format("at {} of {}", sizes, run.sizes); };
    try {
      const std::string text = difference(answers(sizes, fixed.inputs), expected);
      if (!text.empty()) return fmt::format("{}: {}", where(), text);
    } catch (const std::exception& error) {
      return fmt::format("{}: throws {}", where(), error.what());
    }
    ++notes.trials;
  }
  return "";
}

std::string check(const ModelCase& test, const EngineOptions& options, EngineNotes& notes,
                  const std::function<Answers(const OpenRun&)>& make_answers,
                  int combinations = few_combinations) {
  std::mt19937 random(options.seed);
  std::optional<OpenCase> open = with_open_sizes(test, random);
  if (!open) return "";
  const OpenRun run = make_run(std::move(*open), options, combinations, random);
  const std::string text = compare(run, make_answers(run), notes);
  std::error_code ignored;
  std::filesystem::remove(run.path, ignored);
  return text.empty() ? "" : text + "\n" + case_text(run.open.test);
}

/// Plans that follow from others where they do, interpreted.
Answers plans_of(const OpenRun& run, const std::shared_ptr<const Setup>& setup) {
  return [model = open_model(run.path, setup, run.options.import)](const NamedSizes& named,
                                                                   const std::vector<Tensor>& inputs) {
    Sizes sizes;
    for (const SizeSymbol& symbol : model.parsed.sizes.symbols) sizes.push_back(named.at(symbol.name));
    std::optional<Imported> imported = bind_known_sizes(model, sizes);
    if (!imported) imported = bind_sizes(model, sizes);
    const auto run_graph = [&](const std::vector<Tensor>& values) {
      return interpret_plan(*imported->plan, values);
    };
    return run_model_tensors(imported->host.get(), inputs, run_graph, 1);
  };
}

/// One compile, as a user's.
Answers programs_of(const OpenRun& run, const std::string& device) {
  CompileOptions options = run.options;
  options.set["compile.device"] = device;
  const auto model = std::make_shared<CompiledModel>(compile(run.path, options));
  return
      [model](const NamedSizes& /*sizes*/, const std::vector<Tensor>& inputs) { return model->run(inputs); };
}

std::string check_plans(const ModelCase& test, const EngineOptions& options, EngineNotes& notes) {
  return check(test, options, notes,
               [](const OpenRun& run) { return plans_of(run, make_setup(run.options)); });
}

std::string check_gpu_plans(const ModelCase& test, const EngineOptions& options, EngineNotes& notes) {
  return check(test, options, notes, [](const OpenRun& run) {
    CompileOptions wanted = run.options;
    wanted.set["passes.disable"] = std::string(passes_with_zeros);
    return plans_of(run, setup_without_card(wanted));
  });
}

std::string check_programs(const ModelCase& test, const EngineOptions& options, EngineNotes& notes) {
  return check(test, options, notes, [](const OpenRun& run) { return programs_of(run, "cpu"); });
}

std::string check_many(const ModelCase& test, const EngineOptions& options, EngineNotes& notes) {
  return check(
      test, options, notes, [](const OpenRun& run) { return programs_of(run, "cpu"); }, many_combinations);
}

std::string check_cuda(const ModelCase& test, const EngineOptions& options, EngineNotes& notes) {
  return check(test, options, notes, [](const OpenRun& run) { return programs_of(run, "cuda"); });
}

std::string check_many_cuda(const ModelCase& test, const EngineOptions& options, EngineNotes& notes) {
  return check(
      test, options, notes, [](const OpenRun& run) { return programs_of(run, "cuda"); }, many_combinations);
}

constexpr SizeCheck checks[] = {{"size-plans", check_plans}, {"gpu-size-plans", check_gpu_plans},
                                {"sizes", check_programs},   {"many-sizes", check_many},
                                {"cuda-sizes", check_cuda},  {"cuda-many-sizes", check_many_cuda}};

}  // namespace

const SizeCheck* find_size_check(std::string_view name) {
  for (const SizeCheck& each : checks)
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace sylvite::fuzz
