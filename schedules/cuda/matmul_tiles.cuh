// Of the matmul template (see matmul.cuh): its numbers and places, the tiles that come into the ring, and their products.

constexpr int DEPTH = STAGE_ROW / ELEMENT_BYTES;  // of a stage
constexpr int CLUSTER = CLUSTER_X * CLUSTER_Y * SPLIT;
constexpr int CONSUMER_X = PING_PONG ? TILE_X : TILE_X / 2;  // rows of a tile that a consumer owns
constexpr int BLOCKS = CONSUMER_X / 64;                      // products of 64 rows
constexpr bool MANY_SUMS = BLOCKS * TILE_Y > 256;            // more than 128 registers of sums
constexpr bool OPEN_DEPTH = CHANNELS == 0;
constexpr int TAP_STEPS = OPEN_DEPTH ? 1 << 24 : (CHANNELS + DEPTH - 1) / DEPTH;
constexpr int STEPS = TAP_STEPS * TAPS_X * TAPS_Y * TAPS_Z;
constexpr bool SPANS_FRAMES = TAPS_Z > 1 || FRAMES > 1 || OUT_FRAMES > 1;
constexpr int X_BYTES = TILE_X * STAGE_ROW, Y_BYTES = TILE_Y * STAGE_ROW;
constexpr int Y_STAGE = (EXACT ? 2 : 1) * Y_BYTES;  // y, and the rests of its elements

constexpr int OWN_Y = TILE_Y / SPLIT;  // columns of a tile that a block of a split writes
constexpr bool WIDE = sizeof(Out) == 4;  // results are f32
constexpr int PIECE = 16 / sizeof(Out);  // results of 16 bytes
constexpr int ROW_BYTES = STORE_ROWS ? (CHUNK / PIECE | 1) * 16  // an odd number of pieces: no bank conflicts
                                     : CHUNK * sizeof(Out);
constexpr int BOX_X = 128 / sizeof(Out);  // results along x that a row of a swapped box has
constexpr int CHUNK_BYTES = 64 * ROW_BYTES;
constexpr int RECEIVED_BYTES = (SPLIT - 1) * CONSUMER_X * OWN_Y * 4;

// Places in shared memory.
struct Shared {
  u32 x, y, out, full, empty, received, residual, rests;
  float* vectors;
};

DEVICE Shared shared_places(char* raw) {
  Shared s;
  const u32 start = shared_address(raw), aligned = (start + 1023) & ~1023u;
  s.x = aligned;
  s.y = s.x + STAGES * X_BYTES;
  s.out = (s.y + STAGES * Y_STAGE + 1023) & ~1023;
  const u32 vectors = s.out + 2 * OUT_BYTES;
  s.vectors = (float*)(raw + (vectors - start));
  s.full = vectors + 2 * VECTOR_FLOATS * 4;
  s.empty = s.full + 8 * STAGES;
  s.received = s.empty + 8 * STAGES;
  s.residual = s.received + 16;
  s.rests = s.residual + 16;
  return s;
}

/// Pixels of a part of a filter's gradient.
DEVICE int part_of(const Extents& extents) {
  return OPEN_DEPTH ? extents.depth : PART;
}
DEVICE int steps_of(const Extents& extents) {
  return OPEN_DEPTH ? (extents.depth + DEPTH - 1) / DEPTH : STEPS;
}

// Cluster tiles along both sides, and in all.
DEVICE int tiles_x(const Extents& extents) {
  return (extents.x + TILE_X * CLUSTER_X - 1) / (TILE_X * CLUSTER_X);
}
DEVICE int tiles_y(const Extents& extents) {
  return (extents.y + TILE_Y * CLUSTER_Y - 1) / (TILE_Y * CLUSTER_Y);
}
DEVICE int tile_count(const Extents& extents) {
  return tiles_x(extents) * tiles_y(extents) * extents.batch;
}

// The corner of tile `index`. Tiles are walked in columns of GROUP cluster tiles. Divisions take long where runs give extents.
struct Tile {
  int batch, x, y;
};
DEVICE Tile tile_at(const Extents& extents, int index, int rank_x, int rank_y) {
  const int down = tiles_x(extents), across = tiles_y(extents);
  const int batch = extents.batch == 1 ? 0 : index / (down * across), t = index - batch * (down * across);
  const int first = down <= GROUP ? 0 : t / (GROUP * across) * GROUP, rows = min(GROUP, down - first), r = t - first * across;
  const int column = rows == GROUP ? r / GROUP : r / rows;
  return {batch, ((first + r - column * rows) * CLUSTER_X + rank_x) * TILE_X, (column * CLUSTER_Y + rank_y) * TILE_Y};
}

// What an operand is: a matrix; the filter of a convolution, [row][tap][channel]; or windows of its images,
// [image][line][column][channel], whose rows are the results, image by image, or, where windows span frames, those of frame
// `batch` of all images' results. With GROUPS of channels, `batch` is one. Of a filter's gradient the depth is the
// results, a part of them in each batch, and operands are their gradients, a matrix, and what tap `batch` of the windows met.
enum Role { MATRIX, FILTER, WINDOWS, PIXELS, PIXELS_OF_WINDOWS };

