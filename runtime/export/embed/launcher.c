/* See launcher.h. Needs libc, pthread and Halide's runtime object only. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* syscall */

#include "launcher.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weights_file.h"

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
typedef void (*halide_error_handler_t)(void*, const char*);
extern halide_error_handler_t halide_set_error_handler(halide_error_handler_t handler);
extern int halide_can_use_target_features(int count, const uint64_t* features);
extern int halide_set_num_threads(int count);

/* Kernels get its address as user_context. */
struct sylvite_model {
  struct sylvite_guard guard;
  char error[sylvite_error_bytes];
  const struct sylvite_tables* tables;
  struct sylvite_mapping weights;
  char* arena;
  char* states;
  struct halide_buffer* buffers; /* per argument */
  struct halide_dimension* dims;
  void** pointers; /* per launch: the context, then its buffers */
  void* user_context;
};

static _Thread_local char create_error[sylvite_error_bytes];

/* Never the end of the program: what was called returns a status. */
static void on_kernel_error(void* user_context, const char* message) {
  char* error = user_context == NULL ? create_error : ((struct sylvite_model*)user_context)->error;
  if (error[0] == 0) sylvite_fail(error, 0, "%s", message);
}

/* A child process has none of the threads of Halide's pool, and would wait for them for ever. */
static atomic_int pool_is_used, pool_is_lost;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static void in_child(void) {
  if (pool_is_used) pool_is_lost = 1;
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, in_child);
}

/* As request_amx of base/amx.h: the first use of a tile is fatal without. */
static int request_amx(void) {
#ifdef __x86_64__
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  return 0;
#endif
}

static int check_cpu(const struct sylvite_tables* tables) {
  for (uint32_t i = 0; i < tables->feature_count; ++i) {
    uint64_t words[8] = {0};
    const int bit = tables->features[i].bit;
    words[bit / 64] = UINT64_C(1) << (bit % 64);
    if (!halide_can_use_target_features((int)tables->feature_words, words)) {
      return sylvite_fail(
          create_error, SYLVITE_UNSUPPORTED_CPU,
          "%s was exported for processors with %s, which this one lacks; export it again on this machine",
          tables->model, tables->features[i].name);
    }
  }
  if (tables->uses_amx && !request_amx()) {
    return sylvite_fail(
        create_error, SYLVITE_UNSUPPORTED_CPU,
        "%s was exported for processors with AMX, which this system does not let programs use: it "
        "needs Linux 5.16; export it again on this machine",
        tables->model);
  }
  return SYLVITE_OK;
}

static void* place_of(const struct sylvite_model* model, uint32_t source, uint64_t place) {
  if (source == SYLVITE_WEIGHT) return sylvite_weights_of(&model->weights) + place;
  if (source == SYLVITE_ARENA) return model->arena + place;
  if (source == SYLVITE_STATE) return model->states + place;
  return NULL; /* given to run */
}

static void bind_argument(struct sylvite_model* model, uint32_t number) {
  const struct sylvite_argument* argument = &model->tables->arguments[number];
  struct halide_buffer* buffer = &model->buffers[number];
  int32_t stride = 1;
  buffer->host = place_of(model, argument->source, argument->place);
  buffer->type_code = argument->type_code;
  buffer->type_bits = argument->type_bits;
  buffer->type_lanes = 1;
  buffer->dimensions = argument->rank;
  buffer->dim = model->dims + argument->first_dim;
  for (uint32_t i = 0; i < argument->rank; ++i) {
    const int32_t extent = model->tables->dims[argument->first_dim + i];
    buffer->dim[i].extent = extent;
    buffer->dim[i].stride = stride;
    stride *= extent;
  }
}

static int allocate(struct sylvite_model* model) {
  const struct sylvite_tables* tables = model->tables;
  size_t dim_count = 0;
  void* arena = NULL;
  void* states = NULL;
  for (uint32_t i = 0; i < tables->argument_count; ++i) dim_count += tables->arguments[i].rank;
  model->buffers = calloc(tables->argument_count + 1, sizeof(*model->buffers));
  model->dims = calloc(dim_count + 1, sizeof(*model->dims));
  model->pointers =
      calloc((size_t)tables->argument_count + tables->launch_count + 1, sizeof(*model->pointers));
  if (model->buffers == NULL || model->dims == NULL || model->pointers == NULL ||
      posix_memalign(&arena, 64, tables->arena_bytes + 64) != 0 ||
      posix_memalign(&states, 64, tables->state_bytes + 64) != 0) {
    free(arena);
    return sylvite_fail(create_error, SYLVITE_OUT_OF_MEMORY, "%s: out of memory for %llu bytes",
                        tables->model, (unsigned long long)(tables->arena_bytes + tables->state_bytes));
  }
  model->states = memset(states, 0, tables->state_bytes + 64);
  model->arena = memset(arena, 0, tables->arena_bytes + 64); /* padded channels must be finite */
  return SYLVITE_OK;
}

