/* A model of launcher_cuda.c, and what its files share. */
#ifndef SYLVITE_LAUNCHER_CUDA_MODEL_H
#define SYLVITE_LAUNCHER_CUDA_MODEL_H

#include "cuda_functions.h"
#include "launcher_cuda.h"
#include "weights_file.h"

/* A program's functions and arguments. */
struct prepared {
  cuda_handle* functions; /* per launch */
  cuda_address* pointers; /* per place */
  struct cuda_map* maps;  /* per map, then one that is empty */
  void** parameters;      /* per argument */
  int is_made;            /* maps that name nothing of a run, and have its sizes nowhere, are there */
};

struct sylvite_model {
  struct sylvite_guard guard;
  char error[sylvite_error_bytes];
  const struct sylvite_cuda_tables* tables;
  struct sylvite_taken taken;
  const struct sylvite_cuda_program* program; /* the one that is taken */
  struct prepared* prepared;                  /* of the program */
  struct prepared* all;                       /* per program */
  int is_bound;                               /* the parameters are those of these sizes, and of `bound` */
  int64_t length; /* of states that grow, after the runs that were queued; negative: only the device knows */
  cuda_handle context;
  int device;
  int context_is_ours;
  cuda_handle stream;    /* of runs on host memory; null until the first */
  cuda_address* own;     /* memory of such runs: per input, then per output */
  cuda_address* given;   /* of the run on device memory that begins, likewise */
  cuda_address* bound;   /* what the parameters name, likewise */
  cuda_address* widened; /* per input: memory of the greatest extent; 0 where the input is read in place */
  cuda_address weights, arena, scratch, states;
  cuda_handle* modules; /* per image */
};

extern struct cuda_functions sylvite_cuda; /* there once a model is */

/* Fails with what the driver says of a call: about what it was. */
int sylvite_cuda_error(char* error, const char* call, const char* about, int result);
/* The model's, from here to sylvite_cuda_leave_context; `what` is the call. A status. */
int sylvite_cuda_enter_context(struct sylvite_model* model, const char* what);
void sylvite_cuda_leave_context(void);

/* To zero. REQUIRES the context of the model. */
int sylvite_cuda_clear_states(struct sylvite_model* model, char* error);
/* Refuses a model that is null, of other tables, or running. Takes it till sylvite_leave. */
int sylvite_cuda_enter(const struct sylvite_cuda_tables* tables, sylvite_model* model, const char* what);

/* Returns from the function around it when the driver fails. */
#define CALL(error, about, member, ...)                                          \
  do {                                                                           \
    const int result_ = sylvite_cuda.member(__VA_ARGS__);                        \
    if (result_ != 0) return sylvite_cuda_error(error, #member, about, result_); \
  } while (0)

#endif
