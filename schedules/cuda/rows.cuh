// Rows in registers: of the templates that keep each row's columns in its THREADS threads, ITEMS times VECTOR neighbours each, and
// take ROWS_OF_BLOCK rows a block. EXACT: all of them have columns.

constexpr int WARPS = THREADS < 32 ? 1 : THREADS / 32;  // of a row
constexpr int LANES = THREADS < 32 ? THREADS : 32;      // of a warp, for a row: short rows share one

DEVICE bool is_inside(int columns, int thread, int item) {
  return EXACT || (item * THREADS + thread) * VECTOR < columns;
}

DEVICE float warp_sum(float x) {
#pragma unroll
  for (int lanes = LANES / 2; lanes > 0; lanes /= 2) x += __shfl_xor_sync(~0u, x, lanes);
  return x;
}

/// Two numbers of every warp of a row, for all its threads; `parts` has a place for every warp of the block.
struct OfWarps {
  float2 all[WARPS];
  DEVICE OfWarps(float2 own, float2* parts) {
    if constexpr (WARPS == 1) {
      all[0] = own;
    } else {
      const int warp = threadIdx.x / 32;
      if (threadIdx.x % 32 == 0) parts[warp] = own;
      __syncthreads();
#pragma unroll
      for (int i = 0; i < WARPS; i++) all[i] = parts[warp / WARPS * WARPS + i];
    }
  }
};
