// out[row] = x[row] folded with updates[i] for all i whose index is row, in each batch: the gradient of a table by rows that were
// read, or what the nodes of a graph get along its edges. A block owns ROWS rows and LANES vectors of their columns. It walks all indices of its batch, a chunk at a time, and keeps
// those of its rows in their order; a warp folds the updates of every WARPS-th row in shared memory. So folds are always made in the same order, and
// no row is written twice.
//
// schedules/cuda/scatter_rows.cpp writes these ahead of this text:
//   TABLE, COLUMNS            rows and columns of a batch of the result
//   Extents, extents_of       extents: count, of the updates of a batch
//   ONTO_X, INITIAL           is there an x; what is there else
//   SHARES_INDICES            do all batches have the same indices?
//   fold(a, b)                of f32
//   ROWS, VECTOR              rows of a block; columns of a lane: a divisor of COLUMNS
//   Index, Out, Update        types; Arguments: pointers out, x, indices, updates

constexpr int LANES = 32, WARPS = 8, THREADS = LANES * WARPS, PER_LANE = 4, CHUNK = THREADS * PER_LANE;
constexpr int WIDTH = LANES * VECTOR, STRIPS = (COLUMNS + WIDTH - 1) / WIDTH, RUNS = (TABLE + ROWS - 1) / ROWS;
constexpr int AHEAD = 8;  // updates that a warp has under way

struct Kept {
  int position[CHUNK];
  u16 row[CHUNK];
  int of_warp[WARPS];
};

/// The row of the block that index `i` of `all` is of, or -1. Indices are counted from the end where negative, and stand for the
/// nearest row where out of range.
DEVICE int own_row(const Index* indices, int i, int all, int first) {
  if (i >= all) return -1;
  const long long index = indices[i], row = index < 0 ? index + TABLE : index;
  const int settled = row < 0 ? 0 : row >= TABLE ? TABLE - 1 : (int)row;
  return settled >= first && settled < first + ROWS ? settled - first : -1;
}

/// Lists what of the chunk is the block's, in order; returns how many.
DEVICE int list_chunk(Kept& kept, const Index* indices, int all_indices, int chunk, int first, int lane, int warp) {
  int rows[PER_LANE], before[PER_LANE], count = 0;
#pragma unroll
  for (int j = 0; j < PER_LANE; j++) {
    rows[j] = own_row(indices, chunk + (warp * PER_LANE + j) * LANES + lane, all_indices, first);
    const unsigned found = __ballot_sync(~0u, rows[j] >= 0);
    before[j] = count + __popc(found & ((1u << lane) - 1));
    count += __popc(found);
  }
  if (lane == 0) kept.of_warp[warp] = count;
  __syncthreads();
  int start = 0, all = 0;
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    if (w < warp) start += kept.of_warp[w];
    all += kept.of_warp[w];
  }
#pragma unroll
  for (int j = 0; j < PER_LANE; j++) {
    if (rows[j] < 0) continue;
    kept.position[start + before[j]] = chunk + (warp * PER_LANE + j) * LANES + lane;
    kept.row[start + before[j]] = (u16)rows[j];
  }
  __syncthreads();
  return all;
}

/// Folds the updates of the warp's rows.
DEVICE void fold_updates(const Kept& kept, float (&sums)[ROWS][WIDTH], const Update* updates, int count,
                        int column, int lane, int warp) {
  for (int base = 0; base < count; base += LANES) {
    const int at = base + lane;
    unsigned own = __ballot_sync(~0u, at < count && kept.row[at] % WARPS == warp);
    while (own != 0) {
      float values[AHEAD][VECTOR];
      int rows[AHEAD];
#pragma unroll
      for (int j = 0; j < AHEAD; j++) {
        rows[j] = -1;
        if (own == 0) continue;
        const int item = base + __ffs(own) - 1;
        own &= own - 1;
        rows[j] = kept.row[item];
        if (column < COLUMNS)
          load_vector(updates + (long long)kept.position[item] * COLUMNS + column, values[j]);
      }
#pragma unroll
      for (int j = 0; j < AHEAD; j++) {
        if (rows[j] < 0 || column >= COLUMNS) continue;
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
          float& sum = sums[rows[j]][lane * VECTOR + v];
          sum = fold(sum, values[j][v]);
        }
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  __shared__ Kept kept;
  __shared__ __align__(16) float sums[ROWS][WIDTH];
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  const int first = blockIdx.x / STRIPS % RUNS * ROWS, column = (blockIdx.x % STRIPS * LANES + lane) * VECTOR;
  const long long batch = blockIdx.x / (STRIPS * RUNS);
  const int all = extents_of(arguments).count;
  const Index* const indices = arguments.indices + (SHARES_INDICES ? 0 : batch * all);
  const Update* const updates = arguments.updates + batch * all * COLUMNS;
  Out* const out = arguments.out + batch * TABLE * COLUMNS;
  allow_next_kernel();
  wait_previous_kernels();
  for (int row = warp; row < ROWS; row += WARPS) {
    float x[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; v++) x[v] = INITIAL;
    if constexpr (ONTO_X)
      if (column < COLUMNS && first + row < TABLE)
        load_vector(arguments.x + (batch * TABLE + first + row) * COLUMNS + column, x);
    store_vector(&sums[row][lane * VECTOR], x);
  }
  for (int chunk = 0; chunk < all; chunk += CHUNK) {
    const int count = list_chunk(kept, indices, all, chunk, first, lane, warp);
    fold_updates(kept, sums, updates, count, column, lane, warp);
    __syncthreads();
  }
  for (int row = warp; row < ROWS; row += WARPS) {
    if (column >= COLUMNS || first + row >= TABLE) continue;
    float x[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; v++) x[v] = sums[row][lane * VECTOR + v];
    store_vector(out + (long long)(first + row) * COLUMNS + column, x);
  }
}
