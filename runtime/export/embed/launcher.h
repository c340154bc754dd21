/* The launcher: runs an exported model from tables. The exporter writes the tables as C (NAME.c, which holds
 * a copy of this file) and NAME.h, the interface for users. Little-endian, POSIX. Layouts here are not
 * persistent: tables and launcher are of one build. */
#ifndef SYLVITE_LAUNCHER_H
#define SYLVITE_LAUNCHER_H

#include <stddef.h>
#include <stdint.h>

#ifndef SYLVITE_SIZED_PROGRAM_H /* NAME.c, before a copy of this, has it */
#include "sized_program.h"
#endif

/* Where bytes lie. `place` is a number for inputs and outputs, a byte offset for weights, the arena and states, and the value
 * itself for what is an integer. */
enum sylvite_source {
  SYLVITE_INPUT = 0,
  SYLVITE_OUTPUT = 1,
  SYLVITE_WEIGHT = 2,
  SYLVITE_ARENA = 3,
  SYLVITE_STATE = 4,
  SYLVITE_INTEGER = 5
};

struct sylvite_argument {
  uint8_t source;
  uint8_t type_code; /* of halide_type_t, as type_bits */
  uint8_t type_bits;
  uint8_t rank;
  uint8_t outer_blocks; /* the last but one of the dims lies outside of the last */
  uint32_t first_dim;   /* into sylvite_program::dims, innermost first; equal ones stand there once */
  int64_t place;
  int64_t stride; /* moves with the trips of a loop, by so many bytes; 0: it does not */
  int64_t phase;
  int64_t period; /* 0: none; else so many places are used in turn, from number `phase` on */
};

/* Launches from `first` on, before `end`, that run `trips` times in turn. */
struct sylvite_loop {
  uint32_t first;
  uint32_t end;
  int64_t trips;
};

struct sylvite_launch {
  int (*kernel)(void** arguments);
  const char* name;
  uint32_t first_argument;
  uint32_t argument_count;
};

/* An output that is a copy of other bytes, made after the launches. */
struct sylvite_copy {
  uint32_t output;
  uint32_t source;
  int64_t place;
  int64_t bytes;
};

/* What runs at the sizes of its box. */
struct sylvite_program {
  const int64_t* dims;
  const struct sylvite_argument* arguments;
  const struct sylvite_launch* launches;
  const struct sylvite_loop* loops;
  const struct sylvite_copy* copies;
  uint32_t argument_count;
  uint32_t dim_count;
  uint32_t launch_count;
  uint32_t loop_count;
  uint32_t copy_count;
};

struct sylvite_feature {
  int bit; /* halide_target_feature_t */
  const char* name;
};

struct sylvite_tables {
  struct sylvite_interface interface;
  uint64_t arena_bytes;
  const struct sylvite_program* programs;
  const struct sylvite_feature* features; /* of the processor the kernels are compiled for */
  uint32_t feature_count;
  uint32_t feature_words; /* 64-bit words that hold a bit for every feature there is */
  uint32_t uses_amx;      /* kernels may use tiles, which the system must allow */
};

#ifdef __cplusplus
extern "C" {
#endif

int sylvite_model_create(const struct sylvite_tables* tables, const char* weights_path,
                         sylvite_model** model);
/* Refuses a model that was not created from these tables. `sizes` may be null where the model has none. */
int sylvite_model_run(const struct sylvite_tables* tables, sylvite_model* model, const int64_t* sizes,
                      const void* const* inputs, void* const* outputs);
/* The dims of an input, or of an output where `is_output`, of a run at these sizes. */
int sylvite_model_dims(const struct sylvite_tables* tables, sylvite_model* model, const int64_t* sizes,
                       int is_output, int number, int64_t* dims);
int sylvite_model_reset(const struct sylvite_tables* tables, sylvite_model* model);
int sylvite_model_copy_state(const struct sylvite_tables* tables, sylvite_model* to, sylvite_model* from);
int sylvite_model_get_state(const struct sylvite_tables* tables, sylvite_model* model, int number,
                            void* value);
int sylvite_model_set_state(const struct sylvite_tables* tables, sylvite_model* model, int number,
                            const void* value);
void sylvite_model_destroy(sylvite_model* model);
const char* sylvite_model_error_message(const sylvite_model* model);
int sylvite_model_set_threads(int threads);

#ifdef __cplusplus
}
#endif
#endif
