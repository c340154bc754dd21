#include "runtime/export/launch_samples.h"

#include <utility>

namespace sylvite {
namespace {

Dims at(const std::vector<Extent>& extents, const SymbolValues& sizes) {
  Dims result;
  result.reserve(extents.size());
  for (const Extent& extent : extents) result.push_back(extent.at(sizes));
  return result;
}

bool serves(const Kernel& kernel, const Dims& sizes) {
  std::size_t i = 0;
  for (const auto& [name, info] : kernel.open->symbols.table) {
    if (sizes[i] < info.low || sizes[i] > info.high) return false;
    ++i;
  }
  return true;
}

}  // namespace

LaunchSamples::LaunchSamples(FittedNumbers& numbers, std::size_t index, const ProgramCode& code,
                             const std::vector<SymbolValues>& sizes) {
  const ProgramCase& first = numbers.cases()[0];
  const std::string& name = first.plan->launches[index].name;
  const auto kernel = static_cast<std::size_t>(first.plan->launches[index].kernel);
  const BoundLaunch& bound = first.bindings.launches[index];
  if (!first.plan->kernels[kernel].open) return;
  const auto launch = [&](const ProgramCase& each) -> const BoundLaunch& {
    return each.bindings.launches[index];
  };
  const std::vector<Extent> kernel_sizes =
      numbers.dims([&](const ProgramCase& each) { return launch(each).sizes; }, name);
  std::vector<std::vector<Extent>> stored;
  stored.reserve(bound.arguments.size());
  for (std::size_t i = 0; i < bound.arguments.size(); ++i)
    stored.push_back(
        numbers.dims([&](const ProgramCase& each) { return launch(each).arguments[i].stored; }, name));
  cuda::LaunchRecorder recorder;
  RunContext context(1);
  for (const SymbolValues& here : sizes) {
    const Dims given = at(kernel_sizes, here);
    if (!serves(first.plan->kernels[kernel], given)) continue;
    KernelCall call(code.kernels[kernel], context, stored.size() + given.size());
    for (std::size_t i = 0; i < stored.size(); ++i) {
      if (i == bound.inputs)
        for (const std::int64_t size : given) call.add_size(size);
      const Argument& argument = bound.arguments[i];
      call.add_argument(argument.dtype, at(stored[i], here), argument.has_outer_blocks).device =
          cuda::encode_address(symbolic(argument.place));
    }
    cuda::Recording recording = call.note(recorder);
    if (recording.status == 0) samples_.push_back({here, std::move(recording.launches)});
  }
}

}  // namespace sylvite
