// A convolution of groups, or of few channels, on the tensor cores. Groups are joined to units, whose filter has zeros between
// the groups: UNIT_IN channels that are read make UNIT_OUT of the result. A convolution of one group is one unit, whose
// channels are padded with zeros in shared memory. A block keeps the filters of its channels in shared memory and
// makes tiles of TILE_Z x TILE_Y x TILE_X pixels, TILE_Z frames of a volume, one after the other; while it multiplies, the copies of the next tile's windows are
// under way. The 16 rows of a product are pixels, read where their window has the tap (ldmatrix takes a row's address from
// each thread); the filter's rows are ordered so that a thread holds neighbouring channels of the result.
//
// Tensor cores multiply f32 in TF32. EXACT: every product is three, that of the numbers rounded to TF32 and those of what that
// leaves of one with the other. As tensor cores cut their sums, the first are added to the others of a slice by themselves.
// What rounding leaves is added apart from the numbers: there an infinity leaves NaN, which counts as nothing.
//
// schedules/cuda/grouped.cpp writes these ahead of this text:
//   Extents, extents_of, FRAMES, OUT_FRAMES, CHANNELS, TAPS_Z, TAPS_Y, TAPS_X, STRIDE_Z, ... PAD_X, OUTPUTS   of the convolution
//   GROUP_IN, GROUP_OUT, UNIT_IN, UNIT_OUT   channels of a group and of a unit: whole slices that are read, and multiples of 16
//   REAL_IN, REAL_OUT, UNITS_IN_ALL   channels of a unit without padding; units of the convolution
//   TILE_Z, TILE_Y, TILE_X, BLOCK_OUT, PARTS   pixels and channels of a block; blocks that share the tiles of the same channels
//   WARP_OUT, PIXELS          channels of a warp: 16 or 32; its pixels, in sixteens
//   VECTOR                    channels that a thread holds of a pixel: WARP_OUT / 4
//   UNROLL                    taps that are unrolled
//   EXACT                     see above
//   Arguments                 pointers: out, x, filter [unit][tap][channel of the result][channel], and what is read
//   finish(a, image, pixel, channel, x)   the work on VECTOR channels, and their store; images are all frames

constexpr int TAPS = TAPS_Z * TAPS_Y * TAPS_X, TILE = TILE_Z * TILE_Y * TILE_X;
constexpr int SPAN_Z = (TILE_Z - 1) * STRIDE_Z + (TAPS_Z - 1) * DILATION_Z + 1;
constexpr int SPAN_Y = (TILE_Y - 1) * STRIDE_Y + (TAPS_Y - 1) * DILATION_Y + 1;
constexpr int SPAN_X = (TILE_X - 1) * STRIDE_X + (TAPS_X - 1) * DILATION_X + 1;
constexpr int ROWS = BLOCK_OUT < UNIT_OUT ? BLOCK_OUT : UNIT_OUT;  // of a unit's filter, in a block
constexpr int UNITS = BLOCK_OUT / ROWS, BLOCK_IN = UNITS * UNIT_IN,
              STRIPS = UNITS_IN_ALL * UNIT_OUT / BLOCK_OUT;
constexpr int WARPS_DOWN = (TILE + 16 * PIXELS - 1) / (16 * PIXELS), WARPS_ACROSS = BLOCK_OUT / WARP_OUT;
constexpr int THREADS = 32 * WARPS_DOWN * WARPS_ACROSS;
constexpr int EIGHTS = WARP_OUT / 8;
constexpr int ELEMENT_BYTES = sizeof(Element), PIECE = 16 / ELEMENT_BYTES;
constexpr int SLICE = 32 / ELEMENT_BYTES;  // channels of a product
// Rows are an odd number of 16 bytes apart, so that eight of them lie in different banks.
constexpr int PITCH = ELEMENT_BYTES * BLOCK_IN + 16, FILTER_PITCH = ELEMENT_BYTES * UNIT_IN + 16;
constexpr int FILTER_BYTES = UNITS * TAPS * ROWS * FILTER_PITCH,
              WINDOW_BYTES = SPAN_Z * SPAN_Y * SPAN_X * PITCH;
