// Folds over the rows of each column, and what is made of them: a number for each column, or work on each element with the folds of
// its column. A cluster of CLUSTER blocks takes LANES vectors of columns: each of its blocks folds every CLUSTER-th group of DEEP
// rows, the blocks' results meet through their shared memories, always in the same order, and each block finishes its share of the
// columns. Folds that are made of others take another pass over the rows: these stay in registers where they fit, else they come
// out of the caches.
//
// schedules/cuda/columns.cpp and fold_texts.cpp write these ahead of this text, what row_folds.cuh lists of folds, and folds.cuh:
//   COLUMNS, STRIPS           their number; how many times LANES vectors they take
//   VECTOR                    columns that a thread takes together: a divisor of COLUMNS
//   LANES, DEEP               threads side by side, at most a warp, and on top of each other
//   UNROLL                    rows that a thread has under way
//   HELD                      whether these are all of its rows
//   CLUSTER                   blocks of a cluster
//   PART_BYTES                of the largest result of a fold
//   HAS_NUMBERS               whether any result is one of each column
//   Arguments, Extents        pointers: the results, and what is read; rows
//   load_item(a, batch, row, column, item)          what is read of VECTOR columns of a row
//   finish(a, batch, row, column, item, folds)      work on them, and their store
//   finish_numbers(a, batch, column, folds)         results that each column has one of

constexpr int THREADS = LANES * DEEP, WARPS = THREADS / 32;
constexpr int WIDTH = LANES * VECTOR;     // columns of a block
constexpr int SHARE = WIDTH / CLUSTER;    // that it finishes
constexpr int STEP = CLUSTER * DEEP;      // rows that a cluster takes together

typedef Folds Columns[VECTOR];

struct Meeting {
  __align__(16) unsigned char parts[WARPS * WIDTH * PART_BYTES];  // of a fold: those of each warp
  u64 totals[FOLDS][WIDTH];                                       // of this block
  u64 joined[CLUSTER > 1 ? FOLDS : 1][WIDTH];                     // of the cluster, for further passes
};
struct Place {
  long long batch;
  int first, lane, column, rows;
};

template <int PASS>
DEVICE void add_item(const Item& item, const Columns& folds, const Extents& e, int row, Columns& own) {
#pragma unroll
  for (int j = 0; j < VECTOR; j++) add_element<PASS>(item, folds[j], e, j, row, own[j]);
}

// What all threads of a block have of a column, in one order.
template <int PASS, int F = 0>
DEVICE void share_folds(Columns& own, int lane, Meeting& meeting) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS) {
      typedef decltype(identity<F>()) T;
      T(*parts)[WIDTH] = (T(*)[WIDTH])meeting.parts;
      if constexpr (F > 0) __syncthreads();  // the parts of the fold before have been read
#pragma unroll
      for (int j = 0; j < VECTOR; j++) {
        T x = fold_of<F>(own[j]);
#pragma unroll
        for (int lanes = LANES; lanes < 32; lanes *= 2) x = join<F>(x, __shfl_xor_sync(~0u, x, lanes));
        if (threadIdx.x % 32 < LANES) parts[threadIdx.x / 32][lane * VECTOR + j] = x;
      }
      __syncthreads();
      for (int c = threadIdx.x; c < WIDTH; c += THREADS) {
        T total = parts[0][c];
#pragma unroll
        for (int i = 1; i < WARPS; i++) total = join<F>(total, parts[i][c]);
        *(T*)&meeting.totals[F][c] = total;
      }
    }
    share_folds<PASS, F + 1>(own, lane, meeting);
  }
}

// What the cluster has of column c of a block, of passes FIRST to LAST.
template <int FIRST, int LAST, int F = 0>
DEVICE void take_totals(const Meeting& meeting, int c, Folds& folds) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() >= FIRST && pass_of<F>() <= LAST) {
      typedef decltype(identity<F>()) T;
      if constexpr (CLUSTER == 1) {
        fold_of<F>(folds) = *(const T*)&meeting.totals[F][c];
      } else {
        T of[CLUSTER];
#pragma unroll
        for (int i = 0; i < CLUSTER; i++) {
          const u64 bits = read_bits_at(address_at(shared_address(&meeting.totals[F][c]), i));
          of[i] = *(const T*)&bits;
        }
#pragma unroll
        for (int i = 1; i < CLUSTER; i++) of[0] = join<F>(of[0], of[i]);
        fold_of<F>(folds) = of[0];
      }
    }
    take_totals<FIRST, LAST, F + 1>(meeting, c, folds);
  }
}

template <int PASS, int F = 0>
DEVICE void keep_joined(const Folds& folds, int c, Meeting& meeting) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS) *(decltype(identity<F>())*)&meeting.joined[F][c] = fold_of<F>(folds);
    keep_joined<PASS, F + 1>(folds, c, meeting);
  }
}
template <int PASS, int F = 0>
DEVICE void take_joined(const Meeting& meeting, int c, Folds& folds) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS)
      fold_of<F>(folds) = *(const decltype(identity<F>())*)&(CLUSTER > 1 ? meeting.joined : meeting.totals)[F][c];
    take_joined<PASS, F + 1>(meeting, c, folds);
  }
}

