// out[image, line, column, channel] = the sum of the gradients of the windows whose first largest element of that channel is here.
// A thread makes VECTOR channels of a pixel: it looks through each window that the pixel is in, whose elements its neighbours read
// as well.
//
// schedules/cuda/pool_gradient.cpp writes these ahead of this text:
//   IMAGES, LINES, COLUMNS, CHANNELS, OUT_LINES, OUT_COLUMNS, TAPS_Y, TAPS_X, STRIDE_Y, ... PAD_X   of the pooling
//   VECTOR, THREADS           channels of a thread; threads of a block
//   UNROLL                    taps along a dim that are unrolled
//   Arguments                 pointers: out, gradient, x

constexpr int VECTORS = CHANNELS / VECTOR;

/// Which window has tap `tap` at `at`; -1: none.
template <int STRIDE, int PAD, int DILATION, int COUNT>
DEVICE int window_at(int at, int tap) {
  const int first = at + PAD - tap * DILATION, window = first / STRIDE;
  return first < 0 || window * STRIDE != first || window >= COUNT ? -1 : window;
}

/// Is `x`, at tap (tap_y, tap_x) of the window, the first largest of it?
DEVICE void find_first(const Element* images, const float (&x)[VECTOR], int window_y, int window_x, int tap_y, int tap_x,
                       bool (&is_first)[VECTOR]) {
#pragma unroll
  for (int j = 0; j < VECTOR; j++) is_first[j] = true;
#pragma unroll UNROLL
  for (int y = 0; y < TAPS_Y; y++) {
    const int line = window_y * STRIDE_Y - PAD_Y + y * DILATION_Y;
    if ((unsigned)line >= (unsigned)LINES) continue;
#pragma unroll UNROLL
    for (int k = 0; k < TAPS_X; k++) {
      const int column = window_x * STRIDE_X - PAD_X + k * DILATION_X;
      if ((unsigned)column >= (unsigned)COLUMNS || (y == tap_y && k == tap_x)) continue;
      const bool is_before = y < tap_y || (y == tap_y && k < tap_x);
      float other[VECTOR];
      load_vector(images + (line * COLUMNS + column) * CHANNELS, other);
#pragma unroll
      for (int j = 0; j < VECTOR; j++) {
        const bool is_nan = x[j] != x[j];
        const bool is_beaten = is_before ? (is_nan ? other[j] != other[j] : !(other[j] < x[j])) : !is_nan && !(other[j] <= x[j]);
        is_first[j] = is_first[j] && !is_beaten;
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  const long long index = (long long)blockIdx.x * THREADS + threadIdx.x;
  allow_next_kernel();
  wait_previous_kernels();
  if (index >= (long long)IMAGES * LINES * COLUMNS * VECTORS) return;
  const int channel = (int)(index % VECTORS) * VECTOR, pixel = (int)(index / VECTORS);
  const int column = pixel % COLUMNS, line = pixel / COLUMNS % LINES, image = pixel / (LINES * COLUMNS);
  const Element* images = arguments.x + (long long)image * (LINES * COLUMNS) * CHANNELS + channel;
  float x[VECTOR], sum[VECTOR] = {};
  load_vector(images + (line * COLUMNS + column) * CHANNELS, x);
#pragma unroll UNROLL
  for (int tap_y = 0; tap_y < TAPS_Y; tap_y++) {
    const int window_y = window_at<STRIDE_Y, PAD_Y, DILATION_Y, OUT_LINES>(line, tap_y);
    if (window_y < 0) continue;
#pragma unroll UNROLL
    for (int tap_x = 0; tap_x < TAPS_X; tap_x++) {
      const int window_x = window_at<STRIDE_X, PAD_X, DILATION_X, OUT_COLUMNS>(column, tap_x);
      if (window_x < 0) continue;
      bool is_first[VECTOR];
      find_first(images, x, window_y, window_x, tap_y, tap_x, is_first);
      float gradient[VECTOR];
      load_vector(arguments.gradient + ((long long)(image * OUT_LINES + window_y) * OUT_COLUMNS + window_x) * CHANNELS + channel,
                  gradient);
#pragma unroll
      for (int j = 0; j < VECTOR; j++) sum[j] += is_first[j] ? gradient[j] : 0.f;
    }
  }
  store_vector(arguments.out + (long long)pixel * CHANNELS + channel, sum);
}
