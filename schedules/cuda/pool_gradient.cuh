// out[image, line, column, channel] = the sum of the gradients of the windows whose first largest element of that channel is here.
// A thread makes VECTOR channels of BLOCK_Y x BLOCK_X pixels: it looks through each window that meets them once.
//
// schedules/cuda/pool_gradient.cpp writes these ahead of this text:
//   CHANNELS, TAPS_Y, TAPS_X, STRIDE_Y, ... PAD_X   of the pooling
//   VECTOR, THREADS           channels of a thread; threads of a block
//   BLOCK_Y, BLOCK_X          pixels of a thread
//   UNROLL                    taps along a dim that are unrolled
//   Arguments                 pointers: out, gradient, x
//   Extents, extents_of       images, lines, columns, out_lines, out_columns

constexpr int VECTORS = CHANNELS / VECTOR;

/// Of `windows`, those [first, end) that may meet COUNT elements from `at` on.
struct Range {
  int first, end;
};
template <int STRIDE, int PAD, int DILATION, int TAPS, int COUNT>
DEVICE Range windows_at(int at, int windows) {
  const int before = at + PAD - (TAPS - 1) * DILATION;  // of the window whose last tap is the first element
  return {before <= 0 ? 0 : (before + STRIDE - 1) / STRIDE, min(windows, (at + COUNT - 1 + PAD) / STRIDE + 1)};
}

/// Where the first largest element of each channel of a window is, as a pixel of the image.
DEVICE void find_first(const Extents& e, const Element* images, int window_y, int window_x, int (&place)[VECTOR]) {
  float most[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; j++) place[j] = -1, most[j] = 0.f;
#pragma unroll UNROLL
  for (int y = 0; y < TAPS_Y; y++) {
    const int line = window_y * STRIDE_Y - PAD_Y + y * DILATION_Y;
    if ((unsigned)line >= (unsigned)e.lines) continue;
#pragma unroll UNROLL
    for (int k = 0; k < TAPS_X; k++) {
      const int column = window_x * STRIDE_X - PAD_X + k * DILATION_X;
      if ((unsigned)column >= (unsigned)e.columns) continue;
      float x[VECTOR];
      load_vector(images + (line * e.columns + column) * CHANNELS, x);
#pragma unroll
      for (int j = 0; j < VECTOR; j++) {
        const bool wins = place[j] < 0 || x[j] > most[j] || (x[j] != x[j] && most[j] == most[j]);
        most[j] = wins ? x[j] : most[j];
        place[j] = wins ? line * e.columns + column : place[j];
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  const long long index = (long long)blockIdx.x * THREADS + threadIdx.x;
  allow_next_kernel();
  wait_previous_kernels();
  const Extents e = extents_of(arguments);
  const int blocks_y = (e.lines + BLOCK_Y - 1) / BLOCK_Y, blocks_x = (e.columns + BLOCK_X - 1) / BLOCK_X;
  if (index >= (long long)e.images * blocks_y * blocks_x * VECTORS) return;
  const int channel = (int)(index % VECTORS) * VECTOR, block = (int)(index / VECTORS);
  const int column = block % blocks_x * BLOCK_X, line = block / blocks_x % blocks_y * BLOCK_Y, image = block / (blocks_x * blocks_y);
  const Element* images = arguments.x + (long long)image * (e.lines * e.columns) * CHANNELS + channel;
  float sum[BLOCK_Y][BLOCK_X][VECTOR] = {};
  const Range ys = windows_at<STRIDE_Y, PAD_Y, DILATION_Y, TAPS_Y, BLOCK_Y>(line, e.out_lines);
  const Range xs = windows_at<STRIDE_X, PAD_X, DILATION_X, TAPS_X, BLOCK_X>(column, e.out_columns);
  for (int window_y = ys.first; window_y < ys.end; window_y++) {
    for (int window_x = xs.first; window_x < xs.end; window_x++) {
      int place[VECTOR];
      float gradient[VECTOR];
      load_vector(arguments.gradient + ((long long)(image * e.out_lines + window_y) * e.out_columns + window_x) * CHANNELS + channel,
                  gradient);
      find_first(e, images, window_y, window_x, place);
#pragma unroll
      for (int y = 0; y < BLOCK_Y; y++) {
#pragma unroll
        for (int x = 0; x < BLOCK_X; x++) {
          // Behind the last column begins the next line.
          const int here = column + x < e.columns ? (line + y) * e.columns + column + x : -2;
#pragma unroll
          for (int j = 0; j < VECTOR; j++) sum[y][x][j] += place[j] == here ? gradient[j] : 0.f;
        }
      }
    }
  }
  Element* out = arguments.out + (long long)image * (e.lines * e.columns) * CHANNELS + channel;
#pragma unroll
  for (int y = 0; y < BLOCK_Y; y++) {
#pragma unroll
    for (int x = 0; x < BLOCK_X; x++)
      if (line + y < e.lines && column + x < e.columns) store_vector(out + ((line + y) * e.columns + column + x) * CHANNELS, sum[y][x]);
  }
}
