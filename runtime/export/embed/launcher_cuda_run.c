/* Runs of a model of launcher_cuda.c, and the values that stay between them. */
#define _POSIX_C_SOURCE 200809L

#include <string.h>

#include "launcher_cuda_model.h"

enum { cuda_alignment = 16 };

static cuda_address address_of(const struct sylvite_model* model, const struct sylvite_cuda_place* place) {
  const cuda_address offset = (cuda_address)sylvite_value_of(model->numbers, place->offset);
  switch (place->region) {
    case SYLVITE_CUDA_WEIGHTS:
      return model->weights + offset;
    case SYLVITE_CUDA_ARENA:
      return model->arena + offset;
    case SYLVITE_CUDA_SCRATCH:
      return model->scratch + offset;
    case SYLVITE_CUDA_INPUT:
      return model->bound[place->number] + offset;
    case SYLVITE_CUDA_OUTPUT:
      return model->bound[model->tables->input_count + place->number] + offset;
    case SYLVITE_CUDA_STATE:
      return model->states + offset;
    default:
      return offset;
  }
}

/* Whether the map is another one in each run. */
static int is_of_run(const struct sylvite_cuda_map* map) {
  int is_open = map->place.offset < 0 || map->place.region == SYLVITE_CUDA_INPUT ||
                map->place.region == SYLVITE_CUDA_OUTPUT;
  for (int i = 0; i < 4; ++i) is_open |= map->dims[i] < 0 || map->box[i] < 0 || (i < 3 && map->pitches[i] < 0);
  return is_open;
}

static int encode_map(struct sylvite_model* model, uint32_t number) {
  const struct sylvite_cuda_map* map = &model->program->maps[number];
  struct cuda_map* encoded = &model->prepared->maps[number];
  const uint32_t ones[4] = {1, 1, 1, 1};
  enum { rank = 4, no_interleave = 0, promote_to_256_bytes = 3, zeros_outside = 0 };
  void* start = (void*)(uintptr_t)address_of(model, &map->place);
  uint64_t dims[4], pitches[3];
  uint32_t box[4];
  for (int i = 0; i < 4; ++i) {
    dims[i] = (uint64_t)sylvite_value_of(model->numbers, map->dims[i]);
    box[i] = (uint32_t)sylvite_value_of(model->numbers, map->box[i]);
    if (i < 3) pitches[i] = (uint64_t)sylvite_value_of(model->numbers, map->pitches[i]);
  }
  if (map->is_windows) {
    CALL(model->error, "a map of windows", map_windows, encoded, map->type, rank, start, dims, pitches,
         map->first, map->last, box[0], box[1], map->step, no_interleave, map->swizzle, promote_to_256_bytes,
         zeros_outside);
  } else {
    CALL(model->error, "a tensor map", map_tiled, encoded, map->type, rank, start, dims, pitches, box, ones,
         no_interleave, map->swizzle, promote_to_256_bytes, zeros_outside);
  }
  return SYLVITE_OK;
}

static int make_parameters(struct sylvite_model* model) {
  const struct sylvite_cuda_program* program = model->program;
  struct prepared* prepared = model->prepared;
  for (uint32_t i = 0; i < program->place_count; ++i)
    prepared->pointers[i] = address_of(model, &program->places[i]);
  for (uint32_t i = 0; i < program->map_count; ++i) {
    if (prepared->is_made && !is_of_run(&program->maps[i])) continue;
    const int status = encode_map(model, i);
    if (status != SYLVITE_OK) return status;
  }
  prepared->is_made = 1;
  return SYLVITE_OK;
}

static int take_sizes(struct sylvite_model* model, const int64_t* sizes) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const size_t bytes = tables->size_count * sizeof(*sizes);
  uint32_t i = 0;
  if (model->program != NULL && (bytes == 0 || (sizes != NULL && memcmp(sizes, model->sizes, bytes) == 0)))
    return SYLVITE_OK;
  const int status = sylvite_check_sizes(tables->sizes, tables->size_count, sizes, model->error);
  if (status != SYLVITE_OK) return status;
  model->is_bound = 0;
  while (i < tables->program_count &&
         !sylvite_takes_sizes(&tables->programs[i].box, sizes, tables->size_count, model->numbers))
    ++i;
  if (i == tables->program_count) {
    model->program = NULL; /* the numbers are of none */
    return sylvite_fail(model->error, SYLVITE_BAD_SIZES, "run: the library has no program for these sizes");
  }
  if (bytes > 0) memcpy(model->sizes, sizes, bytes);
  model->program = &tables->programs[i];
  model->prepared = &model->all[i];
  return SYLVITE_OK;
}