// The number among all images' frames of that which tap_z of the windows of result frame `batch` meets; outside: one behind the
// last, where everything is zero.
DEVICE int frame_met(int batch, int tap_z) {
  const int frame = batch % OUT_FRAMES * STRIDE_Z - PAD_Z + tap_z * DILATION_Z;
  return (unsigned)frame < (unsigned)FRAMES ? batch / OUT_FRAMES * FRAMES + frame : IMAGES * FRAMES;
}

// Where the rows of a slice begin; of windows, also the image, and the corner of the first row's window there.
struct Start {
  int row, image, line, column;
};
template <int ROLE>
DEVICE Start start_at(const Extents& extents, int row) {
  Start start = {row, 0, 0, 0};
  if constexpr (ROLE == WINDOWS || ROLE == PIXELS_OF_WINDOWS) {
    const int line = row / extents.out_columns;
    start.image = line / extents.out_lines;
    start.column = (row - line * extents.out_columns) * STRIDE_X - PAD_X;
    start.line = (line - start.image * extents.out_lines) * STRIDE_Y - PAD_Y;
  }
  return start;
}

// One of PARTS slices of an operand's stage, into the same place of the blocks of `mask`. Runs of INNER batches, or 0, lie apart.
template <int ROLE, bool DEPTH_FAST, int ROWS, int PARTS, int INNER>
DEVICE void load_operand(const Extents& extents, u32 stage, const TensorMap* map, const Start& start, int step, int batch, u32 full, int part, u16 mask) {
  constexpr int SLICE = ROWS / PARTS;
  constexpr int BOX = DEPTH_FAST ? SLICE : 64;  // rows of a box
  static_assert(ROLE != WINDOWS || BOX == SLICE, "the rows of a slice's windows come in one box");
  const int tap = step / TAP_STEPS, channel = (step - tap * TAP_STEPS) * DEPTH;
#pragma unroll
  for (int r = 0; r < SLICE; r += BOX) {
    const int row = start.row + r;
    const u32 to = stage + (part * SLICE + r) * STAGE_ROW;
    if constexpr (ROLE == WINDOWS || ROLE == PIXELS_OF_WINDOWS) {
      constexpr bool DEEP = ROLE == PIXELS_OF_WINDOWS;
      constexpr int WINDOW_X = DEEP ? BATCH_TAPS_X : TAPS_X;
      const Start met = DEEP ? start_at<ROLE>(extents, batch / BATCH_TAPS * part_of(extents) + channel) : start;
      constexpr bool FRAMED = !DEEP && SPANS_FRAMES;
      const int of_window = DEEP ? batch % BATCH_TAPS : FRAMED ? tap % (TAPS_X * TAPS_Y) : tap;
      const int image = met.image + (FRAMED ? frame_met(batch, tap / (TAPS_X * TAPS_Y)) : 0);
      const int tap_y = of_window / WINDOW_X * DILATION_Y, tap_x = of_window % WINDOW_X * DILATION_X;
      const int fast = DEEP ? row : GROUPS > 1 ? batch * CHANNELS + channel : channel;
      if constexpr (PARTS > 1) load_windows_to(to, map, fast, met.column, met.line, image, tap_x, tap_y, full, mask);
      else load_windows(to, map, fast, met.column, met.line, image, tap_x, tap_y, full);
    } else {
      const int first = ROLE == PIXELS ? batch / BATCH_TAPS * part_of(extents) : 0;  // of a part
      const int fast = DEPTH_FAST ? channel : row;
      const int next = ROLE == FILTER ? tap : DEPTH_FAST ? row : first + channel;
      const int run = INNER > 0 ? batch / (INNER > 0 ? INNER : 1) : 0;
      const int last = ROLE == FILTER ? (GROUPS > 1 ? batch * GROUP_ROWS : 0) + row : ROLE == PIXELS ? 0 : batch - run * INNER;
      if constexpr (PARTS > 1) load_box_to(to, map, fast, next, last, run, full, mask);
      else load_box(to, map, fast, next, last, run, full);
    }
  }
}

// The blocks of a cluster are numbered along X first. Block (x, y) shares x's tile with the blocks of its x.
DEVICE u16 blocks_with_x(int rank_x) {
  u16 mask = 0;
#pragma unroll
  for (int j = 0; j < CLUSTER_Y; j++) mask |= 1 << (rank_x + CLUSTER_X * j);
  return mask;
}
DEVICE u16 blocks_with_y(int rank_y) {
  return ((1 << CLUSTER_X) - 1) << (CLUSTER_X * rank_y);
}

// What a block loads of a tile.
struct Load {
  int batch;
  Start x, y;
};
DEVICE Load load_of(const Extents& extents, int index, int rank_x, int rank_y) {
  const Tile tile = tile_at(extents, index, rank_x, rank_y);
  return {tile.batch, start_at<X_ROLE>(extents, tile.x + rank_y * (TILE_X / CLUSTER_Y)),
          start_at<Y_ROLE>(extents, tile.y + rank_x * (TILE_Y / CLUSTER_X))};
}

