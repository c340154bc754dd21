// out = epilogue(NORMALIZE(prologue(row))) for every row. A row is read once and stays in the registers of its THREADS
// threads; a block takes ROWS_OF_BLOCK rows. (Rows that the copy engine brought ahead into a ring in shared memory took 3 %
// longer and more, wherever they were measured.)
//
// schedules/cuda/norm.cpp writes these ahead of this text, and rows.cuh:
//   Extents, extents_of       extents: rows, columns
//   THREADS, ROWS_OF_BLOCK    threads of a row, a power of two or a multiple of 32; rows of a block
//   VECTOR, ITEMS             columns that a thread takes together: a divisor of them all; how many times at most
//   EXACT                     whether every thread has ITEMS of them
//   NORMALIZE, EPSILON        layer_norm, rms_norm, softmax, log_softmax, cumsum or keep, below
//   EXCLUSIVE, REVERSE        whether running sums leave out their own column, and run from the last
//   OUTSIDE                   what columns beyond the row count as
//   Arguments                 pointers: out, and what is read
//   load_x(a, row, column, x), finish(a, row, column, x)   VECTOR values of the row; the work on them and their store

typedef float Row[ITEMS][VECTOR];

/// Columns that a warp holds, of every full item and of the one behind these.
DEVICE float columns_of(int columns, int warp) {
  if constexpr (EXACT) return ITEMS * LANES * VECTOR;
  constexpr int OF_ITEM = THREADS * VECTOR, OF_WARP = LANES * VECTOR;
  const int rest = columns % OF_ITEM - warp * OF_WARP;
  return (float)(columns / OF_ITEM * OF_WARP + min(max(rest, 0), OF_WARP));
}

DEVICE float warp_max(float x) {
#pragma unroll
  for (int lanes = LANES / 2; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}


DEVICE void keep(Row&, int, int, float2*) {}

DEVICE void rms_norm(Row& x, int columns, int, float2* parts) {
  float square = 0;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
#pragma unroll
    for (int j = 0; j < VECTOR; j++) square = fmaf(x[i][j], x[i][j], square);
  }
  const OfWarps warps(make_float2(warp_sum(square), 0.f), parts);
  square = 0;
#pragma unroll
  for (int i = 0; i < WARPS; i++) square += warps.all[i].x;
  const float scale = rsqrtf(square * (1.f / columns) + EPSILON);
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
#pragma unroll
    for (int j = 0; j < VECTOR; j++) x[i][j] *= scale;
  }
}

// Every warp finds the mean of its own part and the squares around it; a part whose n columns have another mean than the
// row adds n (mean of the part - mean of the row)^2 (Chan, Golub and LeVeque, 1979). So the warps meet once.
DEVICE void layer_norm(Row& x, int columns, int thread, float2* parts) {
  float total = 0, square = 0;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
#pragma unroll
    for (int j = 0; j < VECTOR; j++) total += x[i][j];
  }
  const float own = warp_sum(total) / fmaxf(columns_of(columns, thread / 32), 1.f);
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    const bool inside = is_inside(columns, thread, i);
#pragma unroll
    for (int j = 0; j < VECTOR; j++) {
      x[i][j] -= own;
      if (inside) square = fmaf(x[i][j], x[i][j], square);
    }
  }
  const OfWarps warps(make_float2(own, warp_sum(square)), parts);
  float mean = 0;
  square = 0;
#pragma unroll
  for (int i = 0; i < WARPS; i++) mean = fmaf(warps.all[i].x, columns_of(columns, i) * (1.f / columns), mean);
#pragma unroll
  for (int i = 0; i < WARPS; i++) {
    const float apart = warps.all[i].x - mean;
    square += fmaf(apart * apart, columns_of(columns, i), warps.all[i].y);
  }
  const float scale = rsqrtf(square * (1.f / columns) + EPSILON), shift = (own - mean) * scale;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
#pragma unroll
    for (int j = 0; j < VECTOR; j++) x[i][j] = fmaf(x[i][j], scale, shift);
  }
}

/// The highest of a row, and the sum of exp(x - highest): every warp's are scaled to the row's. A row of -infinity
/// has no numbers above LOWEST, and the sum 0; infinity or NaN make the sum NaN.
struct Exponentials {
  float own;  // the highest of this warp
  float highest, sum;
  template <bool STORE>
  DEVICE static Exponentials of(Row& x, float2* parts) {
    Exponentials r;
    r.own = LOWEST, r.highest = LOWEST, r.sum = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
#pragma unroll
      for (int j = 0; j < VECTOR; j++) r.own = fmaxf(r.own, x[i][j]);
    }
    r.own = warp_max(r.own);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
#pragma unroll
      for (int j = 0; j < VECTOR; j++) {
        const float power = exp_up_to_zero(x[i][j] - r.own);
        sum += power;
        if constexpr (STORE) x[i][j] = power;
      }
    }
    const OfWarps warps(make_float2(r.own, warp_sum(sum)), parts);
