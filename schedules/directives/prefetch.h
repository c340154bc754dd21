#pragma once
// A prefetch as lowered code has it.

#include <Halide.h>

#include <string>
#include <string_view>

namespace sylvite {

enum class PrefetchInto { l2 = 2, l1 = 3 };  ///< LLVM's localities

/// LLVM's own intrinsic, which Halide's runtime declares: Halide's prefetch always bypasses the L2.
inline constexpr std::string_view prefetch_name = "llvm.prefetch.p0";

/// Of the line that holds the byte at `offset` (i64) of a buffer of lowered code. Does not fault. LLVM takes
/// it for a write to that line: what was loaded from there before is loaded again behind it.
[[nodiscard]] Halide::Internal::Stmt prefetch(const std::string& buffer, const Halide::Expr& offset,
                                              PrefetchInto cache);

}  // namespace sylvite
