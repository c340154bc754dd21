// Build-time tool: writes Halide's runtime for this operating system and processor family as one object file,
// without GPU back ends. Kernels are compiled without a runtime and share this one.

#include <Halide.h>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const Halide::Target host = Halide::get_host_target();
  Halide::compile_standalone_runtime(arguments[1], Halide::Target(host.os, host.arch, host.bits));
  return 0;
}