static void bind(struct sylvite_model* model) {
  const struct sylvite_tables* tables = model->tables;
  void** next = model->pointers;
  model->user_context = model;
  for (uint32_t i = 0; i < tables->argument_count; ++i) bind_argument(model, i);
  for (uint32_t i = 0; i < tables->launch_count; ++i) {
    const struct sylvite_launch* launch = &tables->launches[i];
    *next++ = &model->user_context;
    for (uint32_t j = 0; j < launch->argument_count; ++j)
      *next++ = &model->buffers[launch->first_argument + j];
  }
}

int sylvite_model_create(const struct sylvite_tables* tables, const char* weights_path,
                         sylvite_model** model) {
  int status;
  create_error[0] = 0;
  if (model == NULL)
    return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "create: the place for the model is null");
  *model = NULL;
  if (weights_path == NULL && tables->weights == NULL)
    return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "create: the weights path is null");
  status = check_cpu(tables);
  if (status != SYLVITE_OK) return status;
  struct sylvite_model* made = calloc(1, sizeof(*made));
  if (made == NULL) return sylvite_fail(create_error, SYLVITE_OUT_OF_MEMORY, "create: out of memory");
  made->tables = tables;
  const struct sylvite_wanted_weights wanted = {tables->model, tables->id, tables->weight_bytes,
                                                tables->weights};
  status = sylvite_map_weights(weights_path, &wanted, &made->weights, create_error);
  if (status == SYLVITE_OK) status = allocate(made);
  if (status != SYLVITE_OK) {
    sylvite_model_destroy(made);
    return status;
  }
  bind(made);
  pthread_once(&watch_once, watch_forks);
  halide_set_error_handler(on_kernel_error);
  *model = made;
  return SYLVITE_OK;
}

static int check_pointers(sylvite_model* model, const char* what, const void* const* pointers,
                          const struct sylvite_tensor_info* infos, uint32_t count) {
  if (pointers == NULL && count > 0)
    return sylvite_fail(model->error, SYLVITE_NULL_ARGUMENT, "run: %ss is null", what);
  for (uint32_t i = 0; i < count; ++i) {
    if (pointers[i] == NULL) {
      return sylvite_fail(model->error, SYLVITE_NULL_ARGUMENT, "run: %s %u '%s' is null", what, (unsigned)i,
                          infos[i].name);
    }
  }
  return SYLVITE_OK;
}

static void bind_run(sylvite_model* model, const void* const* inputs, void* const* outputs) {
  for (uint32_t i = 0; i < model->tables->argument_count; ++i) {
    const struct sylvite_argument* argument = &model->tables->arguments[i];
    if (argument->source == SYLVITE_INPUT) model->buffers[i].host = (void*)inputs[argument->place];
    if (argument->source == SYLVITE_OUTPUT) model->buffers[i].host = outputs[argument->place];
  }
}

static void copy_outputs(sylvite_model* model, const void* const* inputs, void* const* outputs) {
  for (uint32_t i = 0; i < model->tables->copy_count; ++i) {
    const struct sylvite_copy* copy = &model->tables->copies[i];
    const void* from = place_of(model, copy->source, copy->place);
    if (copy->source == SYLVITE_INPUT) from = inputs[copy->place];
    if (copy->source == SYLVITE_OUTPUT) from = outputs[copy->place];
    memcpy(outputs[copy->output], from, copy->bytes);
  }
}

