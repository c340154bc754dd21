// out[image, line, column, channel] = finish(sum over taps of x * filter, or the largest or the mean of the window's x), each
// channel for itself. A thread makes TILE_Y x TILE_X neighbouring pixels of VECTOR channels in registers: it walks the lines of
// its window once, and each line serves every tap and every pixel that it meets. Lines that windows of neighbours share come
// from the L1 cache.
//
// schedules/cuda/depthwise.cpp writes these ahead of this text:
//   FRAMES, CHANNELS, OUT_FRAMES, TAPS_Z, TAPS_Y, TAPS_X, STRIDE_Z, ... PAD_X   of the convolution
//   Extents, extents_of       images, lines, columns, out_lines, out_columns
//   VECTOR, TILE_Y, TILE_X    of a thread; VECTOR divides CHANNELS
//   LANES, POSITIONS          vectors of channels, and tiles of pixels, of a block
//   FOLD                      PRODUCTS, LARGEST or MEAN, whose count has padding or not (COUNTS_PADDING; PAD_AFTER_Z, ...)
//   UNROLL                    lines of a window that are unrolled
//   SEGMENT                   taps of a line that a thread holds at once: windows longer than that are walked in segments
//   FILTER_BY_CHANNEL         the filter lies as [channel][tap], and comes into shared memory as [tap][channel]
//   Arguments                 pointers: out, x, filter [tap][channel] of PRODUCTS, and what is read
//   finish(a, image, pixel, channel, x)   the work on VECTOR channels, and their store

// Pixels of a tile are STEP apart, and so are the lines and columns that it walks: those of dilated windows meet the same ones.
constexpr int STEP_Y = STRIDE_Y == 1 ? DILATION_Y : 1, STEP_X = STRIDE_X == 1 ? DILATION_X : 1;
constexpr int APART_Y = DILATION_Y / STEP_Y, APART_X = DILATION_X / STEP_X;  // neighbouring taps, in steps
constexpr int SPAN_Y = (TILE_Y - 1) * STRIDE_Y + (TAPS_Y - 1) * APART_Y + 1;
constexpr int SPAN_X = (TILE_X - 1) * STRIDE_X + (SEGMENT - 1) * APART_X + 1;
constexpr int VECTORS = CHANNELS / VECTOR, STRIPS = (VECTORS + LANES - 1) / LANES;

/// What a window begins with, and padding counts as.
DEVICE float start() {
  return FOLD == LARGEST ? __int_as_float(0xff800000) : 0.f;
}

DEVICE float fold(float sum, float x, float w) {
  if constexpr (FOLD == PRODUCTS) return fmaf(x, w, sum);
  if constexpr (FOLD == MEAN) return sum + x;
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(sum), "f"(x));
  return r;
}

/// Taps of a window that begins at `first` which lie in [low, high).
template <int TAPS, int DILATION>
DEVICE int taps_between(int first, int low, int high) {
  const int from = max((low - first + DILATION - 1) / DILATION, 0);
  const int to = high <= first ? 0 : min((high - 1 - first) / DILATION + 1, TAPS);
  return max(to - from, 0);
}
DEVICE float mean_factor(const Extents& e, int frame, int line, int column) {
  constexpr int BEFORE_Z = COUNTS_PADDING ? PAD_Z : 0, AFTER_Z = COUNTS_PADDING ? PAD_AFTER_Z : 0;
  constexpr int BEFORE_Y = COUNTS_PADDING ? PAD_Y : 0, AFTER_Y = COUNTS_PADDING ? PAD_AFTER_Y : 0;
  constexpr int BEFORE_X = COUNTS_PADDING ? PAD_X : 0, AFTER_X = COUNTS_PADDING ? PAD_AFTER_X : 0;
  const int count = taps_between<TAPS_Z, DILATION_Z>(frame, -BEFORE_Z, FRAMES + AFTER_Z) *
                    taps_between<TAPS_Y, DILATION_Y>(line, -BEFORE_Y, e.lines + AFTER_Y) *
                    taps_between<TAPS_X, DILATION_X>(column, -BEFORE_X, e.columns + AFTER_X);
  return 1.f / (float)max(count, 1);
}

/// The block's channels of a filter that lies by channels, as [tap][channel].
DEVICE const Element* stage_filter(const Element* filter) {
  constexpr int WIDTH = LANES * VECTOR, TAPS = TAPS_Z * TAPS_Y * TAPS_X;
  __shared__ __align__(16) Element staged[FILTER_BY_CHANNEL ? TAPS * WIDTH : 1];
  const int first = blockIdx.x % STRIPS * WIDTH;
  for (int i = threadIdx.x; i < TAPS * WIDTH; i += LANES * POSITIONS)
    if (first + i / TAPS < CHANNELS) staged[i % TAPS * WIDTH + i / TAPS] = filter[first * TAPS + i];
  __syncthreads();
  return staged;
}
DEVICE void load_filter(const Element* from, float (&w)[VECTOR]) {
  if constexpr (FILTER_BY_CHANNEL) {
#pragma unroll
    for (int j = 0; j < VECTOR; j++) w[j] = to_float(from[j]);
  } else {
    load_vector(from, w);
  }
}

/// Tiles that cover an extent: STEP of them, one beside the other, for each STEP * TILE pixels.
template <int TILE, int STEP>
DEVICE int tiles_along(int extent) {
  return (extent + STEP * TILE - 1) / (STEP * TILE) * STEP;
}
template <int TILE, int STEP>
DEVICE int first_of_tile(int tile) {
  return tile / STEP * (STEP * TILE) + tile % STEP;
}

