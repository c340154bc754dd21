// out[place] = the last of the updates that are written there, or x[place] where none is: a scatter that replaces.
// A batch's places are cut into runs, each of which a block owns. It keeps for each place the greatest number of an update in
// shared memory. The blocks of a cluster share the walk over all indices of their batch, and tell the owner what they find. Then
// a block writes each of its places once, so results do not depend on the order of threads.
//
// schedules/cuda/place.cpp writes these ahead of this text:
//   PLACES, COLUMNS      places of a batch; elements of each
//   UPDATES              of a batch
//   OWN, CLUSTER         places of a block; blocks of a cluster
//   INDICES              of an update
//   ONTO_ZEROS           there is no x
//   PART                 updates whose least and greatest index are given, which are places then; 0: of none
//   Index, Element       types; Arguments: pointers out, x, indices, updates, least, greatest
// and behind it:
//   place_of(indices, i) the place of update i in its batch

constexpr int THREADS = 512, TOGETHER = OWN * CLUSTER, RUNS = (PLACES + TOGETHER - 1) / TOGETHER;

/// Counted from the end where negative; the nearest one where out of range.
DEVICE int settled(long long index, int extent) {
  if (index < 0) index += extent;
  return (int)(index < 0 ? 0 : index >= extent ? extent - 1 : index);
}

DEVICE int place_of(const Index* indices, int i);

DEVICE void sync_all() {
  if constexpr (CLUSTER > 1) cluster_sync_shared();
  else __syncthreads();
}

/// Tells the owner of its place of update i.
DEVICE void note(int* last, const Index* indices, int i, int first_of_all) {
  const int at = place_of(indices, i) - first_of_all;
  if (at < 0 || at >= TOGETHER) return;
  if constexpr (CLUSTER > 1) raise_at(address_at(shared_address(&last[at % OWN]), at / OWN), i);
  else atomicMax(&last[at], i);
}

/// Each lane looks at the bounds of a part, and a warp walks those that may have places of the cluster. Neighbouring parts are those
/// of other warps.
DEVICE void walk_parts(const Arguments& arguments, int* last, int rank, int first_of_all) {
  constexpr int WARPS = CLUSTER * THREADS / 32, PARTS = PART > 0 ? UPDATES / PART : 0;
  const int warp = rank * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int base = 0; base < PARTS; base += 32 * WARPS) {
    const int own = base + lane * WARPS + warp;
    const bool meets = own < PARTS && arguments.greatest[own] >= first_of_all &&
                       arguments.least[own] < first_of_all + TOGETHER;
    for (unsigned found = __ballot_sync(~0u, meets); found != 0; found &= found - 1) {
      const int start = (base + (__ffs(found) - 1) * WARPS + warp) * PART;
#pragma unroll 4
      for (int i = lane; i < PART; i += 32) note(last, arguments.indices, start + i, first_of_all);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  extern __shared__ int last[];
  const int rank = blockIdx.x % CLUSTER, run = blockIdx.x / CLUSTER % RUNS, batch = blockIdx.x / (CLUSTER * RUNS);
  const int first_of_all = run * TOGETHER, first = first_of_all + rank * OWN;
  const int count = max(0, min(OWN, PLACES - first));
  for (int i = threadIdx.x; i < count; i += THREADS) last[i] = -1;
  allow_next_kernel();
  wait_previous_kernels();
  sync_all();
  const Index* indices = arguments.indices + (long long)batch * UPDATES * INDICES;
  if constexpr (PART > 0) {
    walk_parts(arguments, last, rank, first_of_all);
  } else {
#pragma unroll 4
    for (int i = rank * THREADS + threadIdx.x; i < UPDATES; i += CLUSTER * THREADS)
      note(last, indices, i, first_of_all);
  }
  sync_all();
  const long long start = ((long long)batch * PLACES + first) * COLUMNS;
  const Element* updates = arguments.updates + (long long)batch * UPDATES * COLUMNS;
  for (long long e = threadIdx.x; e < (long long)count * COLUMNS; e += THREADS) {
    const int from = last[e / COLUMNS];
    arguments.out[start + e] = from < 0 ? (ONTO_ZEROS ? Element(0) : arguments.x[start + e])
                                        : updates[(long long)from * COLUMNS + e % COLUMNS];
  }
}