#pragma unroll
    for (int i = 0; i < WARPS; i++) r.highest = fmaxf(r.highest, warps.all[i].x);
#pragma unroll
    for (int i = 0; i < WARPS; i++)
      r.sum = fmaf(warps.all[i].y, exp_up_to_zero(warps.all[i].x - r.highest), r.sum);
    return r;
  }
};

DEVICE void softmax(Row& x, int, int, float2* parts) {
  const Exponentials found = Exponentials::of<true>(x, parts);
  const float scale = exp_up_to_zero(found.own - found.highest) / found.sum;
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
#pragma unroll
    for (int j = 0; j < VECTOR; j++) x[i][j] *= scale;
  }
}
DEVICE void log_softmax(Row& x, int, int, float2* parts) {
  const Exponentials found = Exponentials::of<false>(x, parts);
  const float log = logf(found.sum);
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
#pragma unroll
    for (int j = 0; j < VECTOR; j++) x[i][j] = x[i][j] - found.highest - log;
  }
}

/// Running sums: those of a thread's vector, added to what the lanes, the warps and the items ahead of it hold.
DEVICE void cumsum(Row& x, int, int thread, float2* parts) {
  const int lane = thread % LANES, own_warp = thread / 32;
  float ahead_of_item = 0;
#pragma unroll
  for (int n = 0; n < ITEMS; n++) {
    const int i = REVERSE ? ITEMS - 1 - n : n;
    float total = 0;
#pragma unroll
    for (int m = 0; m < VECTOR; m++) {
      const int j = REVERSE ? VECTOR - 1 - m : m;
      const float with_own = total + x[i][j];
      x[i][j] = EXCLUSIVE ? total : with_own;
      total = with_own;
    }
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) {
      const float other =
          REVERSE ? __shfl_down_sync(~0u, total, step, LANES) : __shfl_up_sync(~0u, total, step, LANES);
      if (REVERSE ? lane + step < LANES : lane >= step) total += other;
    }
    const float next =
        REVERSE ? __shfl_down_sync(~0u, total, 1, LANES) : __shfl_up_sync(~0u, total, 1, LANES);
    const float of_warp = __shfl_sync(~0u, total, REVERSE ? 0 : LANES - 1, LANES);
    float ahead = ahead_of_item + (lane == (REVERSE ? LANES - 1 : 0) ? 0.f : next);
    const OfWarps warps(make_float2(of_warp, 0.f), parts);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      ahead_of_item += warps.all[w].x;
      if (REVERSE ? w > own_warp : w < own_warp) ahead += warps.all[w].x;
    }
    if constexpr (WARPS > 1) __syncthreads();  // before others write there again
#pragma unroll
    for (int j = 0; j < VECTOR; j++) x[i][j] += ahead;
  }
}

DEVICE void load_row(const Arguments& arguments, int columns, long long row, int thread, Row& x) {
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    if (is_inside(columns, thread, i)) {
      load_x(arguments, row, (i * THREADS + thread) * VECTOR, x[i]);
    } else {
#pragma unroll
      for (int j = 0; j < VECTOR; j++) x[i][j] = OUTSIDE;
    }
  }
}
DEVICE void finish_row(const Arguments& arguments, int columns, long long row, int thread, Row& x) {
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    if (is_inside(columns, thread, i)) finish(arguments, row, (i * THREADS + thread) * VECTOR, x[i]);
  }
}

/// All that a block does.
DEVICE void run_rows(const Arguments& arguments) {
  __shared__ float2 parts[WARPS * ROWS_OF_BLOCK];
  Row x;
  const int thread = threadIdx.x % THREADS, columns = extents_of(arguments).columns;
  const long long wanted = (long long)blockIdx.x * ROWS_OF_BLOCK + threadIdx.x / THREADS;
  const long long rows = extents_of(arguments).rows, row = wanted < rows ? wanted : rows - 1;
  load_row(arguments, columns, row, thread, x);
  NORMALIZE(x, columns, thread, parts);
  if (wanted < rows) finish_row(arguments, columns, row, thread, x);
}
