#include "runtime/cuda/launch_streams.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace sylvite {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);
constexpr std::int64_t regions_per_kind = std::int64_t{1} << 32;
constexpr std::int64_t scratch_region = -1;
constexpr std::int64_t workspace_region = -2;

bool conflict(const Touches& a, const Touches& b) {
  return std::ranges::any_of(a, [&](const TouchedBytes& one) {
    return std::ranges::any_of(b, [&](const TouchedBytes& other) {
      return one.region == other.region && (one.is_written || other.is_written) && one.begin < other.end &&
             other.begin < one.end;
    });
  });
}

/// Tells libraries' kernels apart.
std::int64_t library_number(const cuda::NotedLaunch& launch) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(launch.library.get()));
}

TouchedBytes touched(const Argument& argument, bool is_written) {
  const std::int64_t elements =
      std::accumulate(argument.stored.begin(), argument.stored.end(), std::int64_t{1}, std::multiplies<>());
  const std::int64_t bytes = elements * static_cast<std::int64_t>(dtype_size(argument.dtype));
  const std::int64_t kind = static_cast<std::int64_t>(argument.place.kind) * regions_per_kind;
  const std::int64_t number = argument.place.number;
  if (argument.place.kind == BufferKind::arena || argument.place.kind == BufferKind::state)
    return {kind, number, number + bytes, is_written};
  return {kind + number, 0, bytes, is_written};
}

/// Launches so far, as `spread` places them.
struct Order {
  std::vector<std::vector<bool>> ends_before;  ///< [launch][earlier one]: it has ended when the launch begins
  std::vector<std::size_t> last;               ///< per stream, or none

  /// Whether a launch that waits for `waited` would have to wait for nothing more on the stream.
  [[nodiscard]] bool follows(std::size_t stream, const std::vector<bool>& waited) const {
    return last[stream] == none || waited[last[stream]];
  }
};

/// The stream to go on with: the one whose last launch is the latest of those that are waited for anyway,
/// else the first, which then holds the launch up.
std::size_t stream_for(const Order& order, const std::vector<bool>& waited) {
  std::size_t best = none;
  const auto age = [&](std::size_t s) { return order.last[s] == none ? 0 : order.last[s] + 1; };
  for (std::size_t s = 0; s < order.last.size(); ++s)
    if (order.follows(s, waited) && (best == none || age(s) > age(best))) best = s;
  return best == none ? 0 : best;
}

}  // namespace

std::vector<Touches> touches_of(const Plan& plan, const Bindings& bindings) {
  std::vector<Touches> result;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(plan.launches[i].kernel)];
    const std::vector<Argument>& arguments = bindings.launches[i].arguments;
    Touches& touches = result.emplace_back();
    for (std::size_t a = 0; a < arguments.size(); ++a) {
      if (arguments[a].place.kind == BufferKind::weight) continue;
      touches.push_back(touched(arguments[a], a >= kernel.body.inputs.size()));
    }
  }
  return result;
}

Touches touches_beside_arguments(const std::vector<cuda::NotedLaunch>& noted) {
  Touches touches;
  for (const cuda::NotedLaunch& launch : noted) {
    if (uses_region(launch, cuda::Region::scratch)) touches.push_back({scratch_region, 0, 1, true});
    // Launches of one kernel share its workspace.
    if (launch.library)
      touches.push_back({workspace_region, library_number(launch), library_number(launch) + 1, true});
  }
  return touches;
}

std::vector<StreamPlace> spread(const std::vector<Touches>& launches, std::size_t streams) {
  std::vector<StreamPlace> places;
  Order order;
  order.last.assign(std::max<std::size_t>(streams, 1), none);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    std::vector<bool> waited(i, false);
    const auto wait_for = [&](std::size_t earlier) {
      waited[earlier] = true;
      for (std::size_t j = 0; j < earlier; ++j) waited[j] = waited[j] || order.ends_before[earlier][j];
    };
    std::vector<std::size_t> direct;  // the latest first: they bring the others along
    for (std::size_t j = i; j-- > 0;) {
      if (waited[j] || !conflict(launches[j], launches[i])) continue;
      direct.push_back(j);
      wait_for(j);
    }
    StreamPlace& place = places.emplace_back();
    place.stream = stream_for(order, waited);
    const std::size_t before = order.last[place.stream];
    if (before != none) wait_for(before);
    for (const std::size_t j : direct) {
      const bool is_there = before != none && (j == before || (j < before && order.ends_before[before][j]));
      if (!is_there) place.waits.push_back(j);
    }
    order.ends_before.push_back(std::move(waited));
    order.last[place.stream] = i;
  }
  return places;
}

}  // namespace sylvite