typedef float Sums[TILE_Y][TILE_X][VECTOR];

// The part of the windows that lies in one frame, whose taps `filter` begins with, and in the segment that begins with the tap
// `first` of a line.
DEVICE void fold_segment(const Extents& e, const Element* pixels, const Element* filter, int line, int column, int first,
                         Sums& sum) {
#pragma unroll UNROLL
  for (int y = 0; y < SPAN_Y; y++) {
    const int met = line + y * STEP_Y;
    if ((unsigned)met >= (unsigned)e.lines) continue;
    const Element* from = pixels + (long long)met * e.columns * CHANNELS;
    float x[SPAN_X][VECTOR];
#pragma unroll
    for (int i = 0; i < SPAN_X; i++) {
      if ((unsigned)(column + i * STEP_X) < (unsigned)e.columns) {
        load_vector(from + (column + i * STEP_X) * CHANNELS, x[i]);
      } else {
#pragma unroll
        for (int j = 0; j < VECTOR; j++) x[i][j] = start();
      }
    }
#pragma unroll
    for (int tile_y = 0; tile_y < TILE_Y; tile_y++) {
      const int below = y - tile_y * STRIDE_Y;
      if (below < 0 || below % APART_Y != 0 || below / APART_Y >= TAPS_Y) continue;
#pragma unroll
      for (int tap = 0; tap < SEGMENT; tap++) {
        if (TAPS_X % SEGMENT != 0 && first + tap >= TAPS_X) continue;
        float w[VECTOR] = {};
        if constexpr (FOLD == PRODUCTS)
          load_filter(filter + (below / APART_Y * TAPS_X + first + tap) * (FILTER_BY_CHANNEL ? LANES * VECTOR : CHANNELS), w);
#pragma unroll
        for (int tile_x = 0; tile_x < TILE_X; tile_x++) {
#pragma unroll
          for (int j = 0; j < VECTOR; j++)
            sum[tile_y][tile_x][j] = fold(sum[tile_y][tile_x][j], x[tile_x * STRIDE_X + tap * APART_X][j], w[j]);
        }
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(LANES* POSITIONS) KERNEL(const Arguments arguments) {
  const int vector = blockIdx.x % STRIPS * LANES + threadIdx.x % LANES;
  const int position = blockIdx.x / STRIPS * POSITIONS + threadIdx.x / LANES;
  const Extents e = extents_of(arguments);
  const int tiles_y = tiles_along<TILE_Y, STEP_Y>(e.out_lines), tiles_x = tiles_along<TILE_X, STEP_X>(e.out_columns);
  allow_next_kernel();
  const int image = position / (tiles_y * tiles_x), line_of_tiles = position / tiles_x;  // image: a frame of the result
  const int first_line = first_of_tile<TILE_Y, STEP_Y>(line_of_tiles - image * tiles_y);
  const int first_column = first_of_tile<TILE_X, STEP_X>(position - line_of_tiles * tiles_x);
  const int line = first_line * STRIDE_Y - PAD_Y, column = first_column * STRIDE_X - PAD_X;
  const int channel = vector * VECTOR, frame = image % OUT_FRAMES * STRIDE_Z - PAD_Z;
  wait_previous_kernels();
  const Element* filter = arguments.filter + vector * VECTOR;
  if constexpr (FILTER_BY_CHANNEL) filter = stage_filter(arguments.filter) + threadIdx.x % LANES * VECTOR;
  if (vector >= VECTORS || position >= e.images * OUT_FRAMES * tiles_y * tiles_x) return;
  Sums sum;
#pragma unroll
  for (int i = 0; i < TILE_Y * TILE_X * VECTOR; i++) sum[i / (TILE_X * VECTOR)][i / VECTOR % TILE_X][i % VECTOR] = start();
#pragma unroll 1
  for (int z = 0; z < TAPS_Z; z++) {
    const int met = frame + z * DILATION_Z;
    if ((unsigned)met >= (unsigned)FRAMES) continue;
    const long long of_all = (long long)(image / OUT_FRAMES) * FRAMES + met;
    const Element* of_frame = filter + z * (TAPS_Y * TAPS_X) * (FILTER_BY_CHANNEL ? LANES * VECTOR : CHANNELS);
#pragma unroll 1
    for (int first = 0; first < TAPS_X; first += SEGMENT)
      fold_segment(e, arguments.x + of_all * (e.lines * e.columns) * CHANNELS + channel, of_frame, line,
                   column + first * DILATION_X, first, sum);
  }
#pragma unroll
  for (int tile_y = 0; tile_y < TILE_Y; tile_y++) {
#pragma unroll
    for (int tile_x = 0; tile_x < TILE_X; tile_x++) {
      const int y = first_line + tile_y * STEP_Y, x = first_column + tile_x * STEP_X;
      if (y >= e.out_lines || x >= e.out_columns) continue;
      if constexpr (FOLD == MEAN) {
        const float factor = mean_factor(e, frame, y * STRIDE_Y - PAD_Y, x * STRIDE_X - PAD_X);
#pragma unroll
        for (int j = 0; j < VECTOR; j++) sum[tile_y][tile_x][j] *= factor;
      }
      finish(arguments, image, y * e.out_columns + x, channel, sum[tile_y][tile_x]);
    }
  }
}
