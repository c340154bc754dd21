// out = epilogue(norm(prologue)) of images whose channels lie innermost, over the pixels of neighbouring channels. A cluster of
// CLUSTER blocks takes an image's strip of LANES vectors of channels, which are whole groups: each of its blocks takes every
// CLUSTER-th group of DEEP pixels. A thread keeps its first HELD pixels in registers and reads the others again; the blocks' sums
// meet through their shared memories, always in the same order. Sums are of differences from the group's first element, so that
// a mean far from zero costs no digits of the variance.
//
// schedules/cuda/image_norm.cpp writes these ahead of this text:
//   COLUMNS, STRIPS, MEMBERS  channels; how many times LANES vectors they take; channels of a group
//   VECTOR                    channels that a thread takes together: a divisor of COLUMNS
//   LANES, DEEP               threads side by side, and on top of each other: a multiple of 32 in all
//   HELD, HOLDS_ALL           pixels that a thread keeps; whether there are no others
//   CLUSTER, EPSILON
//   X                         the type of what is normed
//   Arguments, Extents        pointers: out, and what is read; rows, which are pixels
//   load_x(a, batch, row, column, x), finish(a, batch, row, column, x)   VECTOR values of a pixel; work on them, and their store

constexpr int WIDTH = LANES * VECTOR, GROUPS = WIDTH / MEMBERS, THREADS = LANES * DEEP;
constexpr int STEP = CLUSTER * DEEP;  // pixels that a cluster takes together
constexpr int AHEAD = 2;              // of those that are read again, under way
constexpr int WELL_FILLED = 512;      // threads of a multiprocessor, each of which has 128 registers then

/// VECTOR values as they are kept.
template <class T>
union Kept {
  T elements[VECTOR];
  u32 words[VECTOR * sizeof(T) / 4];
  DEVICE void set(const float (&x)[VECTOR]) {
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int j = 0; j < VECTOR; j += 2) words[j / 2] = pack(T{}, x[j], x[j + 1]);
    } else {
#pragma unroll
      for (int j = 0; j < VECTOR; j++) elements[j] = from_float(T{}, x[j]);
    }
  }
};
typedef Kept<X> Item;

DEVICE void load_item(const Arguments& arguments, long long batch, int row, int column, Item& item) {
  float x[VECTOR];
  load_x(arguments, batch, row, column, x);
  item.set(x);
}

struct Sums {
  float sum[VECTOR], square[VECTOR];
  DEVICE void add(const Item& item, const float (&pivot)[VECTOR]) {
#pragma unroll
    for (int j = 0; j < VECTOR; j++) {
      const float apart = to_float(item.elements[j]) - pivot[j];
      sum[j] += apart;
      square[j] = fmaf(apart, apart, square[j]);
    }
  }
};

/// Of the block's threads on top of each other, for each channel.
DEVICE void add_up(const float (&own)[VECTOR], float (&parts)[DEEP][WIDTH], float (&totals)[WIDTH]) {
  store_vector(&parts[threadIdx.x / LANES][threadIdx.x % LANES * VECTOR], own);
  __syncthreads();
  for (int c = threadIdx.x; c < WIDTH; c += THREADS) {
    float total = parts[0][c];
#pragma unroll 8
    for (int i = 1; i < DEEP; i++) total += parts[i][c];
    totals[c] = total;
  }
  __syncthreads();
}

/// Of the channels of each group.
DEVICE void add_members(const float (&totals)[WIDTH], float (&of_group)[GROUPS]) {
  if constexpr (MEMBERS <= 16) {
    for (int g = threadIdx.x; g < GROUPS; g += THREADS) {
      float total = 0;
#pragma unroll
      for (int i = 0; i < MEMBERS; i++) total += totals[g * MEMBERS + i];
      of_group[g] = total;
    }
  } else {
    for (int g = threadIdx.x / 32; g < GROUPS; g += THREADS / 32) {
      float total = 0;
      for (int i = threadIdx.x % 32; i < MEMBERS; i += 32) total += totals[g * MEMBERS + i];
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) total += __shfl_xor_sync(~0u, total, lanes);
      if (threadIdx.x % 32 == 0) of_group[g] = total;
    }
  }
}

