/* Runs of a model of launcher_cuda.c, and the values that stay between them. */
#define _POSIX_C_SOURCE 200809L

#include <string.h>

#include "launcher_cuda_model.h"

enum { cuda_alignment = 16 };

static cuda_address address_of(const struct sylvite_model* model, const struct sylvite_cuda_place* place) {
  switch (place->region) {
    case SYLVITE_CUDA_WEIGHTS:
      return model->weights + place->offset;
    case SYLVITE_CUDA_ARENA:
      return model->arena + place->offset;
    case SYLVITE_CUDA_SCRATCH:
      return model->scratch + place->offset;
    case SYLVITE_CUDA_INPUT:
      return model->bound[place->number] + place->offset;
    case SYLVITE_CUDA_OUTPUT:
      return model->bound[model->tables->input_count + place->number] + place->offset;
    case SYLVITE_CUDA_STATE:
      return model->states + place->offset;
    default:
      return place->offset;
  }
}

static int encode_map(struct sylvite_model* model, uint32_t number, char* error) {
  const struct sylvite_cuda_map* map = &model->tables->maps[number];
  const uint32_t ones[4] = {1, 1, 1, 1};
  enum { rank = 4, no_interleave = 0, promote_to_256_bytes = 3, zeros_outside = 0 };
  void* start = (void*)(uintptr_t)address_of(model, &map->place);
  if (map->is_windows) {
    CALL(error, "a map of windows", map_windows, &model->maps[number], map->type, rank, start, map->dims,
         map->pitches, map->first, map->last, map->box[0], map->box[1], map->step, no_interleave,
         map->swizzle, promote_to_256_bytes, zeros_outside);
  } else {
    CALL(error, "a tensor map", map_tiled, &model->maps[number], map->type, rank, start, map->dims,
         map->pitches, map->box, ones, no_interleave, map->swizzle, promote_to_256_bytes, zeros_outside);
  }
  return SYLVITE_OK;
}

int sylvite_cuda_make_parameters(struct sylvite_model* model, int outward, char* error) {
  const struct sylvite_cuda_tables* tables = model->tables;
  for (uint32_t i = 0; i < tables->place_count; ++i)
    model->pointers[i] = address_of(model, &tables->places[i]);
  for (uint32_t i = 0; i < tables->map_count; ++i) {
    const uint32_t region = tables->maps[i].place.region;
    const int is_outward = region == SYLVITE_CUDA_INPUT || region == SYLVITE_CUDA_OUTPUT;
    if (is_outward != outward) continue;
    const int status = encode_map(model, i, error);
    if (status != SYLVITE_OK) return status;
  }
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

static int check_run(sylvite_model* model, const void* const* inputs, void* const* outputs,
                     unsigned alignment) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const int status = check_pointers(model, "input", inputs, tables->inputs, tables->input_count, alignment);
  if (status != SYLVITE_OK) return status;
  return check_pointers(model, "output", (const void* const*)outputs, tables->outputs, tables->output_count,
                        alignment);
}

static int launch(struct sylvite_model* model, uint32_t number, cuda_handle stream) {
  const struct sylvite_cuda_launch* each = &model->tables->launches[number];
  struct cuda_attribute attributes[2];
  struct cuda_config config;
  memset(attributes, 0, sizeof(attributes));
  memset(&config, 0, sizeof(config));
  memcpy(config.grid, each->grid, sizeof(config.grid));
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
  CALL(model->error, each->name, launch, &config, model->functions[number],
       &model->parameters[each->first_argument], NULL);
  return SYLVITE_OK;
}

static int bind(struct sylvite_model* model, const cuda_address* addresses) {
  const size_t bytes =
      sizeof(*addresses) * ((size_t)model->tables->input_count + model->tables->output_count);
  if (memcmp(model->bound, addresses, bytes) == 0) return SYLVITE_OK;
  memcpy(model->bound, addresses, bytes);
  const int status = sylvite_cuda_make_parameters(model, 1, model->error);
  if (status != SYLVITE_OK) memset(model->bound, 0, bytes);
  return status;
}

/* REQUIRES parameters that are bound, and the model's context. */
static int issue(struct sylvite_model* model, cuda_handle stream) {
  const struct sylvite_cuda_tables* tables = model->tables;
  for (uint32_t i = 0; i < tables->launch_count; ++i) {
    const int status = launch(model, i, stream);
    if (status != SYLVITE_OK) return status;
  }
  for (uint32_t i = 0; i < tables->copy_count; ++i) {
    const struct sylvite_cuda_copy* copy = &tables->copies[i];
    CALL(model->error, "a copy to an output", copy_on_device,
         model->bound[tables->input_count + copy->output], address_of(model, &copy->from), copy->bytes,
         stream);
  }
  return SYLVITE_OK;
}

static int run_on_stream(sylvite_model* model, const void* const* inputs, void* const* outputs,
                         void* stream) {
  int status = check_run(model, inputs, outputs, cuda_alignment);
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
                               const void* const* inputs, void* const* outputs, void* stream) {
  int status = sylvite_cuda_enter(tables, model, "run");
  if (status != SYLVITE_OK) return status;
  status = run_on_stream(model, inputs, outputs, stream);
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
    if (tables->inputs[i].bytes == 0) continue;
    CALL(model->error, tables->inputs[i].name, copy_to_device, model->own[i], inputs[i],
         tables->inputs[i].bytes, model->stream);
  }
  status = issue(model, model->stream);
  if (status != SYLVITE_OK) return status;
  for (uint32_t i = 0; i < tables->output_count; ++i) {
    if (tables->outputs[i].bytes == 0) continue;
    CALL(model->error, tables->outputs[i].name, copy_to_host, outputs[i], model->own[tables->input_count + i],
         tables->outputs[i].bytes, model->stream);
  }
  CALL(model->error, "run", stream_synchronize, model->stream);
  return SYLVITE_OK;
}

static int run(sylvite_model* model, const void* const* inputs, void* const* outputs) {
  int status = check_run(model, inputs, outputs, 1);
  if (status != SYLVITE_OK) return status;
  CALL(model->error, "run", context_push, model->context);
  status = copy_and_run(model, inputs, outputs);
  sylvite_cuda_leave_context();
  return status;
}

int sylvite_cuda_run(const struct sylvite_cuda_tables* tables, sylvite_model* model,
                     const void* const* inputs, void* const* outputs) {
  int status = sylvite_cuda_enter(tables, model, "run");
  if (status != SYLVITE_OK) return status;
  status = run(model, inputs, outputs);
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
