// out = epilogue(x, folds) for every row, where each fold takes work on the row's x, and on the folds before it.
// What is read of a row is read once and stays in the registers of its THREADS threads; a block takes ROWS_OF_BLOCK rows.
//
// schedules/cuda/row_folds.cpp and fold_texts.cpp write these ahead of this text, and rows.cuh:
//   Extents, extents_of       extents: rows, columns
//   THREADS, ROWS_OF_BLOCK    threads of a row, a power of two or a multiple of 32; rows of a block
//   VECTOR, ITEMS, EXACT      columns that a thread takes together: a divisor of them all; see rows.cuh
//   FOLDS, Folds              how many folds; their running results, each of its type
//   fold_of<F>(folds)         that of fold F
//   identity<F>(), take<F>(a, x, column), join<F>(a, b)   of fold F: what it begins with, with a number, with another result
//   Arguments                 pointers: out, and what is read
//   Item                      what is read at VECTOR columns
//   load_item(a, row, column, item)
//   term<F>(item, folds, e, j)   what fold F takes at column j of an item
//   HAS_ROW                   whether there is more than numbers
//   finish(a, row, column, item, folds)   the work on VECTOR columns, and their store
//   finish_numbers(a, row, folds)         further results, of each row a number

template <int F, class T>
DEVICE T warp_fold(T x) {
#pragma unroll
  for (int lanes = LANES / 2; lanes > 0; lanes /= 2) x = join<F>(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}

template <int F>
DEVICE void add_folds(const Item (&items)[ITEMS], const Extents& e, int columns, int thread, Folds& folds,
                      u64 (*parts)[WARPS * ROWS_OF_BLOCK]) {
  if constexpr (F < FOLDS) {
    auto own = identity<F>();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      if (!is_inside(columns, thread, i)) continue;
#pragma unroll
      for (int j = 0; j < VECTOR; j++)
        own = take<F>(own, term<F>(items[i], folds, e, j), (i * THREADS + thread) * VECTOR + j);
    }
    own = warp_fold<F>(own);
    if constexpr (WARPS > 1) {
      const int warp = threadIdx.x / 32;
      auto* all = (decltype(own)*)parts[F];
      if (threadIdx.x % 32 == 0) all[warp] = own;
      __syncthreads();
      own = all[warp / WARPS * WARPS];
#pragma unroll
      for (int i = 1; i < WARPS; i++) own = join<F>(own, all[warp / WARPS * WARPS + i]);
    }
    fold_of<F>(folds) = own;
    add_folds<F + 1>(items, e, columns, thread, folds, parts);
  }
}

DEVICE void run_rows(const Arguments& arguments) {
  __shared__ u64 parts[FOLDS][WARPS * ROWS_OF_BLOCK];
  const Extents e = extents_of(arguments);
  const int thread = threadIdx.x % THREADS, columns = e.columns;
  const long long wanted = (long long)blockIdx.x * ROWS_OF_BLOCK + threadIdx.x / THREADS;
  const long long rows = e.rows, row = wanted < rows ? wanted : rows - 1;
  Item items[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    if (is_inside(columns, thread, i)) load_item(arguments, row, (i * THREADS + thread) * VECTOR, items[i]);
  }
  Folds folds;
  add_folds<0>(items, e, columns, thread, folds, parts);
  if (wanted < rows && thread == 0) finish_numbers(arguments, row, folds);
  if constexpr (!HAS_ROW) return;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    if (wanted < rows && is_inside(columns, thread, i))
      finish(arguments, row, (i * THREADS + thread) * VECTOR, items[i], folds);
  }
}
