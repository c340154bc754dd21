#include "base/amx.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace sylvite {

bool request_amx() {
#if defined(__x86_64__)
  constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM of Linux 5.16 and later
  constexpr int tile_data = 18;               // XFEATURE_XTILEDATA
  static const bool is_allowed = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return is_allowed;
#else
  return false;
#endif
}

}  // namespace sylvite
