#include "schedules/spaces/register_tile.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace sylvite {
namespace {

std::int64_t vectors_per_panel(const Machine& machine, const RegisterTile& tile) {
  return std::max<std::int64_t>(1, tile.panel_floats / machine.vector_floats);
}

}  // namespace

std::string product_refusal(const Machine& machine, DType element) {
  return element == DType::bf16 && !machine.bf16_products ? "the processor has no products of bf16" : "";
}

bool has_small_tiles(const Machine& machine) {
  return machine.vector_registers < 32;
}

bool widens_bytes(DType element, const Machine& machine) {
  return element == DType::i8 && (!machine.bf16_products || has_small_tiles(machine));
}

bool fits_registers(const Machine& machine, const RegisterTile& tile) {
  const std::int64_t panel_vectors = tile.panels * vectors_per_panel(machine, tile);
  return tile.rows * panel_vectors + panel_vectors + 1 <= machine.vector_registers;
}

double step_cycles(const Machine& machine, const RegisterTile& tile) {
  const auto panel_vectors = static_cast<double>(tile.panels * vectors_per_panel(machine, tile));
  const auto rows = static_cast<double>(tile.rows);
  const double latency = has_small_tiles(machine) ? 10 : 5;  // of a chain of dependent multiply-adds
  constexpr double overhead = 0.4;                           // loop control and addresses
  const double multiply_adds = rows * panel_vectors;
  const double loads = rows + panel_vectors;  // what is read together with its product is a load, too
  return std::max({multiply_adds, loads, latency}) + overhead;
}

double wait_for_l2(const Machine& machine, const RegisterTile& tile) {
  constexpr double vector_cycles = 3;
  const auto vectors = static_cast<double>(tile.panels * vectors_per_panel(machine, tile));
  return std::max(0.0, vector_cycles * vectors - step_cycles(machine, tile));
}

double tiled_cycles(const Machine& machine, const RegisterTile& tile, double rows_tiles, double panel_tiles,
                    double steps) {
  const double epilogue = 6.0 * static_cast<double>(tile.rows * tile.panels) + 20.0;
  return rows_tiles * panel_tiles * (steps * step_cycles(machine, tile) + epilogue);
}

double imbalance(double tasks, int threads) {
  return std::ceil(tasks / threads) * threads / tasks;
}

std::int64_t tiles_in_task(std::int64_t tiles, std::int64_t least_parts) {
  const std::int64_t most = std::max<std::int64_t>(1, tiles / least_parts);
  for (std::int64_t count = most; 2 * count >= most; --count)
    if (tiles % count == 0) return count;
  const std::int64_t wide = ceil_div(tiles, least_parts);
  return ceil_div(tiles, wide) >= least_parts ? wide : most;
}

}  // namespace sylvite
