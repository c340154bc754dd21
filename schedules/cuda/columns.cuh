// out[batch, column] = epilogue(fold over the rows of prologue(x[batch, row, column])). A cluster of CLUSTER blocks takes
// LANES vectors of columns: each of its blocks folds every CLUSTER-th group of DEEP rows, the blocks' results meet through
// their shared memories, always in the same order, and each block finishes its share of the columns.
//
// schedules/cuda/columns.cpp writes these ahead of this text:
//   ROWS, COLUMNS, STRIPS     extents; how many times LANES vectors the columns take
//   VECTOR                    columns that a thread takes together: a divisor of COLUMNS
//   LANES, DEEP               threads side by side, and on top of each other
//   UNROLL                    rows that a thread has under way
//   CLUSTER                   blocks of a cluster
//   IDENTITY, fold(a, b)      of the fold
//   Arguments                 pointers: out, and what is read
//   load_x(a, batch, row, column, x), finish(a, batch, column, x)   VECTOR values of a row; a result's work and store

constexpr int WIDTH = LANES * VECTOR;     // columns of a block
constexpr int SHARE = WIDTH / CLUSTER;    // that it finishes
constexpr int STEP = CLUSTER * DEEP;      // rows that a cluster takes together

extern "C" __global__ void __launch_bounds__(LANES* DEEP) KERNEL(const Arguments arguments) {
  __shared__ __align__(16) float parts[DEEP][WIDTH];
  __shared__ float totals[WIDTH];
  const int lane = threadIdx.x % LANES, deep = threadIdx.x / LANES;
  const int rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0, strip = blockIdx.x / CLUSTER % STRIPS;
  const long long batch = blockIdx.x / (CLUSTER * STRIPS);
  const int column = (strip * LANES + lane) * VECTOR;
  float sum[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; j++) sum[j] = IDENTITY;
  allow_next_kernel();
  wait_previous_kernels();
  if (column < COLUMNS) {
    int row = rank * DEEP + deep;
    for (; row + (UNROLL - 1) * STEP < ROWS; row += UNROLL * STEP) {
      float x[UNROLL][VECTOR];
#pragma unroll
      for (int u = 0; u < UNROLL; u++) load_x(arguments, batch, row + u * STEP, column, x[u]);
      loads_begin_before();
#pragma unroll
      for (int u = 0; u < UNROLL; u++) {
#pragma unroll
        for (int j = 0; j < VECTOR; j++) sum[j] = fold(sum[j], x[u][j]);
      }
    }
    for (; row < ROWS; row += STEP) {
      float x[VECTOR];
      load_x(arguments, batch, row, column, x);
#pragma unroll
      for (int j = 0; j < VECTOR; j++) sum[j] = fold(sum[j], x[j]);
    }
  }
  store_vector(&parts[deep][lane * VECTOR], sum);
  __syncthreads();
  for (int c = threadIdx.x; c < WIDTH; c += LANES * DEEP) {
    float total = parts[0][c];
#pragma unroll
    for (int i = 1; i < DEEP; i++) total = fold(total, parts[i][c]);
    totals[c] = total;
  }
  if constexpr (CLUSTER > 1) cluster_sync_shared();
  else __syncthreads();
  for (int c = rank * SHARE + threadIdx.x; c < (rank + 1) * SHARE; c += LANES * DEEP) {
    if (strip * WIDTH + c >= COLUMNS) break;
    float total = totals[c];
    if constexpr (CLUSTER > 1) {
      float of[CLUSTER];
#pragma unroll
      for (int i = 0; i < CLUSTER; i++) of[i] = read_at(address_at(shared_address(&totals[c]), i));
      total = of[0];
#pragma unroll
      for (int i = 1; i < CLUSTER; i++) total = fold(total, of[i]);
    }
    finish(arguments, batch, strip * WIDTH + c, total);
  }
  if constexpr (CLUSTER > 1) cluster_sync();  // nobody leaves while its results are read
}
