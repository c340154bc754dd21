// out = epilogue(x y^T) for every batch, as in matmul.cuh, by products of single warps: on every card from Ampere on, and of
// operands whose rows begin anywhere. A block makes one tile of the result. Asynchronous copies fill a ring of stages; while
// a warp multiplies one slice of a stage, 32 bytes deep, it reads the next from shared memory to registers. Results
// pass through shared memory, so that they leave in rows.
//
// Tensor cores multiply f32 in TF32. EXACT: every product is three, that of the numbers rounded to TF32 and those of what
// that leaves of one with the other (see attention_f32.cuh). They are rounded, not cut, which would make all products a
// little too small. So would the sums of tensor cores, which cut every result: those of a step of depth are added to the
// others by themselves. What rounding leaves is added apart from the numbers, those of a stage together: there an infinity
// leaves NaN, which counts as nothing.
//
// schedules/cuda/warps.cpp writes these ahead of this text:
//   Extents, extents_of, K    extents of the product: x, y, batch and depth; its depth, or 0 where runs give it
//   X_IS_WHOLE, Y_IS_WHOLE    tiles fill the extent, in any run
//   Element, Out, Arguments   types of operands and of a result; pointers: out, x, y, and what the epilogue reads
//   X_DEPTH_FAST, ...         does x lie with its depth innermost, or its rows; X_PITCH elements from row to row, else from
//                             depth to depth; X_BATCH from batch to batch, of which X_EACH neighbours read one, and X_PERIOD differ, unless 0;
//                             X_INNER of them are a run, and X_OUTER lead from run to run, unless 0; X_OFFSET before the first
//   X_UNIT                    bytes that a copy of x moves: 16, 8 or 4; 2 moves them through registers
//   Y_...                     the same of y
//   WINDOWS                   x's rows are windows of images: CHANNELS, COLUMN_PITCH, and pairs TAPS, STRIDE, DILATION, PAD;
//                             K is taps by channels. Extents has lines, columns, line_pitch, image_pitch, out_lines,
//                             out_columns
//   SPANS_FRAMES              batches are frames of the results, whose windows span frames: FRAMES, OUT_FRAMES, STRIDE_Z, ...
//   TILE_X, TILE_Y            rows and columns of a tile
//   WARPS_X, WARPS_Y, PARTS   warps side by side; so many times as many share the depth of a stage and add their sums
//   STAGE_ROW, STAGES         bytes that a stage is deep, 64, 128 or 256; stages of the ring
//   RESIDENT                  blocks on a multiprocessor, at least
//   GROUP                     rows of tiles that are walked together, so that they meet in the L2 cache
//   EXACT                     see above
//   OUT_UNIT, RESULT_PITCH, RESULT_BATCH   bytes at whose multiples rows of the result begin; elements from row to row, and from batch to batch
//   VECTOR_FLOATS             floats of shared memory that the epilogue wants
//   stage_vectors, Loaded, load_operands, finish   the epilogue

constexpr int THREADS = 32 * WARPS_X * WARPS_Y * PARTS;
constexpr int WARP_X = TILE_X / WARPS_X, WARP_Y = TILE_Y / WARPS_Y;
constexpr int SIXTEENS = WARP_X / 16, EIGHTS = WARP_Y / 8;
constexpr int ELEMENT_BYTES = sizeof(Element), PIECE = 16 / ELEMENT_BYTES;
constexpr int DEPTH = STAGE_ROW / ELEMENT_BYTES;
constexpr bool OPEN_DEPTH = K == 0, HAS_WHOLE_STAGES = !OPEN_DEPTH && K % DEPTH == 0;
constexpr int SLICES = STAGE_ROW / 32 / PARTS;  // of a part in a stage
constexpr int X_BYTES = TILE_X * STAGE_ROW, STAGE_BYTES = (TILE_X + TILE_Y) * STAGE_ROW;
constexpr int OUT_PITCH = (TILE_Y + 8) * sizeof(Out);  // of results in shared memory: no bank conflicts