static int check_pointers(sylvite_model* model, const char* what, const void* const* pointers,
                          const struct sylvite_tensor_info* infos, uint32_t count, uintptr_t alignment) {
  if (pointers == NULL && count > 0)
    return sylvite_fail(model->error, SYLVITE_NULL_ARGUMENT, "run: %ss is null", what);
  for (uint32_t i = 0; i < count; ++i) {
    if (infos[i].bytes > 0 && (pointers[i] == NULL || (uintptr_t)pointers[i] % alignment != 0)) {
      return sylvite_fail(model->error, SYLVITE_NULL_ARGUMENT,
                          "run: %s %u '%s' is at %p; it must be at a multiple of %u bytes and not null", what,
                          (unsigned)i, infos[i].name, (void*)pointers[i], (unsigned)alignment);
    }
  }
  return SYLVITE_OK;
}

static int check_run(sylvite_model* model, const int64_t* sizes, const void* const* inputs,
                     void* const* outputs, unsigned alignment) {
  const struct sylvite_cuda_tables* tables = model->tables;
  int status = take_sizes(model, sizes);
  if (status == SYLVITE_OK)
    status = check_pointers(model, "input", inputs, tables->inputs, tables->input_count, alignment);
  if (status != SYLVITE_OK) return status;
  return check_pointers(model, "output", (const void* const*)outputs, tables->outputs, tables->output_count,
                        alignment);
}

static int launch(struct sylvite_model* model, uint32_t number, cuda_handle stream) {
  const struct sylvite_cuda_launch* each = &model->program->launches[number];
  struct cuda_attribute attributes[2];
  struct cuda_config config;
  memset(attributes, 0, sizeof(attributes));
  memset(&config, 0, sizeof(config));
  for (int i = 0; i < 3; ++i) config.grid[i] = (unsigned)sylvite_value_of(model->numbers, each->grid[i]);
  if (config.grid[0] == 0 || config.grid[1] == 0 || config.grid[2] == 0) return SYLVITE_OK;
  memcpy(config.block, each->block, sizeof(config.block));
  config.shared_bytes = each->shared_bytes;
  config.stream = stream;
  config.attributes = attributes;
  if (each->cluster > 1) {
    struct cuda_attribute* cluster = &attributes[config.attribute_count++];
    cluster->id = CUDA_ATTRIBUTE_CLUSTER;
    cluster->values[0] = each->cluster;
    cluster->values[1] = cluster->values[2] = 1;
  }
  if (each->programmatic) {
    struct cuda_attribute* programmatic = &attributes[config.attribute_count++];
    programmatic->id = CUDA_ATTRIBUTE_PROGRAMMATIC;
    programmatic->values[0] = 1;
  }
  CALL(model->error, each->name, launch, &config, model->prepared->functions[number],
       &model->prepared->parameters[each->first_argument], NULL);
  return SYLVITE_OK;
}

static int bind(struct sylvite_model* model, const cuda_address* addresses) {
  const size_t bytes =
      sizeof(*addresses) * ((size_t)model->tables->input_count + model->tables->output_count);
  if (model->is_bound && memcmp(model->bound, addresses, bytes) == 0) return SYLVITE_OK;
  memcpy(model->bound, addresses, bytes);
  const int status = make_parameters(model);
  model->is_bound = status == SYLVITE_OK;
  return status;
}

/* REQUIRES parameters that are bound, and the model's context. */
static int issue(struct sylvite_model* model, cuda_handle stream) {
  const struct sylvite_cuda_program* program = model->program;
  for (uint32_t i = 0; i < program->launch_count; ++i) {
    const int status = launch(model, i, stream);
    if (status != SYLVITE_OK) return status;
  }
  for (uint32_t i = 0; i < program->copy_count; ++i) {
    const struct sylvite_cuda_copy* copy = &program->copies[i];
    const size_t bytes = (size_t)sylvite_value_of(model->numbers, copy->bytes);
    if (bytes == 0) continue;
    CALL(model->error, "a copy to an output", copy_on_device,
         model->bound[model->tables->input_count + copy->output], address_of(model, &copy->from), bytes,
         stream);
  }
  return SYLVITE_OK;
}

