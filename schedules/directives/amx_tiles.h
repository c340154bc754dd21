#pragma once
// Products of bf16, and of bytes, by AMX, x86-64's matrix unit: a directive that is not Halide's own.

#include <Halide.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "schedules/schedule.h"

namespace sylvite {

/// stage.update(k).amx_tiles(): all loops of the update, as they are left when it is lowered, become tile
/// instructions. The update must be
///   c[...] += float(a[...]) * float(b[...])      a and b BFloat(16), c f32
///   c[...] += int32(a[...]) * int32(b[...])      a and b i8 or u8, c i32
/// in serial loops of constant extent, neither vectorised nor unrolled. How far a loop moves the three
/// places, in elements, tells what it is; loops of one iteration may be absent. A group is two bf16, or four
/// bytes:
/// - group: its extent, moves a and b by 1;
/// - groups: moves a by a group. The fold of a tile: 16 groups, or the most that divide them. The innermost
///   such loop, with those that go on where it ends;
/// - steps: move a and b, not c. More of the fold, in the order of the loops;
/// - columns: at most 16, moves c by 1 and b by a group;
/// - rows: moves c and a, not b. The innermost such loop, split into tiles of at most 16 rows, all alike: the
///   last one may overlap the one before;
/// - column tiles and row tiles: further loops that move c and b, or c and a.
/// So a is rows of neighbours along the fold, and b is what packing makes of groups: rows of 64 bytes, 16
/// columns of a group. Order matters among the loops of the fold only. All tiles of c, row tiles times column
/// tiles, stay in tile registers while the fold runs. Where registers suffice (2 x 2, 1 x 4, 4 x 1), every
/// tile of a and b is loaded once per step; 2 x 3 and 3 x 2 load two of five once more, from the L1, but
/// bring fewer bytes there for a product. Where the pure definition stores zeros right ahead of the update,
/// the registers start at zero and those stores are dropped; else they start with what c holds. Loops of the
/// update that hold more than the others, such as stages computed at them, stay around the tiles. c must be
/// kept in memory (MemoryType::Stack), not in registers.
/// Pros: several times the rate of vector products.
/// Cons: weights must be packed in groups; a fold of fewer than 8 groups, or fewer than 16 rows, leaves much
/// of a tile empty; with one row of a, vectors are as fast.
inline constexpr std::string_view amx_tiles_directive = "amx_tiles";

/// Tile registers that a block needs for c, and one each for a and b.
[[nodiscard]] constexpr int amx_registers(int row_tiles, int column_tiles) {
  return row_tiles * column_tiles + 2;
}
inline constexpr int amx_register_count = 8;
inline constexpr int amx_tile_rows = 16;
inline constexpr int amx_tile_columns = 16;  ///< of c
inline constexpr int amx_tile_groups = 16;   ///< of the fold
inline constexpr int amx_tile_depth = 32;    ///< elements of the fold, of bf16

/// How many of a fold's groups one tile takes: the most that divide them, at most 16.
[[nodiscard]] constexpr int amx_groups_in_tile(std::int64_t groups) {
  int most = amx_tile_groups;
  while (groups % most != 0) --most;
  return most;
}

/// Halide's call in lowered code: rows, bytes of a row, buffer, first byte (i64), bytes from row to row.
inline constexpr const char* amx_tile_load = "tile_load";

/// A tile of an operand as lowered code loads it.
struct AmxLoad {
  std::string name;
  Halide::Expr start;  ///< in elements
  int elements = 0;
  int element_bytes = 0;
};
/// Nothing for other calls, and for tiles whose rows do not follow each other in memory.
[[nodiscard]] std::optional<AmxLoad> dense_amx_load(const Halide::Internal::Call& call);

/// Whether lowered code multiplies tiles.
[[nodiscard]] bool has_amx_products(const Halide::Internal::Stmt& statement);

/// For the row of own_directives.h. The pass throws CompileError naming the loop or access that does not fit;
/// making it does when the target has no AMX.
void check_amx_tiles(const Algorithm& algorithm, const Decision& decision);
std::unique_ptr<Halide::Internal::IRMutator> amx_tiles_pass(const Algorithm& algorithm,
                                                            const Decision& decision,
                                                            const std::string& target);

}  // namespace sylvite
