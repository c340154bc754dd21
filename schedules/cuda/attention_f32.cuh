// out = softmax(scale q k^T + mask) v for every head, in f32. Tensor cores multiply TF32, so every product is three: that of
// the numbers rounded to TF32, and those of what that leaves of one with the other (Markidis et al., "NVIDIA Tensor Core
// Programmability, Performance & Precision", 2018). Tensor cores cut what they add, which over many keys is thousands of
// times their last bit: so a few steps of a fold begin with nothing, and are added to the others by themselves. The second
// product folds over keys, which lie apart in v, and Hopper's warpgroups multiply f32 only where the fold lies together; so
// these are the products of single warps. A block is 4 warps of 16 queries. They walk the keys from the first block up; blocks
// come into shared memory by asynchronous copies, the next while this one is multiplied.
//
// The order in which a product folds is free: its steps take 8 columns (or keys) in the order that lets a thread read what
// it needs of two steps, or of four groups of results, as 16 bytes.
//
// schedules/cuda/attention.cpp writes these ahead of this text:
//   HEADS, Extents, extents_of, DEPTH
//   WIDTH                     DEPTH rounded up to 32 columns: what is beyond is zero
//   CAUSAL, SCALE, CONSUMERS, HEAD_GROUP, MASKED, ...   as in attention.cuh; CONSUMERS is 1
//   BLOCK                     keys of a block, a multiple of 8
//   BLOCKS_PER_MULTIPROCESSOR at least so many
//   lie_q, lie_k, lie_v, lie_out   Lie: where a tensor begins, and its strides
// and attention_scores.cuh.

// Rows of these pitches are read without bank conflicts.
constexpr int K_PITCH = WIDTH + 16, V_PITCH = WIDTH + 4;  // floats
constexpr int STAGE_FLOATS = BLOCK * (K_PITCH + V_PITCH);

typedef float Result[WIDTH / 8][4];
typedef float Queries[WIDTH / 8][4];

// 16 rows and 8 of depth, rounded and what that leaves.
struct Rows16 {
  float near[4], rest[4];
  DEVICE Rows16(float a0, float a1, float a2, float a3) {
    const float a[4] = {a0, a1, a2, a3};
#pragma unroll
    for (int i = 0; i < 4; i++) near[i] = nearest_tf32(a[i]), rest[i] = rest_of(a[i], near[i]);
  }
};
// c += a b in TF32: 16 rows, 8 columns and 8 of depth.
DEVICE void multiply_near(float* c, const float (&a)[4], float b0, float b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}
// A few steps of a fold.
struct Steps {
  float near[4] = {}, rest[4] = {};
  DEVICE void multiply(const Rows16& a, float b0, float b1) {
    const float near0 = nearest_tf32(b0), near1 = nearest_tf32(b1);
    multiply_near(rest, a.rest, near0, near1);
    multiply_near(rest, a.near, rest_of(b0, near0), rest_of(b1, near1));
    multiply_near(near, a.near, near0, near1);
  }
  DEVICE void add_to(float* sum) const {
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] += near[i] + number_or_none(rest[i]);
  }
};

template <int PITCH>
DEVICE void load_keys(const Extents& e, u32 to, const float* from, long long stride, int key) {
  constexpr int PIECES = WIDTH / 4;
#pragma unroll
  for (int i = 0; i < (BLOCK * PIECES + 127) / 128; i++) {
    const int at = i * 128 + threadIdx.x, row = at / PIECES, column = at % PIECES * 4;
    if (BLOCK * PIECES % 128 != 0 && row >= BLOCK) break;
    const bool is_there = key + row < e.keys && column < DEPTH;
    copy_later(to + (row * PITCH + column) * 4, is_there ? from + (key + row) * stride + column : from, is_there);
  }
}

// Columns 16 p + 4 t to + 3 of a row are what lane t of it needs for steps 2 p and 2 p + 1.
DEVICE void load_queries(Queries& q, const Extents& e, const float* from, int row, int t) {
#pragma unroll
  for (int p = 0; p < WIDTH / 16; p++) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int column = 16 * p + 4 * t;
      float4 x = make_float4(0, 0, 0, 0);
      if (row + 8 * r < e.queries && column < DEPTH)
        x = __ldg((const float4*)(from + (row + 8 * r) * lie_q(e).row + column));
      q[2 * p][r] = x.x, q[2 * p][2 + r] = x.y;
      q[2 * p + 1][r] = x.z, q[2 * p + 1][2 + r] = x.w;
    }
  }
}