typedef float Sums[SIXTEENS][EIGHTS][4];
typedef u32 Lefts[SIXTEENS][4];
typedef u32 Rights[EIGHTS][2];

DEVICE int depth_of(const Extents& extents) {
  return OPEN_DEPTH ? extents.depth : K;
}

// The corner of a tile.
struct Tile {
  int batch, x, y;
};
DEVICE Tile tile_at(const Extents& extents, int index) {
  const int tiles_x = (extents.x + TILE_X - 1) / TILE_X, tiles_y = (extents.y + TILE_Y - 1) / TILE_Y;
  const int batch = index / (tiles_x * tiles_y), t = index - batch * (tiles_x * tiles_y);
  const int first = t / (GROUP * tiles_y) * GROUP, rows = min(GROUP, tiles_x - first), r = t - first * tiles_y;
  return {batch, (first + r % rows) * TILE_X, r / rows * TILE_Y};
}

// 16 bytes to shared memory, of which `count` elements are there; else zeros.
template <int UNIT>
DEVICE void copy_piece(u32 to, const Element* from, int count) {
  if constexpr (UNIT == 2) {
    u32 words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const u32 low = 2 * i < count ? __ldg((const u16*)from + 2 * i) : 0;
      const u32 high = 2 * i + 1 < count ? __ldg((const u16*)from + 2 * i + 1) : 0;
      words[i] = low | high << 16;
    }
    write_shared_bits(to, make_uint4(words[0], words[1], words[2], words[3]));
  } else {
    constexpr int ELEMENTS = UNIT / ELEMENT_BYTES;
#pragma unroll
    for (int i = 0; i < 16 / UNIT; i++) {
      const int left = min(max(count - i * ELEMENTS, 0), ELEMENTS);
      copy_bytes_later<UNIT>(to + i * UNIT, from + (left > 0 ? i * ELEMENTS : 0), left * ELEMENT_BYTES);
    }
  }
}

// A matrix of `extent` rows, of which a stage has ROWS.
template <bool DEPTH_FAST, int ROWS, bool HAS_WHOLE_TILES, int PITCH, int UNIT>
struct Matrix {
  static constexpr int LINE = DEPTH_FAST ? STAGE_ROW : ROWS * ELEMENT_BYTES;  // bytes of a line in shared memory
  static constexpr int PIECES = LINE / 16, ALL = ROWS * STAGE_ROW / 16, COUNT = (ALL + THREADS - 1) / THREADS;