static int run_on_stream(sylvite_model* model, const int64_t* sizes, const void* const* inputs,
                         void* const* outputs, void* stream) {
  int status = check_run(model, sizes, inputs, outputs, cuda_alignment);
  if (status != SYLVITE_OK) return status;
  const uint32_t input_count = model->tables->input_count;
  for (uint32_t i = 0; i < input_count; ++i) model->given[i] = (cuda_address)(uintptr_t)inputs[i];
  for (uint32_t i = 0; i < model->tables->output_count; ++i)
    model->given[input_count + i] = (cuda_address)(uintptr_t)outputs[i];
  CALL(model->error, "run", context_push, model->context);
  status = bind(model, model->given);
  if (status == SYLVITE_OK) status = issue(model, stream);
  sylvite_cuda_leave_context();
  return status;
}

int sylvite_cuda_run_on_stream(const struct sylvite_cuda_tables* tables, sylvite_model* model,
                               const int64_t* sizes, const void* const* inputs, void* const* outputs,
                               void* stream) {
  int status = sylvite_cuda_enter(tables, model, "run");
  if (status != SYLVITE_OK) return status;
  status = run_on_stream(model, sizes, inputs, outputs, stream);
  sylvite_leave(&model->guard);
  return status;
}

/* Memory and a stream for runs on host memory. */
static int make_own(struct sylvite_model* model) {
  const struct sylvite_cuda_tables* tables = model->tables;
  if (model->stream != NULL) return SYLVITE_OK;
  for (uint32_t i = 0; i < tables->input_count + tables->output_count; ++i) {
    const struct sylvite_tensor_info* info =
        i < tables->input_count ? &tables->inputs[i] : &tables->outputs[i - tables->input_count];
    if (model->own[i] == 0) CALL(model->error, info->name, memory_allocate, &model->own[i], info->bytes + 1);
  }
  CALL(model->error, "run", stream_create, &model->stream, CUDA_STREAM_NON_BLOCKING);
  return SYLVITE_OK;
}

static int copy_and_run(sylvite_model* model, const void* const* inputs, void* const* outputs) {
  const struct sylvite_cuda_tables* tables = model->tables;
  int status = make_own(model);
  if (status == SYLVITE_OK) status = bind(model, model->own);
  if (status != SYLVITE_OK) return status;
  for (uint32_t i = 0; i < tables->input_count; ++i) {
    const size_t bytes =
        sylvite_bytes_of(tables->inputs, model->program->box.input_dims, model->numbers, (int)i);
    if (bytes == 0) continue;
    CALL(model->error, tables->inputs[i].name, copy_to_device, model->own[i], inputs[i], bytes,
         model->stream);
  }
  status = issue(model, model->stream);
  if (status != SYLVITE_OK) return status;
  for (uint32_t i = 0; i < tables->output_count; ++i) {
    const size_t bytes =
        sylvite_bytes_of(tables->outputs, model->program->box.output_dims, model->numbers, (int)i);
    if (bytes == 0) continue;
    CALL(model->error, tables->outputs[i].name, copy_to_host, outputs[i],
         model->own[tables->input_count + i], bytes, model->stream);
  }
  CALL(model->error, "run", stream_synchronize, model->stream);
  return SYLVITE_OK;
}

static int run(sylvite_model* model, const int64_t* sizes, const void* const* inputs, void* const* outputs) {
  int status = check_run(model, sizes, inputs, outputs, 1);
  if (status != SYLVITE_OK) return status;
  CALL(model->error, "run", context_push, model->context);
  status = copy_and_run(model, inputs, outputs);
  sylvite_cuda_leave_context();
  return status;
}

int sylvite_cuda_run(const struct sylvite_cuda_tables* tables, sylvite_model* model, const int64_t* sizes,
                     const void* const* inputs, void* const* outputs) {
  int status = sylvite_cuda_enter(tables, model, "run");
  if (status != SYLVITE_OK) return status;
  status = run(model, sizes, inputs, outputs);
  sylvite_leave(&model->guard);
  return status;
}

static int read_dims(sylvite_model* model, const int64_t* sizes, int is_output, int number, int64_t* dims) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const struct sylvite_tensor_info* infos = is_output ? tables->outputs : tables->inputs;
  const uint32_t count = is_output ? tables->output_count : tables->input_count;
  int status = sylvite_check_port(is_output, number, count, dims, model->error);
  if (status == SYLVITE_OK) status = take_sizes(model, sizes);
  if (status != SYLVITE_OK) return status;
  const struct sylvite_box* box = &model->program->box;
  const int64_t* from = sylvite_dims_of(infos, is_output ? box->output_dims : box->input_dims, number);
  for (int i = 0; i < infos[number].rank; ++i) dims[i] = sylvite_value_of(model->numbers, from[i]);
  return SYLVITE_OK;
}

