#pragma once
// Launches as plain data, before there is memory: what to launch, and on which addresses, named by region. A
// program turns them into launches of its own memory, and the exporter writes them into tables. Nothing here
// needs a driver.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schedules/cuda/template.h"

namespace sylvite::cuda {

/// Memory that a program is made of. `weight`, `input` and `output` are many, told apart by number.
enum class Region : std::uint8_t { weight = 1, arena, scratch, input, output };

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
/// Throws InternalError for a word that encode_address cannot have made.
[[nodiscard]] SymbolicAddress decode_address(std::uint64_t word);

/// A tensor map parameter: the map, and where the tensor lies. Unused when map.argument is -1.
struct MapArgument {
  CudaTensorMap map;
  SymbolicAddress address;
};
/// One parameter made of addresses: a pointer, or a struct of pointers. An element may be null.
struct PointerArgument {
  std::vector<std::uint64_t> words;  ///< of encode_address; 0 is null
};
/// A parameter that is plain bytes.
using BytesArgument = std::vector<std::byte>;
using NotedArgument = std::variant<BytesArgument, PointerArgument, MapArgument>;

struct NotedLaunch {
  std::string_view image;    ///< a cubin or PTX; lives as long as what it was loaded from
  std::string architecture;  ///< of a cubin, e.g. "sm_90a"; empty for PTX
  std::string function;
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned cluster = 1;  ///< consecutive blocks
  unsigned shared_bytes = 0;
  bool programmatic = false;  ///< see CudaTemplate
  std::vector<NotedArgument> arguments;
  /// What a vendor's library launches instead: the one argument is the pointers of the kernel's inputs and
  /// its output.
  std::shared_ptr<const LibraryKernel> library;
};

/// A template's launch on arguments at `words` (encode_address): inputs of its body, then its output.
[[nodiscard]] NotedLaunch note_template(const CudaTemplate& text, std::string_view image,
                                        const std::vector<std::uint64_t>& words);

/// Whether a launch reads or writes in `region`.
[[nodiscard]] bool uses_region(const NotedLaunch& launch, Region region);

}  // namespace sylvite::cuda