constexpr bool SKIPS = REAL_IN > GROUP_IN&& UNIT_OUT > WARP_OUT;  // a warp meets only some of a unit's groups

/// Tiles of an image or a volume along its sides.
struct Tiles {
  static constexpr int z = (OUT_FRAMES + TILE_Z - 1) / TILE_Z;
  int y, x;
  DEVICE explicit Tiles(const Extents& e)
      : y((e.out_lines + TILE_Y - 1) / TILE_Y), x((e.out_columns + TILE_X - 1) / TILE_X) {}
};
/// Where a tile of pixels begins.
struct Tile {
  int image, frame, line, column;
  DEVICE Tile(const Tiles& tiles, int number)
      : image(number / (tiles.z * tiles.y * tiles.x)),
        frame(number / (tiles.y * tiles.x) % tiles.z * TILE_Z),
        line(number / tiles.x % tiles.y * TILE_Y),
        column(number % tiles.x * TILE_X) {}
};
/// Where pixel `number` of a tile of these lines and columns lies, in elements of a tile of others, `apart` elements each.
template <int LINES, int COLUMNS, int TO_LINES, int TO_COLUMNS>
DEVICE int place_in(int number, int apart_z, int apart_y, int apart_x) {
  const int z = number / (LINES * COLUMNS), y = number / COLUMNS % LINES, x = number % COLUMNS;
  return (z * apart_z * TO_LINES + y * apart_y) * TO_COLUMNS + x * apart_x;
}

/// The filter of a block: a row of a product is channel 2 * EIGHTS * (row / 2) + row % 2 of the warp's, and two further for
/// each eight rows.
DEVICE void copy_filter(const Element* filter, int first_out, u32 to) {
  constexpr int PIECES = UNIT_IN / PIECE;
  const int unit = first_out / UNIT_OUT, first_row = first_out % UNIT_OUT;
  for (int i = threadIdx.x; i < UNITS * TAPS * ROWS * PIECES; i += THREADS) {
    const int piece = i % PIECES, row = i / PIECES % ROWS, tap = i / (PIECES * ROWS);
    const int of_warp = row % WARP_OUT, eight = of_warp % (2 * EIGHTS) / 2;
    const int place = row - of_warp + 8 * eight + of_warp / (2 * EIGHTS) * 2 + of_warp % 2;
    const bool is_real = first_row + row < REAL_OUT && PIECE * piece < REAL_IN;
    const long long at = ((long long)(unit * TAPS + tap) * REAL_OUT + first_row + row) * REAL_IN + PIECE * piece;
    copy_later(to + (tap * ROWS + place) * FILTER_PITCH + 16 * piece, filter + (is_real ? at : 0), is_real);
  }
}

/// What the windows of a tile meet, with zeros beyond the image.
DEVICE void copy_windows(const Extents& e, const Element* x, int tile_number, int first_in, u32 to) {
  constexpr int PIECES = BLOCK_IN / PIECE;
  const Tile tile(Tiles(e), tile_number);
  const int first_frame = tile.frame * STRIDE_Z - PAD_Z;
  const int first_line = tile.line * STRIDE_Y - PAD_Y, first_column = tile.column * STRIDE_X - PAD_X;
  const Element* images = x + (long long)tile.image * FRAMES * (e.lines * e.columns) * CHANNELS + first_in;
  for (int i = threadIdx.x; i < SPAN_Z * SPAN_Y * SPAN_X * PIECES; i += THREADS) {
    const int piece = i % PIECES, pixel = i / PIECES, frame = first_frame + pixel / (SPAN_Y * SPAN_X);
    const int line = first_line + pixel / SPAN_X % SPAN_Y, column = first_column + pixel % SPAN_X;
    const bool is_inside = (unsigned)frame < (unsigned)FRAMES && (unsigned)line < (unsigned)e.lines &&
                           (unsigned)column < (unsigned)e.columns &&
                           (REAL_IN == UNIT_IN || PIECE * piece < REAL_IN);
    const long long place = (frame * e.lines + line) * e.columns + column;
    const Element* from = images + (is_inside ? place * CHANNELS + PIECE * piece : 0);
    copy_later(to + pixel * PITCH + 16 * piece, from, is_inside);
  }
}

