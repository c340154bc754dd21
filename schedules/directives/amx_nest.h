#pragma once
// What a nest of lowered loops means to AMX: the loops of a product, as tiles. Internal to schedules/.

#include <Halide.h>
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "schedules/directives/amx_tiles.h"

namespace sylvite::amx {

template <typename... Parts>
[[noreturn]] void refuse(fmt::format_string<Parts...> reason, Parts&&... parts) {
  throw CompileError("amx_tiles: {}", fmt::format(reason, std::forward<Parts>(parts)...));
}

struct Loop {
  std::string name;
  Halide::Expr min;
  int extent;
};

/// Loops, the outermost first, around one store.
struct Nest {
  std::vector<Loop> loops;
  std::string stored;  ///< the name of what is stored to
  Halide::Expr index;  ///< of the store, in the loops' variables
  Halide::Expr value;
};
/// Whether loops and lets are all that is around one store.
[[nodiscard]] bool is_nest(const Halide::Internal::Stmt& statement);
/// REQUIRES is_nest. Throws CompileError naming a loop that is not serial or of no constant extent.
[[nodiscard]] Nest read_nest(Halide::Internal::Stmt statement);

/// A place in memory: where the nest begins, and how far each loop moves it.
struct Access {
  std::string name;
  Halide::Expr start;
  std::vector<Halide::Expr> moves;  ///< of each loop of the nest
};

/// c += a * b
struct Product {
  Access c, a, b;
  Halide::Type left, right;  ///< elements of a and b: BFloat(16), or Int(8) or UInt(8)
  /// Neighbours along the fold that one instruction multiplies and adds to a sum: what fits 32 bits.
  [[nodiscard]] int group() const { return 32 / left.bits(); }
};
/// Throws CompileError.
[[nodiscard]] Product read_product(const Nest& nest);

/// Loops by number; absent ones have one iteration.
struct Roles {
  std::optional<std::size_t> groups, columns, rows;
  std::vector<std::size_t> steps, column_tiles, row_tiles;
  int group_count = 1;  ///< of the loop `groups`, and of steps that go on where it ends
  bool has_group = false;
};
/// Throws CompileError.
[[nodiscard]] Roles roles_of(const Nest& nest, const Product& product);

/// Where a tile begins: how far from the first in its operand, and in c.
struct TilePlace {
  Halide::Expr operand;
  Halide::Expr sum;
};

/// Tiles of c side by side, their operands, and the fold.
struct TileBlock {
  int rows = 1, columns = 1;
  std::vector<TilePlace> row_tiles, column_tiles;
  Halide::Expr row_stride_a = 0, row_stride_b = 0, row_stride_c = 0;  ///< in elements
  int groups = 1;          ///< of the whole fold, but for the steps
  int groups_in_tile = 1;  ///< the most that divide them
};
/// Throws CompileError when the tiles do not fit the registers.
[[nodiscard]] TileBlock block_of(const Nest& nest, const Product& product, const Roles& roles);

}  // namespace sylvite::amx
