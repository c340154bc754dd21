#pragma once
// Permission from the operating system to use AMX, the matrix unit of some x86-64 processors.

namespace sylvite {

/// Asks the operating system, once, to let this process use AMX's tile registers: without permission their
/// first use ends the process. False when it refuses, or does not know of them. Any thread may call it; the answer holds for
/// all threads of the process. It does not say whether the processor has AMX.
[[nodiscard]] bool request_amx();

}  // namespace sylvite
