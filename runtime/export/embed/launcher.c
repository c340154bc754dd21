/* See launcher.h. Needs libc, pthread and Halide's runtime object only. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* syscall */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher_model.h"

typedef void (*halide_error_handler_t)(void*, const char*);
extern halide_error_handler_t halide_set_error_handler(halide_error_handler_t handler);
extern int halide_can_use_target_features(int count, const uint64_t* features);
extern int halide_set_num_threads(int count);

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
          tables->interface.model, tables->features[i].name);
    }
  }
  if (tables->uses_amx && !request_amx()) {
    return sylvite_fail(
        create_error, SYLVITE_UNSUPPORTED_CPU,
        "%s was exported for processors with AMX, which this system does not let programs use: it "
        "needs Linux 5.16; export it again on this machine",
        tables->interface.model);
  }
  return SYLVITE_OK;
}

static int allocate(struct sylvite_model* model) {
  const struct sylvite_tables* tables = model->tables;
  if (sylvite_allocate_arguments(model)) return SYLVITE_OK;
  return sylvite_fail(create_error, SYLVITE_OUT_OF_MEMORY, "%s: out of memory for %llu bytes",
                      tables->interface.model,
                      (unsigned long long)(tables->arena_bytes + tables->interface.state_bytes));
}

int sylvite_model_create(const struct sylvite_tables* tables, const char* weights_path,
                         sylvite_model** model) {
  int status;
  create_error[0] = 0;
  if (model == NULL)
    return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "create: the place for the model is null");
  *model = NULL;
  if (weights_path == NULL && tables->interface.weights == NULL)
    return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "create: the weights path is null");
  status = check_cpu(tables);
  if (status != SYLVITE_OK) return status;
  struct sylvite_model* made = calloc(1, sizeof(*made));
  if (made == NULL) return sylvite_fail(create_error, SYLVITE_OUT_OF_MEMORY, "create: out of memory");
  made->tables = tables;
  const struct sylvite_wanted_weights wanted = {tables->interface.model, tables->interface.id,
                                                tables->interface.weight_bytes, tables->interface.weights};
  status = sylvite_map_weights(weights_path, &wanted, &made->weights, create_error);
  if (status == SYLVITE_OK) status = allocate(made);
  if (status != SYLVITE_OK) {
    sylvite_model_destroy(made);
    return status;
  }
  made->user_context = made;
  sylvite_bind_programs(made);
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

/* How long states are that grow, before the run. */
static int64_t length_of(const struct sylvite_model* model) {
  int64_t length = 0;
  if (model->tables->interface.capacity > 0)
    memcpy(&length,
           model->states + model->tables->interface.state_offsets[model->tables->interface.length_state],
           sizeof(length));
  return length;
}

/* The first elements along the axis of memory of the greatest extent; what lies behind them is zero, or of another run. */
static void widen(struct sylvite_model* model, const struct sylvite_grown* grown, const void* given) {
  const struct sylvite_rows rows =
      sylvite_rows_of(&model->tables->interface, &model->taken, grown, length_of(model));
  char* to = model->widened[grown->input];
  memset(to, 0, rows.wide * rows.count);
  for (size_t i = 0; i < rows.count; ++i)
    memcpy(to + i * rows.wide, (const char*)given + i * rows.given, rows.given);
}

static const void* input_of(const sylvite_model* model, const void* const* inputs, int64_t number) {
  for (uint32_t i = 0; i < model->taken.box->grown_count; ++i)
    if (model->taken.box->grown[i].input == number) return model->widened[number];
  return inputs[number];
}

static void bind_run(sylvite_model* model, const void* const* inputs, void* const* outputs) {
  const struct sylvite_program* program = model->program;
  const struct sylvite_box* box = model->taken.box;
  for (uint32_t i = 0; i < box->grown_count; ++i) widen(model, &box->grown[i], inputs[box->grown[i].input]);
  for (uint32_t i = 0; i < program->argument_count; ++i) {
    const struct sylvite_argument* argument = &program->arguments[i];
    if (argument->source == SYLVITE_INPUT)
      model->bound->buffers[i].host = (void*)input_of(model, inputs, argument->place);
    if (argument->source == SYLVITE_OUTPUT) model->bound->buffers[i].host = outputs[argument->place];
  }
}

