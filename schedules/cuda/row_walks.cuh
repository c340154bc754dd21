// As row_folds.cuh, for rows that do not fit into registers: a block walks its row once for all sums of a pass, and once more for
// a result that is a row. The second time it comes from the L2 cache.
//
// schedules/cuda/row_folds.cpp writes the same ahead of this text, but for ITEMS, EXACT and rows.cuh, and
//   THREADS                   of the block, and so of a row
//   UNROLL                    items that a thread has under way
//   PASSES, pass_of<F>()      how many, and in which sum F is taken

constexpr int WARPS = THREADS / 32, STEP = THREADS * VECTOR;

template <int F = 0>
DEVICE void begin(Sums& own) {
  if constexpr (F < FOLDS) {
    own[F] = identity<F>();
    begin<F + 1>(own);
  }
}

template <int PASS, int F = 0>
DEVICE void add_element(const Item& item, const Sums& sums, int j, Sums& own) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS) own[F] = fold<F>(own[F], term<F>(item, sums, j));
    add_element<PASS, F + 1>(item, sums, j, own);
  }
}
template <int PASS>
DEVICE void add_item(const Item& item, const Sums& sums, Sums& own) {
#pragma unroll
  for (int j = 0; j < VECTOR; j++) add_element<PASS>(item, sums, j, own);
}

// What all threads have, in one order.
template <int PASS, int F = 0>
DEVICE void share_sums(Sums& own, float (*parts)[WARPS]) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS) {
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) own[F] = fold<F>(own[F], __shfl_xor_sync(~0u, own[F], lanes));
      if (threadIdx.x % 32 == 0) parts[F][threadIdx.x / 32] = own[F];
    }
    share_sums<PASS, F + 1>(own, parts);
  }
}
template <int PASS, int F = 0>
DEVICE void take_sums(Sums& sums, const float (*parts)[WARPS]) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS) {
      float sum = parts[F][0];
#pragma unroll
      for (int i = 1; i < WARPS; i++) sum = fold<F>(sum, parts[F][i]);
      sums[F] = sum;
    }
    take_sums<PASS, F + 1>(sums, parts);
  }
}

template <int PASS>
DEVICE void walk(const Arguments& a, long long row, int columns, Sums& sums, float (*parts)[WARPS]) {
  if constexpr (PASS < PASSES) {
    Sums own;
    begin(own);
    int column = threadIdx.x * VECTOR;
    for (; column + (UNROLL - 1) * STEP < columns; column += UNROLL * STEP) {
      Item items[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; u++) load_item(a, row, column + u * STEP, items[u]);
      loads_begin_before();
#pragma unroll
      for (int u = 0; u < UNROLL; u++) add_item<PASS>(items[u], sums, own);
    }
    for (; column < columns; column += STEP) {
      Item item;
      load_item(a, row, column, item);
      add_item<PASS>(item, sums, own);
    }
    share_sums<PASS>(own, parts);
    __syncthreads();
    take_sums<PASS>(sums, parts);
    walk<PASS + 1>(a, row, columns, sums, parts);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  __shared__ float parts[FOLDS][WARPS];
  const int columns = extents_of(arguments).columns;
  const long long row = blockIdx.x;
  allow_next_kernel();
  wait_previous_kernels();
  Sums sums;
  walk<0>(arguments, row, columns, sums, parts);
  if (threadIdx.x == 0) finish_numbers(arguments, row, sums);
  if constexpr (HAS_ROW) {
    for (int column = threadIdx.x * VECTOR; column < columns; column += STEP) {
      Item item;
      load_item(arguments, row, column, item);
      finish(arguments, row, column, item, sums);
    }
  }
}
