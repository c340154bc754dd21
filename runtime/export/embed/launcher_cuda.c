/* See launcher_cuda.h. Needs libc, and the CUDA driver where a model is created. */
#define _POSIX_C_SOURCE 200809L

#include "launcher_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_functions.h"
#include "weights_file.h"

enum { cuda_alignment = 16, default_shared_bytes = 48 << 10 };

struct sylvite_model {
  struct sylvite_guard guard;
  char error[sylvite_error_bytes];
  const struct sylvite_cuda_tables* tables;
  cuda_handle context;
  int device;
  int context_is_ours;
  cuda_handle stream;  /* of runs on host memory; null until the first */
  cuda_address* own;   /* memory of such runs: per input, then per output */
  cuda_address* given; /* of the run on device memory that begins, likewise */
  cuda_address* bound; /* what the parameters name, likewise */
  cuda_address weights, arena, scratch;
  cuda_handle* modules;   /* per image */
  cuda_handle* functions; /* per launch */
  cuda_address* pointers; /* per place */
  struct cuda_map* maps;  /* per map, then one that is empty */
  void** parameters;      /* per argument */
};

static _Thread_local char create_error[sylvite_error_bytes];
static struct cuda_functions cuda;
static char missing_driver[sylvite_error_bytes]; /* "" when the functions are there */

static void find_functions(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) library = dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    sylvite_fail(missing_driver, 0, "there is no CUDA driver (libcuda.so.1) on this machine");
    return;
  }
#define FIND(member, name, parameters)                                                                  \
  *(void**)&cuda.member = dlsym(library, name);                                                         \
  if (cuda.member == NULL) {                                                                            \
    sylvite_fail(missing_driver, 0, "the CUDA driver lacks %s; a newer one is needed (CUDA 12)", name); \
    return;                                                                                             \
  }
  SYLVITE_CUDA_FUNCTIONS(FIND)
#undef FIND
  if (cuda.init(0) != 0) sylvite_fail(missing_driver, 0, "the CUDA driver shows no GPU");
}

static int driver_error(char* error, const char* call, const char* about, int result) {
  const char* name = NULL;
  if (cuda.error_name(result, &name) != 0 || name == NULL) name = "an unknown error";
  return sylvite_fail(error, result == CUDA_OUT_OF_MEMORY ? SYLVITE_OUT_OF_MEMORY : SYLVITE_RUN_FAILED,
                      "%s failed with %s (%d): %s", call, name, result, about);
}

/* Returns from the function around it when the driver fails. */
#define CALL(error, about, member, ...)                                    \
  do {                                                                     \
    const int result_ = cuda.member(__VA_ARGS__);                          \
    if (result_ != 0) return driver_error(error, #member, about, result_); \
  } while (0)

/* The context that the caller works in, or the first device's own. */
static int enter_context(struct sylvite_model* model) {
  const char* name = model->tables->model;
  CALL(create_error, name, context_current, &model->context);
  if (model->context == NULL) {
    CALL(create_error, name, device_get, &model->device, 0);
    CALL(create_error, name, primary_context, &model->context, model->device);
    model->context_is_ours = 1;
  }
  CALL(create_error, name, context_push, model->context);
  CALL(create_error, name, context_device, &model->device);
  return SYLVITE_OK;
}

static void leave_context(void) {
  cuda_handle ignored;
  cuda.context_pop(&ignored);
}

static int allocate(const struct sylvite_model* model, cuda_address* address, uint64_t bytes) {
  if (bytes > 0) CALL(create_error, model->tables->model, memory_allocate, address, bytes);
  return SYLVITE_OK;
}

static int upload_weights(struct sylvite_model* model, const char* path) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const struct sylvite_wanted_weights wanted = {tables->model, tables->id, tables->weight_bytes,
                                                tables->weights};
  struct sylvite_mapping mapping;
  int status = sylvite_map_weights(path, &wanted, &mapping, create_error);
  if (status == SYLVITE_OK) status = allocate(model, &model->weights, tables->weight_bytes);
  if (status == SYLVITE_OK && tables->weight_bytes > 0) {
    int result =
        cuda.copy_to_device(model->weights, sylvite_weights_of(&mapping), tables->weight_bytes, NULL);
    if (result == 0) result = cuda.stream_synchronize(NULL);
    if (result != 0) status = driver_error(create_error, "the copy of the weights", tables->model, result);
  }
  sylvite_unmap_weights(&mapping);
  return status;
}