static void copy_outputs(sylvite_model* model, const void* const* inputs, void* const* outputs) {
  for (uint32_t i = 0; i < model->program->copy_count; ++i) {
    const struct sylvite_copy* copy = &model->program->copies[i];
    const void* from = sylvite_place_of(model, copy->source, copy->place);
    if (copy->source == SYLVITE_INPUT) from = input_of(model, inputs, copy->place);
    if (copy->source == SYLVITE_OUTPUT) from = outputs[copy->place];
    memcpy(outputs[copy->output], from, (size_t)sylvite_value_of(model->taken.numbers, copy->bytes));
  }
}

static int call(sylvite_model* model, uint32_t number) {
  const struct sylvite_launch* launch = &model->program->launches[number];
  if (launch->kernel(model->bound->pointers + launch->first_argument + number) == 0) return SYLVITE_OK;
  if (model->error[0] == 0) sylvite_fail(model->error, 0, "kernel '%s' failed", launch->name);
  return SYLVITE_RUN_FAILED;
}

static int64_t window_offset(const struct sylvite_model* model, const struct sylvite_argument* argument,
                             int64_t trip) {
  const int64_t period = sylvite_value_of(model->taken.numbers, argument->period);
  const int64_t place =
      period > 0 ? (trip + sylvite_value_of(model->taken.numbers, argument->phase)) % period : trip;
  return sylvite_value_of(model->taken.numbers, argument->stride) * place;
}

/* The arguments of a launch that move, at that trip of its loop. */
static void move_arguments(struct sylvite_model* model, uint32_t number, int64_t trip) {
  const struct sylvite_launch* launch = &model->program->launches[number];
  for (uint32_t i = launch->first_argument; i < launch->first_argument + launch->argument_count; ++i) {
    const struct sylvite_argument* argument = &model->program->arguments[i];
    if (argument->stride == 0) continue;
    const int64_t place = sylvite_value_of(model->taken.numbers, argument->place) +
                          window_offset(model, argument, trip) - window_offset(model, argument, 0);
    model->bound->buffers[i].host = sylvite_place_of(model, argument->source, place);
  }
}

static int run_loop(sylvite_model* model, const struct sylvite_loop* loop) {
  const int64_t trips = sylvite_value_of(model->taken.numbers, loop->trips);
  for (int64_t trip = 0; trip < trips; ++trip) {
    for (uint32_t i = loop->first; i < loop->end; ++i) {
      move_arguments(model, i, trip);
      const int status = call(model, i);
      if (status != SYLVITE_OK) return status;
    }
  }
  return SYLVITE_OK;
}

static int run_launches(sylvite_model* model) {
  const struct sylvite_loop* loop = model->program->loops;
  const struct sylvite_loop* const end = loop + model->program->loop_count;
  int status = SYLVITE_OK;
  for (uint32_t i = 0; status == SYLVITE_OK && i < model->program->launch_count;) {
    const int begins = loop != end && loop->first == i;
    status = begins ? run_loop(model, loop) : call(model, i);
    i = begins ? loop++->end : i + 1;
  }
  return status;
}

static int run(sylvite_model* model, const int64_t* sizes, const void* const* inputs, void* const* outputs) {
  const struct sylvite_tables* tables = model->tables;
  model->error[0] = 0;
  int status = sylvite_take_sizes(model, sizes);
  if (status == SYLVITE_OK)
    status = check_pointers(model, "input", inputs, tables->interface.inputs, tables->interface.input_count);
  if (status == SYLVITE_OK)
    status = check_pointers(model, "output", (const void* const*)outputs, tables->interface.outputs,
                            tables->interface.output_count);
  if (status == SYLVITE_OK)
    status = sylvite_check_room(&tables->interface, &model->taken, length_of(model), model->error);
  if (status != SYLVITE_OK) return status;
  if (pool_is_lost) {
    return sylvite_fail(
        model->error, SYLVITE_FORKED,
        "run: this process was forked from one that ran models, and has none of its threads; fork "
        "before the first run, or start a program in the child");
  }
  pool_is_used = 1;
  bind_run(model, inputs, outputs);
  status = run_launches(model);
  if (status != SYLVITE_OK) return status;
  copy_outputs(model, inputs, outputs);
  return SYLVITE_OK;
}

