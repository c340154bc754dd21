#include "runtime/cuda/noted_launch.h"

#include <algorithm>

#include "base/error.h"

namespace sylvite::cuda {
namespace {

constexpr int offset_bits = 36;
constexpr int number_bits = 20;

/// The words of all addresses in an argument.
std::vector<std::uint64_t> words_of(const NotedArgument& argument) {
  if (const auto* pointers = std::get_if<PointerArgument>(&argument)) return pointers->words;
  if (const auto* map = std::get_if<MapArgument>(&argument); map != nullptr && map->map.argument >= 0)
    return {encode_address(map->address)};
  return {};
}

}  // namespace

std::uint64_t encode_address(const SymbolicAddress& address) {
  if (address.offset >> offset_bits != 0 || address.number >> number_bits != 0) {
    throw UnsupportedError("a model with {} tensors of up to {} bytes on a GPU; {} and {} are possible",
                           address.number, address.offset, 1U << number_bits,
                           std::uint64_t{1} << offset_bits);
  }
  return static_cast<std::uint64_t>(address.region) << (offset_bits + number_bits) |
         static_cast<std::uint64_t>(address.number) << offset_bits | address.offset;
}

SymbolicAddress decode_address(std::uint64_t word) {
  const auto region = static_cast<std::uint8_t>(word >> (offset_bits + number_bits));
  if (region < static_cast<std::uint8_t>(Region::weight) ||
      region > static_cast<std::uint8_t>(Region::output)) {
    throw InternalError("a launch names {:#x}, which is no address of a region", word);
  }
  return {static_cast<Region>(region),
          static_cast<std::uint32_t>(word >> offset_bits & ((1U << number_bits) - 1)),
          word & ((std::uint64_t{1} << offset_bits) - 1)};
}

NotedLaunch note_template(const CudaTemplate& text, std::string_view image,
                          const std::vector<std::uint64_t>& words) {
  NotedLaunch launch;
  if (text.library) {
    launch.library = text.library;
    launch.arguments.emplace_back(PointerArgument{words});
    return launch;
  }
  launch.image = image;
  launch.architecture = text.architecture;
  launch.function = text.name;
  launch.grid[0] = text.blocks;
  launch.block[0] = text.threads;
  launch.cluster = text.cluster;
  launch.shared_bytes = text.shared_bytes;
  launch.programmatic = text.programmatic;
  for (const CudaTensorMap& map : text.maps) {
    MapArgument argument{map, {}};
    if (map.argument >= 0)
      argument.address = decode_address(words.at(static_cast<std::size_t>(map.argument)));
    launch.arguments.emplace_back(argument);
  }
  PointerArgument pointers;
  for (const int argument : text.pointers)
    pointers.words.push_back(argument < 0 ? 0 : words.at(static_cast<std::size_t>(argument)));
  launch.arguments.emplace_back(std::move(pointers));
  return launch;
}

bool uses_region(const NotedLaunch& launch, Region region) {
  return std::ranges::any_of(launch.arguments, [&](const NotedArgument& argument) {
    return std::ranges::any_of(words_of(argument), [&](std::uint64_t word) {
      return word != 0 && decode_address(word).region == region;
    });
  });
}

}  // namespace sylvite::cuda