static int load_image(struct sylvite_model* model, uint32_t number, int capability) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const struct sylvite_cuda_image* image = &tables->images[number];
  for (uint32_t i = 0; i < image->code_count; ++i) {
    const struct sylvite_cuda_code* code = &tables->codes[image->first_code + i];
    const int fits =
        code->capability == 0 || code->capability == capability ||
        (!code->exact && code->capability / 10 == capability / 10 && code->capability < capability);
    if (!fits) continue;
    CALL(create_error, tables->model, module_load, &model->modules[number], code->code);
    return SYLVITE_OK;
  }
  return sylvite_fail(create_error, SYLVITE_UNSUPPORTED_DEVICE,
                      "%s was not exported for GPUs of compute capability %d.%d; export it for them",
                      tables->model, capability / 10, capability % 10);
}

static int load_code(struct sylvite_model* model) {
  const struct sylvite_cuda_tables* tables = model->tables;
  int major = 0, minor = 0;
  CALL(create_error, tables->model, device_attribute, &major, CUDA_CAPABILITY_MAJOR, model->device);
  CALL(create_error, tables->model, device_attribute, &minor, CUDA_CAPABILITY_MINOR, model->device);
  for (uint32_t i = 0; i < tables->image_count; ++i) {
    const int status = load_image(model, i, 10 * major + minor);
    if (status != SYLVITE_OK) return status;
  }
  for (uint32_t i = 0; i < tables->launch_count; ++i) {
    const struct sylvite_cuda_launch* launch = &tables->launches[i];
    CALL(create_error, launch->name, module_function, &model->functions[i], model->modules[launch->image],
         launch->function);
    if (launch->shared_bytes > default_shared_bytes) {
      CALL(create_error, launch->name, set_attribute, model->functions[i], CUDA_DYNAMIC_SHARED_BYTES,
           (int)launch->shared_bytes);
    }
  }
  return SYLVITE_OK;
}

static void* zeros(size_t count, size_t size) {
  return calloc(count + 1, size);
}

static int make_tables(struct sylvite_model* model) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const size_t outer = (size_t)tables->input_count + tables->output_count;
  void* maps = NULL;
  model->own = zeros(outer, sizeof(*model->own));
  model->given = zeros(outer, sizeof(*model->given));
  model->bound = zeros(outer, sizeof(*model->bound));
  model->modules = zeros(tables->image_count, sizeof(*model->modules));
  model->functions = zeros(tables->launch_count, sizeof(*model->functions));
  model->pointers = zeros(tables->place_count, sizeof(*model->pointers));
  model->parameters = zeros(tables->argument_count, sizeof(*model->parameters));
  if (posix_memalign(&maps, 64, (tables->map_count + (size_t)1) * sizeof(*model->maps)) == 0)
    model->maps = memset(maps, 0, (tables->map_count + (size_t)1) * sizeof(*model->maps));
  if (model->own == NULL || model->given == NULL || model->bound == NULL || model->modules == NULL ||
      model->functions == NULL || model->pointers == NULL || model->parameters == NULL ||
      model->maps == NULL) {
    return sylvite_fail(create_error, SYLVITE_OUT_OF_MEMORY, "%s: out of memory", tables->model);
  }
  for (uint32_t i = 0; i < tables->argument_count; ++i) {
    const struct sylvite_cuda_argument* argument = &tables->arguments[i];
    switch (argument->kind) {
      case SYLVITE_CUDA_BYTES:
        model->parameters[i] = (void*)(tables->bytes + argument->first);
        break;
      case SYLVITE_CUDA_POINTERS:
        model->parameters[i] = &model->pointers[argument->first];
        break;
      case SYLVITE_CUDA_MAP:
        model->parameters[i] = &model->maps[argument->first];
        break;
      default:
        model->parameters[i] = &model->maps[tables->map_count];
    }
  }
  return SYLVITE_OK;
}

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
    default:
      return 0;
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

