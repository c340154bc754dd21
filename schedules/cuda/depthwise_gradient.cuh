// out[part][tap][channel] = sum over the pixels of a part of gradient[pixel][channel] * what the tap met of x[channel]: the
// gradient of a depthwise convolution by its filter. A block takes LANES vectors of channels and DEEP groups of GROUP pixels of a line
// at a time: what neighbouring pixels meet is loaded once. A thread keeps the sums of every tap, and at the end those of the block's
// threads meet in shared memory, ROUND taps at a time.
//
// schedules/cuda/depthwise_gradient.cpp writes these ahead of this text:
//   CHANNELS, TAPS_Y, TAPS_X, STRIDE_Y, ... PAD_X   of the convolution
//   GROUP, WHOLE              neighbouring pixels of a line; whether lines are always whole groups
//   VECTOR, LANES, DEEP       channels of a thread; threads side by side, and on top of each other
//   Arguments                 pointers: out, gradient, x
//   Extents, extents_of       images, lines, columns, out_lines, out_columns, part: pixels of a part

constexpr int WIDTH = LANES * VECTOR, STRIPS = (CHANNELS + WIDTH - 1) / WIDTH;
constexpr int TAPS = TAPS_Y * TAPS_X;
constexpr int MET = (GROUP - 1) * STRIDE_X + (TAPS_X - 1) * DILATION_X + 1;  // columns that a group meets
constexpr int FITTING = 4096 / (DEEP * WIDTH), ROUND = FITTING < 1 ? 1 : FITTING < TAPS ? FITTING : TAPS;

DEVICE void add_pixel(const Arguments& a, const Extents& e, int pixel, int channel, float (&sum)[TAPS][VECTOR]) {
  const int out_line = pixel / e.out_columns, image = out_line / e.out_lines;
  const int column = (pixel - out_line * e.out_columns) * STRIDE_X - PAD_X;
  const int line = (out_line - image * e.out_lines) * STRIDE_Y - PAD_Y;
  float gradient[VECTOR];
  load_vector(a.gradient + (long long)pixel * CHANNELS + channel, gradient);
  const Element* images = a.x + (long long)image * (e.lines * e.columns) * CHANNELS + channel;
#pragma unroll
  for (int y = 0; y < TAPS_Y; y++) {
    const int at_line = line + y * DILATION_Y;
    if ((unsigned)at_line >= (unsigned)e.lines) continue;
#pragma unroll
    for (int x = 0; x < TAPS_X; x++) {
      const int at_column = column + x * DILATION_X;
      if ((unsigned)at_column >= (unsigned)e.columns) continue;
      float met[VECTOR];
      load_vector(images + (long long)(at_line * e.columns + at_column) * CHANNELS, met);
#pragma unroll
      for (int j = 0; j < VECTOR; j++)
        sum[y * TAPS_X + x][j] = fmaf(gradient[j], met[j], sum[y * TAPS_X + x][j]);
    }
  }
}

// As add_pixel for the `count` pixels of a group.
DEVICE void add_group(const Arguments& a, const Extents& e, int out_line, int out_column, int count, int channel, float (&sum)[TAPS][VECTOR]) {
  const int image = out_line / e.out_lines, column = out_column * STRIDE_X - PAD_X;
  const int line = (out_line - image * e.out_lines) * STRIDE_Y - PAD_Y;
  const Element* images = a.x + (long long)image * (e.lines * e.columns) * CHANNELS + channel;
  float gradient[GROUP][VECTOR];
#pragma unroll
  for (int p = 0; p < GROUP; p++) {
    if (p < count) load_vector(a.gradient + ((long long)out_line * e.out_columns + out_column + p) * CHANNELS + channel, gradient[p]);
  }
#pragma unroll
  for (int y = 0; y < TAPS_Y; y++) {
    const int at_line = line + y * DILATION_Y;
    if ((unsigned)at_line >= (unsigned)e.lines) continue;
    float met[MET][VECTOR];
#pragma unroll
    for (int c = 0; c < MET; c++) {
#pragma unroll
      for (int j = 0; j < VECTOR; j++) met[c][j] = 0.f;
      if ((unsigned)(column + c) < (unsigned)e.columns)
        load_vector(images + (long long)(at_line * e.columns + column + c) * CHANNELS, met[c]);
    }
#pragma unroll
    for (int x = 0; x < TAPS_X; x++) {
#pragma unroll
      for (int p = 0; p < GROUP; p++) {
        if (p >= count) break;
#pragma unroll
        for (int j = 0; j < VECTOR; j++)
          sum[y * TAPS_X + x][j] = fmaf(gradient[p][j], met[p * STRIDE_X + x * DILATION_X][j], sum[y * TAPS_X + x][j]);
      }
    }
  }
}

