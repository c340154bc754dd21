// out[row, column] = finish(the part's x[row, column in the part]). A thread makes ITEMS vectors: it finds the part that each
// lies in, and has all of their loads under way before it finishes the first. Neighbours mostly lie in one part.
//
// schedules/cuda/concat.cpp writes these ahead of this text:
//   Extents, COLUMNS, VECTOR  of the result, the extents have `rows`; VECTOR divides every part's columns
//   ITEMS, THREADS            see above; threads of a block
//   Arguments                 pointers: out, and what is read
//   place_of(a, row, column)  where a vector is read
//   finish(a, row, column, x) the work on a vector, and its store

constexpr u32 VECTORS = COLUMNS / VECTOR;

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  const u32 first = blockIdx.x * (ITEMS * THREADS) + threadIdx.x, all = extents_of(arguments).rows * VECTORS;
  allow_next_kernel();
  wait_previous_kernels();
  float x[ITEMS][VECTOR];
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const u32 at = min(first + i * THREADS, all - 1), row = at / VECTORS;
    load_vector(place_of(arguments, row, (int)(at - row * VECTORS) * VECTOR), x[i]);
  }
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const u32 at = first + i * THREADS, row = at / VECTORS;
    if (at < all) finish(arguments, row, (int)(at - row * VECTORS) * VECTOR, x[i]);
  }
}