/// Pixel of a tile, in the order of the products' rows; rows beyond the tile repeat its last.
DEVICE int pixel_at(int row) {
  return min(row, TILE - 1);
}

/// Tensor cores cut f32 where it should be rounded.
DEVICE u32 rounded(u32 x) {
  if constexpr (ELEMENT_BYTES == 2 || EXACT) return x;
  return __float_as_uint(nearest_tf32(__uint_as_float(x)));
}

typedef float Sums[PIXELS][EIGHTS][4];
typedef u32 Rights[EIGHTS][2];

// A slice of the channels of 16 pixels, by those of the filter.
struct Plain {
  DEVICE void begin(Rights&) {}
  DEVICE void multiply_slice(int, const u32 (&left)[4], const Rights& rights, float (&sums)[EIGHTS][4]) {
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) multiply(Element{}, sums[j], left, rights[j][0], rights[j][1]);
  }
  DEVICE void end(Sums&) {}
};
struct Exact {
  Sums cut = {};
  Rights rests;

  DEVICE static u32 split(u32& x) {
    const float near = nearest_tf32(__uint_as_float(x)), rest = rest_of(__uint_as_float(x), near);
    x = __float_as_uint(near);
    return __float_as_uint(rest);
  }
  DEVICE void begin(Rights& rights) {
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) rests[j][0] = split(rights[j][0]), rests[j][1] = split(rights[j][1]);
  }
  DEVICE void multiply_slice(int pixels, u32 (&left)[4], const Rights& rights, float (&sums)[EIGHTS][4]) {
    u32 left_rests[4];
#pragma unroll
    for (int e = 0; e < 4; e++) left_rests[e] = split(left[e]);
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) {
      float given[4] = {};
      multiply(f32{}, given, left, rights[j][0], rights[j][1]);
      multiply(f32{}, cut[pixels][j], left_rests, rights[j][0], rights[j][1]);
      multiply(f32{}, cut[pixels][j], left, rests[j][0], rests[j][1]);
#pragma unroll
      for (int e = 0; e < 4; e++) sums[j][e] += given[e];
    }
  }
  DEVICE void end(Sums& sums) {
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
#pragma unroll
      for (int j = 0; j < EIGHTS; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) sums[i][j][e] += number_or_none(cut[i][j][e]);
  }
};
template <bool>
struct ProductsOf {
  typedef Plain Type;
};
template <>
struct ProductsOf<true> {
  typedef Exact Type;
};

DEVICE void multiply_windows(u32 windows, u32 filter, int warp_down, int first_out, Sums& sums) {
  const int lane = threadIdx.x % 32, unit = first_out / ROWS, first_row = first_out % ROWS;
  u32 a_rows[PIXELS];
#pragma unroll
  for (int i = 0; i < PIXELS; i++) {
    const int pixel = pixel_at((warp_down * PIXELS + i) * 16 + lane % 16);
    a_rows[i] = windows +
                place_in<TILE_Y, TILE_X, SPAN_Y, SPAN_X>(pixel, STRIDE_Z, STRIDE_Y, STRIDE_X) * PITCH +
                unit * UNIT_IN * ELEMENT_BYTES + lane / 16 * 16;
  }
  const u32 b_row =
      filter + (unit * TAPS * ROWS + first_row + lane / 16 * 8 + lane % 8) * FILTER_PITCH + lane / 8 % 2 * 16;
  int first = 0, last = UNIT_IN;
  if constexpr (SKIPS) {
    const int row = blockIdx.x % STRIPS * BLOCK_OUT % UNIT_OUT + first_row;
    first = row / GROUP_OUT * GROUP_IN / SLICE * SLICE;
    last = (((row + WARP_OUT - 1) / GROUP_OUT + 1) * GROUP_IN + SLICE - 1) / SLICE * SLICE;
  }
  typename ProductsOf<EXACT>::Type products;
#pragma unroll UNROLL
  for (int tap = 0; tap < TAPS; tap++) {
    const int apart =
        place_in<TAPS_Y, TAPS_X, SPAN_Y, SPAN_X>(tap, DILATION_Z, DILATION_Y, DILATION_X) * PITCH;
#pragma unroll
    for (int depth = first; depth < last; depth += SLICE) {
      Rights rights;
#pragma unroll
      for (int j = 0; j < EIGHTS; j += 2) {
        u32 b[4];
        load_matrices<false, 4>(b_row + (tap * ROWS + 8 * j) * FILTER_PITCH + ELEMENT_BYTES * depth, b);
        rights[j][0] = rounded(b[0]), rights[j][1] = rounded(b[1]);
        rights[j + 1][0] = rounded(b[2]), rights[j + 1][1] = rounded(b[3]);
      }
      products.begin(rights);
#pragma unroll
      for (int i = 0; i < PIXELS; i++) {
        u32 a[4];
        load_matrices<false, 4>(a_rows[i] + apart + ELEMENT_BYTES * depth, a);
#pragma unroll
        for (int e = 0; e < 4; e++) a[e] = rounded(a[e]);
        products.multiply_slice(i, a, rights, sums[i]);
      }
    }
  }
  products.end(sums);
}