static int run(sylvite_model* model, const void* const* inputs, void* const* outputs) {
  const struct sylvite_tables* tables = model->tables;
  void** pointers = model->pointers;
  model->error[0] = 0;
  int status = check_pointers(model, "input", inputs, tables->inputs, tables->input_count);
  if (status != SYLVITE_OK) return status;
  status =
      check_pointers(model, "output", (const void* const*)outputs, tables->outputs, tables->output_count);
  if (status != SYLVITE_OK) return status;
  if (pool_is_lost) {
    return sylvite_fail(
        model->error, SYLVITE_FORKED,
        "run: this process was forked from one that ran models, and has none of its threads; fork "
        "before the first run, or start a program in the child");
  }
  pool_is_used = 1;
  bind_run(model, inputs, outputs);
  for (uint32_t i = 0; i < tables->launch_count; ++i) {
    if (tables->launches[i].kernel(pointers) != 0) {
      if (model->error[0] == 0) sylvite_fail(model->error, 0, "kernel '%s' failed", tables->launches[i].name);
      return SYLVITE_RUN_FAILED;
    }
    pointers += tables->launches[i].argument_count + 1;
  }
  copy_outputs(model, inputs, outputs);
  return SYLVITE_OK;
}

int sylvite_model_run(const struct sylvite_tables* tables, sylvite_model* model, const void* const* inputs,
                      void* const* outputs) {
  int status;
  if (model == NULL) return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "run: the model is null");
  status = sylvite_enter(&model->guard, model->tables == tables, tables->model, create_error);
  if (status != SYLVITE_OK) return status;
  status = run(model, inputs, outputs);
  sylvite_leave(&model->guard);
  return status;
}

static int enter(const struct sylvite_tables* tables, sylvite_model* model, const char* what) {
  int status;
  if (model == NULL) return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "%s: the model is null", what);
  status = sylvite_enter(&model->guard, model->tables == tables, tables->model, create_error);
  if (status == SYLVITE_OK) model->error[0] = 0;
  return status;
}

int sylvite_model_reset(const struct sylvite_tables* tables, sylvite_model* model) {
  const int status = enter(tables, model, "reset");
  if (status != SYLVITE_OK) return status;
  memset(model->states, 0, tables->state_bytes);
  sylvite_leave(&model->guard);
  return SYLVITE_OK;
}

int sylvite_model_copy_state(const struct sylvite_tables* tables, sylvite_model* to, sylvite_model* from) {
  int status = enter(tables, to, "copy_state");
  if (status != SYLVITE_OK) return status;
  if (from != to) {
    status = enter(tables, from, "copy_state");
    if (status == SYLVITE_OK) {
      memcpy(to->states, from->states, tables->state_bytes);
      sylvite_leave(&from->guard);
    } else {
      sylvite_fail(to->error, status, "copy_state: the model to copy from is null, of another kind, or runs");
    }
  }
  sylvite_leave(&to->guard);
  return status;
}

/* Of one state: from the model where `given` is null, else into it. */
static int move_state(const struct sylvite_tables* tables, sylvite_model* model, const char* what, int number,
                      void* value, const void* given) {
  int status = enter(tables, model, what);
  if (status != SYLVITE_OK) return status;
  if (number < 0 || (uint32_t)number >= tables->state_count) {
    status = sylvite_fail(model->error, SYLVITE_NULL_ARGUMENT, "%s: there is no state %d; the model has %u",
                          what, number, (unsigned)tables->state_count);
  } else if (value == NULL && given == NULL) {
    status = sylvite_fail(model->error, SYLVITE_NULL_ARGUMENT, "%s: the value of state %d '%s' is null", what,
                          number, tables->states[number].name);
  } else {
    char* place = model->states + tables->state_offsets[number];
    if (given != NULL)
      memcpy(place, given, tables->states[number].bytes);
    else
      memcpy(value, place, tables->states[number].bytes);
  }
  sylvite_leave(&model->guard);
  return status;
}

int sylvite_model_get_state(const struct sylvite_tables* tables, sylvite_model* model, int number,
                            void* value) {
  return move_state(tables, model, "get_state", number, value, NULL);
}

int sylvite_model_set_state(const struct sylvite_tables* tables, sylvite_model* model, int number,
                            const void* value) {
  return move_state(tables, model, "set_state", number, NULL, value);
}

void sylvite_model_destroy(sylvite_model* model) {
  if (model == NULL) return;
  sylvite_forget(&model->guard);
  sylvite_unmap_weights(&model->weights);
  free(model->arena);
  free(model->states);
  free(model->buffers);
  free(model->dims);
  free(model->pointers);
  free(model);
}

const char* sylvite_model_error_message(const sylvite_model* model) {
  return model != NULL && !sylvite_was_refused(&model->guard) ? model->error : create_error;
}

int sylvite_model_set_threads(int threads) {
  if (threads < 0) return -1;
  return halide_set_num_threads(threads);
}