int sylvite_model_run(const struct sylvite_tables* tables, sylvite_model* model, const int64_t* sizes,
                      const void* const* inputs, void* const* outputs) {
  int status;
  if (model == NULL) return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "run: the model is null");
  status = sylvite_enter(&model->guard, model->tables == tables, tables->interface.model, create_error);
  if (status != SYLVITE_OK) return status;
  status = run(model, sizes, inputs, outputs);
  sylvite_leave(&model->guard);
  return status;
}

static int enter(const struct sylvite_tables* tables, sylvite_model* model, const char* what) {
  int status;
  if (model == NULL) return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "%s: the model is null", what);
  status = sylvite_enter(&model->guard, model->tables == tables, tables->interface.model, create_error);
  if (status == SYLVITE_OK) model->error[0] = 0;
  return status;
}

int sylvite_model_reset(const struct sylvite_tables* tables, sylvite_model* model) {
  const int status = enter(tables, model, "reset");
  if (status != SYLVITE_OK) return status;
  memset(model->states, 0, tables->interface.state_bytes);
  sylvite_leave(&model->guard);
  return SYLVITE_OK;
}

int sylvite_model_copy_state(const struct sylvite_tables* tables, sylvite_model* to, sylvite_model* from) {
  int status = enter(tables, to, "copy_state");
  if (status != SYLVITE_OK) return status;
  if (from != to) {
    status = enter(tables, from, "copy_state");
    if (status == SYLVITE_OK) {
      memcpy(to->states, from->states, tables->interface.state_bytes);
      sylvite_leave(&from->guard);
    } else {
      sylvite_fail(to->error, status, "copy_state: the model to copy from is null, of another kind, or runs");
    }
  }
  sylvite_leave(&to->guard);
  return status;
}

/* Of the states before the next run. */
static int read_dims(sylvite_model* model, const int64_t* sizes, int is_output, int number, int64_t* dims) {
  const struct sylvite_interface* interface = &model->tables->interface;
  int status = sylvite_check_port(interface, is_output, number, dims, model->error);
  if (status == SYLVITE_OK) status = sylvite_take_sizes(model, sizes);
  if (status == SYLVITE_OK)
    sylvite_write_dims(interface, &model->taken, is_output, number, length_of(model), dims);
  return status;
}

int sylvite_model_dims(const struct sylvite_tables* tables, sylvite_model* model, const int64_t* sizes,
                       int is_output, int number, int64_t* dims) {
  int status = enter(tables, model, "dims");
  if (status != SYLVITE_OK) return status;
  status = read_dims(model, sizes, is_output, number, dims);
  sylvite_leave(&model->guard);
  return status;
}

/* Of one state: from the model where `given` is null, else into it. */
static int move_state(const struct sylvite_tables* tables, sylvite_model* model, const char* what, int number,
                      void* value, const void* given) {
  int status = enter(tables, model, what);
  if (status != SYLVITE_OK) return status;
  status = sylvite_check_state(what, number, given != NULL ? given : value, tables->interface.states,
                               tables->interface.state_count, model->error);
  if (status == SYLVITE_OK) {
    char* place = model->states + tables->interface.state_offsets[number];
    if (given != NULL)
      memcpy(place, given, tables->interface.states[number].bytes);
    else
      memcpy(value, place, tables->interface.states[number].bytes);
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
  sylvite_free_arguments(model);
  free(model);
}

const char* sylvite_model_error_message(const sylvite_model* model) {
  return model != NULL && !sylvite_was_refused(&model->guard) ? model->error : create_error;
}

int sylvite_model_set_threads(int threads) {
  if (threads < 0) return -1;
  return halide_set_num_threads(threads);
}