DEVICE void store_tile(const Arguments& arguments, int tile_number, int warp_down, int first_out,
                       const Sums& sums) {
  const int lane = threadIdx.x % 32;
  const Extents e = extents_of(arguments);
  const Tile tile(Tiles(e), tile_number);
#pragma unroll
  for (int i = 0; i < PIXELS; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int pixel = (warp_down * PIXELS + i) * 16 + 8 * half + lane / 4;
      const int frame = tile.frame + pixel / (TILE_Y * TILE_X);
      const int line = tile.line + pixel / TILE_X % TILE_Y, column = tile.column + pixel % TILE_X;
      if (pixel >= TILE || frame >= OUT_FRAMES || line >= e.out_lines || column >= e.out_columns) continue;
      float x[VECTOR];
#pragma unroll
      for (int j = 0; j < EIGHTS; j++) {
        x[2 * j] = sums[i][j][2 * half];
        x[2 * j + 1] = sums[i][j][2 * half + 1];
      }
      const int channel = first_out + lane % 4 * VECTOR;
      if (REAL_OUT == UNIT_OUT || channel < OUTPUTS)
        finish(arguments, tile.image * OUT_FRAMES + frame, line * e.out_columns + column, channel, x);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  extern __shared__ __align__(128) u8 memory[];
  const u32 filter = shared_address(memory), windows = filter + FILTER_BYTES;
  const Extents e = extents_of(arguments);
  const int tiles = e.images * Tiles::z * Tiles(e).y * Tiles(e).x;
  const int strip = blockIdx.x % STRIPS, part = blockIdx.x / STRIPS;
  const int first_in = strip * BLOCK_OUT / UNIT_OUT * UNIT_IN;
  const int warp = threadIdx.x / 32, warp_down = warp % WARPS_DOWN, warp_out = warp / WARPS_DOWN * WARP_OUT;
  copy_filter(arguments.filter, strip * BLOCK_OUT, filter);  // a weight: no kernel before writes it
  allow_next_kernel();
  wait_previous_kernels();
  if (part < tiles) copy_windows(e, arguments.x, part, first_in, windows);
  copies_commit();
  int now = 0;
  for (int tile = part; tile < tiles; tile += PARTS, now ^= 1) {
    if (tile + PARTS < tiles)
      copy_windows(e, arguments.x, tile + PARTS, first_in, windows + (now ^ 1) * WINDOW_BYTES);
    copies_commit();
    copies_wait<1>();
    __syncthreads();
    Sums sums = {};
    multiply_windows(windows + now * WINDOW_BYTES, filter, warp_down, warp_out, sums);
    store_tile(arguments, tile, warp_down, strip * BLOCK_OUT + warp_out, sums);
    __syncthreads();  // the copies of the tile after the next may overwrite what was read
  }
}
