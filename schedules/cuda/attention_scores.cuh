// What both attention kernels do with scores: where their tiles lie, masks, and the online softmax. A thread has the scores
// of two rows, 8 apart, as the tensor cores leave them: s[4 * i + 2 * r + e] is of row r and key 8 * i + e from its first.
//
// Written ahead of this text: see attention.cuh and attention_f32.cuh. `Extents e` are of the run.

constexpr int TILE = 64 * CONSUMERS;
DEVICE int query_tiles(const Extents& e) {
  return (e.queries + TILE - 1) / TILE;
}
DEVICE int tile_count(const Extents& e) {
  return query_tiles(e) * HEADS * e.batch;
}

typedef float Scores[BLOCK / 2];

// What a thread knows of its two rows (8 apart): maximum score, sum of probabilities, and the factor that the last
// block's maximum put on what was summed before.
struct Rows {
  float max[2], sum[2], factor[2];
};

struct Tile {
  int batch, head, query;
};
// Causal: the longest first, in groups of heads.
DEVICE Tile tile_at(const Extents& e, int index) {
  const int tiles = query_tiles(e);
  int head, query;
  if constexpr (CAUSAL) {
    const int group = max(1, KEYS_IN_L2 / e.keys);
    const int first = index / (group * tiles) * group, heads = min(group, e.batch * HEADS - first);
    const int r = index - first * tiles;
    query = tiles - 1 - r / heads;
    head = first + r % heads;
  } else {
    head = index / tiles;
    query = index % tiles;
  }
  return {head / HEADS, head % HEADS, query * TILE};
}

// Key blocks that queries before `end` see.
DEVICE int blocks_before(const Extents& e, int end) {
  return ((CAUSAL ? min(e.keys, end) : e.keys) + BLOCK - 1) / BLOCK;
}

DEVICE float exp2_fast(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
// The four lanes of a row.
DEVICE float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
DEVICE float row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// A mask is the scores' first summand, over their scale: its loads hide behind the wait for the keys. Finite masks
// stay finite, so that a row of the lowest finite value averages; truth values and infinite masks give no weight.
DEVICE float mask_value(u8 x) {
  return x ? 0.f : __int_as_float(0xff800000);
}
DEVICE float mask_value(float x) {
  const float scaled = x * (1.44269504f / SCALE);
  return x - x != 0.f ? x : fmaxf(scaled, -3e38f);
}
template <class T>
DEVICE float mask_value(T x) {
  return mask_value(to_float(x));
}
// `row`: of the thread's first score; the block begins at `key`.
template <class T>
DEVICE void load_mask(Scores& s, const Extents& e, const T* mask, const Tile& tile, int row, int key, int column) {
  const T* first = mask + (long long)(tile.batch / e.mask_share % e.mask_period) * e.mask_batch + (long long)tile.head * e.mask_head + key + column;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const T* line = first + (long long)min(row + 8 * r, e.queries - 1) * e.mask_row;
#pragma unroll
    for (int i = 0; i < BLOCK / 8; i++) {
      float* to = &s[4 * i + 2 * r];
      const int left = e.keys - key - column - 8 * i;  // keys from here on
      if constexpr (MASK_PAIRS) {
        const float2 pair = left > 0 ? to_floats(load_pair(line + 8 * i)) : make_float2(0.f, 0.f);
        to[0] = mask_value(pair.x), to[1] = mask_value(pair.y);
      } else {
        to[0] = left > 0 ? mask_value(line[8 * i]) : 0.f;
        to[1] = left > 1 ? mask_value(line[8 * i + 1]) : 0.f;
      }
    }
  }
}

// Keys that a row must not see get no weight: those at or beyond its limit, counted from the thread's first column.
DEVICE void hide_keys(Scores& s, int limit0, int limit1) {
#pragma unroll
  for (int i = 0; i < BLOCK / 8; i++) {
#pragma unroll
    for (int e = 0; e < 2; e++) {
      if (8 * i + e >= limit0) s[4 * i + e] = __int_as_float(0xff800000);
      if (8 * i + e >= limit1) s[4 * i + 2 + e] = __int_as_float(0xff800000);
    }
  }
}
// `row`, `column`: of the thread's first score, among all queries and in the block that begins at `key`. Every row
// sees some key of the first block that it meets, so that no maximum stays infinite.
DEVICE void hide_unseen(Scores& s, const Extents& e, int row, int column, int key) {
  const int end = e.keys - key, last = row - key + 1;
  if (CAUSAL && row - row % 64 < key + BLOCK - 1) hide_keys(s, min(last, end) - column, min(last + 8, end) - column);
  else if (end < BLOCK) hide_keys(s, end - column, end - column);
}

// e^(scale (score - most)). Masked scores may be so large that only their exact difference will do, and a row may have
// met nothing but masked keys.
DEVICE float shift_of(float most) {
  return !MASKED ? most * SCALE : most < -3.2e38f ? 0.f : most;
}
DEVICE float weight(float score, float shift) {
  return exp2_fast(MASKED ? (score - shift) * SCALE : fmaf(score, SCALE, -shift));
}

// Scores become probabilities, up to the sum of a row.
DEVICE void weigh(Scores& s, Rows& rows) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float most = rows.max[r];
#pragma unroll
    for (int i = 2 * r; i < BLOCK / 2; i += 4) most = fmaxf(most, fmaxf(s[i], s[i + 1]));
    most = row_max(most);
    const float shift = shift_of(most);
    rows.factor[r] = weight(rows.max[r], shift);
    rows.max[r] = most;
    float even = 0, odd = 0;
#pragma unroll
    for (int i = 2 * r; i < BLOCK / 2; i += 4) {
      s[i] = weight(s[i], shift);
      s[i + 1] = weight(s[i + 1], shift);
      even += s[i], odd += s[i + 1];
    }
    rows.sum[r] = fmaf(rows.sum[r], rows.factor[r], even + odd);
  }
}
DEVICE Rows no_rows() {
  const float least = __int_as_float(0xff800000);
  return {{least, least}, {0, 0}, {1, 1}};
}
