// out[part][line][o][w] = sum over the pixels of a part of gradient[pixel][o] * x[what tap line `line` meets][w]: the gradient of a
// convolution of few channels by its filter, where the taps of a line are one with all their channels. A block has a part and ROWS of
// the outputs: it reads their gradients once for all lines. Pixels come CHUNK at a time into shared memory, the next while these are
// multiplied, each with what all of its taps meet. Warps share the columns of the result, and the pixels of a chunk; those that have
// the same columns meet in shared memory at the end.
//
// schedules/cuda/line_gradient.cpp writes these ahead of this text:
//   OUTPUTS, LINES, WIDTH     of the result: channels of the gradient, lines of taps, and what a line of taps meets
//   COLUMN_PITCH              elements of x between what neighbouring pixels meet
//   ROWS                      outputs of a block, a multiple of 16
//   CHUNK                     pixels, a multiple of 16
//   SIDES, DEEP               warps that share the columns, and the pixels
//   BLOCKS_PER_MULTIPROCESSOR at least so many
//   Element, Arguments        pointers: out, gradient, x
//   Extents, extents_of       pixels, part: of the gradients, and of a part; out_lines, out_columns: of an image;
//                             line_pitch, image_pitch, tap_pitch: elements of x between lines of pixels, images, lines of taps

constexpr int WARPS = SIDES * DEEP, THREADS = 32 * WARPS;
constexpr int EIGHTS = LINES * (WIDTH / 8), OWN = (EIGHTS + SIDES - 1) / SIDES;  // columns, eight of them at a time; of a warp
constexpr int SIXTEENS = ROWS / 16, STEPS = CHUNK / 16;
// Rows are an odd number of 16 bytes apart, so that eight of them lie in different banks.
constexpr int ROW_PITCH = 2 * ROWS + 16, COLUMN_PITCH_BYTES = 16 * (EIGHTS | 1);
constexpr int ROW_BYTES = CHUNK * ROW_PITCH, STAGE_BYTES = ROW_BYTES + CHUNK * COLUMN_PITCH_BYTES;

typedef float Sums[SIXTEENS][OWN][4];

DEVICE void load_gradients(u32 to, const Element* from, int first, int end, int row) {
  constexpr int PIECES = ROWS / 8, ALL = CHUNK * PIECES;
#pragma unroll
  for (int i = 0; i < (ALL + THREADS - 1) / THREADS; i++) {
    const int at = i * THREADS + threadIdx.x, pixel = first + at / PIECES, piece = at % PIECES;
    if (ALL % THREADS != 0 && at >= ALL) break;
    const bool is_there = pixel < end && row + 8 * piece < OUTPUTS;
    copy_later(to + at / PIECES * ROW_PITCH + 16 * piece, is_there ? from + (long long)pixel * OUTPUTS + row + 8 * piece : from,
               is_there);
  }
}
/// What the taps of a chunk's pixels meet: a thread has a pixel, so that neighbours read neighbours.
DEVICE void load_met(const Extents& e, u32 to, const Element* from, int first, int end) {
  constexpr int BESIDE = THREADS / CHUNK, PIECES = WIDTH / 8;
  const int own = threadIdx.x % CHUNK, pixel = first + own, out_line = pixel / e.out_columns, image = out_line / e.out_lines;
  const bool is_there = pixel < end;
  const Element* met = from + (long long)image * e.image_pitch + (out_line - image * e.out_lines) * e.line_pitch +
                       (pixel - out_line * e.out_columns) * COLUMN_PITCH;
#pragma unroll
  for (int i = 0; i < (EIGHTS + BESIDE - 1) / BESIDE; i++) {
    const int piece = i * BESIDE + threadIdx.x / CHUNK;
    if (EIGHTS % BESIDE != 0 && piece >= EIGHTS) break;
    copy_later(to + own * COLUMN_PITCH_BYTES + 16 * piece, is_there ? met + piece / PIECES * e.tap_pitch + piece % PIECES * 8 : from,
               is_there);
  }
}

