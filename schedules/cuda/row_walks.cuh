// As row_folds.cuh, for rows that do not fit into registers: a cluster of CLUSTER blocks walks a row once for all folds of a pass,
// and once more for a result that is a row. The second time it comes from the L2 cache. Its blocks' results meet through their
// shared memories, always in the same order.
//
// schedules/cuda/row_folds.cpp writes the same ahead of this text, but for ITEMS, EXACT and rows.cuh, and
//   THREADS, CLUSTER          threads of a block, blocks of a row
//   UNROLL                    items that a thread has under way
//   PASSES, pass_of<F>()      how many, and in which fold F is taken

constexpr int WARPS = THREADS / 32, STEP = CLUSTER * THREADS * VECTOR;

template <int PASS>
DEVICE void add_item(const Item& item, const Folds& folds, const Extents& e, int column, Folds& own) {
#pragma unroll
  for (int j = 0; j < VECTOR; j++) add_element<PASS>(item, folds, e, j, column + j, own);
}

// What all threads have, in one order.
template <int PASS, int F = 0>
DEVICE void share_folds(Folds& own, u64 (*parts)[WARPS]) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS) {
      auto x = fold_of<F>(own);
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) x = join<F>(x, __shfl_xor_sync(~0u, x, lanes));
      if (threadIdx.x % 32 == 0) ((decltype(x)*)parts[F])[threadIdx.x / 32] = x;
    }
    share_folds<PASS, F + 1>(own, parts);
  }
}
template <int PASS, int F = 0>
DEVICE void take_folds(Folds& folds, const u64 (*parts)[WARPS]) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS) {
      auto x = identity<F>();
      const auto* all = (const decltype(x)*)parts[F];
      x = all[0];
#pragma unroll
      for (int i = 1; i < WARPS; i++) x = join<F>(x, all[i]);
      fold_of<F>(folds) = x;
    }
    take_folds<PASS, F + 1>(folds, parts);
  }
}

// What the blocks of a cluster have, in one order. Threads that need no more of the folds may leave them as they are.
template <int PASS, int F = 0>
DEVICE void share_totals(const Folds& folds, u64* totals) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS) {
      const auto x = fold_of<F>(folds);
      if (threadIdx.x == 0) *(decltype(identity<F>())*)&totals[F] = x;
    }
    share_totals<PASS, F + 1>(folds, totals);
  }
}
template <int PASS, int F = 0>
DEVICE void take_totals(Folds& folds, const u64* totals) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS) {
      auto x = identity<F>();
#pragma unroll
      for (int i = 0; i < CLUSTER; i++) {
        const u64 bits = read_bits_at(address_at(shared_address(&totals[F]), i));
        const auto other = *(const decltype(x)*)&bits;
        x = i == 0 ? other : join<F>(x, other);
      }
      fold_of<F>(folds) = x;
    }
    take_totals<PASS, F + 1>(folds, totals);
  }
}

template <int PASS>
DEVICE void walk(const Arguments& a, long long row, int begins, int columns, Folds& folds, u64 (*parts)[WARPS],
                 u64* totals) {
  if constexpr (PASS < PASSES) {
    const Extents e = extents_of(a);
    Folds own;
    begin(own);
    int column = begins;
    for (; column + (UNROLL - 1) * STEP < columns; column += UNROLL * STEP) {
      Item items[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; u++) load_item(a, row, column + u * STEP, items[u]);
      loads_begin_before();
#pragma unroll
      for (int u = 0; u < UNROLL; u++) add_item<PASS>(items[u], folds, e, column + u * STEP, own);
    }
    if (column < columns) {  // what is left is under way together, too
      Item items[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; u++)
        if (column + u * STEP < columns) load_item(a, row, column + u * STEP, items[u]);
      loads_begin_before();
#pragma unroll
      for (int u = 0; u < UNROLL; u++)
        if (column + u * STEP < columns) add_item<PASS>(items[u], folds, e, column + u * STEP, own);
    }
    share_folds<PASS>(own, parts);
    __syncthreads();
    take_folds<PASS>(folds, parts);
    if constexpr (CLUSTER > 1) {
      share_totals<PASS>(folds, totals);
      cluster_sync_shared();
      if (PASS + 1 < PASSES || HAS_ROW || threadIdx.x == 0) take_totals<PASS>(folds, totals);
    }
    walk<PASS + 1>(a, row, begins, columns, folds, parts, totals);
  }
}

DEVICE void run_rows(const Arguments& arguments) {
  __shared__ u64 parts[FOLDS][WARPS], totals[FOLDS];
  const int columns = extents_of(arguments).columns, rank = blockIdx.x % CLUSTER;
  const long long row = blockIdx.x / CLUSTER;
  const int begins = (rank * THREADS + threadIdx.x) * VECTOR;
  Folds folds;
  walk<0>(arguments, row, begins, columns, folds, parts, totals);
  if (rank == 0 && threadIdx.x == 0) finish_numbers(arguments, row, folds);
  if constexpr (HAS_ROW) {
    for (int column = begins; column < columns; column += STEP) {
      Item item;
      load_item(arguments, row, column, item);
      finish(arguments, row, column, item, folds);
    }
  }
  if constexpr (CLUSTER > 1) cluster_sync();  // nobody leaves while its results are read
}