  // Where a piece of a line lies: neighbours that are read together lie in different banks.
  DEVICE static int place(int line, int piece) {
    const int swizzle = !DEPTH_FAST && ELEMENT_BYTES == 4 ? (line & 3) << 1 : LINE >= 128 ? line & 7 : line >> 1 & 3;
    return line * LINE + ((piece ^ swizzle) << 4);
  }
  DEVICE static void copy(u32 to, const Element* from, int extent, int deep, int first_row, int first_depth) {
    constexpr bool IS_WHOLE = HAS_WHOLE_TILES && HAS_WHOLE_STAGES;
    // Rows beyond the last have results that are not stored: no step of the fold has to ask for them.
    constexpr bool REPEATS_LAST = DEPTH_FAST && !HAS_WHOLE_TILES && HAS_WHOLE_STAGES;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      const int at = i * THREADS + threadIdx.x, line = at / PIECES, piece = at % PIECES;
      if (ALL % THREADS != 0 && at >= ALL) break;
      const int depth = first_depth + (DEPTH_FAST ? piece * PIECE : line);
      int row = first_row + (DEPTH_FAST ? line : piece * PIECE), count = PIECE;
      if constexpr (REPEATS_LAST) row = min(row, extent - 1);
      else if constexpr (!IS_WHOLE) count = DEPTH_FAST ? (row < extent ? deep - depth : 0) : (depth < deep ? extent - row : 0);
      const int offset = DEPTH_FAST ? row * PITCH + depth : depth * PITCH + row;
      copy_piece<UNIT>(to + place(line, piece), from + (count > 0 ? offset : 0), count);
    }
  }
  // 16 rows (`row`: the first) and a slice of depth, as a product's left operand.
  DEVICE static void load_left(u32 stage, int row, int slice, u32 (&left)[4]) {
    const int lane = threadIdx.x % 32;
    if constexpr (DEPTH_FAST) {
      load_matrices<false, 4>(stage + place(row + lane % 16, 2 * slice + lane / 16), left);
    } else if constexpr (ELEMENT_BYTES == 2) {
      load_matrices<true, 4>(stage + place(16 * slice + lane / 16 * 8 + lane % 8, (row + lane / 8 % 2 * 8) / PIECE), left);
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) left[i] = word(stage, row + lane / 4 + i % 2 * 8, 8 * slice + lane % 4 + i / 2 * 4);
    }
  }
  // 16 rows as two right operands.
  DEVICE static void load_rights(u32 stage, int row, int slice, u32 (&first)[2], u32 (&second)[2]) {
    const int lane = threadIdx.x % 32;
    u32 both[4];
    if constexpr (DEPTH_FAST) {
      load_matrices<false, 4>(stage + place(row + lane / 16 * 8 + lane % 8, 2 * slice + lane / 8 % 2), both);
    } else if constexpr (ELEMENT_BYTES == 2) {
      load_matrices<true, 4>(stage + place(16 * slice + lane % 16, (row + lane / 16 * 8) / PIECE), both);
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) both[i] = word(stage, row + lane / 4 + i / 2 * 8, 8 * slice + lane % 4 + i % 2 * 4);
    }
    first[0] = both[0], first[1] = both[1], second[0] = both[2], second[1] = both[3];
  }
  DEVICE static u32 word(u32 stage, int row, int depth) {
    return __float_as_uint(read_shared_float(stage + place(depth, row / 4) + row % 4 * 4));
  }
};
typedef Matrix<X_DEPTH_FAST, TILE_X, X_IS_WHOLE, X_PITCH, X_UNIT> MatrixX;
typedef Matrix<Y_DEPTH_FAST, TILE_Y, Y_IS_WHOLE, Y_PITCH, Y_UNIT> MatrixY;

// Rows of x that are windows: those of a thread's pieces. Where no window begins, its line is far outside.
struct WindowRows {
  static constexpr int COUNT = MatrixX::COUNT, ELEMENTS = X_UNIT / ELEMENT_BYTES;
  const Extents extents;
  int origin[COUNT], line[COUNT], column[COUNT];
  int first_frame = 0, frames_ahead = 0;  // that of the first tap, and all images' ahead of this one's

