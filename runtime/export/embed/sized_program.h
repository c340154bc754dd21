/* What both launchers know of programs that serve ranges of sizes: tables hold a number that depends on the sizes of a run, and
 * a negative one, as -1 - i, where i is the number that sylvite_box::numbers writes; others as they are. NAME.c holds a copy of
 * this file. */
#ifndef SYLVITE_SIZED_PROGRAM_H
#define SYLVITE_SIZED_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#ifndef SYLVITE_EMBED_TYPES /* NAME.h, before a copy of this in NAME.c, has them */
#include "model_types.h"
#endif

/* What a number must be where the program is to run. */
struct sylvite_condition {
  int64_t number;
  int64_t low;
  int64_t high;
};

/* Floor of a / b, where b > 0. */
static inline int64_t sylvite_quotient(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}
static inline int64_t sylvite_positive(int64_t a) {
  return a > 0 ? a : 0;
}

/* Which sizes a program serves: from `low` to `high`, those that meet the conditions. What its numbers and its model's inputs
 * and outputs are then. */
struct sylvite_box {
  const int64_t* low; /* per size of the model */
  const int64_t* high;
  void (*numbers)(const int64_t* sizes, int64_t* values); /* null: there are none */
  const struct sylvite_condition* conditions;
  const int64_t* input_dims; /* of all inputs, one after another, outermost first */
  const int64_t* output_dims;
  uint32_t condition_count;
};

static inline int64_t sylvite_value_of(const int64_t* numbers, int64_t number) {
  return number < 0 ? numbers[-1 - number] : number;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the sizes are what `infos` say. A status, with its message in `error`. */
int sylvite_check_sizes(const struct sylvite_size_info* infos, uint32_t count, const int64_t* sizes,
                        char* error);
/* Whether the program is for these sizes; then the numbers are those of the program. */
int sylvite_takes_sizes(const struct sylvite_box* box, const int64_t* sizes, uint32_t count,
                        int64_t* numbers);
/* Of input or output `number` of those that `infos` describe: where its dims stand in `all`, which are the box's; its bytes; a
 * status where there is none such, or no memory for its dims. */
const int64_t* sylvite_dims_of(const struct sylvite_tensor_info* infos, const int64_t* all, int number);
size_t sylvite_bytes_of(const struct sylvite_tensor_info* infos, const int64_t* all, const int64_t* numbers,
                        int number);
int sylvite_check_port(int is_output, int number, uint32_t count, const int64_t* dims, char* error);

#ifdef __cplusplus
}
#endif
#endif
