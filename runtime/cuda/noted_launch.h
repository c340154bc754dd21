#pragma once
// Launches as plain data, before there is memory: what to launch, and on which addresses, named by region. A
// program turns them into launches of its own memory, and the exporter writes them into tables. Nothing here
// needs a driver.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "schedules/cuda/object.h"

namespace sylvite::cuda {

/// Memory that a program is made of. `weight`, `input`, `output` and `value` are many, told apart by number. A value is a part of the
/// arena, or lies elsewhere.
enum class Region : std::uint8_t { weight = 1, arena, scratch, input, output, state, value };

/// Bytes in a region.
struct SymbolicAddress {
  Region region = Region::arena;
  std::uint32_t number = 0;
  std::uint64_t offset = 0;
  bool operator==(const SymbolicAddress&) const = default;
};

/// The same in one word, as compiled host code passes it along: 8 bits of region, 20 of number, 36 of offset.
/// Never 0. Throws UnsupportedError when number or offset does not fit.
[[nodiscard]] std::uint64_t encode_address(const SymbolicAddress& address);
/// Whether a word is one of encode_address; else it is a plain number below 2^56, 0 among them.
[[nodiscard]] bool is_address(std::uint64_t word);
/// Throws InternalError for a word that encode_address cannot have made.
[[nodiscard]] SymbolicAddress decode_address(std::uint64_t word);

/// A tensor map parameter: the map, and where the tensor lies. Unused when map.argument is -1.
struct MapArgument {
  CudaTensorMap map;
  SymbolicAddress address;
};
/// One parameter made of addresses: a pointer, or a struct of pointers and of numbers of 64 bits.
struct PointerArgument {
  std::vector<std::uint64_t> words;  ///< of encode_address, or numbers; 0 is null
};
/// A parameter that is plain bytes.
using BytesArgument = std::vector<std::byte>;
using NotedArgument = std::variant<BytesArgument, PointerArgument, MapArgument>;

/// Machine code of the device (a cubin) or PTX. Launches of one image share it.
using Image = std::shared_ptr<const std::string>;

struct NotedLaunch {
  Image image;
  std::string architecture;  ///< of a cubin, e.g. "sm_90a"; empty for PTX
  std::string function;
  LaunchShape shape;
  std::vector<NotedArgument> arguments;
  /// What a vendor's library launches instead: the one argument is the pointers of the kernel's inputs and
  /// its output. Launches of one call share it.
  std::shared_ptr<const LibraryCall> library;
};

/// The launch `spec` of a compiled kernel, its own or that of an open one at the sizes of a run, on arguments at `words`
/// (encode_address): inputs of its body, then its output. Throws IoError when the launch names an argument that there is not.
[[nodiscard]] NotedLaunch note_launch(const std::shared_ptr<const CudaObject>& object, const LaunchSpec& spec,
                                      const std::vector<std::uint64_t>& words);

/// The addresses that the launch names.
[[nodiscard]] std::vector<SymbolicAddress> addresses_of(const NotedLaunch& launch);
/// Whether a launch reads or writes in `region`.
[[nodiscard]] bool uses_region(const NotedLaunch& launch, Region region);

}  // namespace sylvite::cuda
