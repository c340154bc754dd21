/* Runs of a model of launcher_cuda.c. */
#define _POSIX_C_SOURCE 200809L

#include <string.h>

#include "launcher_cuda_model.h"

enum { cuda_alignment = 16 };

static cuda_address address_of(const struct sylvite_model* model, const struct sylvite_cuda_place* place) {
  const cuda_address offset = (cuda_address)sylvite_value_of(model->taken.numbers, place->offset);
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
      return model->bound[model->tables->interface.input_count + place->number] + offset;
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
  for (int i = 0; i < 4; ++i)
    is_open |= map->dims[i] < 0 || map->box[i] < 0 || (i < 3 && map->pitches[i] < 0);
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
    dims[i] = (uint64_t)sylvite_value_of(model->taken.numbers, map->dims[i]);
    box[i] = (uint32_t)sylvite_value_of(model->taken.numbers, map->box[i]);
    if (i < 3) pitches[i] = (uint64_t)sylvite_value_of(model->taken.numbers, map->pitches[i]);
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
  int is_new;
  const int status = sylvite_take(&model->tables->interface, &model->taken, sizes, &is_new, model->error);
  if (status != SYLVITE_OK || !is_new) return status;
  model->is_bound = 0;
  model->program = &model->tables->programs[model->taken.program];
  model->prepared = &model->all[model->taken.program];
  return SYLVITE_OK;
}

