/* The launcher: runs an exported model from tables. The exporter writes the tables as C (NAME.c, which holds
 * a copy of this file) and NAME.h, the interface for users. Little-endian, POSIX. Layouts here are not
 * persistent: tables and launcher are of one build. */
#ifndef SYLVITE_LAUNCHER_H
#define SYLVITE_LAUNCHER_H

#include <stddef.h>
#include <stdint.h>

#ifndef SYLVITE_EMBED_TYPES /* NAME.h, before a copy of this in NAME.c, has them */
#include "model_types.h"
#endif

/* Where bytes lie. `place` is a number for inputs and outputs, a byte offset for weights, the arena and states. */
enum sylvite_source {
  SYLVITE_INPUT = 0,
  SYLVITE_OUTPUT = 1,
  SYLVITE_WEIGHT = 2,
  SYLVITE_ARENA = 3,
  SYLVITE_STATE = 4
};

struct sylvite_argument {
  uint8_t source;
  uint8_t type_code; /* of halide_type_t, as type_bits */
  uint8_t type_bits;
  uint8_t rank;
  uint32_t first_dim; /* into sylvite_tables::dims, innermost first */
  uint64_t place;
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
  uint64_t place;
  uint64_t bytes;
};

struct sylvite_feature {
  int bit; /* halide_target_feature_t */
  const char* name;
};

struct sylvite_tables {
  const char* model;
  const char* id; /* 16 hex digits; the weights file has the same */
  uint64_t weight_bytes;
  const void* weights; /* those in the library; null: they are in a file */
  uint64_t arena_bytes;
  uint64_t
      state_bytes; /* of a model: values that stay between its runs, one after another, each 64-byte aligned */
  const struct sylvite_tensor_info* inputs;
  const struct sylvite_tensor_info* outputs;
  const struct sylvite_tensor_info* states;
  const uint64_t* state_offsets;
  const int32_t* dims;
  const struct sylvite_argument* arguments;
  const struct sylvite_launch* launches;
  const struct sylvite_copy* copies;
  const struct sylvite_feature* features; /* of the processor the kernels are compiled for */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t state_count;
  uint32_t argument_count;
  uint32_t launch_count;
  uint32_t copy_count;
  uint32_t feature_count;
  uint32_t feature_words; /* 64-bit words that hold a bit for every feature there is */
  uint32_t uses_amx;      /* kernels may use tiles, which the system must allow */
};

#ifdef __cplusplus
extern "C" {
#endif

int sylvite_model_create(const struct sylvite_tables* tables, const char* weights_path,
                         sylvite_model** model);
/* Refuses a model that was not created from these tables. */
int sylvite_model_run(const struct sylvite_tables* tables, sylvite_model* model, const void* const* inputs,
                      void* const* outputs);
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