// Weights of the first stages are loaded before the kernels ahead of this one are over. Where a tile lies is found while what is
// ahead of it is under way.
DEVICE void produce(const Shared& s, const Extents& extents, const TensorMap* map_x, const TensorMap* map_y, int rank_x,
                    int rank_y, int first_step, int steps) {
  const int tiles = tile_count(extents), turn = gridDim.x / CLUSTER;
  Load load = load_of(extents, blockIdx.x / CLUSTER, rank_x, rank_y);
  const auto load_x = [&](int stage, int k) {
    load_operand<X_ROLE, X_DEPTH_FAST, TILE_X, CLUSTER_Y, X_INNER>(extents, s.x + stage * X_BYTES, map_x, load.x, k,
                                                          X_BATCHED * number_of<X_EACH, X_PERIOD>(load.batch), s.full + 8 * stage, rank_y,
                                                          blocks_with_x(rank_x));
  };
  const auto load_y = [&](int stage, int k) {
    load_operand<Y_ROLE, Y_DEPTH_FAST, TILE_Y, CLUSTER_X, Y_INNER>(extents, s.y + stage * Y_STAGE, map_y, load.y, k,
                                                          Y_BATCHED * number_of<Y_EACH, Y_PERIOD>(load.batch), s.full + 8 * stage, rank_x,
                                                          blocks_with_y(rank_y));
  };
  int ahead = 0;
  if ((X_IS_WEIGHT || Y_IS_WEIGHT) && blockIdx.x / CLUSTER < tiles) {
    for (; ahead < 2 && ahead < steps; ahead++) {
      barrier_expect(s.full + 8 * ahead, X_BYTES + Y_BYTES);
      if constexpr (X_IS_WEIGHT) load_x(ahead, first_step + ahead);
      else load_y(ahead, first_step + ahead);
    }
  }
  wait_previous_kernels();
  int stage = 0, parity = 1;
  for (int t = blockIdx.x / CLUSTER; t < tiles; t += turn) {
    for (int k = first_step; k < first_step + steps; k++) {
      if (ahead > 0) {
        ahead--;
        if constexpr (X_IS_WEIGHT) load_y(stage, k);
        else load_x(stage, k);
      } else {
        barrier_wait(s.empty + 8 * stage, parity);
        barrier_expect(s.full + 8 * stage, X_BYTES + Y_BYTES);
        load_x(stage, k);
        load_y(stage, k);
      }
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    load = load_of(extents, t + turn, rank_x, rank_y);
  }
}

typedef float Sums[BLOCKS][TILE_Y / 2];

// A consumer's place in the block and in the ring.
struct Consumer {
  int index, thread, lane, warp, rank, rank_x, rank_y;
  u32 step;    // steps taken by the ring so far
  u32 out;     // what others send, and its buffers
  u32 buffer;  // the next of the buffers
  u32 parity;  // of the residual's barrier
  float* vectors;
};

// The blocks that sent a part of a stage may send again.
DEVICE void release(const Shared& s, const Consumer& me, int stage) {
  if constexpr (CLUSTER_X * CLUSTER_Y == 1) {
    if (me.thread == 0) barrier_arrive(s.empty + 8 * stage);
  } else {
    const int other = me.thread;
    if (other < CLUSTER && (other % CLUSTER_X == me.rank_x || other / CLUSTER_X == me.rank_y))
      barrier_arrive_at(s.empty + 8 * stage, other);
  }
}

// Sends every block of a split its columns of the sums, and adds what the others sent.
DEVICE void add_parts(const Shared& s, const Consumer& me, Sums& sums) {
  constexpr int WIDTH = OWN_Y / 2;  // sums of a thread in a block's columns
  const u32 received = s.received + 8 * me.index;
#pragma unroll
  for (int q = 0; q < SPLIT; q++) {
    if (q == me.rank) continue;
    const u32 slot = me.rank - (me.rank > q);
    const u32 to = address_at(me.out + slot * (CONSUMER_X * OWN_Y * 4), q), barrier = address_at(received, q);
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
#pragma unroll
      for (int j = 0; j < WIDTH; j += 4) {
        const float* p = &sums[i][q * WIDTH + j];
        send(to + ((i * WIDTH + j) / 4 * 128 + me.thread) * 16, barrier, p[0], p[1], p[2], p[3]);
      }
    }
  }
  barrier_wait(received, 0);
#pragma unroll
  for (int q = 0; q < SPLIT; q++) {
    if (q != me.rank) continue;
#pragma unroll
    for (int slot = 0; slot < SPLIT - 1; slot++) {
#pragma unroll
      for (int i = 0; i < BLOCKS; i++) {
#pragma unroll
        for (int j = 0; j < WIDTH; j += 4) {
          const u32 from = me.out + slot * (CONSUMER_X * OWN_Y * 4) + ((i * WIDTH + j) / 4 * 128 + me.thread) * 16;
          const float4 part = read_shared(from);
          float* p = &sums[i][q * WIDTH + j];
          p[0] += part.x, p[1] += part.y, p[2] += part.z, p[3] += part.w;
        }
      }
    }
  }
}