  DEVICE WindowRows(const Extents& extents, int first_row, int batch) : extents(extents) {
    if constexpr (SPANS_FRAMES) {
      first_frame = batch % OUT_FRAMES * STRIDE_Z - PAD_Z;
      frames_ahead = batch / OUT_FRAMES * FRAMES;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      const int row = first_row + (i * THREADS + threadIdx.x) / MatrixX::PIECES;
      const int pixels = extents.out_lines * extents.out_columns, pixel = row % pixels, image = row / pixels;
      const int first_line = pixel / extents.out_columns * STRIDE_Y - PAD_Y;
      line[i] = row < extents.x ? first_line : -(1 << 30);
      column[i] = pixel % extents.out_columns * STRIDE_X - PAD_X;
      origin[i] = image * extents.image_pitch + first_line * extents.line_pitch + column[i] * COLUMN_PITCH;
    }
  }
  // The pieces of a thread have one depth: pieces of a line divide the threads.
  DEVICE void copy(u32 to, const Element* from, int first_depth) const {
    const int piece = threadIdx.x % MatrixX::PIECES;
#pragma unroll
    for (int u = 0; u < 16 / X_UNIT; u++) {
      const int depth = first_depth + piece * PIECE + u * ELEMENTS, tap = depth / CHANNELS;
      const int down = tap / TAPS_X % TAPS_Y * DILATION_Y, right = tap % TAPS_X * DILATION_X;
      int offset = down * extents.line_pitch + right * COLUMN_PITCH + depth - tap * CHANNELS;
      bool has_frame = true;
      if constexpr (SPANS_FRAMES) {
        const int frame = first_frame + tap / (TAPS_X * TAPS_Y) * DILATION_Z;
        has_frame = (unsigned)frame < (unsigned)FRAMES;
        offset += (frames_ahead + frame) * extents.image_pitch;
      }
#pragma unroll
      for (int i = 0; i < COUNT; i++) {
        const int at = i * THREADS + threadIdx.x;
        if (MatrixX::ALL % THREADS != 0 && at >= MatrixX::ALL) break;
        const bool is_there = has_frame && (unsigned)(line[i] + down) < (unsigned)extents.lines &&
                              (unsigned)(column[i] + right) < (unsigned)extents.columns && (HAS_WHOLE_STAGES || depth < K);
        const u32 place = to + MatrixX::place(at / MatrixX::PIECES, piece) + u * X_UNIT;
        const Element* source = from + (is_there ? origin[i] + offset : 0);
        if constexpr (X_UNIT == 2) write_shared_half(place, is_there ? __ldg((const u16*)source) : 0);
        else copy_bytes_later<X_UNIT>(place, source, is_there ? X_UNIT : 0);
      }
    }
  }
};
struct MatrixRows {
  int extent, deep, first_row;
  DEVICE MatrixRows(const Extents& extents, int first_row, int)
      : extent(extents.x), deep(depth_of(extents)), first_row(first_row) {}
  DEVICE void copy(u32 to, const Element* from, int first_depth) const {
    MatrixX::copy(to, from, extent, deep, first_row, first_depth);
  }
};
template <bool>
struct RowsOf {
  typedef MatrixRows Type;
};
template <>
struct RowsOf<true> {
  typedef WindowRows Type;
};

// Where a warp is in its block.
struct Warp {
  int lane, x, y, part;
  DEVICE Warp() {
    const int warp = threadIdx.x / 32, across = warp % (WARPS_X * WARPS_Y);
    lane = threadIdx.x % 32, x = across % WARPS_X * WARP_X, y = across / WARPS_X * WARP_Y, part = warp / (WARPS_X * WARPS_Y);
  }
};

DEVICE u32 nearest(u32 x) {
  return __float_as_uint(nearest_tf32(__uint_as_float(x)));
}
// Tensor cores cut f32 where it should be rounded.
DEVICE u32 rounded(u32 x) {
  if constexpr (ELEMENT_BYTES == 2 || EXACT) return x;
  return nearest(x);
}
DEVICE void load_slice(u32 stage, const Warp& warp, int slice, Lefts& lefts, Rights& rights) {
#pragma unroll
  for (int i = 0; i < SIXTEENS; i++) {
    MatrixX::load_left(stage, warp.x + 16 * i, warp.part * SLICES + slice, lefts[i]);
#pragma unroll
    for (int e = 0; e < 4; e++) lefts[i][e] = rounded(lefts[i][e]);
  }
#pragma unroll
  for (int j = 0; j < EIGHTS; j += 2) {
    MatrixY::load_rights(stage + X_BYTES, warp.y + 8 * j, warp.part * SLICES + slice, rights[j], rights[j + 1]);
#pragma unroll
    for (int e = 0; e < 2; e++) rights[j][e] = rounded(rights[j][e]), rights[j + 1][e] = rounded(rights[j + 1][e]);
  }
}

