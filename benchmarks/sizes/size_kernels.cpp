// Which kernels a model whose sizes are ranges would compile at random sizes, and where it is imported: nothing is compiled. With
// `cuda`, for a card that need not be there.
// usage: size_kernels MODEL.onnx DIMS [COUNT [cpu|cuda [PRECISION]]]
// The first sizes and those that programs are compiled ahead of come first, without kernels beyond them; then COUNT random ones.

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <map>
#include <random>
#include <set>

#include "base/error.h"
#include "lowering/plan/work.h"
#include "runtime/open_kernels.h"
#include "runtime/session.h"
#include "runtime/sizes_ahead.h"
#include "schedules/compile.h"
#include "schedules/space.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

std::shared_ptr<const Setup> setup_of(const std::string& device, const std::string& precision,
                                      const std::string& dims) {
  CompileOptions options;
  options.set = {{"compile.precision", precision},
                 {"compile.device", device},
                 {"import.dims", dims},
                 {"db.enabled", "false"}};
  Setup setup;
  setup.config = resolve_settings(options).config();
  setup.machine = detect_machine(1);
  if (device == "cuda")
    setup.machine = with_gpu(setup.machine, {"NVIDIA H200", 90, 13000, 132, 227 << 10, 50 << 20});
  return std::make_shared<const Setup>(std::move(setup));
}

Sizes random_sizes(const ModelSizes& model, std::minstd_rand& random) {
  Sizes sizes;
  for (const SizeSymbol& symbol : model.symbols) {
    const SizeRange& range = symbol.range;
    std::uniform_int_distribution<std::int64_t> step(0, (range.high - range.low) / range.multiple);
    sizes.push_back(range.low + step(random) * range.multiple);
  }
  return sizes;
}

class Model {
 public:
  Model(const std::string& path, const std::shared_ptr<const Setup>& setup) {
    ImportOptions import;
    import.random_weights = true;
    model_ = open_model(path, setup, import);
  }
  [[nodiscard]] const ModelSizes& sizes() const { return model_.parsed.sizes; }

  /// How many kernels were not known. Prints them where `says`.
  int meet(const Sizes& sizes, bool says) {
    std::optional<Imported> imported = bind_known_sizes(model_, sizes);
    if (!imported) ++imports_;
    if (says && !imported) fmt::print("{}: an import\n", describe(model_.parsed.sizes, sizes));
    if (!imported || !has_known_kernels(*imported)) imported = bind_told_sizes(model_, sizes);
    const Chosen chosen = choose_known(*imported);
    for (const Kernel& kernel : imported->plan->kernels) texts_.insert(kernel.text);
    int count = 0;
    for (std::size_t i = 0; i < chosen.choices.size(); ++i) {
      const Kernel& kernel = imported->plan->kernels[i];
      const std::string symbol =
          symbol_name(kernel, chosen.choices[i].candidate, model_.setup->machine.target);
      if (!known_.insert(symbol).second) continue;
      ++count;
      if (!says) continue;
      const std::string space = spaces_for(kernel, model_.setup->machine).front().name;
      ++spaces_[space];
      fmt::print("{}: {} by {}{}\n{}\n", describe(model_.parsed.sizes, sizes), kernel_class_name(kernel.kind),
                 space, kernel.open ? ", a range" : "", kernel.text);
    }
    return count;
  }
  [[nodiscard]] int imports() const { return imports_; }
  [[nodiscard]] const std::map<std::string, int>& spaces() const { return spaces_; }

 private:
  /// As a family: what plans tell is taken where programs have all its kernels.
  [[nodiscard]] bool has_known_kernels(const Imported& imported) const {
    return std::ranges::all_of(imported.plan->kernels,
                               [&](const Kernel& kernel) { return texts_.contains(kernel.text); });
  }

  OpenModel model_;
  std::set<std::string> texts_;  ///< of kernels
  std::set<std::string> known_;
  std::map<std::string, int> spaces_;  ///< kernels that were new
  int imports_ = 0;
};

void run(const std::string& path, const std::string& dims, int count, const std::string& device,
         const std::string& precision) {
  Model model(path, setup_of(device, precision, dims));
  int first = model.meet(first_sizes(model.sizes()), false);
  for (const Sizes& sizes : sizes_ahead(model.sizes(), device == "cuda")) first += model.meet(sizes, false);
  const int imported = model.imports();
  std::minstd_rand random;
  int with_new = 0, kernels = 0;
  for (int i = 0; i < count; ++i) {
    const int added = model.meet(random_sizes(model.sizes(), random), true);
    with_new += added > 0 ? 1 : 0;
    kernels += added;
  }
  fmt::print("{} kernels ahead; {} sizes: {} with a new kernel, {} kernels, {} imported\n", first, count,
             with_new, kernels, model.imports() - imported);
  for (const auto& [space, number] : model.spaces()) fmt::print("  {} by {}\n", number, space);
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 3) throw UsageError("usage: size_kernels MODEL.onnx DIMS [COUNT [cpu|cuda [PRECISION]]]");
  const auto argument = [&](int i, const char* other) { return count > i ? arguments[i] : other; };
  run(arguments[1], arguments[2], std::stoi(argument(3, "40")), argument(4, "cuda"), argument(5, "bf16"));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "size_kernels: {}\n", error.what());
  return 1;
}
