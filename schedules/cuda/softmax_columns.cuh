// out = epilogue(softmax(prologue(x))), or its logarithm, along the few rows of each column. A thread takes VECTOR neighbouring
// columns and keeps all their rows in registers: x is read once, by whole lines.
//
// schedules/cuda/softmax_columns.cpp writes these ahead of this text:
//   ROWS, COLUMNS             of a batch
//   VECTOR                    columns that a thread takes together: a divisor of COLUMNS
//   THREADS                   of a block
//   LOGARITHM                 whether the results are logarithms
//   STREAM_LOADS, STREAM_STORES   x or the result is the first to leave the L2 cache
//   Arguments, Extents        pointers: out, and what is read; batches
//   load_x(a, batch, row, column, x), finish(a, batch, row, column, x)   VECTOR values of a row; work on them, and their store

constexpr int VECTORS = COLUMNS / VECTOR;  // of a row

typedef float Columns[ROWS][VECTOR];

DEVICE void normalize(Columns& x, int j) {
  float highest = LOWEST, sum = 0;
#pragma unroll
  for (int i = 0; i < ROWS; i++) highest = fmaxf(highest, x[i][j]);
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    const float power = exp_up_to_zero(x[i][j] - highest);
    sum += power;
    if constexpr (!LOGARITHM) x[i][j] = power;
  }
  const float log = LOGARITHM ? logf(sum) : 0.f, scale = 1.f / sum;
#pragma unroll
  for (int i = 0; i < ROWS; i++) x[i][j] = LOGARITHM ? x[i][j] - highest - log : x[i][j] * scale;
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  allow_next_kernel();
  const long long number = (long long)blockIdx.x * THREADS + threadIdx.x, batch = number / VECTORS;
  const int column = (int)(number % VECTORS) * VECTOR;
  if (batch >= extents_of(arguments).batches) return;
  wait_previous_kernels();
  Columns x;
#pragma unroll
  for (int i = 0; i < ROWS; i++) load_x(arguments, batch, i, column, x[i]);
#pragma unroll
  for (int j = 0; j < VECTOR; j++) normalize(x, j);
#pragma unroll
  for (int i = 0; i < ROWS; i++) finish(arguments, batch, i, column, x[i]);
}
