// out[batch, column, row] = x[batch, row, column], 16 bytes at a time on both sides. A thread turns squares of UNIT by UNIT
// elements in registers; a block's squares change places in shared memory, so that whole lines come and go.
//
// schedules/cuda/transpose.cpp writes these ahead of this text:
//   Element                   of 2 or 4 bytes
//   UNIT                      elements of 16 bytes; a divisor of ROWS and COLUMNS
//   ROWS, COLUMNS             of x
//   DOWN, ACROSS              squares of a block's tile: at least 8 down, and a multiple of 8
//   ROWS_FIRST                neighbouring blocks take tiles down the rows
//   STREAM_LOADS, STREAM_STORES   x or the result is the first to leave the L2 cache
//   Arguments                 out, x

constexpr int TILE_ROWS = DOWN * UNIT, TILE_COLUMNS = ACROSS * UNIT;
constexpr int TILES_DOWN = (ROWS + TILE_ROWS - 1) / TILE_ROWS;
constexpr int TILES_ACROSS = (COLUMNS + TILE_COLUMNS - 1) / TILE_COLUMNS;

/// Word w of line j of the turned square: elements j of lines 2w and 2w + 1, or of line w.
DEVICE void turn(const uint4 (&from)[8], uint4 (&to)[8]) {
  const u32* x = (const u32*)from;
  u32* y = (u32*)to;
#pragma unroll
  for (int j = 0; j < 8; j++) {
#pragma unroll
    for (int w = 0; w < 4; w++)
      y[j * 4 + w] = __byte_perm(x[2 * w * 4 + j / 2], x[(2 * w + 1) * 4 + j / 2], j % 2 ? 0x7632 : 0x5410);
  }
}
DEVICE void turn(const uint4 (&from)[4], uint4 (&to)[4]) {
  const u32* x = (const u32*)from;
  u32* y = (u32*)to;
#pragma unroll
  for (int j = 0; j < 4; j++) {
#pragma unroll
    for (int w = 0; w < 4; w++) y[j * 4 + w] = x[w * 4 + j];
  }
}

extern "C" __global__ void __launch_bounds__(DOWN* ACROSS) KERNEL(const Arguments arguments) {
  // Place p of a line holds square p ^ (its column among the squares): neither side has two accesses in a bank.
  __shared__ uint4 tile[TILE_COLUMNS][DOWN];
  const long long of_batch = blockIdx.x % (TILES_DOWN * TILES_ACROSS);
  const long long batch = blockIdx.x / (TILES_DOWN * TILES_ACROSS);
  const int first_row = (int)(ROWS_FIRST ? of_batch % TILES_DOWN : of_batch / TILES_ACROSS) * TILE_ROWS;
  const int first_column = (int)(ROWS_FIRST ? of_batch / TILES_DOWN : of_batch % TILES_ACROSS) * TILE_COLUMNS;
  const Element* x = arguments.x + batch * ROWS * COLUMNS;
  Element* out = arguments.out + batch * ROWS * COLUMNS;
  allow_next_kernel();
  wait_previous_kernels();
  {
    const int across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
    const int row = first_row + down * UNIT, column = first_column + across * UNIT;
    if (row < ROWS && column < COLUMNS) {
      uint4 loaded[UNIT], turned[UNIT];
#pragma unroll
      for (int i = 0; i < UNIT; i++) {
        const auto* from = (const uint4*)(x + (long long)(row + i) * COLUMNS + column);
        loaded[i] = STREAM_LOADS ? __ldcs(from) : __ldg(from);
      }
      turn(loaded, turned);
#pragma unroll
      for (int j = 0; j < UNIT; j++) tile[across * UNIT + j][down ^ (across & 7)] = turned[j];
    }
  }
  __syncthreads();
  const int down = threadIdx.x % DOWN, line = threadIdx.x / DOWN;
  const int row = first_row + down * UNIT;
#pragma unroll
  for (int j = 0; j < UNIT; j++) {
    const int of_tile = line + j * ACROSS, column = first_column + of_tile;
    if (row < ROWS && column < COLUMNS) {
      auto* to = (uint4*)(out + (long long)column * ROWS + row);
      const uint4 bits = tile[of_tile][down ^ (of_tile / UNIT & 7)];
      if constexpr (STREAM_STORES) __stcs(to, bits);
      else *to = bits;
    }
  }
}