struct Plain {
  DEVICE void multiply_slice(const Lefts& lefts, const Rights& rights, Sums& sums) {
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++) {
#pragma unroll
      for (int j = 0; j < EIGHTS; j++) multiply(Element{}, sums[i][j], lefts[i], rights[j][0], rights[j][1]);
    }
  }
  DEVICE void end_stage(Sums& sums) {}
};
struct Exact {
  Sums cut;  // of a stage

  DEVICE void multiply_slice(const Lefts& lefts, const Rights& rights, Sums& sums) {
    u32 near[EIGHTS][2], rests[EIGHTS][2];
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) {
#pragma unroll
      for (int e = 0; e < 2; e++) near[j][e] = nearest(rights[j][e]), rests[j][e] = rest(rights[j][e], near[j][e]);
    }
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++) {
      u32 left[4], left_rests[4];
#pragma unroll
      for (int e = 0; e < 4; e++) left[e] = nearest(lefts[i][e]), left_rests[e] = rest(lefts[i][e], left[e]);
#pragma unroll
      for (int j = 0; j < EIGHTS; j++) multiply(f32{}, cut[i][j], left_rests, near[j][0], near[j][1]);
#pragma unroll
      for (int j = 0; j < EIGHTS; j++) {
        float given[4] = {};
        multiply(f32{}, given, left, near[j][0], near[j][1]);
#pragma unroll
        for (int e = 0; e < 4; e++) sums[i][j][e] += given[e];
      }
#pragma unroll
      for (int j = 0; j < EIGHTS; j++) multiply(f32{}, cut[i][j], left, rests[j][0], rests[j][1]);
    }
  }
  DEVICE void end_stage(Sums& sums) {
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++) {
#pragma unroll
      for (int j = 0; j < EIGHTS; j++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
          sums[i][j][e] += number_or_none(cut[i][j][e]);
          cut[i][j][e] = 0;
        }
      }
    }
  }
  DEVICE static u32 rest(u32 x, u32 near) {
    return __float_as_uint(rest_of(__uint_as_float(x), __uint_as_float(near)));
  }
};
template <bool>
struct ProductsOf {
  typedef Plain Type;
};
template <>
struct ProductsOf<true> {
  typedef Exact Type;
};

DEVICE void accumulate(u32 ring, const Arguments& arguments, const Tile& tile, const Warp& warp, Sums& sums) {
  static_assert(SLICES % 2 == 0, "slices take turns in two sets of registers");
  const Element* x = arguments.x + (X_OFFSET + place_of_batch<X_INNER, X_BATCH, X_OUTER>(number_of<X_EACH, X_PERIOD>(tile.batch)));
  const Element* y = arguments.y + (Y_OFFSET + place_of_batch<Y_INNER, Y_BATCH, Y_OUTER>(number_of<Y_EACH, Y_PERIOD>(tile.batch)));
  const Extents extents = extents_of(arguments);
  const typename RowsOf<WINDOWS>::Type rows(extents, tile.x, tile.batch);
  const int deep = depth_of(extents), steps = (deep + DEPTH - 1) / DEPTH;
  int filled = 0, read = 0;  // stages of the ring
  const auto fill = [&](int step) {
    if (step < steps) {
      const u32 stage = ring + filled * STAGE_BYTES;
      rows.copy(stage, x, step * DEPTH);
      MatrixY::copy(stage + X_BYTES, y, extents.y, deep, tile.y, step * DEPTH);
      if (++filled == STAGES) filled = 0;
    }
    copies_commit();
  };
  for (int step = 0; step < STAGES - 1; step++) fill(step);
  copies_wait<STAGES - 2>();
  __syncthreads();
  Lefts lefts[2];
  Rights rights[2];
  typename ProductsOf<EXACT>::Type products = {};
  load_slice(ring, warp, 0, lefts[0], rights[0]);
#pragma unroll 1
  for (int step = 0; step < steps; step++) {
#pragma unroll
    for (int slice = 0; slice < SLICES; slice++) {
      const int next = (slice + 1) % SLICES;
      if (next == 0) {  // the next stage is there, and all have read the last of this one
        copies_wait<STAGES - 2>();
        __syncthreads();
        if (++read == STAGES) read = 0;
      }
      if (SLICES == 2 && slice == 0) fill(step + STAGES - 1);  // faster there, and slower with more slices
      load_slice(ring + read * STAGE_BYTES, warp, next, lefts[next % 2], rights[next % 2]);
      if (SLICES != 2 && slice == 0) fill(step + STAGES - 1);
      products.multiply_slice(lefts[slice % 2], rights[slice % 2], sums);
    }
    products.end_stage(sums);
  }
  copies_wait<0>();
  __syncthreads();  // the ring's place is free
}

