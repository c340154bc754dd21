// out[batch, column, row] = x[batch, row, column], a vector of UNIT elements at a time on both sides. A thread turns squares
// of UNIT by UNIT elements in registers; a block's squares change places in shared memory, so that whole lines come and go.
//
// schedules/cuda/transpose.cpp writes these ahead of this text:
//   Element                   of 2 or 4 bytes, the narrower of both sides' bits; with work, the result's
//   Unit                      an unsigned type of UNIT elements, of at most 16 bytes
//   From, To                  of x and of the result: Element, or one is f32 and the other Narrow, of 16 bits, which is f32 otherwise
//   WORKS, work(x)            whether there is work on each number, which is one of From, and makes what To takes
//   UNIT                      a divisor of rows and columns
//   Extents, extents_of       rows, columns: of x
//                             pitch, offset: elements from a row of x to the next, and ahead of the first: multiples of UNIT
//                             out_pitch: elements from a column of the result to the next: a multiple of UNIT
//   add_batch                 adds to both places where a batch begins there: multiples of UNIT
//   DOWN, ACROSS              squares of a block's tile: powers of two
//   PER_THREAD                squares that a thread turns, a divisor of DOWN and ACROSS
//   ROWS_FIRST                neighbouring blocks take tiles down the rows
//   STREAM_LOADS, STREAM_STORES   x or the result is the first to leave the L2 cache
//   Arguments                 out, x, and the extents that the text does not fix

constexpr int TILE_ROWS = DOWN * UNIT, TILE_COLUMNS = ACROSS * UNIT;
constexpr int LINE = 128 / sizeof(Unit), SWIZZLE = (LINE < DOWN ? LINE : DOWN) - 1;

// A store of f32 takes a part of a unit.
constexpr int STORED = sizeof(To) > sizeof(Element) && UNIT > 4 ? 4 : UNIT, PARTS = UNIT / STORED;

union Line {
  Unit bits;
  Element of[UNIT];
};

/// Element i of line j becomes element j of line i.
DEVICE void turn(const Line (&from)[UNIT], Line (&to)[UNIT]) {
  if constexpr (UNIT == 8) {
    const u32* x = (const u32*)from;
    u32* y = (u32*)to;
#pragma unroll
    for (int j = 0; j < 8; j++) {
#pragma unroll
      for (int w = 0; w < 4; w++)
        y[j * 4 + w] = __byte_perm(x[2 * w * 4 + j / 2], x[(2 * w + 1) * 4 + j / 2], j % 2 ? 0x7632 : 0x5410);
    }
  } else {
#pragma unroll
    for (int j = 0; j < UNIT; j++) {
#pragma unroll
      for (int i = 0; i < UNIT; i++) to[j].of[i] = from[i].of[j];
    }
  }
}

template <class T>
DEVICE Unit load_unit(const T* from) {
  if constexpr (WORKS) {
    float x[UNIT];
    load_vector<STREAM_LOADS>(from, x);
#pragma unroll
    for (int i = 0; i < UNIT; i++) x[i] = work(x[i]);
    Line line;
    store_vector((To*)&line, x);
    return line.bits;
  } else if constexpr (sizeof(T) == sizeof(Element)) {
    return STREAM_LOADS ? __ldcs((const Unit*)from) : __ldg((const Unit*)from);
  } else {
    float x[UNIT];
    load_vector<STREAM_LOADS>(from, x);
    Line line;
    store_vector((Narrow*)&line, x);
    return line.bits;
  }
}
template <class T>
DEVICE void store_part(T* to, const Unit* unit, int part) {
  union {
    typename Bits<STORED * sizeof(Element)>::Type bits;
    Narrow of[STORED];
  } read;
  read.bits = ((const decltype(read.bits)*)unit)[part];
  if constexpr (sizeof(T) > sizeof(Element)) {
    float x[STORED];
#pragma unroll
    for (int i = 0; i < STORED; i++) x[i] = to_float(read.of[i]);
    store_vector<STREAM_STORES>(to, x);
  } else if constexpr (STREAM_STORES) {
    __stcs((decltype(read.bits)*)to, read.bits);
  } else {
    *(decltype(read.bits)*)to = read.bits;
  }
}

extern "C" __global__ void __launch_bounds__(DOWN* ACROSS / PER_THREAD) KERNEL(const Arguments arguments) {
  // Place p of a line holds square p ^ (its column among the squares): neither side has two accesses in a bank.
  __shared__ Unit tile[TILE_COLUMNS][DOWN];
  const Extents e = extents_of(arguments);
  const u32 down_all = (e.rows + TILE_ROWS - 1) / TILE_ROWS, across_all = (e.columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const u32 of_batch = blockIdx.x % (down_all * across_all), batch = blockIdx.x / (down_all * across_all);
  const int first_row = (int)(ROWS_FIRST ? of_batch % down_all : of_batch / across_all) * TILE_ROWS;
  const int first_column = (int)(ROWS_FIRST ? of_batch / down_all : of_batch % across_all) * TILE_COLUMNS;
  long long x_at = e.offset, out_at = 0;
  add_batch(e, batch, x_at, out_at);
  const From* x = arguments.x + x_at;
  To* out = arguments.out + out_at;
  allow_next_kernel();
  wait_previous_kernels();
  const int across = threadIdx.x % ACROSS, from_column = first_column + across * UNIT;
#pragma unroll
  for (int k = 0; k < PER_THREAD; k++) {
    const int down = threadIdx.x / ACROSS + k * (DOWN / PER_THREAD), row = first_row + down * UNIT;
    if (row < e.rows && from_column < e.columns) {
      Line loaded[UNIT], turned[UNIT];
#pragma unroll
      for (int i = 0; i < UNIT; i++) loaded[i].bits = load_unit(x + (long long)(row + i) * e.pitch + from_column);
      turn(loaded, turned);
#pragma unroll
      for (int j = 0; j < UNIT; j++) tile[across * UNIT + j][down ^ (across & SWIZZLE)] = turned[j].bits;
    }
  }
  __syncthreads();
  const int part = threadIdx.x % PARTS, down = threadIdx.x / PARTS % DOWN, line = threadIdx.x / (PARTS * DOWN);
  const int row = first_row + down * UNIT;
#pragma unroll
  for (int j = 0; j < UNIT * PER_THREAD * PARTS; j++) {
    const int of_tile = line + j * (ACROSS / PER_THREAD / PARTS), column = first_column + of_tile;
    if (row < e.rows && column < e.columns)
      store_part(out + (long long)column * e.out_pitch + row + part * STORED, &tile[of_tile][down ^ (of_tile / UNIT & SWIZZLE)],
                 part);
  }
}
