// What printed pointwise expressions call (lowering/algorithms/pointwise_bodies.cpp). Plain C++ apart from DEVICE and the
// functions that a card has instructions for, so that a test can compile it for the CPU.
// Functions that end in _fast err by up to 1e-3 of the result, sines by up to 1e-6: for results that are stored in 16 bits.

#ifdef __CUDACC__
DEVICE float tanh_fast(float x) {
  float r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
DEVICE float round_bf16(float x) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(0.f), "f"(x));
  return __uint_as_float(r << 16);
}
DEVICE float round_f16(float x) {
  u16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(r));
  return y;
}
// Within two units of the last place, whatever the divisor.
DEVICE float div_fast(float a, float b) {
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
DEVICE float nan_min(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
DEVICE float nan_max(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
#else
DEVICE float div_fast(float a, float b) {
  return a / b;
}
DEVICE float nan_min(float a, float b) {
  return a != a || a < b ? a : b != b || b < a ? b : a;
}
DEVICE float nan_max(float a, float b) {
  return a != a || b < a ? a : b != b || a < b ? b : a;
}
#endif

DEVICE float clamp01(float x) {
  return x < 0.f ? 0.f : 1.f < x ? 1.f : x;
}
DEVICE float sign(float x) {
  return x > 0.f ? 1.f : x < 0.f ? -1.f : x;
}
DEVICE float relu(float x) {
  return x < 0.f ? 0.f : x;
}
// Quotients that err by two bits at most: the others branch, so that a thread makes one after the other.
DEVICE float sigmoid(float x) {
  return __fdividef(1.f, 1.f + expf(-x));
}
DEVICE float silu(float x) {
  return __fdividef(x, 1.f + expf(-x));
}
DEVICE float softplus(float x) {
  return (x > 0.f ? x : x != x ? x : 0.f) + log1pf(expf(-fabsf(x)));
}
// By erfc of |x| / sqrt(2), within 1.2e-7 of itself everywhere (Press et al., Numerical Recipes, "erfcc").
DEVICE float gelu(float x) {
  constexpr float factors[] = {0.17087277f, -0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f,
                               -0.18628806f, 0.09678418f, 0.37409196f, 1.00002368f, -1.26551223f};
  const float z = fabsf(x) * 0.70710678f, t = __fdividef(1.f, fmaf(0.5f, z, 1.f));
  float exponent = factors[0];
  for (int i = 1; i < 10; i++) exponent = fmaf(exponent, t, factors[i]);
  const float tail = 0.5f * t * __expf(fmaf(-z, z, exponent));
  return x * (x < 0.f ? tail : 1.f - tail);
}
// As gelu_fast, but for tanh's own error: within 3e-5 of x, for products in TF32, which err by more.
DEVICE float gelu_near(float x) {
  const float square = fminf(x * x, 16.f);
  const float slope = fmaf(fmaf(7.03414958e-4f, square, -0.0740136422f), square, -1.595013184f);
  return __fdividef(x, 1.f + __expf(x * slope));
}
// x times the logistic function, which tanh is, too.
DEVICE float gelu_tanh(float x) {
  return __fdividef(x, 1.f + __expf(x * fmaf(-0.0713548163f, x * x, -1.59576912f)));
}
// Python's remainder: with the sign of the divisor.
DEVICE float floor_mod(float a, float b) {
  const float rest = fmodf(a, b);
  return rest != 0.f && (rest < 0.f) != (b < 0.f) ? rest + b : rest;
}

// Where the exponential is small, the sum with one would lose its digits.
DEVICE float softplus_fast(float x) {
  const float power = __expf(-fabsf(x));
  const float log = power < 0.01f ? power * fmaf(fmaf(0.33333333f, power, -0.5f), power, 1.f) : __logf(1.f + power);
  return (x > 0.f ? x : x != x ? x : 0.f) + log;
}
// Exponents that would make much of the logarithm's error are left to the library.
DEVICE float pow_fast(float x, float y) {
  return x > 0.f && x < 3e38f && fabsf(y) <= 64.f ? __expf(y * __logf(x)) : powf(x, y);
}
// What is left of whole turns of a circle, from -pi to pi.
DEVICE float within_turn(float x) {
  const float turns = rintf(x * 0.15915494f);
  return fmaf(turns, 1.7484556e-7f, fmaf(turns, -6.2831855f, x));
}
DEVICE float sin_fast(float x) {
  return __sinf(within_turn(x));
}
DEVICE float cos_fast(float x) {
  return __cosf(within_turn(x));
}
DEVICE float sigmoid_fast(float x) {
  return fmaf(0.5f, tanh_fast(0.5f * x), 0.5f);
}
DEVICE float silu_fast(float x) {
  const float half = 0.5f * x;
  return fmaf(half, tanh_fast(half), half);
}
DEVICE float gelu_tanh_fast(float x) {
  const float half = 0.5f * x;
  return fmaf(half, tanh_fast(x * fmaf(0.0356774081f, x * x, 0.7978845608f)), half);
}
// erf(x / sqrt(2)) is tanh of an odd polynomial within 3e-5, fitted for |x| <= 4; beyond, it is saturated.
DEVICE float erf_of_half_fast(float x) {
  const float square = fminf(x * x, 16.f);
  return tanh_fast(x * fmaf(fmaf(-3.51707479e-4f, square, 0.0370068211f), square, 0.797506592f));
}
DEVICE float erf_fast(float x) {
  return erf_of_half_fast(1.41421356f * x);
}
DEVICE float gelu_fast(float x) {
  const float half = 0.5f * x;
  return fmaf(half, erf_of_half_fast(x), half);
}