// What the other parts have is added to the sums of the first.
DEVICE void add_parts(u32 memory, const Warp& warp, Sums& sums) {
  constexpr int GROUPS = SIXTEENS * EIGHTS, WARPS = WARPS_X * WARPS_Y;
  const int across = threadIdx.x / 32 % WARPS;
#pragma unroll
  for (int part = 1; part < PARTS; part++) {
    const u32 place = memory + (((part - 1) * WARPS + across) * GROUPS * 32 + warp.lane) * 16;
    if (warp.part != part) continue;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
      const float* s = sums[i / EIGHTS][i % EIGHTS];
      write_shared_bits(place + i * 512, make_uint4(__float_as_uint(s[0]), __float_as_uint(s[1]), __float_as_uint(s[2]),
                                                    __float_as_uint(s[3])));
    }
  }
  __syncthreads();
  if (warp.part == 0) {
#pragma unroll
    for (int part = 1; part < PARTS; part++) {
      const u32 place = memory + (((part - 1) * WARPS + across) * GROUPS * 32 + warp.lane) * 16;
#pragma unroll
      for (int i = 0; i < GROUPS; i++) {
        const float4 more = read_shared(place + i * 512);
        float* s = sums[i / EIGHTS][i % EIGHTS];
        s[0] += more.x, s[1] += more.y, s[2] += more.z, s[3] += more.w;
      }
    }
  }
  __syncthreads();
}

template <class Result>
DEVICE void buffer_pair(u32 to, float2 v) {
  if constexpr (sizeof(Result) == 4) write_shared(to, v);
  else write_shared(to, __uint_as_float(pack(Result{}, v.x, v.y)));
}
DEVICE void buffer_results(u32 buffer, const float* vectors, const Arguments& arguments, const Tile& tile, const Warp& warp,
                           const Sums& sums) {
  const int local_x = warp.x + warp.lane / 4, local_y = warp.y + 2 * (warp.lane % 4);
#pragma unroll
  for (int i = 0; i < SIXTEENS; i++) {
    Loaded loaded[EIGHTS][2];
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) {
#pragma unroll
      for (int h = 0; h < 2; h++)
        loaded[j][h] = load_operands(arguments, tile.batch, tile.x + local_x + 16 * i + 8 * h, tile.y + local_y + 8 * j);
    }
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int row = local_x + 16 * i + 8 * h, column = local_y + 8 * j;
        const float* sum = &sums[i][j][2 * h];
        buffer_pair<Out>(buffer + row * OUT_PITCH + column * (int)sizeof(Out),
                         finish(make_float2(sum[0], sum[1]), vectors, loaded[j][h], row, column));
      }
    }
  }
}

