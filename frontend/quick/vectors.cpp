#include "frontend/quick/vectors.h"

namespace sylvite::quick {
namespace {

std::vector<Vectors> list_vectors() {
  std::vector<Vectors> list;
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (has_avx2 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0)
    list.push_back(Vectors::avx512);
  if (has_avx2) list.push_back(Vectors::avx2);
  list.push_back(Vectors::any);
  return list;
}

}  // namespace

const std::vector<Vectors>& usable_vectors() {
  static const std::vector<Vectors> usable = list_vectors();
  return usable;
}

}  // namespace sylvite::quick
