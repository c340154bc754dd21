// What every card from Ampere on has, as functions: copies beside the work, 8x8 matrices, storage types. Shared memory is
// addressed by 32-bit numbers throughout. No header is needed: NVRTC compiles this text.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;

#define DEVICE __device__ __forceinline__

/// Which of its own batches an operand gives to `batch`: EACH neighbours read one, and after PERIOD they begin again (0: never).
template <int EACH, int PERIOD>
DEVICE int number_of(int batch) {
  const int number = batch / EACH;
  return PERIOD > 0 ? number % (PERIOD > 0 ? PERIOD : 1) : number;
}

/// Where a batch of an operand's own begins: BATCH elements from one to the next, where INNER is not 0 of so many in a run, and OUTER
/// from run to run.
template <int INNER, i64 BATCH, i64 OUTER>
DEVICE i64 place_of_batch(int number) {
  if constexpr (INNER > 0) return number / INNER * OUTER + number % INNER * BATCH;
  else return number * BATCH;
}

DEVICE u32 shared_address(const void* pointer) {
  return (u32)__cvta_generic_to_shared(pointer);
}

DEVICE float4 read_shared(u32 address) {
  float4 r;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w)
               : "r"(address));
  return r;
}

DEVICE float2 read_shared_pair(u32 address) {
  float2 r;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(r.x), "=f"(r.y) : "r"(address) : "memory");
  return r;
}
DEVICE float read_shared_float(u32 address) {
  float r;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(r) : "r"(address) : "memory");
  return r;
}
DEVICE void write_shared(u32 address, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(x) : "memory");
}
DEVICE void write_shared(u32 address, float2 v) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(v.x), "f"(v.y) : "memory");
}

DEVICE uint4 read_shared_bits(u32 address) {
  uint4 r;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "r"(address)
               : "memory");
  return r;
}
DEVICE void write_shared_bits(u32 address, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
DEVICE void write_shared_half(u32 address, u16 x) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(x) : "memory");
}
DEVICE u32 read_shared_byte(u32 address) {
  u32 r;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(r) : "r"(address) : "memory");
  return r;
}
DEVICE u16 read_shared_half(u32 address) {
  u16 r;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(r) : "r"(address) : "memory");
  return r;
}
/// 16 bytes that end `shift` elements before the end of a and b joined: 8 elements of 16 bits, or 4 of 32.
template <int ELEMENTS>
DEVICE uint4 shifted(uint4 a, uint4 b, int shift) {
  const u32 w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
  if constexpr (ELEMENTS == 4) {
    u32 q[5], r[4];
#pragma unroll
    for (int i = 0; i < 5; i++) q[i] = shift & 2 ? w[i + 1] : w[i + 3];
#pragma unroll
    for (int i = 0; i < 4; i++) r[i] = shift & 1 ? q[i] : q[i + 1];
    return make_uint4(r[0], r[1], r[2], r[3]);
  }
  u32 by_four[6], by_two[5], r[4];
#pragma unroll
  for (int i = 0; i < 6; i++) by_four[i] = shift & 4 ? w[i] : w[i + 2];
#pragma unroll
  for (int i = 0; i < 5; i++) by_two[i] = shift & 2 ? by_four[i] : by_four[i + 1];
#pragma unroll
  for (int i = 0; i < 4; i++) r[i] = shift & 1 ? by_two[i] >> 16 | by_two[i + 1] << 16 : by_two[i + 1];
  return make_uint4(r[0], r[1], r[2], r[3]);
}

/// Loads before this do not move past it: all are under way before the first is used, where the compiler would rather
/// save registers.
DEVICE void loads_begin_before() {
  asm volatile("fence.acq_rel.cta;" ::: "memory");
}

// 8x8 matrices of 16-bit elements from shared memory to fragments; each lane names one row of 16 bytes.
template <bool TRANSPOSED, int COUNT>
DEVICE void load_matrices(u32 row, u32 (&m)[4]) {
  if constexpr (COUNT == 4 && TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row)
                 : "memory");
  } else if constexpr (COUNT == 4) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row)
                 : "memory");
  } else if constexpr (TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(m[0]), "=r"(m[1])
                 : "r"(row)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(m[0]), "=r"(m[1]) : "r"(row) : "memory");
  }
}