// Where all rows of the result begin at boundaries of 16 bytes.
DEVICE void store_aligned(const u8* buffer, const Arguments& arguments, const Tile& tile) {
  constexpr int ELEMENTS = 16 / sizeof(Out), UNITS = TILE_Y / ELEMENTS;
  const Extents extents = extents_of(arguments);
#pragma unroll 4
  for (int at = threadIdx.x; at < TILE_X * UNITS; at += THREADS) {
    const int row = at / UNITS, column = at % UNITS * ELEMENTS, x = tile.x + row, y = tile.y + column;
    if (x >= extents.x || y >= extents.y) continue;
    Out* to = arguments.out + (tile.batch * RESULT_BATCH + x * RESULT_PITCH + y);
    *(uint4*)to = *(const uint4*)(buffer + row * OUT_PITCH + column * (int)sizeof(Out));
  }
}
// Rows that begin anywhere: 16 bytes that lie aligned in the result are two neighbours of the buffer, shifted. The results at
// both ends of a row leave one by one.
struct ShiftedRow {
  typedef typename Bits<sizeof(Out)>::Type Unit;
  static constexpr int ELEMENTS = 16 / sizeof(Out);
  const u8* line;
  Unit* to;
  int shift, limit;  // elements of the row behind a boundary; columns that there are, none in a row beyond the last
  DEVICE ShiftedRow(const u8* buffer, const Arguments& arguments, const Tile& tile, int row) {
    const Extents extents = extents_of(arguments);
    line = buffer + row * OUT_PITCH;
    to = (Unit*)(arguments.out + (tile.batch * RESULT_BATCH + (tile.x + row) * RESULT_PITCH + tile.y));
    shift = (int)((u64)to / sizeof(Out) % ELEMENTS);
    limit = tile.x + row < extents.x ? min(TILE_Y, extents.y - tile.y) : 0;
  }
  DEVICE void store_one(int column) const {
    if (column < limit) to[column] = *(const Unit*)(line + column * (int)sizeof(Out));
  }
  DEVICE void store_piece(int piece) const {
    const int column = ELEMENTS * (piece + 1) - shift;
    const u32 from = shared_address(line) + piece * 16;
    if (column + ELEMENTS <= limit) {
      *(uint4*)(to + column) = shifted<ELEMENTS>(read_shared_bits(from), read_shared_bits(from + 16), shift);
      return;
    }
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) store_one(column + i);
  }
  DEVICE void store_end(int at) const { store_one(at < ELEMENTS - shift ? at : TILE_Y - ELEMENTS + at); }
};
DEVICE void store_shifted(const u8* buffer, const Arguments& arguments, const Tile& tile) {
  constexpr int ELEMENTS = ShiftedRow::ELEMENTS, PIECES = TILE_Y / ELEMENTS - 1;
#pragma unroll 2
  for (int at = threadIdx.x; at < TILE_X * PIECES; at += THREADS)
    ShiftedRow(buffer, arguments, tile, at / PIECES).store_piece(at % PIECES);
  for (int at = threadIdx.x; at < TILE_X * ELEMENTS; at += THREADS)
    ShiftedRow(buffer, arguments, tile, at / ELEMENTS).store_end(at % ELEMENTS);
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) KERNEL(const Arguments arguments) {
  extern __shared__ __align__(128) u8 raw[];
  float* const vectors = (float*)raw;
  u8* const memory = raw + (VECTOR_FLOATS * 4 + 127) / 128 * 128;
  const Tile tile = tile_at(extents_of(arguments), blockIdx.x);
  const Warp warp;
  allow_next_kernel();
  wait_previous_kernels();
  stage_vectors(vectors, arguments, tile.batch, tile.x, tile.y, threadIdx.x);
  Sums sums = {};
  accumulate(shared_address(memory), arguments, tile, warp, sums);
  if constexpr (PARTS > 1) add_parts(shared_address(memory), warp, sums);
  if (warp.part == 0) buffer_results(shared_address(memory), vectors, arguments, tile, warp, sums);
  __syncthreads();
  if constexpr (OUT_UNIT == 16) store_aligned(memory, arguments, tile);
  else store_shifted(memory, arguments, tile);
}