/// All threads learn what a pass made of their columns.
template <int PASS>
DEVICE void learn(Meeting& meeting, int lane, Columns& folds) {
  if constexpr (CLUSTER > 1) {
    for (int c = threadIdx.x; c < WIDTH; c += THREADS) {
      Folds of;
      take_totals<PASS, PASS>(meeting, c, of);
      keep_joined<PASS>(of, c, meeting);
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < VECTOR; j++) take_joined<PASS>(meeting, lane * VECTOR + j, folds[j]);
}

/// UNROLL rows from `row` on.
DEVICE void load_items(const Arguments& a, const Place& place, int row, Item (&items)[UNROLL]) {
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (row + u * STEP < place.rows) load_item(a, place.batch, row + u * STEP, place.column, items[u]);
}
template <int PASS>
DEVICE void add_items(const Item (&items)[UNROLL], const Columns& folds, const Extents& e, const Place& place, int row,
                      Columns& own) {
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (row + u * STEP < place.rows) add_item<PASS>(items[u], folds, e, row + u * STEP, own);
}

template <int PASS>
DEVICE void walk(const Arguments& a, const Place& place, bool is_there, Item (&held)[UNROLL], Columns& folds, Meeting& meeting) {
  if constexpr (PASS < PASSES) {
    const Extents e = extents_of(a);
    Columns own;
#pragma unroll
    for (int j = 0; j < VECTOR; j++) begin(own[j]);
    if constexpr (HELD) {
      if (is_there) add_items<PASS>(held, folds, e, place, place.first, own);
    } else if (is_there) {
      int row = place.first;
      for (; row + (UNROLL - 1) * STEP < place.rows; row += UNROLL * STEP) {
        Item items[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) load_item(a, place.batch, row + u * STEP, place.column, items[u]);
        loads_begin_before();
#pragma unroll
        for (int u = 0; u < UNROLL; u++) add_item<PASS>(items[u], folds, e, row + u * STEP, own);
      }
      if (row < place.rows) {  // what is left is under way together, too
        Item items[UNROLL];
        load_items(a, place, row, items);
        loads_begin_before();
        add_items<PASS>(items, folds, e, place, row, own);
      }
    }
    share_folds<PASS>(own, place.lane, meeting);
    if constexpr (CLUSTER > 1) cluster_sync_shared();
    else __syncthreads();
    if constexpr (PASS + 1 < PASSES || HAS_ROW) learn<PASS>(meeting, place.lane, folds);
    walk<PASS + 1>(a, place, is_there, held, folds, meeting);
  }
}

DEVICE void finish_rows(const Arguments& a, const Place& place, const Item (&held)[UNROLL], const Columns& folds) {
  if constexpr (HELD) {
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      const int row = place.first + u * STEP;
      if (row < place.rows) finish(a, place.batch, row, place.column, held[u], folds);
    }
  } else {
    for (int row = place.first; row < place.rows; row += STEP) {
      Item item;
      load_item(a, place.batch, row, place.column, item);
      finish(a, place.batch, row, place.column, item, folds);
    }
  }
}

extern "C" __global__ void __launch_bounds__(LANES* DEEP) KERNEL(const Arguments arguments) {
  __shared__ Meeting meeting;
  const int rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0, strip = blockIdx.x / CLUSTER % STRIPS;
  Place place;
  place.batch = blockIdx.x / (CLUSTER * STRIPS);
  place.first = rank * DEEP + threadIdx.x / LANES;
  place.lane = threadIdx.x % LANES;
  place.column = (strip * LANES + place.lane) * VECTOR;
  place.rows = extents_of(arguments).rows;
  const bool is_there = place.column < COLUMNS;
  Item held[UNROLL];
  Columns folds;
  allow_next_kernel();
  wait_previous_kernels();
  if constexpr (HELD) {
    if (is_there) load_items(arguments, place, place.first, held);
    loads_begin_before();
  }
  walk<0>(arguments, place, is_there, held, folds, meeting);
  if constexpr (HAS_ROW) {
    if (is_there) finish_rows(arguments, place, held, folds);
  }
  if constexpr (HAS_NUMBERS) {
    for (int c = rank * SHARE + threadIdx.x; c < (rank + 1) * SHARE; c += THREADS) {
      if (strip * WIDTH + c >= COLUMNS) break;
      Folds of;
      take_totals<0, PASSES - 1>(meeting, c, of);
      finish_numbers(arguments, place.batch, strip * WIDTH + c, of);
    }
  }
  if constexpr (CLUSTER > 1) cluster_sync();  // nobody leaves while its results are read
}
