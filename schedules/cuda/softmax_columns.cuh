// out = epilogue(softmax(prologue(x))), its logarithm, or running sums instead, along the rows of each column. A thread takes
// VECTOR neighbouring columns and keeps its rows of them in registers: x is read once, by whole lines. Where a thread cannot
// hold all rows, or there are few columns, PARTS threads share the rows of a column and meet in shared memory.
//
// schedules/cuda/softmax_columns.cpp writes these ahead of this text:
//   ROWS, COLUMNS             of a batch
//   VECTOR                    columns that a thread takes together: a divisor of COLUMNS
//   THREADS, PARTS            of a block; threads that share rows
//   NORMALIZE, OUTSIDE        softmax, log_softmax or cumsum, below; what rows behind the last count as
//   EXCLUSIVE, REVERSE        of cumsum
//   STREAM_LOADS, STREAM_STORES   x or the result is the first to leave the L2 cache
//   Arguments, Extents        pointers: out, and what is read; batches
//   load_x(a, batch, row, column, x), finish(a, batch, row, column, x)   VECTOR values of a row; work on them, and their store

constexpr int VECTORS = COLUMNS / VECTOR;            // of a row
constexpr int LANES = THREADS / PARTS;               // vectors side by side in a block
constexpr int OWN = (ROWS + PARTS - 1) / PARTS;      // rows of a thread

typedef float Columns[OWN][VECTOR];

/// What the threads that share a column say to each other: two numbers for each.
struct Meeting {
  float2 said[VECTOR][PARTS][LANES];
};
struct Place {
  int part, lane;
};

/// How much larger the exponentials of a thread's rows are than those of the whole column, whose greatest number and sum are given back.
DEVICE float2 of_column(const Meeting& meeting, const Place& place, int j, float2 own) {
  if constexpr (PARTS == 1) return own;
  float highest = LOWEST, sum = 0;
#pragma unroll
  for (int p = 0; p < PARTS; p++) highest = fmaxf(highest, meeting.said[j][p][place.lane].x);
#pragma unroll
  for (int p = 0; p < PARTS; p++) {
    const float2 other = meeting.said[j][p][place.lane];
    sum += other.y * exp_up_to_zero(other.x - highest);
  }
  return make_float2(highest, sum);
}

template <bool LOGARITHM>
DEVICE void normalize(Columns& x, Meeting& meeting, const Place& place) {
  float2 own[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; j++) {
    float highest = LOWEST, sum = 0;
#pragma unroll
    for (int i = 0; i < OWN; i++) highest = fmaxf(highest, x[i][j]);
#pragma unroll
    for (int i = 0; i < OWN; i++) {
      const float power = exp_up_to_zero(x[i][j] - highest);
      sum += power;
      if constexpr (!LOGARITHM) x[i][j] = power;
    }
    own[j] = make_float2(highest, sum);
    if constexpr (PARTS > 1) meeting.said[j][place.part][place.lane] = own[j];
  }
  if constexpr (PARTS > 1) __syncthreads();
#pragma unroll
  for (int j = 0; j < VECTOR; j++) {
    const float2 all = of_column(meeting, place, j, own[j]);
    const float log = LOGARITHM ? logf(all.y) : 0.f;
    const float scale = (PARTS > 1 ? exp_up_to_zero(own[j].x - all.x) : 1.f) / all.y;
#pragma unroll
    for (int i = 0; i < OWN; i++) x[i][j] = LOGARITHM ? x[i][j] - all.x - log : x[i][j] * scale;
  }
}
DEVICE void softmax(Columns& x, Meeting& meeting, const Place& place) {
  normalize<false>(x, meeting, place);
}
DEVICE void log_softmax(Columns& x, Meeting& meeting, const Place& place) {
  normalize<true>(x, meeting, place);
}

/// Running sums of a thread's rows, added to those of the threads ahead of it.
DEVICE void cumsum(Columns& x, Meeting& meeting, const Place& place) {
#pragma unroll
  for (int j = 0; j < VECTOR; j++) {
    float total = 0;
#pragma unroll
    for (int n = 0; n < OWN; n++) {
      const int i = REVERSE ? OWN - 1 - n : n;
      const float with_own = total + x[i][j];
      x[i][j] = EXCLUSIVE ? total : with_own;
      total = with_own;
    }
    if constexpr (PARTS > 1) meeting.said[j][place.part][place.lane].x = total;
  }
  if constexpr (PARTS > 1) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < VECTOR; j++) {
      float ahead = 0;
#pragma unroll
      for (int p = 0; p < PARTS; p++)
        if (REVERSE ? p > place.part : p < place.part) ahead += meeting.said[j][p][place.lane].x;
#pragma unroll
      for (int i = 0; i < OWN; i++) x[i][j] += ahead;
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const Arguments arguments) {
  __shared__ Meeting meeting;  // of nothing where no thread shares rows
  allow_next_kernel();
  const Place place = {(int)threadIdx.x / LANES, (int)threadIdx.x % LANES};
  const long long number = (long long)blockIdx.x * LANES + place.lane, batch = number / VECTORS;
  const int column = (int)(number % VECTORS) * VECTOR, first = place.part * OWN;
  const bool is_there = batch < extents_of(arguments).batches;
  wait_previous_kernels();
  Columns x;
#pragma unroll
  for (int i = 0; i < OWN; i++) {
    if (is_there && (ROWS % PARTS == 0 || first + i < ROWS)) {
      load_x(arguments, batch, first + i, column, x[i]);
    } else {
#pragma unroll
      for (int j = 0; j < VECTOR; j++) x[i][j] = OUTSIDE;
    }
  }
  NORMALIZE(x, meeting, place);
#pragma unroll
  for (int i = 0; i < OWN; i++)
    if (is_there && (ROWS % PARTS == 0 || first + i < ROWS)) finish(arguments, batch, first + i, column, x[i]);
}