int sylvite_cuda_dims(const struct sylvite_cuda_tables* tables, sylvite_model* model, const int64_t* sizes,
                      int is_output, int number, int64_t* dims) {
  int status = sylvite_cuda_enter(tables, model, "dims");
  if (status != SYLVITE_OK) return status;
  status = read_dims(model, sizes, is_output, number, dims);
  sylvite_leave(&model->guard);
  return status;
}

/* What reads and writes states waits for all that was queued on the device before. */
int sylvite_cuda_clear_states(sylvite_model* model, char* error) {
  const uint64_t bytes = model->tables->state_bytes;
  if (bytes == 0) return SYLVITE_OK;
  CALL(error, "reset", context_synchronize);
  CALL(error, "reset", fill_bytes, model->states, 0, bytes, NULL);
  CALL(error, "reset", stream_synchronize, NULL);
  return SYLVITE_OK;
}

static int copy_bytes(sylvite_model* to, const sylvite_model* from) {
  const uint64_t bytes = to->tables->state_bytes;
  if (bytes == 0) return SYLVITE_OK;
  CALL(to->error, "copy_state", context_synchronize);
  CALL(to->error, "copy_state", copy_on_device, to->states, from->states, bytes, NULL);
  CALL(to->error, "copy_state", stream_synchronize, NULL);
  return SYLVITE_OK;
}

static int move_bytes(sylvite_model* model, int number, void* value, const void* given) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const struct sylvite_tensor_info* info = &tables->states[number];
  const cuda_address place = model->states + tables->state_offsets[number];
  if (info->bytes == 0) return SYLVITE_OK;
  CALL(model->error, info->name, context_synchronize);
  if (given != NULL)
    CALL(model->error, info->name, copy_to_device, place, given, info->bytes, NULL);
  else
    CALL(model->error, info->name, copy_to_host, value, place, info->bytes, NULL);
  CALL(model->error, info->name, stream_synchronize, NULL);
  return SYLVITE_OK;
}

static int enter_context(sylvite_model* model, const char* what) {
  CALL(model->error, what, context_push, model->context);
  return SYLVITE_OK;
}

static int copy_states(sylvite_model* to, const sylvite_model* from) {
  if (to->context != from->context)
    return sylvite_fail(to->error, SYLVITE_UNSUPPORTED_DEVICE, "copy_state: the models are on two devices");
  int status = enter_context(to, "copy_state");
  if (status != SYLVITE_OK) return status;
  status = copy_bytes(to, from);
  sylvite_cuda_leave_context();
  return status;
}

int sylvite_cuda_reset(const struct sylvite_cuda_tables* tables, sylvite_model* model) {
  int status = sylvite_cuda_enter(tables, model, "reset");
  if (status != SYLVITE_OK) return status;
  status = enter_context(model, "reset");
  if (status == SYLVITE_OK) {
    status = sylvite_cuda_clear_states(model, model->error);
    sylvite_cuda_leave_context();
  }
  sylvite_leave(&model->guard);
  return status;
}

int sylvite_cuda_copy_state(const struct sylvite_cuda_tables* tables, sylvite_model* to,
                            sylvite_model* from) {
  int status = sylvite_cuda_enter(tables, to, "copy_state");
  if (status != SYLVITE_OK) return status;
  if (from != to) {
    status = sylvite_cuda_enter(tables, from, "copy_state");
    if (status == SYLVITE_OK) {
      status = copy_states(to, from);
      sylvite_leave(&from->guard);
    } else {
      sylvite_fail(to->error, status, "copy_state: the model to copy from is null, of another kind, or runs");
    }
  }
  sylvite_leave(&to->guard);
  return status;
}

/* Of one state: from the model where `given` is null, else into it. */
static int move_state(const struct sylvite_cuda_tables* tables, sylvite_model* model, const char* what,
                      int number, void* value, const void* given) {
  int status = sylvite_cuda_enter(tables, model, what);
  if (status != SYLVITE_OK) return status;
  status = sylvite_check_state(what, number, given != NULL ? given : value, tables->states,
                               tables->state_count, model->error);
  if (status == SYLVITE_OK) status = enter_context(model, what);
  if (status == SYLVITE_OK) {
    status = move_bytes(model, number, value, given);
    sylvite_cuda_leave_context();
  }
  sylvite_leave(&model->guard);
  return status;
}

int sylvite_cuda_get_state(const struct sylvite_cuda_tables* tables, sylvite_model* model, int number,
                           void* value) {
  return move_state(tables, model, "get_state", number, value, NULL);
}

int sylvite_cuda_set_state(const struct sylvite_cuda_tables* tables, sylvite_model* model, int number,
                           const void* value) {
  return move_state(tables, model, "set_state", number, NULL, value);
}