DEVICE void multiply_scores(Scores& s, const Queries& q, u32 k, int g, int t) {
#pragma unroll
  for (int p = 0; p < WIDTH / 16; p++) {
    const Rows16 even(q[2 * p][0], q[2 * p][1], q[2 * p][2], q[2 * p][3]);
    const Rows16 odd(q[2 * p + 1][0], q[2 * p + 1][1], q[2 * p + 1][2], q[2 * p + 1][3]);
#pragma unroll
    for (int i = 0; i < BLOCK / 8; i++) {
      const float4 x = read_shared(k + ((8 * i + g) * K_PITCH + 16 * p + 4 * t) * 4);
      Steps steps;
      steps.multiply(even, x.x, x.y);
      steps.multiply(odd, x.z, x.w);
      steps.add_to(s + 4 * i);
    }
  }
}

// A lane's scores of keys 2 t and 2 t + 1 are those of steps t and t + 4 of the fold. Column g of results e of group c is
// column 32 c + 4 g + e.
DEVICE void multiply_values(Result& o, const Scores& s, u32 v, int g, int t) {
#pragma unroll
  for (int i = 0; i < BLOCK / 8; i++) {
    const Rows16 p(s[4 * i], s[4 * i + 2], s[4 * i + 1], s[4 * i + 3]);
#pragma unroll
    for (int c = 0; c < WIDTH / 32; c++) {
      const u32 at = v + ((8 * i + 2 * t) * V_PITCH + 32 * c + 4 * g) * 4;
      const float4 x = read_shared(at), y = read_shared(at + V_PITCH * 4);
      Steps steps[4];
      steps[0].multiply(p, x.x, y.x);
      steps[1].multiply(p, x.y, y.y);
      steps[2].multiply(p, x.z, y.z);
      steps[3].multiply(p, x.w, y.w);
#pragma unroll
      for (int e = 0; e < 4; e++) steps[e].add_to(o[4 * c + e]);
    }
  }
}

DEVICE void rescale(Result& o, const Rows& rows) {
#pragma unroll
  for (int n = 0; n < WIDTH / 8; n++) {
#pragma unroll
    for (int i = 0; i < 4; i++) o[n][i] *= rows.factor[i / 2];
  }
}

DEVICE void store_result(const Extents& e, float* out, const Result& o, const Rows& rows, int row, int t) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const float scale = 1.f / row_sum(rows.sum[r]);
    if (row + 8 * r >= e.queries) continue;
    float* line = out + (row + 8 * r) * lie_out(e).row;
#pragma unroll
    for (int c = 0; c < WIDTH / 32; c++) {
      const int column = 32 * c + 8 * t;
      if (column >= DEPTH) continue;
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int i = 2 * r + half;
        *(float4*)(line + column + 4 * half) = make_float4(o[4 * c][i] * scale, o[4 * c + 1][i] * scale,
                                                           o[4 * c + 2][i] * scale, o[4 * c + 3][i] * scale);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(128, BLOCKS_PER_MULTIPROCESSOR) KERNEL(const Arguments arguments) {
  extern __shared__ float4 raw[];
  const u32 stages = shared_address(raw);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const Extents e = extents_of(arguments);
  const Tile tile = tile_at(e, blockIdx.x);
  const int row = tile.query + 16 * warp + g;
  const float* k = arguments.k + lie_k(e).at(tile);
  const float* v = arguments.v + lie_v(e).at(tile);
  const auto load = [&](int block) {
    const u32 stage = stages + block % 2 * STAGE_FLOATS * 4;
    load_keys<K_PITCH>(e, stage, k, lie_k(e).row, block * BLOCK);
    load_keys<V_PITCH>(e, stage + BLOCK * K_PITCH * 4, v, lie_v(e).row, block * BLOCK);
    copies_commit();
  };
  allow_next_kernel();
  wait_previous_kernels();
  load(0);
  Queries q;
  load_queries(q, e, arguments.q + lie_q(e).at(tile), row, t);
  Result o = {};
  Rows rows = no_rows();
  const int blocks = blocks_before(e, tile.query + TILE);
  for (int block = 0; block < blocks; block++) {
    if (block + 1 < blocks) load(block + 1);
    else copies_commit();
    Scores s = {};
    if constexpr (MASKED) load_mask(s, e, arguments.mask, tile, row, block * BLOCK, 2 * t);
    copies_wait<1>();
    __syncthreads();
    const u32 stage = stages + block % 2 * STAGE_FLOATS * 4;
    multiply_scores(s, q, stage, g, t);
    hide_unseen(s, e, row, 2 * t, block * BLOCK);
    weigh(s, rows);
    rescale(o, rows);
    multiply_values(o, s, stage + BLOCK * K_PITCH * 4, g, t);
    __syncthreads();  // the stage may be filled again
  }
  store_result(e, arguments.out + lie_out(e).at(tile), o, rows, row, t);
}
