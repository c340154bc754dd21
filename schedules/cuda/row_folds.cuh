// out = epilogue(x, sums) for every row, where each sum adds work on the row's x, and on the sums before it, or takes the greatest.
// What is read of a row is read once and stays in the registers of its THREADS threads; a block takes ROWS_OF_BLOCK rows.
//
// schedules/cuda/row_folds.cpp writes these ahead of this text, and rows.cuh:
//   Extents, extents_of       extents: rows, columns
//   THREADS, ROWS_OF_BLOCK    threads of a row, a power of two or a multiple of 32; rows of a block
//   VECTOR, ITEMS, EXACT      columns that a thread takes together: a divisor of them all; see rows.cuh
//   FOLDS, Sums               how many sums; floats in their order
//   identity<F>(), fold<F>(a, b)   of sum F
//   Arguments                 pointers: out, and what is read
//   Item                      what is read at VECTOR columns
//   load_item(a, row, column, item)
//   term<F>(item, sums, j)    what sum F takes at column j of an item
//   HAS_ROW                   whether there is more than numbers
//   finish(a, row, column, item, sums)   the work on VECTOR columns, and their store
//   finish_numbers(a, row, sums)   further results, of each row a number

template <int F>
DEVICE float warp_fold(float x) {
#pragma unroll
  for (int lanes = LANES / 2; lanes > 0; lanes /= 2) x = fold<F>(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}

template <int F>
DEVICE void add_sums(const Item (&items)[ITEMS], int columns, int thread, Sums& sums,
                     float2 (*parts)[WARPS * ROWS_OF_BLOCK]) {
  if constexpr (F < FOLDS) {
    float own = identity<F>();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      if (!is_inside(columns, thread, i)) continue;
#pragma unroll
      for (int j = 0; j < VECTOR; j++) own = fold<F>(own, term<F>(items[i], sums, j));
    }
    const OfWarps warps(make_float2(warp_fold<F>(own), 0.f), parts[F]);
    float sum = warps.all[0].x;
#pragma unroll
    for (int i = 1; i < WARPS; i++) sum = fold<F>(sum, warps.all[i].x);
    sums[F] = sum;
    add_sums<F + 1>(items, columns, thread, sums, parts);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS* ROWS_OF_BLOCK) KERNEL(const Arguments arguments) {
  __shared__ float2 parts[FOLDS][WARPS * ROWS_OF_BLOCK];
  allow_next_kernel();
  const int thread = threadIdx.x % THREADS, columns = extents_of(arguments).columns;
  const long long wanted = (long long)blockIdx.x * ROWS_OF_BLOCK + threadIdx.x / THREADS;
  const long long rows = extents_of(arguments).rows, row = wanted < rows ? wanted : rows - 1;
  wait_previous_kernels();
  Item items[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    if (is_inside(columns, thread, i)) load_item(arguments, row, (i * THREADS + thread) * VECTOR, items[i]);
  }
  Sums sums;
  add_sums<0>(items, columns, thread, sums, parts);
  if (wanted < rows && thread == 0) finish_numbers(arguments, row, sums);
  if constexpr (!HAS_ROW) return;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    if (wanted < rows && is_inside(columns, thread, i))
      finish(arguments, row, (i * THREADS + thread) * VECTOR, items[i], sums);
  }
}