// Copies that go on beside the work: 16 bytes from memory to shared memory, or zeros; a commit ends a group of them.
DEVICE void copy_later(u32 to, const void* from, bool is_there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_there ? 16 : 0) : "memory");
}
/// UNIT bytes (16, 8 or 4), of which the first `bytes` come from memory, and the rest are zeros.
template <int UNIT>
DEVICE void copy_bytes_later(u32 to, const void* from, int bytes) {
  if constexpr (UNIT == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(UNIT), "r"(bytes) : "memory");
}
DEVICE void copies_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Until at most COUNT groups are under way.
template <int COUNT>
DEVICE void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(COUNT) : "memory");
}

// Programmatic dependent launch: the next kernel may start; the kernels before are over and their results seen.
// Both do nothing in a launch without the attribute, which cards before Hopper do not have.
DEVICE void allow_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
DEVICE void wait_previous_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Storage types, computed in float.
struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};
typedef float f32;

constexpr float LOWEST = -3.402823466e38f;
/// exp(x) of a number that is not above 0.
DEVICE float exp_up_to_zero(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x * 1.44269504f));
  return r;
}

DEVICE float to_float(bf16 x) {
  return __uint_as_float((u32)x.bits << 16);
}
DEVICE float to_float(f16 x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
}
DEVICE float to_float(f32 x) {
  return x;
}
DEVICE float to_float(bool x) {
  return x ? 1.f : 0.f;
}

DEVICE u32 pack(bf16, float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
DEVICE u32 pack(f16, float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

/// Two elements as they are stored. The first load is of neighbours that lie aligned, the second of any two.
template <class T>
struct Pair {
  u32 bits;
};
template <>
struct Pair<f32> {
  float2 values;
};
template <>
struct Pair<bool> {
  u16 bits;
};
DEVICE Pair<bool> load_pair(const bool* p) {
  return {__ldg((const u16*)p)};
}
DEVICE Pair<bf16> load_pair(const bf16* p) {
  return {__ldg((const u32*)p)};
}
DEVICE Pair<f16> load_pair(const f16* p) {
  return {__ldg((const u32*)p)};
}
DEVICE Pair<f32> load_pair(const f32* p) {
  return {__ldg((const float2*)p)};
}
template <class T>
DEVICE Pair<T> load_two(const T* p, const T* q) {
  return {(u32)__ldg((const u16*)p) | (u32)__ldg((const u16*)q) << 16};
}
DEVICE Pair<f32> load_two(const f32* p, const f32* q) {
  return {make_float2(__ldg(p), __ldg(q))};
}
DEVICE Pair<bool> load_two(const bool* p, const bool* q) {
  return {(u16)(__ldg((const u8*)p) | __ldg((const u8*)q) << 8)};
}
template <class T>
DEVICE float2 to_floats(Pair<T> pair) {
  return make_float2(to_float(T{(u16)pair.bits}), to_float(T{(u16)(pair.bits >> 16)}));
}
DEVICE float2 to_floats(Pair<bool> pair) {
  return make_float2(to_float((pair.bits & 0xff) != 0), to_float(pair.bits >> 8 != 0));
}
DEVICE float2 to_floats(Pair<f32> pair) {
  return pair.values;
}

template <class T>
DEVICE void store_one(T* p, float x) {
  *(u16*)p = (u16)pack(T{}, x, 0.f);
}
DEVICE void store_one(f32* p, float x) {
  *p = x;
}
template <class T>
DEVICE void store_pair(T* p, float2 v) {
  *(u32*)p = pack(T{}, v.x, v.y);
}
DEVICE void store_pair(f32* p, float2 v) {
  *(float2*)p = v;
}

// Products of a warp: 16 rows by 8 columns, 16 of depth; f32 in TF32, which cuts all beyond 10 bits after the point, 8.
DEVICE void multiply(bf16, float* sum, const u32 (&a)[4], u32 b, u32 c) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(c));
}
DEVICE void multiply(f16, float* sum, const u32 (&a)[4], u32 b, u32 c) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(c));
}
DEVICE void multiply(f32, float* sum, const u32 (&a)[4], u32 b, u32 c) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(c));
}
/// Volatile: what does not change in a loop would be rounded ahead of it, and be held in registers that there are not.
DEVICE float nearest_tf32(float x) {
  u32 r;
  asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return __uint_as_float(r);
}
// What a product in TF32 leaves of a number that is rounded to it first. An infinity leaves NaN.
DEVICE float rest_of(float x, float near) {
  return x - near;
}
// Products with rests are left out where they are no numbers: there the numbers' own product is the result.
DEVICE float number_or_none(float x) {
  return x - x == 0.f ? x : 0.f;
}
