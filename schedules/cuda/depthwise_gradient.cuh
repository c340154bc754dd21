// out[part][tap][channel] = sum over the pixels of a part of gradient[pixel][channel] * what the tap met of x[channel]: the
// gradient of a depthwise convolution by its filter. A block takes LANES vectors of channels and DEEP pixels at a time; a thread
// keeps the sums of every tap, and at the end those of the block's threads meet in shared memory, tap by tap.
//
// schedules/cuda/depthwise_gradient.cpp writes these ahead of this text:
//   IMAGES, LINES, COLUMNS, CHANNELS, OUT_LINES, OUT_COLUMNS, TAPS_Y, TAPS_X, STRIDE_Y, ... PAD_X   of the convolution
//   PART                      pixels of a part
//   VECTOR, LANES, DEEP       channels of a thread; threads side by side, and on top of each other
//   Arguments                 pointers: out, gradient, x

constexpr int WIDTH = LANES * VECTOR, STRIPS = (CHANNELS + WIDTH - 1) / WIDTH;
constexpr int TAPS = TAPS_Y * TAPS_X, PIXELS = IMAGES * OUT_LINES * OUT_COLUMNS;

DEVICE void add_pixel(const Arguments& a, int pixel, int channel, float (&sum)[TAPS][VECTOR]) {
  const int out_line = pixel / OUT_COLUMNS, image = out_line / OUT_LINES;
  const int column = (pixel - out_line * OUT_COLUMNS) * STRIDE_X - PAD_X;
  const int line = (out_line - image * OUT_LINES) * STRIDE_Y - PAD_Y;
  float gradient[VECTOR];
  load_vector(a.gradient + (long long)pixel * CHANNELS + channel, gradient);
  const Element* images = a.x + (long long)image * (LINES * COLUMNS) * CHANNELS + channel;
#pragma unroll
  for (int y = 0; y < TAPS_Y; y++) {
    const int at_line = line + y * DILATION_Y;
    if ((unsigned)at_line >= (unsigned)LINES) continue;
#pragma unroll
    for (int x = 0; x < TAPS_X; x++) {
      const int at_column = column + x * DILATION_X;
      if ((unsigned)at_column >= (unsigned)COLUMNS) continue;
      float met[VECTOR];
      load_vector(images + (long long)(at_line * COLUMNS + at_column) * CHANNELS, met);
#pragma unroll
      for (int j = 0; j < VECTOR; j++)
        sum[y * TAPS_X + x][j] = fmaf(gradient[j], met[j], sum[y * TAPS_X + x][j]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(LANES* DEEP) KERNEL(const Arguments arguments) {
  __shared__ __align__(16) float sums[DEEP][WIDTH];
  const int lane = threadIdx.x % LANES, deep = threadIdx.x / LANES;
  const int strip = blockIdx.x % STRIPS, part = blockIdx.x / STRIPS;
  const int channel = (strip * LANES + lane) * VECTOR;
  allow_next_kernel();
  wait_previous_kernels();
  float sum[TAPS][VECTOR];
#pragma unroll
  for (int i = 0; i < TAPS * VECTOR; i++) sum[i / VECTOR][i % VECTOR] = 0.f;
  if (channel < CHANNELS) {
    const int end = min((part + 1) * PART, PIXELS);
    for (int pixel = part * PART + deep; pixel < end; pixel += DEEP)
      add_pixel(arguments, pixel, channel, sum);
  }
#pragma unroll
  for (int tap = 0; tap < TAPS; tap++) {
    if (tap != 0) __syncthreads();
    store_vector(&sums[deep][lane * VECTOR], sum[tap]);
    __syncthreads();
    for (int c = threadIdx.x; c < WIDTH; c += LANES * DEEP) {
      float total = 0.f;
      for (int i = 0; i < DEEP; i++) total += sums[i][c];
      if (strip * WIDTH + c < CHANNELS)
        store_one(arguments.out + ((long long)part * TAPS + tap) * CHANNELS + strip * WIDTH + c, total);
    }
  }
}
