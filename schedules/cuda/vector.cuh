// Several neighbouring elements at once, computed in float. Pointers are aligned to what is moved, 16 bytes at most.

template <int BYTES>
struct Bits {};
template <>
struct Bits<16> {
  typedef uint4 Type;
};
template <>
struct Bits<8> {
  typedef uint2 Type;
};
template <>
struct Bits<4> {
  typedef u32 Type;
};
template <>
struct Bits<2> {
  typedef u16 Type;
};
template <>
struct Bits<1> {
  typedef u8 Type;
};

// Says that nothing writes there while the kernel runs: else each load would wait for the stores before it. STREAM: the
// elements pass by once.
template <bool STREAM = false, int N, class T>
DEVICE void load_vector(const T* p, float (&v)[N]) {
  constexpr int BYTES = N * sizeof(T) < 16 ? N * sizeof(T) : 16, STEP = BYTES / sizeof(T);
#pragma unroll
  for (int i = 0; i < N; i += STEP) {
    union {
      typename Bits<BYTES>::Type bits;
      T elements[STEP];
    } loaded;
    const auto* from = (const typename Bits<BYTES>::Type*)(p + i);
    loaded.bits = STREAM ? __ldcs(from) : __ldg(from);
#pragma unroll
    for (int j = 0; j < STEP; j++) v[i + j] = to_float(loaded.elements[j]);
  }
}
template <int N, class T>
DEVICE void load_same(const T* p, float (&v)[N]) {
  const float x = to_float(*p);
#pragma unroll
  for (int i = 0; i < N; i++) v[i] = x;
}

template <class T>
DEVICE T from_float(T, float x) {
  return {(u16)pack(T{}, x, 0.f)};
}
DEVICE f32 from_float(f32, float x) {
  return x;
}
template <bool STREAM = false, int N, class T>
DEVICE void store_vector(T* p, const float (&v)[N]) {
  constexpr int BYTES = N * sizeof(T) < 16 ? N * sizeof(T) : 16, STEP = BYTES / sizeof(T);
#pragma unroll
  for (int i = 0; i < N; i += STEP) {
    union {
      typename Bits<BYTES>::Type bits;
      T elements[STEP];
      u32 words[BYTES < 4 ? 1 : BYTES / 4];
    } stored;
    if constexpr (sizeof(T) == 2 && STEP > 1) {
#pragma unroll
      for (int j = 0; j < STEP; j += 2) stored.words[j / 2] = pack(T{}, v[i + j], v[i + j + 1]);
    } else {
#pragma unroll
      for (int j = 0; j < STEP; j++) stored.elements[j] = from_float(T{}, v[i + j]);
    }
    auto* to = (typename Bits<BYTES>::Type*)(p + i);
    if constexpr (STREAM) __stcs(to, stored.bits);
    else *to = stored.bits;
  }
}
