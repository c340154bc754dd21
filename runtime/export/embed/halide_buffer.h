/* What kernels are given. */
#ifndef SYLVITE_HALIDE_BUFFER_H
#define SYLVITE_HALIDE_BUFFER_H

#include <stdint.h>

/* Of HalideRuntime.h, which is not needed to build this; a test compares the layouts. */
struct halide_dimension {
  int32_t min, extent, stride;
  uint32_t flags;
};
struct halide_buffer {
  uint64_t device;
  const void* device_interface;
  void* host;
  uint64_t flags;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int32_t dimensions;
  struct halide_dimension* dim;
  void* padding;
};

#endif
