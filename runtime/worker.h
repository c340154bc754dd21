#pragma once
// The child process behind WorkerPool: `sylvite worker`, a verb hidden from the help.

namespace sylvite {

/// Serves jobs (autotune/worker_protocol.h) on file descriptor 3 until it is closed. Returns the exit code.
[[nodiscard]] int worker_main();

}  // namespace sylvite
