#include "runtime/cuda/run_values.h"

#include <algorithm>
#include <variant>

namespace sylvite {
namespace {

/// Of a value with memory of its own: what an allocation costs is little beside it.
constexpr std::int64_t least_own_bytes = 1 << 20;
constexpr std::int64_t most_own_values = 256;  // of one size that an arena would hold

std::int64_t peak_of(const std::vector<ArenaValue>& values) {
  std::int64_t peak = 0;
  for (const ArenaValue& each : values) peak = std::max(peak, each.offset + each.bytes);
  return peak;
}

}  // namespace

RunValues::RunValues(const std::vector<ArenaValue>& values)
    : values_(values), least_large_(std::max(least_own_bytes, peak_of(values) / most_own_values)) {
  std::vector<LiveRange> ranges;
  std::vector<std::int64_t> small;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ranges.push_back(values[i].range);
    small.push_back(is_large(i) ? 0 : values[i].bytes);
    if (values[i].bytes == 0 || values[i].range.last < values[i].range.first) continue;
    first_[values[i].range.first].push_back(i);
    last_[values[i].range.last].push_back(i);
  }
  block_ = place_values(ranges, small, true);
}

void RunValues::restart() {
  next_ = 0;
  alive_.clear();
}

cuda::SymbolicAddress RunValues::named(const cuda::SymbolicAddress& address) const {
  if (address.region != cuda::Region::arena) return address;
  const auto offset = static_cast<std::int64_t>(address.offset);
  auto found = alive_.upper_bound(offset);
  if (found == alive_.begin()) return address;
  const auto [begin, value] = *--found;
  if (offset >= begin + values_[value].bytes) return address;  // of no elements
  return {cuda::Region::value, static_cast<std::uint32_t>(value), static_cast<std::uint64_t>(offset - begin)};
}

void RunValues::name(std::vector<cuda::NotedLaunch>& noted) {
  for (const std::size_t value : first_[next_]) alive_[values_[value].offset] = value;
  for (cuda::NotedLaunch& launch : noted) {
    for (cuda::NotedArgument& argument : launch.arguments) {
      if (auto* map = std::get_if<cuda::MapArgument>(&argument)) map->address = named(map->address);
      if (auto* pointers = std::get_if<cuda::PointerArgument>(&argument))
        for (std::uint64_t& word : pointers->words)
          if (cuda::is_address(word)) word = encode_address(named(cuda::decode_address(word)));
    }
  }
  for (const std::size_t value : last_[next_]) alive_.erase(values_[value].offset);
  ++next_;
}

cuda::SymbolicAddress RunValues::name(const Location& place) const {
  return named(symbolic(place));
}

std::vector<cuda::DevicePointer> RunValues::in_arena(cuda::DevicePointer arena) const {
  std::vector<cuda::DevicePointer> addresses;
  addresses.reserve(values_.size());
  for (const ArenaValue& each : values_)
    addresses.push_back(arena + static_cast<cuda::DevicePointer>(each.offset));
  return addresses;
}

std::vector<cuda::DevicePointer> RunValues::in_block(cuda::DevicePointer block) const {
  std::vector<cuda::DevicePointer> addresses;
  addresses.reserve(values_.size());
  for (std::size_t i = 0; i < values_.size(); ++i)
    addresses.push_back(is_large(i) ? 0 : block + static_cast<cuda::DevicePointer>(block_.offsets[i]));
  return addresses;
}

std::vector<LaunchTurn> RunValues::turns(const Bindings& bindings) const {
  std::vector<LaunchTurn> turns(bindings.launches.size());
  std::vector<bool> is_taken(bindings.results.size(), false), is_dropped(bindings.inputs.size(), false);
  for (const Location& place : bindings.outputs)  // copied in the end
    if (place.kind == BufferKind::input) is_dropped.at(static_cast<std::size_t>(place.number)) = true;
  const auto mark = [](std::vector<bool>& marks, const Location& place, std::vector<std::size_t>& found) {
    const auto number = static_cast<std::size_t>(place.number);
    if (!marks.at(number)) found.push_back(number);
    marks.at(number) = true;
  };
  for (std::size_t i = 0; i < turns.size(); ++i)
    for (const Argument& argument : bindings.launches[i].arguments)
      if (argument.place.kind == BufferKind::output) mark(is_taken, argument.place, turns[i].outputs);
  for (std::size_t i = turns.size(); i-- > 0;)
    for (const Argument& argument : bindings.launches[i].arguments)
      if (argument.place.kind == BufferKind::input) mark(is_dropped, argument.place, turns[i].last_inputs);
  for (std::size_t value = 0; value < values_.size(); ++value) {
    const LiveRange& range = values_[value].range;
    if (!is_large(value) || range.last < range.first) continue;
    turns.at(static_cast<std::size_t>(range.first)).values.push_back(value);
    if (range.last < static_cast<std::int32_t>(turns.size()))
      turns[static_cast<std::size_t>(range.last)].last_values.push_back(value);
  }
  return turns;
}

}  // namespace sylvite