/* `outward`: only what names inputs and outputs, the rest has been made. */
static int make_parameters(struct sylvite_model* model, int outward, char* error) {
  const struct sylvite_cuda_tables* tables = model->tables;
  for (uint32_t i = 0; i < tables->place_count; ++i)
    model->pointers[i] = address_of(model, &tables->places[i]);
  for (uint32_t i = 0; i < tables->map_count; ++i) {
    const int is_outward = tables->maps[i].place.region >= SYLVITE_CUDA_INPUT;
    if (is_outward != outward) continue;
    const int status = encode_map(model, i, error);
    if (status != SYLVITE_OK) return status;
  }
  return SYLVITE_OK;
}

static int build(struct sylvite_model* model, const char* weights_path) {
  const struct sylvite_cuda_tables* tables = model->tables;
  int status = make_tables(model);
  if (status == SYLVITE_OK) status = upload_weights(model, weights_path);
  if (status == SYLVITE_OK) status = allocate(model, &model->arena, tables->arena_bytes);
  if (status == SYLVITE_OK) status = allocate(model, &model->scratch, tables->scratch_bytes);
  if (status == SYLVITE_OK) status = load_code(model);
  if (status == SYLVITE_OK) status = make_parameters(model, 0, create_error);
  return status;
}

int sylvite_cuda_create(const struct sylvite_cuda_tables* tables, const char* weights_path,
                        sylvite_model** model) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  int status;
  create_error[0] = 0;
  if (model == NULL)
    return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "create: the place for the model is null");
  *model = NULL;
  if (weights_path == NULL && tables->weights == NULL)
    return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "create: the weights path is null");
  pthread_once(&once, find_functions);
  if (missing_driver[0] != 0)
    return sylvite_fail(create_error, SYLVITE_UNSUPPORTED_DEVICE, "%s: %s", tables->model, missing_driver);
  struct sylvite_model* made = calloc(1, sizeof(*made));
  if (made == NULL) return sylvite_fail(create_error, SYLVITE_OUT_OF_MEMORY, "create: out of memory");
  made->tables = tables;
  status = enter_context(made);
  if (status == SYLVITE_OK) {
    status = build(made, weights_path);
    leave_context();
  }
  if (status != SYLVITE_OK) {
    sylvite_cuda_destroy(made);
    return status;
  }
  *model = made;
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
  model->error[0] = 0;
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
  const int status = make_parameters(model, 1, model->error);
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
  leave_context();
  return status;
}

static int enter(const struct sylvite_cuda_tables* tables, sylvite_model* model) {
  if (model == NULL) return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "run: the model is null");
  return sylvite_enter(&model->guard, model->tables == tables, tables->model, create_error);
}

int sylvite_cuda_run_on_stream(const struct sylvite_cuda_tables* tables, sylvite_model* model,
                               const void* const* inputs, void* const* outputs, void* stream) {
  int status = enter(tables, model);
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
  leave_context();
  return status;
}

int sylvite_cuda_run(const struct sylvite_cuda_tables* tables, sylvite_model* model,
                     const void* const* inputs, void* const* outputs) {
  int status = enter(tables, model);
  if (status != SYLVITE_OK) return status;
  status = run(model, inputs, outputs);
  sylvite_leave(&model->guard);
  return status;
}

/* Errors are of no use any more. */
static void free_on_device(struct sylvite_model* model) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const cuda_address blocks[] = {model->weights, model->arena, model->scratch};
  if (model->context == NULL || cuda.context_push(model->context) != 0) return;
  if (model->stream != NULL) cuda.stream_destroy(model->stream);
  for (uint32_t i = 0; i < 3; ++i)
    if (blocks[i] != 0) cuda.memory_free(blocks[i]);
  for (uint32_t i = 0; model->own != NULL && i < tables->input_count + tables->output_count; ++i)
    if (model->own[i] != 0) cuda.memory_free(model->own[i]);
  for (uint32_t i = 0; model->modules != NULL && i < tables->image_count; ++i)
    if (model->modules[i] != NULL) cuda.module_unload(model->modules[i]);
  leave_context();
  if (model->context_is_ours) cuda.primary_context_release(model->device);
}

void sylvite_cuda_destroy(sylvite_model* model) {
  if (model == NULL) return;
  sylvite_forget(&model->guard);
  free_on_device(model);
  free(model->own);
  free(model->given);
  free(model->bound);
  free(model->modules);
  free(model->functions);
  free(model->pointers);
  free(model->parameters);
  free(model->maps);
  free(model);
}

const char* sylvite_cuda_error_message(const sylvite_model* model) {
  return model != NULL && !sylvite_was_refused(&model->guard) ? model->error : create_error;
}
