// out[row, column] = finish(the part's x[row, column in the part]). A thread makes ITEMS vectors: it finds the part that each
// lies in, and has all of their loads under way before it finishes the first. Neighbours mostly lie in one part.
//
// schedules/cuda/concat.cpp writes these ahead of this text:
//   Extents, VECTOR           `rows` and `columns` of the result; VECTOR divides every part's columns
//   ITEMS, THREADS            see above; threads of a block
//   Arguments                 pointers: out, and what is read
//   place_of(a, row, column)  where a vector is read
//   finish(a, row, column, x) the work on a vector, and its store

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  const Extents extents = extents_of(arguments);
  const u32 vectors = (u32)extents.columns / VECTOR, all = extents.rows * vectors;
  const u32 first = blockIdx.x * (ITEMS * THREADS) + threadIdx.x;
  allow_next_kernel();
  wait_previous_kernels();
  float x[ITEMS][VECTOR];
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const u32 at = min(first + i * THREADS, all - 1), row = at / vectors;
    load_vector(place_of(arguments, row, (int)(at - row * vectors) * VECTOR), x[i]);
  }
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const u32 at = first + i * THREADS, row = at / vectors;
    if (at < all) finish(arguments, row, (int)(at - row * vectors) * VECTOR, x[i]);
  }
}
