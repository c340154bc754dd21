// out[place] = the last of the updates that are written there, or x[place] where none is: a scatter that replaces.
// A batch's places are cut into runs. A block owns a run, walks all indices of its batch, and keeps for each place the greatest
// number of an update in shared memory; then it writes each place once, so results do not depend on the order of threads.
//
// schedules/cuda/place.cpp writes these ahead of this text:
//   PLACES, COLUMNS      places of a batch; elements of each
//   UPDATES              of a batch
//   OWN                  places of a block
//   INDICES              of an update
//   ONTO_ZEROS           there is no x
//   Index, Element       types; Arguments: pointers out, x, indices, updates
// and behind it:
//   place_of(indices, i) the place of update i in its batch

constexpr int THREADS = 512, RUNS = (PLACES + OWN - 1) / OWN;

/// Counted from the end where negative; the nearest one where out of range.
DEVICE int settled(long long index, int extent) {
  if (index < 0) index += extent;
  return (int)(index < 0 ? 0 : index >= extent ? extent - 1 : index);
}

DEVICE int place_of(const Index* indices, int i);

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  extern __shared__ int last[];
  const int batch = blockIdx.x / RUNS, first = blockIdx.x % RUNS * OWN;
  const int count = min(OWN, PLACES - first);
  for (int i = threadIdx.x; i < count; i += THREADS) last[i] = -1;
  allow_next_kernel();
  wait_previous_kernels();
  __syncthreads();
  const Index* indices = arguments.indices + (long long)batch * UPDATES * INDICES;
#pragma unroll 4
  for (int i = threadIdx.x; i < UPDATES; i += THREADS) {
    const int at = place_of(indices, i) - first;
    if (at >= 0 && at < count) atomicMax(&last[at], i);
  }
  __syncthreads();
  const long long start = ((long long)batch * PLACES + first) * COLUMNS;
  const Element* updates = arguments.updates + (long long)batch * UPDATES * COLUMNS;
  for (long long e = threadIdx.x; e < (long long)count * COLUMNS; e += THREADS) {
    const int from = last[e / COLUMNS];
    arguments.out[start + e] = from < 0 ? (ONTO_ZEROS ? Element(0) : arguments.x[start + e])
                                        : updates[(long long)from * COLUMNS + e % COLUMNS];
  }
}
