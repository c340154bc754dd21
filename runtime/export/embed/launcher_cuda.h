/* The launcher of models exported for an NVIDIA GPU: runs one from tables. As launcher.h is for processors;
 * NAME.c holds a copy of this file. Numbers of enums are the CUDA driver's. */
#ifndef SYLVITE_LAUNCHER_CUDA_H
#define SYLVITE_LAUNCHER_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifndef SYLVITE_SIZED_PROGRAM_H /* NAME.c, before a copy of this, has it */
#include "sized_program.h"
#endif

/* Bytes on the device. `number` counts inputs and outputs; weights are all in one block. */
enum sylvite_region {
  SYLVITE_NOWHERE = 0, /* `offset` is a plain number: 0, a null pointer, or an extent */
  SYLVITE_CUDA_WEIGHTS = 1,
  SYLVITE_CUDA_ARENA = 2,
  SYLVITE_CUDA_SCRATCH = 3,
  SYLVITE_CUDA_INPUT = 4,
  SYLVITE_CUDA_OUTPUT = 5,
  SYLVITE_CUDA_STATE = 6
};
struct sylvite_cuda_place {
  uint32_t region;
  uint32_t number;
  int64_t offset;
};

/* A CUtensorMap of rank 4, innermost dim first. */
struct sylvite_cuda_map {
  struct sylvite_cuda_place place;
  int64_t dims[4];
  int64_t pitches[3]; /* bytes */
  int64_t box[4];     /* of windows: channels, how many windows */
  uint32_t step[4];   /* of windows: between them */
  int32_t first[2];
  int32_t last[2];
  int32_t type;
  int32_t swizzle;
  int32_t is_windows; /* an im2col map */
};

enum sylvite_cuda_kind {
  SYLVITE_CUDA_BYTES = 0,    /* of sylvite_cuda_tables::bytes */
  SYLVITE_CUDA_POINTERS = 1, /* of sylvite_cuda_program::places: a pointer, a number, or a struct of them */
  SYLVITE_CUDA_MAP = 2,      /* of sylvite_cuda_program::maps */
  SYLVITE_CUDA_NO_MAP = 3    /* a map that nothing uses */
};
struct sylvite_cuda_argument {
  uint32_t kind;
  uint32_t first;
  uint32_t count;
};

/* Machine code for a compute capability (90: 9.0), which serves later ones of the same major number unless it
 * is `exact`; or, with capability 0, PTX, which the driver compiles for any. */
struct sylvite_cuda_code {
  int32_t capability;
  int32_t exact;
  const void* code;
};
/* The same kernels for several devices: the first code that fits is taken. */
struct sylvite_cuda_image {
  uint32_t first_code;
  uint32_t code_count;
};

struct sylvite_cuda_launch {
  const char* name;
  const char* function;
  uint32_t image;
  int64_t grid[3]; /* none along one: there is nothing to do */
  uint32_t block[3];
  uint32_t cluster;
  uint32_t shared_bytes;
  uint32_t programmatic; /* may begin before the kernel ahead of it has ended */
  uint32_t first_argument;
  uint32_t argument_count;
};

/* An output that is a copy of other bytes, made after the launches. */
struct sylvite_cuda_copy {
  uint32_t output;
  struct sylvite_cuda_place from;
  int64_t bytes;
};

/* What runs at the sizes of its box. */
struct sylvite_cuda_program {
  const struct sylvite_cuda_place* places;
  const struct sylvite_cuda_map* maps;
  const struct sylvite_cuda_argument* arguments;
  const struct sylvite_cuda_launch* launches;
  const struct sylvite_cuda_copy* copies;
  uint32_t place_count;
  uint32_t map_count;
  uint32_t argument_count;
  uint32_t launch_count;
  uint32_t copy_count;
};

struct sylvite_cuda_tables {
  struct sylvite_interface interface;
  uint64_t arena_bytes;
  uint64_t scratch_bytes;
  const unsigned char* bytes;
  const struct sylvite_cuda_code* codes;
  const struct sylvite_cuda_image* images;
  const struct sylvite_cuda_program* programs;
  uint32_t image_count;
};

#ifdef __cplusplus
extern "C" {
#endif

int sylvite_cuda_create(const struct sylvite_cuda_tables* tables, const char* weights_path,
                        sylvite_model** model);
/* They refuse a model that was not created from these tables. `sizes` may be null where the model has none. */
int sylvite_cuda_run(const struct sylvite_cuda_tables* tables, sylvite_model* model, const int64_t* sizes,
                     const void* const* inputs, void* const* outputs);
int sylvite_cuda_run_on_stream(const struct sylvite_cuda_tables* tables, sylvite_model* model,
                               const int64_t* sizes, const void* const* inputs, void* const* outputs,
                               void* stream);
/* The dims of an input, or of an output where `is_output`, of a run at these sizes. */
int sylvite_cuda_dims(const struct sylvite_cuda_tables* tables, sylvite_model* model, const int64_t* sizes,
                      int is_output, int number, int64_t* dims);
int sylvite_cuda_reset(const struct sylvite_cuda_tables* tables, sylvite_model* model);
int sylvite_cuda_copy_state(const struct sylvite_cuda_tables* tables, sylvite_model* to, sylvite_model* from);
int sylvite_cuda_get_state(const struct sylvite_cuda_tables* tables, sylvite_model* model, int number,
                           void* value);
int sylvite_cuda_set_state(const struct sylvite_cuda_tables* tables, sylvite_model* model, int number,
                           const void* value);
void sylvite_cuda_destroy(sylvite_model* model);
const char* sylvite_cuda_error_message(const sylvite_model* model);

#ifdef __cplusplus
}
#endif
#endif
