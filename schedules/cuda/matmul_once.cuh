// Of the matmul template (see matmul.cuh): a product for each, of elements as the tensor cores read them.

// Products of a stage, and of the last one of each tap: behind the channels both operands are zero, and nothing is added. Parts of
// a filter's gradient have pixels of the next part there.
constexpr int PRODUCTS = STAGE_ROW / 32;
constexpr bool OF_PIXELS = X_ROLE == PIXELS || Y_ROLE == PIXELS;
constexpr int LAST_PRODUCTS = OF_PIXELS || OPEN_DEPTH ? PRODUCTS : ((CHANNELS - (TAP_STEPS - 1) * DEPTH) * ELEMENT_BYTES + 31) / 32;

template <int COUNT>
DEVICE void multiply_stage(Sums& sums, u64 x, u64 y, bool adds) {
  constexpr u32 X_STEP = (X_DEPTH_FAST ? 32 : 128 * 32 / ELEMENT_BYTES) >> 4;
  constexpr u32 Y_STEP = (Y_DEPTH_FAST ? 32 : 128 * 32 / ELEMENT_BYTES) >> 4;
  products_begin();
#pragma unroll
  for (int q = 0; q < COUNT; q++) {
#pragma unroll
    for (int i = 0; i < BLOCKS; i++)
      multiply(sums[i], x + q * X_STEP + i * (64 * STAGE_ROW >> 4), y + q * Y_STEP, adds || q != 0);
  }
  products_commit();
}

// Multiplies `steps` stages. One group of products stays in flight; returns the last stage, yet to be released.
DEVICE int accumulate(const Shared& s, Consumer& me, int steps, Sums& sums) {
  int of_tap = SPLIT > 1 ? me.rank * STEPS / SPLIT % TAP_STEPS : 0;  // the stage's number among those of its tap
  int stage = me.step % STAGES, parity = me.step / STAGES & 1, previous = 0;
  const u32 own_x = s.x + (PING_PONG ? 0 : me.index * CONSUMER_X * STAGE_ROW);
  for (int k = 0; k < steps; k++) {
    barrier_wait(s.full + 8 * stage, parity);
    const u64 x = operand_descriptor<STAGE_ROW>(own_x + stage * X_BYTES, X_DEPTH_FAST ? 16 : 8192);
    const u64 y = operand_descriptor<STAGE_ROW>(s.y + stage * Y_BYTES, Y_DEPTH_FAST ? 16 : 8192);
    bool is_whole = true;
    if constexpr (LAST_PRODUCTS < PRODUCTS) {
      is_whole = ++of_tap < TAP_STEPS;
      if (!is_whole) of_tap = 0;
    }
    if (is_whole) multiply_stage<PRODUCTS>(sums, x, y, k != 0);
    else multiply_stage<LAST_PRODUCTS>(sums, x, y, k != 0);
    products_wait<1>();
    if (k) release(s, me, previous);
    previous = stage;
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
  me.step += steps;
  return previous;
}

DEVICE void init_rests(const Shared& s) {}
DEVICE void make_rests(const Shared& s, const Extents& extents, int steps) {}
