// out[batch, column] = epilogue(fold over the rows of prologue(x[batch, row, column])), for each of FOLDS folds, which read their
// operands once. A cluster of CLUSTER blocks takes LANES vectors of columns: each of its blocks folds every CLUSTER-th group of
// DEEP rows, the blocks' results meet through their shared memories, always in the same order, and each block finishes its share
// of the columns.
//
// schedules/cuda/columns.cpp writes these ahead of this text:
//   COLUMNS, STRIPS           their number; how many times LANES vectors they take
//   FOLDS                     results
//   VECTOR                    columns that a thread takes together: a divisor of COLUMNS
//   LANES, DEEP               threads side by side, and on top of each other
//   UNROLL                    rows that a thread has under way
//   CLUSTER                   blocks of a cluster
//   IDENTITY, fold(a, b)      of the folds
//   Arguments, Extents        pointers: the results, and what is read; rows
//   load_x(a, batch, row, column, x)         what each fold takes of VECTOR values of a row
//   finish(a, number, batch, column, x)      work on a result of a fold, and its store

constexpr int WIDTH = LANES * VECTOR;     // columns of a block
constexpr int SHARE = WIDTH / CLUSTER;    // that it finishes
constexpr int STEP = CLUSTER * DEEP;      // rows that a cluster takes together

typedef float Sums[FOLDS][VECTOR];

DEVICE void add_row(Sums& sums, const Sums& x) {
#pragma unroll
  for (int f = 0; f < FOLDS; f++) {
#pragma unroll
    for (int j = 0; j < VECTOR; j++) sums[f][j] = fold(sums[f][j], x[f][j]);
  }
}

extern "C" __global__ void __launch_bounds__(LANES* DEEP) KERNEL(const Arguments arguments) {
  __shared__ __align__(16) float parts[DEEP][WIDTH];
  __shared__ float totals[FOLDS][WIDTH];
  const int lane = threadIdx.x % LANES, deep = threadIdx.x / LANES;
  const int rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0, strip = blockIdx.x / CLUSTER % STRIPS;
  const long long batch = blockIdx.x / (CLUSTER * STRIPS);
  const int rows = extents_of(arguments).rows;
  const int column = (strip * LANES + lane) * VECTOR;
  Sums sums;
#pragma unroll
  for (int f = 0; f < FOLDS; f++) {
#pragma unroll
    for (int j = 0; j < VECTOR; j++) sums[f][j] = IDENTITY;
  }
  allow_next_kernel();
  wait_previous_kernels();
  if (column < COLUMNS) {
    int row = rank * DEEP + deep;
    for (; row + (UNROLL - 1) * STEP < rows; row += UNROLL * STEP) {
      Sums x[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; u++) load_x(arguments, batch, row + u * STEP, column, x[u]);
      loads_begin_before();
#pragma unroll
      for (int u = 0; u < UNROLL; u++) add_row(sums, x[u]);
    }
    for (; row < rows; row += STEP) {
      Sums x;
      load_x(arguments, batch, row, column, x);
      add_row(sums, x);
    }
  }
#pragma unroll
  for (int f = 0; f < FOLDS; f++) {
    if (f > 0) __syncthreads();  // the parts of the fold before have been read
    store_vector(&parts[deep][lane * VECTOR], sums[f]);
    __syncthreads();
    for (int c = threadIdx.x; c < WIDTH; c += LANES * DEEP) {
      float total = parts[0][c];
#pragma unroll
      for (int i = 1; i < DEEP; i++) total = fold(total, parts[i][c]);
      totals[f][c] = total;
    }
  }
  if constexpr (CLUSTER > 1) cluster_sync_shared();
  else __syncthreads();
#pragma unroll
  for (int f = 0; f < FOLDS; f++) {
    for (int c = rank * SHARE + threadIdx.x; c < (rank + 1) * SHARE; c += LANES * DEEP) {
      if (strip * WIDTH + c >= COLUMNS) break;
      float total = totals[f][c];
      if constexpr (CLUSTER > 1) {
        float of[CLUSTER];
#pragma unroll
        for (int i = 0; i < CLUSTER; i++) of[i] = read_at(address_at(shared_address(&totals[f][c]), i));
        total = of[0];
#pragma unroll
        for (int i = 1; i < CLUSTER; i++) total = fold(total, of[i]);
      }
      finish(arguments, f, batch, strip * WIDTH + c, total);
    }
  }
  if constexpr (CLUSTER > 1) cluster_sync();  // nobody leaves while its results are read
}