DEVICE int groups_of(const Extents& e) {
  return (e.out_columns + GROUP - 1) / GROUP;
}
DEVICE int group_of(const Extents& e, int pixel) {
  return pixel / e.out_columns * groups_of(e) + pixel % e.out_columns / GROUP;
}

// The sums of pixels [begin, end), of which a thread takes every DEEP-th group.
DEVICE void add_pixels(const Arguments& a, const Extents& e, int begin, int end, int deep, int channel, float (&sum)[TAPS][VECTOR]) {
  const int groups = groups_of(e), last = group_of(e, end - 1);
  for (int group = group_of(e, begin) + deep; group <= last; group += DEEP) {
    const int line = group / groups, column = (group - line * groups) * GROUP, pixel = line * e.out_columns + column;
    const int count = WHOLE ? GROUP : min(GROUP, e.out_columns - column);
    if (pixel >= begin && pixel + count <= end) {
      add_group(a, e, line, column, count, channel, sum);
      continue;
    }
    const int behind = min(end, pixel + count);
#pragma unroll 1
    for (int p = max(begin, pixel); p < behind; p++) add_pixel(a, e, p, channel, sum);
  }
}

extern "C" __global__ void __launch_bounds__(LANES* DEEP) KERNEL(const Arguments arguments) {
  __shared__ __align__(16) float sums[ROUND][DEEP][WIDTH];
  const int lane = threadIdx.x % LANES, deep = threadIdx.x / LANES;
  const int strip = blockIdx.x % STRIPS, part = blockIdx.x / STRIPS;
  const Extents e = extents_of(arguments);
  const int channel = (strip * LANES + lane) * VECTOR, begin = part * e.part;
  const int end = min(begin + e.part, e.images * e.out_lines * e.out_columns);
  allow_next_kernel();
  wait_previous_kernels();
  float sum[TAPS][VECTOR];
#pragma unroll
  for (int i = 0; i < TAPS * VECTOR; i++) sum[i / VECTOR][i % VECTOR] = 0.f;
  if (channel < CHANNELS && begin < end) add_pixels(arguments, e, begin, end, deep, channel, sum);
#pragma unroll
  for (int first = 0; first < TAPS; first += ROUND) {
    if (first != 0) __syncthreads();
#pragma unroll
    for (int i = 0; i < ROUND; i++)
      if (first + i < TAPS) store_vector(&sums[i][deep][lane * VECTOR], sum[first + i < TAPS ? first + i : 0]);
    __syncthreads();
    for (int at = threadIdx.x; at < ROUND * WIDTH; at += LANES * DEEP) {
      const int tap = first + at / WIDTH, c = at % WIDTH;
      float total = 0.f;
      for (int i = 0; i < DEEP; i++) total += sums[at / WIDTH][i][c];
      if (tap < TAPS && strip * WIDTH + c < CHANNELS)
        store_one(arguments.out + ((long long)part * TAPS + tap) * CHANNELS + strip * WIDTH + c, total);
    }
  }
}