/* What the device says, once all that was queued is done. REQUIRES the model's context. */
static int know_length(struct sylvite_model* model) {
  const struct sylvite_interface* interface = &model->tables->interface;
  if (interface->capacity == 0 || model->length >= 0) return SYLVITE_OK;
  const cuda_address place = model->states + interface->state_offsets[interface->length_state];
  CALL(model->error, "the length of states", context_synchronize);
  CALL(model->error, "the length of states", copy_to_host, &model->length, place, sizeof(model->length),
       NULL);
  CALL(model->error, "the length of states", stream_synchronize, NULL);
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

/* REQUIRES the model's context. */
static int check_run(sylvite_model* model, const int64_t* sizes, const void* const* inputs,
                     void* const* outputs, unsigned alignment) {
  const struct sylvite_interface* interface = &model->tables->interface;
  int status = take_sizes(model, sizes);
  if (status == SYLVITE_OK)
    status = check_pointers(model, "input", inputs, interface->inputs, interface->input_count, alignment);
  if (status == SYLVITE_OK)
    status = check_pointers(model, "output", (const void* const*)outputs, interface->outputs,
                            interface->output_count, alignment);
  if (status == SYLVITE_OK) status = know_length(model);
  if (status != SYLVITE_OK) return status;
  return sylvite_check_room(interface, &model->taken, model->length, model->error);
}

static int launch(struct sylvite_model* model, uint32_t number, cuda_handle stream) {
  const struct sylvite_cuda_launch* each = &model->program->launches[number];
  struct cuda_attribute attributes[2];
  struct cuda_config config;
  memset(attributes, 0, sizeof(attributes));
  memset(&config, 0, sizeof(config));
  for (int i = 0; i < 3; ++i)
    config.grid[i] = (unsigned)sylvite_value_of(model->taken.numbers, each->grid[i]);
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

/* The addresses of a run, of which those of inputs that grow become the memory that kernels read. */
static int bind(struct sylvite_model* model, cuda_address* addresses) {
  const size_t bytes = sizeof(*addresses) *
                       ((size_t)model->tables->interface.input_count + model->tables->interface.output_count);
  for (uint32_t i = 0; i < model->taken.box->grown_count; ++i) {
    const uint32_t input = model->taken.box->grown[i].input;
    addresses[input] = model->widened[input];
  }
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
    const size_t bytes = (size_t)sylvite_value_of(model->taken.numbers, copy->bytes);
    if (bytes == 0) continue;
    CALL(model->error, "a copy to an output", copy_on_device,
         model->bound[model->tables->interface.input_count + copy->output], address_of(model, &copy->from),
         bytes, stream);
  }
  return SYLVITE_OK;
}

/* The first elements along the axis of memory of the greatest extent; what lies behind them is zero. `is_host`: where `given` is. */
static int widen(struct sylvite_model* model, const struct sylvite_grown* grown, const void* given,
                 int is_host, cuda_handle stream) {
  const struct sylvite_interface* interface = &model->tables->interface;
  const struct sylvite_rows rows = sylvite_rows_of(interface, &model->taken, grown, model->length);
  const char* name = interface->inputs[grown->input].name;
  struct cuda_rows copy;
  if (rows.wide * rows.count > 0)
    CALL(model->error, name, fill_bytes, model->widened[grown->input], 0, rows.wide * rows.count, stream);
  if (rows.given * rows.count == 0) return SYLVITE_OK;
  memset(&copy, 0, sizeof(copy));
  copy.from_kind = is_host ? CUDA_MEMORY_HOST : CUDA_MEMORY_DEVICE;
  copy.from_host = is_host ? given : NULL;
  copy.from = is_host ? 0 : (cuda_address)(uintptr_t)given;
  copy.from_pitch = copy.row_bytes = rows.given;
  copy.to_kind = CUDA_MEMORY_DEVICE;
  copy.to = model->widened[grown->input];
  copy.to_pitch = rows.wide;
  copy.row_count = rows.count;
  CALL(model->error, name, copy_rows, &copy, stream);
  return SYLVITE_OK;
}

static int widen_inputs(struct sylvite_model* model, const void* const* inputs, int is_host,
                        cuda_handle stream) {
  int status = SYLVITE_OK;
  for (uint32_t i = 0; status == SYLVITE_OK && i < model->taken.box->grown_count; ++i) {
    const struct sylvite_grown* grown = &model->taken.box->grown[i];
    status = widen(model, grown, inputs[grown->input], is_host, stream);
  }
  return status;
}

/* How long states are is counted here, at each run. */
static int check_capture(struct sylvite_model* model, cuda_handle stream) {
  int captures = 0;
  if (model->tables->interface.capacity == 0) return SYLVITE_OK;
  CALL(model->error, "run", stream_captures, stream, &captures);
  if (captures == 0) return SYLVITE_OK;
  return sylvite_fail(model->error, SYLVITE_RUN_FAILED,
                      "run: a model whose states grow is not captured into a graph, which would not see how "
                      "long they are; queue each run");
}

/* What was queued has these states. */
static void count_added(struct sylvite_model* model, int status) {
  if (model->tables->interface.capacity == 0) return;
  if (status == SYLVITE_OK)
    model->length += sylvite_value_of(model->taken.numbers, model->taken.box->added);
  else
    model->length = -1;
}

static int queue(struct sylvite_model* model, const void* const* inputs, int is_host, cuda_handle stream) {
  int status = widen_inputs(model, inputs, is_host, stream);
  if (status == SYLVITE_OK) status = issue(model, stream);
  count_added(model, status);
  return status;
}

static int run_on_stream(sylvite_model* model, const int64_t* sizes, const void* const* inputs,
                         void* const* outputs, void* stream) {
  const struct sylvite_interface* interface = &model->tables->interface;
  int status = check_capture(model, stream);
  if (status == SYLVITE_OK) status = check_run(model, sizes, inputs, outputs, cuda_alignment);
  if (status != SYLVITE_OK) return status;
  for (uint32_t i = 0; i < interface->input_count; ++i) model->given[i] = (cuda_address)(uintptr_t)inputs[i];
  for (uint32_t i = 0; i < interface->output_count; ++i)
    model->given[interface->input_count + i] = (cuda_address)(uintptr_t)outputs[i];
  status = bind(model, model->given);
  return status == SYLVITE_OK ? queue(model, inputs, 0, stream) : status;
}

int sylvite_cuda_run_on_stream(const struct sylvite_cuda_tables* tables, sylvite_model* model,
                               const int64_t* sizes, const void* const* inputs, void* const* outputs,
                               void* stream) {
  int status = sylvite_cuda_enter(tables, model, "run");
  if (status != SYLVITE_OK) return status;
  status = sylvite_cuda_enter_context(model, "run");
  if (status == SYLVITE_OK) {
    status = run_on_stream(model, sizes, inputs, outputs, stream);
    sylvite_cuda_leave_context();
  }
  sylvite_leave(&model->guard);
  return status;
}

/* Memory and a stream for runs on host memory. */
static int make_own(struct sylvite_model* model) {
  const struct sylvite_interface* interface = &model->tables->interface;
  if (model->stream != NULL) return SYLVITE_OK;
  for (uint32_t i = 0; i < interface->input_count + interface->output_count; ++i) {
    const struct sylvite_tensor_info* info =
        i < interface->input_count ? &interface->inputs[i] : &interface->outputs[i - interface->input_count];
    if (model->own[i] == 0) CALL(model->error, info->name, memory_allocate, &model->own[i], info->bytes + 1);
  }
  CALL(model->error, "run", stream_create, &model->stream, CUDA_STREAM_NON_BLOCKING);
  return SYLVITE_OK;
}

static int copy_inputs(sylvite_model* model, const void* const* inputs) {
  const struct sylvite_interface* interface = &model->tables->interface;
  for (uint32_t i = 0; i < interface->input_count; ++i) {
    const size_t bytes = sylvite_bytes_of(interface, &model->taken, 0, (int)i);
    if (bytes == 0 || model->bound[i] != model->own[i]) continue;
    CALL(model->error, interface->inputs[i].name, copy_to_device, model->own[i], inputs[i], bytes,
         model->stream);
  }
  return SYLVITE_OK;
}

static int copy_outputs(sylvite_model* model, void* const* outputs) {
  const struct sylvite_interface* interface = &model->tables->interface;
  for (uint32_t i = 0; i < interface->output_count; ++i) {
    const size_t bytes = sylvite_bytes_of(interface, &model->taken, 1, (int)i);
    if (bytes == 0) continue;
    CALL(model->error, interface->outputs[i].name, copy_to_host, outputs[i],
         model->own[interface->input_count + i], bytes, model->stream);
  }
  CALL(model->error, "run", stream_synchronize, model->stream);
  return SYLVITE_OK;
}

static int run(sylvite_model* model, const int64_t* sizes, const void* const* inputs, void* const* outputs) {
  const struct sylvite_interface* interface = &model->tables->interface;
  int status = check_run(model, sizes, inputs, outputs, 1);
  if (status == SYLVITE_OK) status = make_own(model);
  if (status != SYLVITE_OK) return status;
  memcpy(model->given, model->own,
         sizeof(*model->own) * ((size_t)interface->input_count + interface->output_count));
  status = bind(model, model->given);
  if (status == SYLVITE_OK) status = copy_inputs(model, inputs);
  if (status == SYLVITE_OK) status = queue(model, inputs, 1, model->stream);
  return status == SYLVITE_OK ? copy_outputs(model, outputs) : status;
}

int sylvite_cuda_run(const struct sylvite_cuda_tables* tables, sylvite_model* model, const int64_t* sizes,
                     const void* const* inputs, void* const* outputs) {
  int status = sylvite_cuda_enter(tables, model, "run");
  if (status != SYLVITE_OK) return status;
  status = sylvite_cuda_enter_context(model, "run");
  if (status == SYLVITE_OK) {
    status = run(model, sizes, inputs, outputs);
    sylvite_cuda_leave_context();
  }
  sylvite_leave(&model->guard);
  return status;
}

static int read_dims(sylvite_model* model, const int64_t* sizes, int is_output, int number, int64_t* dims) {
  const struct sylvite_interface* interface = &model->tables->interface;
  int status = sylvite_check_port(interface, is_output, number, dims, model->error);
  if (status == SYLVITE_OK) status = take_sizes(model, sizes);
  if (status == SYLVITE_OK) status = know_length(model);
  if (status == SYLVITE_OK)
    sylvite_write_dims(interface, &model->taken, is_output, number, model->length, dims);
  return status;
}

int sylvite_cuda_dims(const struct sylvite_cuda_tables* tables, sylvite_model* model, const int64_t* sizes,
                      int is_output, int number, int64_t* dims) {
  int status = sylvite_cuda_enter(tables, model, "dims");
  if (status != SYLVITE_OK) return status;
  status = sylvite_cuda_enter_context(model, "dims");
  if (status == SYLVITE_OK) {
    status = read_dims(model, sizes, is_output, number, dims);
    sylvite_cuda_leave_context();
  }
  sylvite_leave(&model->guard);
  return status;
}
