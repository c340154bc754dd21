// out[place] = x[place] folded with all updates that are put there: a scatter that adds, multiplies, or takes extremes.
// A block has WIDTH columns of a batch and OWN of their places, SEGMENTS times in shared memory. A thread walks the updates of a
// column for one of these copies, so that nobody else writes there; or a warp walks TOGETHER updates of its columns at once, and
// lanes that meet in a place take turns in the order of their updates. Then the copies of a place are folded in their order. So
// results do not depend on the order of threads.
//
// schedules/cuda/scatter_folds.cpp writes these ahead of this text:
//   PLACES, COLUMNS, UPDATES  places of a batch, columns of each, updates of a column
//   INDICES                   of an update, for all of its columns; 0: one for each column
//   OWN, WIDTH, SEGMENTS, TOGETHER  as above; TOGETHER is 1, or so many that they and WIDTH fill a warp
//   RUNS, STRIPS              how often OWN and WIDTH are in PLACES and COLUMNS
//   ONTO_X, INITIAL           is there an x; what is there else
//   IDENTITY, fold(a, b)      of the fold
//   Index, Element, Sum       types; Arguments: pointers out, x, indices, updates
//   to_sum, to_element        from one type to the other
// and behind it:
//   place_of(indices)         the place that the indices of an update say

constexpr int THREADS = 256, COPIES = WIDTH * SEGMENTS, WALKERS = WIDTH * TOGETHER;
constexpr int AHEAD = 8;  // updates of a thread that are under way

/// Counted from the end where negative; the nearest one where out of range.
DEVICE int settled(long long index, int extent) {
  if (index < 0) index += extent;
  return (int)(index < 0 ? 0 : index >= extent ? extent - 1 : index);
}

DEVICE int place_of(const Index* indices);

/// Folds a value into `sums[at]`. Where a warp works together, all of its lanes call it, those without a value at -1.
DEVICE void fold_in(Sum* sums, int at, Sum value) {
  if constexpr (TOGETHER == 1) {
    if (at >= 0) sums[at] = fold(sums[at], value);
  } else {
    const int lane = threadIdx.x % 32;
    const unsigned same = __match_any_sync(~0u, at >= 0 ? at : -1 - lane);
    const int turn = __popc(same & ((1u << lane) - 1)), turns = __reduce_max_sync(~0u, turn);
    for (int t = 0; t <= turns; t++) {
      if (at >= 0 && turn == t) sums[at] = fold(sums[at], value);
      __syncwarp();
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  extern __shared__ __align__(16) unsigned char memory[];
  Sum* const sums = (Sum*)memory;
  const int strip = blockIdx.x % STRIPS, run = blockIdx.x / STRIPS % RUNS;
  const long long batch = blockIdx.x / (STRIPS * RUNS);
  const int first = run * OWN, count = min(OWN, PLACES - first);
  for (int i = threadIdx.x; i < OWN * COPIES; i += THREADS) sums[i] = IDENTITY;
  allow_next_kernel();
  wait_previous_kernels();
  __syncthreads();
  const int lane = threadIdx.x % WIDTH, among = threadIdx.x % WALKERS / WIDTH, segment = threadIdx.x / WALKERS;
  const int column = strip * WIDTH + lane, updates_here = column < COLUMNS ? UPDATES : 0;
  if (segment < SEGMENTS) {
    constexpr int STEP = SEGMENTS * TOGETHER;
    Sum* const own = sums + segment * OWN * WIDTH;
    const Element* updates = arguments.updates + batch * UPDATES * COLUMNS + column;
    const Index* indices = arguments.indices + (INDICES > 0 ? 0 : batch * UPDATES * COLUMNS + column);
    for (int base = segment * TOGETHER; base < UPDATES; base += AHEAD * STEP) {
      int places[AHEAD];
      Element values[AHEAD];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const int at = base + among + u * STEP;
        places[u] = -1;
        if (at >= updates_here) continue;
        const int place = place_of(indices + (long long)at * (INDICES > 0 ? INDICES : COLUMNS)) - first;
        if (place >= 0 && place < count) places[u] = place * WIDTH + lane;
      }
#pragma unroll
      for (int u = 0; u < AHEAD; u++)
        if (places[u] >= 0) values[u] = updates[(long long)(base + among + u * STEP) * COLUMNS];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) fold_in(own, places[u], places[u] >= 0 ? to_sum(values[u]) : Sum{});
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count * WIDTH; i += THREADS) {
    const int at = strip * WIDTH + i % WIDTH;
    if (at >= COLUMNS) continue;
    const long long to = (batch * PLACES + first + i / WIDTH) * COLUMNS + at;
    Sum sum = INITIAL;
    if constexpr (ONTO_X) sum = to_sum(arguments.x[to]);
    for (int s = 0; s < SEGMENTS; s++) sum = fold(sum, sums[s * OWN * WIDTH + i]);
    arguments.out[to] = to_element(sum);
  }
}
