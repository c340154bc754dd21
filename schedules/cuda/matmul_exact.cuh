// Of the matmul template (see matmul.cuh): f32 by three products in TF32 for each, as in warps.cuh: that of the numbers, and
// those of each with what TF32 leaves of the other, its rest. x is rounded in the registers of the consumers, which read it
// as fragments; tensor cores read y from shared memory and cut it there, and the producer's other warps write its rests beside
// it. Only one side may be cut, not rounded: where both are, what no product has, the rests' own, makes all too small.
//
// Tensor cores cut what they add: the numbers' products of a few stages begin with nothing, and are added to the others by
// themselves. Those with rests are so much smaller that they are added on the tensor cores to the end. What was cut is given
// back in the mean, or it would grow from layer to layer; where no number has a rest, nothing is cut of whole numbers, which
// stay so.

constexpr int SLICES = STAGE_ROW / 32;  // of a stage
constexpr int TOGETHER = 4 / SLICES;    // stages
// Of a sum: about as much for each slice, seen for numbers of both signs and for those behind ReLU.
constexpr float CUT = (STEPS / SPLIT < TOGETHER ? STEPS / SPLIT : TOGETHER) * SLICES * 0x1p-26f;
constexpr int SPLITTERS = 96;           // threads that write rests

/// 64 rows of x, 8 deep: a thread's part.
struct Slice {
  u32 near[4], rest[4];
};

DEVICE void load_slice(u32 stage, const Consumer& me, int slice, Slice& to) {
  const int row = 16 * me.warp + me.lane % 16, swizzle = STAGE_ROW == 128 ? row & 7 : row >> 1 & 3;
  u32 x[4];
  load_matrices<false, 4>(stage + row * STAGE_ROW + ((2 * slice + me.lane / 16 ^ swizzle) << 4), x);
#pragma unroll
  for (int e = 0; e < 4; e++) {
    to.near[e] = __float_as_uint(nearest_tf32(__uint_as_float(x[e])));
    to.rest[e] = __float_as_uint(rest_of(__uint_as_float(x[e]), __uint_as_float(to.near[e])));
  }
}
DEVICE void wait_stage(const Shared& s, int stage, int parity) {
  barrier_wait(s.full + 8 * stage, parity);
  barrier_wait(s.rests + 8 * stage, parity);
}

// Multiplies `steps` stages; returns the last, yet to be released. While a slice is multiplied, the next is read.
DEVICE int accumulate(const Shared& s, Consumer& me, int steps, Sums& sums) {
  static_assert(BLOCKS == 1 && SLICES % 2 == 0, "slices take turns in two sets of registers");
  const u32 own_x = s.x + (PING_PONG ? 0 : me.index * CONSUMER_X * STAGE_ROW);
  int stage = me.step % STAGES, parity = me.step / STAGES & 1;
  float given[TILE_Y / 2], with_rests[TILE_Y / 2];
  Slice slices[2];
  wait_stage(s, stage, parity);
  load_slice(own_x + stage * X_BYTES, me, 0, slices[0]);
  int last = stage;
  for (int k = 0; k < steps; k++) {
    const u32 x = own_x + stage * X_BYTES;
    const u64 y = operand_descriptor<STAGE_ROW>(s.y + stage * Y_STAGE, 16);
    const int next = stage + 1 == STAGES ? 0 : stage + 1;
    if (next == 0) parity ^= 1;
#pragma unroll
    for (int q = 0; q < SLICES; q++) {
      Slice& slice = slices[q % 2];
      products_begin();
      multiply(with_rests, slice.rest, y + 2 * q, (k | q) != 0);
      multiply(given, slice.near, y + 2 * q, (k % TOGETHER | q) != 0);
      multiply(with_rests, slice.near, y + 2 * q + (Y_BYTES >> 4), 1);
      products_commit();
      products_wait<1>();
      Slice& other = slices[(q + 1) % 2];
      hold(other.near), hold(other.rest);  // until here the products before have read them
      if (q + 1 < SLICES) {
        load_slice(x, me, q + 1, other);
      } else if (k + 1 < steps) {
        wait_stage(s, next, parity);
        load_slice(own_x + next * X_BYTES, me, 0, other);
      }
    }
    products_wait<0>();
    hold(given), hold(with_rests);
    if (k + 1 < steps) release(s, me, stage);
    if (k % TOGETHER == TOGETHER - 1 || k + 1 == steps) {
#pragma unroll
      for (int i = 0; i < TILE_Y / 2; i++) sums[0][i] = k < TOGETHER ? given[i] : sums[0][i] + given[i];
    }
    last = stage;
    stage = next;
  }
#pragma unroll
  for (int i = 0; i < TILE_Y / 2; i++) {
    const float rests = number_or_none(with_rests[i]);
    if (rests != 0.f) sums[0][i] += fmaf(sums[0][i], CUT, rests);
  }
  me.step += steps;
  return last;
}

DEVICE void init_rests(const Shared& s) {
  for (int i = 0; i < STAGES; i++) barrier_init(s.rests + 8 * i, SPLITTERS / 32);
}

/// What the tensor cores cut off, rounded to what they keep.
DEVICE u32 rest_of_cut(u32 x) {
  constexpr u32 kept = 0xffffe000, half = 0x1000;
  return __float_as_uint(__uint_as_float(x) - __uint_as_float(x & kept)) + half;
}

// Of all stages of the block's tiles, by the producer's warps but the first. They lie as y does.
DEVICE void make_rests(const Shared& s, const Extents& extents, int steps) {
  int stage = 0, parity = 0;
  const int tiles = tile_count(extents), thread = threadIdx.x - 32;
  for (int t = blockIdx.x / CLUSTER; t < tiles; t += gridDim.x / CLUSTER) {
    for (int k = 0; k < steps; k++) {
      barrier_wait(s.full + 8 * stage, parity);
      const u32 y = s.y + stage * Y_STAGE;
#pragma unroll 4
      for (int at = thread * 16; at < Y_BYTES; at += SPLITTERS * 16) {
        const uint4 v = read_shared_bits(y + at);
        write_shared_bits(y + Y_BYTES + at,
                          make_uint4(rest_of_cut(v.x), rest_of_cut(v.y), rest_of_cut(v.z), rest_of_cut(v.w)));
      }
      fence_shared_for_engines();
      __syncwarp();
      if (thread % 32 == 0) barrier_arrive(s.rests + 8 * stage);
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  }
}
