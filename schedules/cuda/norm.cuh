// out = epilogue((x - mean) / sqrt(variance + EPSILON) * scale + shift) for every row, or without the mean (RMS). A row
// is read once and stays in the registers of its THREADS threads; a block takes ROWS_OF_BLOCK rows.
//
// schedules/cuda_norm.cpp writes these ahead of this text:
//   ROWS, COLUMNS             extents
//   THREADS, ROWS_OF_BLOCK    threads of a row, a multiple of 32; rows of a block
//   VECTOR                    columns that a thread takes together: a divisor of COLUMNS
//   CENTRED, EPSILON          layer norm, else RMS norm
//   STREAMS                   matrices are the first to leave the L2 cache
//   Arguments                 pointers: out, and what is read
//   load_x(a, row, column, x), finish(a, row, column, x)   VECTOR values of the row; the work on them and their store

constexpr int WARPS = THREADS / 32;  // of a row
constexpr int ITEMS = (COLUMNS + THREADS * VECTOR - 1) / (THREADS * VECTOR);
constexpr bool EXACT = COLUMNS % (THREADS * VECTOR) == 0;

// The sum over the threads of a row; `shared` has a place for every warp of the block.
DEVICE float row_sum(float x, float* shared) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(~0u, x, lanes);
  if constexpr (WARPS > 1) {
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) shared[warp] = x;
    __syncthreads();
    x = 0;
#pragma unroll
    for (int i = 0; i < WARPS; i++) x += shared[warp / WARPS * WARPS + i];
  }
  return x;
}

extern "C" __global__ void __launch_bounds__(THREADS* ROWS_OF_BLOCK) KERNEL(const Arguments arguments) {
  __shared__ float sums[2][WARPS * ROWS_OF_BLOCK];
  const int thread = threadIdx.x % THREADS;
  const long long wanted = (long long)blockIdx.x * ROWS_OF_BLOCK + threadIdx.x / THREADS;
  const long long row = wanted < ROWS ? wanted : ROWS - 1;
  allow_next_kernel();
  wait_previous_kernels();
  float x[ITEMS][VECTOR];
  float total = 0;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const int column = (i * THREADS + thread) * VECTOR;
    if (EXACT || column < COLUMNS) {
      load_x(arguments, row, column, x[i]);
    } else {
#pragma unroll
      for (int j = 0; j < VECTOR; j++) x[i][j] = 0;
    }
#pragma unroll
    for (int j = 0; j < VECTOR; j++) total += x[i][j];
  }
  const float mean = CENTRED ? row_sum(total, sums[0]) * (1.f / COLUMNS) : 0.f;
  float square = 0;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const bool inside = EXACT || (i * THREADS + thread) * VECTOR < COLUMNS;
#pragma unroll
    for (int j = 0; j < VECTOR; j++) {
      x[i][j] -= mean;
      if (inside) square = fmaf(x[i][j], x[i][j], square);
    }
  }
  const float scale = rsqrtf(row_sum(square, sums[1]) * (1.f / COLUMNS) + EPSILON);
  if (wanted >= ROWS) return;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const int column = (i * THREADS + thread) * VECTOR;
#pragma unroll
    for (int j = 0; j < VECTOR; j++) x[i][j] *= scale;
    if (EXACT || column < COLUMNS) finish(arguments, row, column, x[i]);
  }
}
