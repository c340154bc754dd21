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

/* An input whose extent on `axis` is what the states have before the run, and `beyond`: kernels get it in memory of the greatest
 * extent. */
struct sylvite_grown {
  uint32_t input;
  uint32_t axis;
  uint32_t element_bytes;
  int64_t beyond;
};

/* Which sizes a program serves: from `low` to `high`, those that meet the conditions. What its numbers and its model's inputs
 * and outputs are then. */
struct sylvite_box {
  const int64_t* low; /* per size of the model */
  const int64_t* high;
  void (*numbers)(const int64_t* sizes, int64_t* values); /* null: there are none */
  const struct sylvite_condition* conditions;
  const int64_t* input_dims; /* of all inputs, one after another, outermost first */
  const int64_t* output_dims;
  const struct sylvite_grown* grown;
  int64_t added; /* what a run adds to states that grow */
  uint32_t condition_count;
  uint32_t grown_count;
};

/* What users of a model see, and which of its programs serves which sizes. */
struct sylvite_interface {
  const char* model;
  const char* id; /* 16 hex digits; the weights file has the same */
  uint64_t weight_bytes;
  const void* weights; /* those in the library; null: they are in a file */
  const struct sylvite_tensor_info* inputs;
  const struct sylvite_tensor_info* outputs;
  const struct sylvite_tensor_info* states;
  const uint64_t*
      state_offsets; /* in values that stay between runs, one after another, each 64-byte aligned */
  uint64_t state_bytes;
  const struct sylvite_size_info* sizes;
  const struct sylvite_box* boxes; /* per program */
  int64_t capacity;                /* of states that grow; 0: none does */
  uint32_t length_state;           /* the number of the state that says how long they are */
  uint32_t number_count;           /* the most that a program has */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t state_count;
  uint32_t size_count;
  uint32_t program_count;
};

/* The sizes of a model's latest run. */
struct sylvite_taken {
  int64_t* sizes;
  int64_t* numbers;
  const struct sylvite_box* box; /* of the program for these sizes; null: there are no sizes yet */
  uint32_t program;
};

static inline int64_t sylvite_value_of(const int64_t* numbers, int64_t number) {
  return number < 0 ? numbers[-1 - number] : number;
}

/* Rows of an input that grows: so many of `given` bytes, which kernels get `wide` bytes apart. */
struct sylvite_rows {
  size_t count;
  size_t given;
  size_t wide;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Memory for the sizes; whether there was enough. sylvite_free_taken frees it in both cases. */
int sylvite_allocate_taken(const struct sylvite_interface* interface, struct sylvite_taken* taken);
void sylvite_free_taken(struct sylvite_taken* taken);
/* The program for these sizes, and its numbers. A status, with its message in `error`; `is_new` where something is another than
 * it was. */
int sylvite_take(const struct sylvite_interface* interface, struct sylvite_taken* taken, const int64_t* sizes,
                 int* is_new, char* error);

/* Whether states of this length have room for what a run adds. A status. */
int sylvite_check_room(const struct sylvite_interface* interface, const struct sylvite_taken* taken,
                       int64_t length, char* error);
struct sylvite_rows sylvite_rows_of(const struct sylvite_interface* interface,
                                    const struct sylvite_taken* taken, const struct sylvite_grown* grown,
                                    int64_t length);

/* Of an input, or an output where `is_output`: a status where there is none of that number, or no memory for its dims. */
int sylvite_check_port(const struct sylvite_interface* interface, int is_output, int number,
                       const int64_t* dims, char* error);
/* Its dims at the sizes, where states are of this length; its bytes, as kernels get it. */
void sylvite_write_dims(const struct sylvite_interface* interface, const struct sylvite_taken* taken,
                        int is_output, int number, int64_t length, int64_t* dims);
size_t sylvite_bytes_of(const struct sylvite_interface* interface, const struct sylvite_taken* taken,
                        int is_output, int number);

#ifdef __cplusplus
}
#endif
#endif
