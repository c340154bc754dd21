#include "schedules/directives/prefetch.h"

namespace sylvite {

using Halide::Expr;
using namespace Halide::Internal;  // NOLINT(google-build-using-namespace): its node types

Stmt prefetch(const std::string& buffer, const Expr& offset, PrefetchInto cache) {
  constexpr int for_reading = 0;
  constexpr int is_data = 1;
  const Expr base = Halide::reinterpret<std::uint64_t>(Variable::make(Halide::Handle(), buffer));
  const Expr address = Halide::reinterpret(Halide::Handle(), base + Halide::cast<std::uint64_t>(offset));
  return Evaluate::make(Call::make(Halide::Int(32), std::string(prefetch_name),
                                   {address, for_reading, static_cast<int>(cache), is_data}, Call::Extern));
}

}  // namespace sylvite