/// Adds the products of 16 pixels.
DEVICE void multiply_pixels(Sums& sums, u32 rows, u32 columns, int first, int lane) {
  u32 a[SIXTEENS][4];
  const u32 row = rows + (lane / 16 * 8 + lane % 8) * ROW_PITCH + lane / 8 % 2 * 16;
#pragma unroll
  for (int r = 0; r < SIXTEENS; r++) load_matrices<true, 4>(row + 32 * r, a[r]);
  const u32 column = columns + lane % 16 * COLUMN_PITCH_BYTES + first * 16;
#pragma unroll
  for (int c = 0; c < OWN; c += 2) {
    if (EIGHTS % SIDES != 0 && first + c >= EIGHTS) break;
    u32 b[4];
    // The second eight may be those of a neighbour, which are not used. Behind an odd row would lie the next one, or a stage that
    // is being filled: the first eight are read twice then.
    const int second = EIGHTS % 2 == 0 || first + c + 1 < EIGHTS ? lane / 16 : 0;
    if (c + 1 < OWN) load_matrices<true, 4>(column + 16 * (c + second), b);
    else load_matrices<true, 2>(column + 16 * c, b);
#pragma unroll
    for (int r = 0; r < SIXTEENS; r++) {
      multiply(Element{}, sums[r][c], a[r], b[0], b[1]);
      if (c + 1 < OWN) multiply(Element{}, sums[r][c + 1], a[r], b[2], b[3]);
    }
  }
}

/// The sums of warps with the same columns, one after the other; the first has them all.
DEVICE void meet(Sums& sums, u32 buffer, int side, int deep, int lane) {
  constexpr int EACH = SIXTEENS * OWN, WARP_BYTES = EACH * 32 * 16;
  __syncthreads();
#pragma unroll 1
  for (int from = 1; from < DEEP; from++) {
    const u32 at = buffer + side * WARP_BYTES + lane * 16;
    if (deep == from) {
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        const float* s = sums[i / OWN][i % OWN];
        write_shared_bits(at + i * 512, make_uint4(__float_as_uint(s[0]), __float_as_uint(s[1]), __float_as_uint(s[2]), __float_as_uint(s[3])));
      }
    }
    __syncthreads();
    if (deep == 0) {
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        const float4 more = read_shared(at + i * 512);
        float* s = sums[i / OWN][i % OWN];
        s[0] += more.x, s[1] += more.y, s[2] += more.z, s[3] += more.w;
      }
    }
    __syncthreads();
  }
}
DEVICE void store_sums(float* out, const Sums& sums, int first, int row, int lane) {
#pragma unroll
  for (int c = 0; c < OWN; c++) {
    const int eight = first + c, line = eight / (WIDTH / 8), column = eight % (WIDTH / 8) * 8 + lane % 4 * 2;
    if (eight >= EIGHTS) break;
#pragma unroll
    for (int r = 0; r < 2 * SIXTEENS; r++) {
      const int at = row + 8 * r + lane / 4;
      if (at < OUTPUTS)
        *(float2*)(out + ((long long)line * OUTPUTS + at) * WIDTH + column) =
            make_float2(sums[r / 2][c][r % 2 * 2], sums[r / 2][c][r % 2 * 2 + 1]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) KERNEL(const Arguments arguments) {
  extern __shared__ __align__(128) u8 raw[];
  const u32 stages = shared_address(raw);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, side = warp % SIDES, deep = warp / SIDES;
  constexpr int STRIPS = (OUTPUTS + ROWS - 1) / ROWS;
  const int part = blockIdx.x / STRIPS, row = blockIdx.x % STRIPS * ROWS;
  const Extents e = extents_of(arguments);
  const int begin = part * e.part, end = min(begin + e.part, e.pixels);
  const auto load = [&](int first, int turn) {
    const u32 stage = stages + turn * STAGE_BYTES;
    load_gradients(stage, arguments.gradient, first, end, row);
    load_met(e, stage + ROW_BYTES, arguments.x, first, end);
    copies_commit();
  };
  allow_next_kernel();
  wait_previous_kernels();
  if (begin < end) load(begin, 0);
  Sums sums = {};
  int turn = 0;
#pragma unroll 1
  for (int first = begin; first < end; first += CHUNK, turn ^= 1) {
    if (first + CHUNK < end) load(first + CHUNK, turn ^ 1);
    else copies_commit();
    copies_wait<1>();
    __syncthreads();
    const u32 stage = stages + turn * STAGE_BYTES;
#pragma unroll
    for (int i = 0; i < (STEPS + DEEP - 1) / DEEP; i++) {
      const int step = i * DEEP + deep;
      if (STEPS % DEEP == 0 || step < STEPS)
        multiply_pixels(sums, stage + 16 * step * ROW_PITCH, stage + ROW_BYTES + 16 * step * COLUMN_PITCH_BYTES, side * OWN, lane);
    }
    __syncthreads();  // the stage may be filled again
  }
  copies_wait<0>();
  if constexpr (DEEP > 1) meet(sums, stages, side, deep, lane);
  if (deep == 0) store_sums(arguments.out + (long long)part * LINES * OUTPUTS * WIDTH, sums, side * OWN, row, lane);
}
