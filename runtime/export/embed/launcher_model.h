/* The launcher's parts: a model, and the arguments of its kernels, which depend on the sizes of a run. */
#ifndef SYLVITE_LAUNCHER_MODEL_H
#define SYLVITE_LAUNCHER_MODEL_H

#include "halide_buffer.h"
#include "launcher.h"
#include "weights_file.h"

/* A program's arguments. */
struct bound {
  struct halide_buffer* buffers; /* per argument */
  struct halide_dimension* dims;
  void** pointers; /* per launch: the context, then its buffers and integers */
  uint32_t* open;  /* arguments whose dims depend on sizes, one for all that have the same */
  uint32_t* moved; /* arguments whose place does */
  uint32_t open_count;
  uint32_t moved_count;
};

/* Kernels get its address as user_context. */
struct sylvite_model {
  struct sylvite_guard guard;
  char error[sylvite_error_bytes];
  const struct sylvite_tables* tables;
  struct sylvite_taken taken;
  const struct sylvite_program* program; /* the one that is taken */
  struct bound* bound;                   /* of the program */
  struct bound* all;                     /* per program */
  struct sylvite_mapping weights;
  char* arena;
  char* states;
  char** widened; /* per input: memory of the greatest extent, null where the input is read in place */
  void* user_context;
};

/* Where bytes lie; null for what is given to run. */
void* sylvite_place_of(const struct sylvite_model* model, uint32_t source, int64_t place);
/* Memory for all that a model holds but its weights; whether there was enough. */
int sylvite_allocate_arguments(struct sylvite_model* model);
void sylvite_free_arguments(struct sylvite_model* model);
/* What does not depend on sizes, once the weights are there. */
void sylvite_bind_programs(struct sylvite_model* model);
/* The program for these sizes, with arguments for them. Returns a status. */
int sylvite_take_sizes(struct sylvite_model* model, const int64_t* sizes);

#endif