/// Of the blocks of the cluster.
DEVICE float add_blocks(const float& own) {
  if constexpr (CLUSTER == 1) return own;
  float of[CLUSTER], total = 0;
#pragma unroll
  for (int i = 0; i < CLUSTER; i++) of[i] = read_at(address_at(shared_address(&own), i));
#pragma unroll
  for (int i = 0; i < CLUSTER; i++) total += of[i];
  return total;
}

DEVICE void finish_item(const Arguments& arguments, long long batch, int row, int column, const Item& item,
                        const float (&mean)[VECTOR], const float (&scale)[VECTOR]) {
  float x[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; j++) x[j] = (to_float(item.elements[j]) - mean[j]) * scale[j];
  finish(arguments, batch, row, column, x);
}

extern "C" __global__ void __launch_bounds__(THREADS, WELL_FILLED / THREADS) KERNEL(const Arguments arguments) {
  __shared__ __align__(16) float parts[DEEP][WIDTH];
  __shared__ float totals[WIDTH], sums[GROUPS], squares[GROUPS], pivots[GROUPS];
  __shared__ float2 norms[GROUPS];
  const int own = threadIdx.x % LANES * VECTOR;
  const int rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0, strip = blockIdx.x / CLUSTER % STRIPS;
  const long long batch = blockIdx.x / (CLUSTER * STRIPS);
  const int rows = extents_of(arguments).rows, column = strip * WIDTH + own;
  const int first = rank * DEEP + threadIdx.x / LANES;
  allow_next_kernel();
  wait_previous_kernels();
  Item items[HELD];
#pragma unroll
  for (int i = 0; i < HELD; i++)
    load_item(arguments, batch, min(first + i * STEP, rows - 1), column, items[i]);
#pragma unroll
  for (int i = 0; i < HELD; i++) hold(items[i].words);  // packed, not as the floats that they are made of
  if (threadIdx.x < LANES) {
    float x[VECTOR];
    load_x(arguments, batch, 0, column, x);
#pragma unroll
    for (int j = 0; j < VECTOR; j++)
      if ((own + j) % MEMBERS == 0) pivots[(own + j) / MEMBERS] = x[j];
  }
  __syncthreads();
  float pivot[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; j++) pivot[j] = pivots[(own + j) / MEMBERS];
  Sums all = {};
#pragma unroll
  for (int i = 0; i < HELD; i++)
    if (first + i * STEP < rows) all.add(items[i], pivot);
  if constexpr (!HOLDS_ALL) {
    for (int row = first + HELD * STEP; row < rows; row += AHEAD * STEP) {
      Item more[AHEAD];
#pragma unroll
      for (int i = 0; i < AHEAD; i++)
        load_item(arguments, batch, min(row + i * STEP, rows - 1), column, more[i]);
#pragma unroll
      for (int i = 0; i < AHEAD; i++)
        if (row + i * STEP < rows) all.add(more[i], pivot);
    }
  }
  add_up(all.sum, parts, totals);
  add_members(totals, sums);
  __syncthreads();
  add_up(all.square, parts, totals);
  add_members(totals, squares);
  if constexpr (CLUSTER > 1) cluster_sync_shared();
  else __syncthreads();
  const float share = 1.f / ((float)rows * MEMBERS);
  for (int g = threadIdx.x; g < GROUPS; g += THREADS) {
    const float apart = add_blocks(sums[g]) * share;
    const float variance = fmaxf(fmaf(-apart, apart, add_blocks(squares[g]) * share), 0.f);
    norms[g] = make_float2(pivots[g] + apart, rsqrtf(variance + EPSILON));
  }
  __syncthreads();
  float mean[VECTOR], scale[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; j++) {
    const float2 norm = norms[(own + j) / MEMBERS];
    mean[j] = norm.x;
    scale[j] = norm.y;
  }
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    const int row = first + i * STEP;
    if (row < rows) finish_item(arguments, batch, row, column, items[i], mean, scale);
  }
  if constexpr (!HOLDS_ALL) {
    for (int row = first + HELD * STEP; row < rows; row += AHEAD * STEP) {
      Item more[AHEAD];
#pragma unroll
      for (int i = 0; i < AHEAD; i++)
        load_item(arguments, batch, min(row + i * STEP, rows - 1), column, more[i]);
#pragma unroll
      for (int i = 0; i < AHEAD; i++)
        if (row + i * STEP < rows) finish_item(arguments, batch, row + i * STEP, column, more[i], mean, scale);
    }
  }
  if constexpr (CLUSTER > 1) cluster_sync();  // nobody leaves while its sums are read
}
