#include "cli/verb.h"
#include "runtime/worker.h"

namespace sylvite {

int verb_worker(std::span<const std::string>) {
  return worker_main();
}

}  // namespace sylvite
