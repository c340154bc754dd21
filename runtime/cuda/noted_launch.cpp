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

bool is_address(std::uint64_t word) {
  return word >> (offset_bits + number_bits) != 0;
}

SymbolicAddress decode_address(std::uint64_t word) {
  const auto region = static_cast<std::uint8_t>(word >> (offset_bits + number_bits));
  if (region < static_cast<std::uint8_t>(Region::weight) || region > static_cast<std::uint8_t>(Region::value))
    throw InternalError("a launch names {:#x}, which is no address of a region", word);
  return {static_cast<Region>(region),
          static_cast<std::uint32_t>(word >> offset_bits & ((1U << number_bits) - 1)),
          word & ((std::uint64_t{1} << offset_bits) - 1)};
}

NotedLaunch note_launch(const std::shared_ptr<const CudaObject>& object, const LaunchSpec& spec,
                        const std::vector<std::uint64_t>& words) {
  NotedLaunch launch;
  if (spec.library) {
    launch.library = {object, &*object->launch.library};
    launch.arguments.emplace_back(PointerArgument{words});
    return launch;
  }
  launch.image = {object, &object->image};
  launch.architecture = object->architecture;
  launch.function = spec.entry;
  launch.shape = spec.shape;
  const auto word_of = [&](int argument) -> std::uint64_t {
    if (argument < 0) return 0;
    if (static_cast<std::size_t>(argument) >= words.size())
      throw IoError("the compiled kernel {} has {} arguments and names number {}", spec.entry, words.size(),
                    argument);
    return words[static_cast<std::size_t>(argument)];
  };
  for (const CudaTensorMap& map : spec.maps) {
    const std::uint64_t word = word_of(map.argument);
    launch.arguments.emplace_back(MapArgument{map, word == 0 ? SymbolicAddress() : decode_address(word)});
  }
  PointerArgument pointers;
  for (const int argument : spec.pointers) pointers.words.push_back(word_of(argument));
  for (const std::int64_t number : spec.numbers) pointers.words.push_back(static_cast<std::uint64_t>(number));
  launch.arguments.emplace_back(std::move(pointers));
  return launch;
}

std::vector<SymbolicAddress> addresses_of(const NotedLaunch& launch) {
  std::vector<SymbolicAddress> addresses;
  for (const NotedArgument& argument : launch.arguments)
    for (const std::uint64_t word : words_of(argument))
      if (is_address(word)) addresses.push_back(decode_address(word));
  return addresses;
}

bool uses_region(const NotedLaunch& launch, Region region) {
  return std::ranges::any_of(addresses_of(launch),
                             [&](const SymbolicAddress& each) { return each.region == region; });
}

}  // namespace sylvite::cuda
