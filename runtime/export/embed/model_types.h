/* What users of any exported model see: NAME.h holds a copy of this, once per program. */
#ifndef SYLVITE_EMBED_TYPES
#define SYLVITE_EMBED_TYPES
/* Statuses. Values are frozen. */
enum {
  SYLVITE_OK = 0,
  SYLVITE_NULL_ARGUMENT = 1,
  SYLVITE_BAD_WEIGHTS = 2, /* absent, damaged, or of another model */
  SYLVITE_OUT_OF_MEMORY = 3,
  SYLVITE_UNSUPPORTED_CPU = 4, /* the processor lacks instructions that the kernels use */
  SYLVITE_RUN_FAILED = 5,
  SYLVITE_UNSUPPORTED_DEVICE = 6, /* no CUDA driver, no GPU, or one that the kernels are not for */
  SYLVITE_BUSY = 7,               /* another thread is running the model; nothing was done */
  SYLVITE_WRONG_MODEL = 8,        /* created by another model's function; nothing was done */
  SYLVITE_FORKED = 9,             /* in a child of a process that ran models; nothing was done */
  SYLVITE_BAD_SIZES = 10,         /* out of range; nothing was done */
  SYLVITE_NO_ROOM = 11            /* states have no room for what the run adds; nothing was done */
};
struct sylvite_tensor_info {
  const char* name;
  const char* dtype; /* f32, i64, bool (one byte), ... */
  int rank;
  const int64_t* dims; /* outermost first; the greatest where sizes are ranges */
  size_t bytes;        /* dense, row-major */
};
/* A size that each run is given: a multiple of `multiple` from low to high. */
struct sylvite_size_info {
  const char* name;
  int64_t low;
  int64_t high;
  int64_t multiple;
};
typedef struct sylvite_model sylvite_model;
#endif
