#include "frontend/onnx/channel_order.h"

#include "base/error.h"

namespace sylvite {

Sym channels_first(Sym x) {
  std::vector<std::int64_t> perm = all_axes(x.rank());
  if (perm.size() < 3) throw ModelError("the input has rank {}, expected at least 3", x.rank());
  perm.insert(perm.begin() + 1, perm.back());
  perm.pop_back();
  return transpose(x, perm);
}

Sym channels_last(Sym x) {
  std::vector<std::int64_t> perm = all_axes(x.rank());
  perm.erase(perm.begin() + 1);
  perm.push_back(1);
  return transpose(x, perm);
}

}  // namespace sylvite
