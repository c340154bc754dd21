// Places of the greatest number, as keys of which the greatest wins: the number's order above, and `rank`, which decides among equal
// ones, below. What is no number is greatest, and zeros are equal.

DEVICE u64 place_key(float x, u32 rank) {
  const u32 bits = __float_as_uint(x + 0.f);
  const u32 order = x != x ? ~0u : bits >> 31 ? ~bits : bits | 0x80000000u;
  return (u64)order << 32 | rank;
}
