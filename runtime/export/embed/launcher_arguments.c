/* See launcher_model.h. */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>

#include "launcher_model.h"

void* sylvite_place_of(const struct sylvite_model* model, uint32_t source, int64_t place) {
  if (source == SYLVITE_WEIGHT) return sylvite_weights_of(&model->weights) + place;
  if (source == SYLVITE_ARENA) return model->arena + place;
  if (source == SYLVITE_STATE) return model->states + place;
  return NULL; /* given to run */
}

static void bind_place(struct sylvite_model* model, uint32_t number) {
  const struct sylvite_argument* argument = &model->program->arguments[number];
  const int64_t place = sylvite_value_of(model->taken.numbers, argument->place);
  model->bound->buffers[number].host = sylvite_place_of(model, argument->source, place);
}

/* Of all arguments that have the dims of this one. */
static void bind_dims(struct sylvite_model* model, uint32_t number) {
  const struct sylvite_argument* argument = &model->program->arguments[number];
  const int64_t* dims = &model->program->dims[argument->first_dim];
  struct halide_dimension* bound = &model->bound->dims[argument->first_dim];
  int32_t stride = 1;
  for (uint32_t i = 0; i < argument->rank; ++i) {
    bound[i].extent = (int32_t)sylvite_value_of(model->taken.numbers, dims[i]);
    bound[i].stride = stride;
    stride *= bound[i].extent;
  }
  if (argument->outer_blocks) {
    struct halide_dimension *blocks = &bound[argument->rank - 2], *images = &bound[argument->rank - 1];
    images->stride = blocks->stride;
    blocks->stride *= images->extent;
  }
}

static int has_open_dims(const struct sylvite_program* program, const struct sylvite_argument* argument) {
  int open = 0;
  for (uint32_t i = 0; i < argument->rank; ++i) open |= program->dims[argument->first_dim + i] < 0;
  return open;
}

/* Kernels read an int32_t, which on a little-endian machine is the beginning of a number. */
static void* integer_of(struct sylvite_model* model, const struct sylvite_argument* argument) {
  return argument->place < 0 ? (void*)&model->taken.numbers[-1 - argument->place] : (void*)&argument->place;
}

/* What does not depend on sizes, once. */
static void bind_program(struct sylvite_model* model, uint32_t number) {
  const struct sylvite_program* program = &model->tables->programs[number];
  struct bound* bound = &model->all[number];
  void** next = bound->pointers;
  uint32_t known_dims = 0; /* dims that arguments have in common belong to the first of them */
  model->program = program;
  model->bound = bound;
  for (uint32_t i = 0; i < program->argument_count; ++i) {
    const struct sylvite_argument* argument = &program->arguments[i];
    struct halide_buffer* buffer = &bound->buffers[i];
    buffer->type_code = argument->type_code;
    buffer->type_bits = argument->type_bits;
    buffer->type_lanes = 1;
    buffer->dimensions = argument->rank;
    buffer->dim = bound->dims + argument->first_dim;
    if (argument->source == SYLVITE_INTEGER) continue;
    bind_place(model, i);
    if (argument->place < 0) bound->moved[bound->moved_count++] = i;
    if (argument->first_dim < known_dims) continue;
    bind_dims(model, i);
    if (has_open_dims(program, argument)) bound->open[bound->open_count++] = i;
    known_dims = argument->first_dim + argument->rank;
  }
  for (uint32_t i = 0; i < program->launch_count; ++i) {
    const struct sylvite_launch* launch = &program->launches[i];
    *next++ = &model->user_context;
    for (uint32_t j = launch->first_argument; j < launch->first_argument + launch->argument_count; ++j)
      *next++ = program->arguments[j].source == SYLVITE_INTEGER ? integer_of(model, &program->arguments[j])
                                                                : (void*)&bound->buffers[j];
  }
}

/* Padded channels must be finite. */
static char* zeros(size_t bytes) {
  void* made = NULL;
  return posix_memalign(&made, 64, bytes + 64) == 0 ? memset(made, 0, bytes + 64) : NULL;
}

static int is_bound_allocated(struct bound* bound, const struct sylvite_program* program) {
  const size_t arguments = (size_t)program->argument_count + 1;
  bound->buffers = calloc(arguments, sizeof(*bound->buffers));
  bound->moved = calloc(arguments, sizeof(*bound->moved));
  bound->open = calloc(arguments, sizeof(*bound->open));
  bound->dims = calloc((size_t)program->dim_count + 1, sizeof(*bound->dims));
  bound->pointers = calloc(arguments + program->launch_count, sizeof(*bound->pointers));
  return bound->buffers != NULL && bound->moved != NULL && bound->open != NULL && bound->dims != NULL &&
         bound->pointers != NULL;
}

int sylvite_allocate_arguments(struct sylvite_model* model) {
  const struct sylvite_tables* tables = model->tables;
  const struct sylvite_interface* interface = &tables->interface;
  model->all = calloc((size_t)interface->program_count + 1, sizeof(*model->all));
  model->widened = calloc((size_t)interface->input_count + 1, sizeof(*model->widened));
  model->arena = zeros(tables->arena_bytes);
  model->states = zeros(interface->state_bytes);
  if (!sylvite_allocate_taken(interface, &model->taken) || model->all == NULL || model->widened == NULL ||
      model->arena == NULL || model->states == NULL)
    return 0;
  for (uint32_t i = 0; i < interface->program_count; ++i) {
    if (!is_bound_allocated(&model->all[i], &tables->programs[i])) return 0;
    for (uint32_t j = 0; j < interface->boxes[i].grown_count; ++j) {
      const uint32_t input = interface->boxes[i].grown[j].input;
      if (model->widened[input] == NULL) model->widened[input] = zeros(interface->inputs[input].bytes);
      if (model->widened[input] == NULL) return 0;
    }
  }
  return 1;
}

int sylvite_take_sizes(struct sylvite_model* model, const int64_t* sizes) {
  int is_new;
  const int status = sylvite_take(&model->tables->interface, &model->taken, sizes, &is_new, model->error);
  if (status != SYLVITE_OK || !is_new) return status;
  model->program = &model->tables->programs[model->taken.program];
  model->bound = &model->all[model->taken.program];
  for (uint32_t i = 0; i < model->bound->open_count; ++i) bind_dims(model, model->bound->open[i]);
  for (uint32_t i = 0; i < model->bound->moved_count; ++i) bind_place(model, model->bound->moved[i]);
  return SYLVITE_OK;
}

void sylvite_bind_programs(struct sylvite_model* model) {
  for (uint32_t i = 0; i < model->tables->interface.program_count; ++i) bind_program(model, i);
}

void sylvite_free_arguments(struct sylvite_model* model) {
  for (uint32_t i = 0; model->widened != NULL && i < model->tables->interface.input_count; ++i)
    free(model->widened[i]);
  for (uint32_t i = 0; model->all != NULL && i < model->tables->interface.program_count; ++i) {
    free(model->all[i].buffers);
    free(model->all[i].dims);
    free(model->all[i].moved);
    free(model->all[i].pointers);
    free(model->all[i].open);
  }
  free(model->all);
  free(model->widened);
  sylvite_free_taken(&model->taken);
  free(model->arena);
  free(model->states);
}
