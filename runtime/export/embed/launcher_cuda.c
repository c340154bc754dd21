/* See launcher_cuda.h. Needs libc, and the CUDA driver where a model is created. */
#define _POSIX_C_SOURCE 200809L

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "launcher_cuda_model.h"

enum { default_shared_bytes = 48 << 10 };

struct cuda_functions sylvite_cuda;
static _Thread_local char create_error[sylvite_error_bytes];
static char missing_driver[sylvite_error_bytes]; /* "" when the functions are there */

static void find_functions(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) library = dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    sylvite_fail(missing_driver, 0, "there is no CUDA driver (libcuda.so.1) on this machine");
    return;
  }
#define FIND(member, name, parameters)                                                                  \
  *(void**)&sylvite_cuda.member = dlsym(library, name);                                                 \
  if (sylvite_cuda.member == NULL) {                                                                    \
    sylvite_fail(missing_driver, 0, "the CUDA driver lacks %s; a newer one is needed (CUDA 12)", name); \
    return;                                                                                             \
  }
  SYLVITE_CUDA_FUNCTIONS(FIND)
#undef FIND
  if (sylvite_cuda.init(0) != 0) sylvite_fail(missing_driver, 0, "the CUDA driver shows no GPU");
}

int sylvite_cuda_error(char* error, const char* call, const char* about, int result) {
  const char* name = NULL;
  if (sylvite_cuda.error_name(result, &name) != 0 || name == NULL) name = "an unknown error";
  return sylvite_fail(error, result == CUDA_OUT_OF_MEMORY ? SYLVITE_OUT_OF_MEMORY : SYLVITE_RUN_FAILED,
                      "%s failed with %s (%d): %s", call, name, result, about);
}

/* The context that the caller works in, or the first device's own. */
static int enter_context(struct sylvite_model* model) {
  const char* name = model->tables->interface.model;
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

int sylvite_cuda_enter_context(sylvite_model* model, const char* what) {
  CALL(model->error, what, context_push, model->context);
  return SYLVITE_OK;
}

void sylvite_cuda_leave_context(void) {
  cuda_handle ignored;
  sylvite_cuda.context_pop(&ignored);
}

static int allocate(const struct sylvite_model* model, cuda_address* address, uint64_t bytes) {
  if (bytes > 0) CALL(create_error, model->tables->interface.model, memory_allocate, address, bytes);
  return SYLVITE_OK;
}

static int upload_weights(struct sylvite_model* model, const char* path) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const struct sylvite_wanted_weights wanted = {tables->interface.model, tables->interface.id,
                                                tables->interface.weight_bytes, tables->interface.weights};
  struct sylvite_mapping mapping;
  int status = sylvite_map_weights(path, &wanted, &mapping, create_error);
  if (status == SYLVITE_OK) status = allocate(model, &model->weights, tables->interface.weight_bytes);
  if (status == SYLVITE_OK && tables->interface.weight_bytes > 0) {
    int result = sylvite_cuda.copy_to_device(model->weights, sylvite_weights_of(&mapping),
                                             tables->interface.weight_bytes, NULL);
    if (result == 0) result = sylvite_cuda.stream_synchronize(NULL);
    if (result != 0)
      status = sylvite_cuda_error(create_error, "the copy of the weights", tables->interface.model, result);
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
    CALL(create_error, tables->interface.model, module_load, &model->modules[number], code->code);
    return SYLVITE_OK;
  }
  return sylvite_fail(create_error, SYLVITE_UNSUPPORTED_DEVICE,
                      "%s was not exported for GPUs of compute capability %d.%d; export it for them",
                      tables->interface.model, capability / 10, capability % 10);
}

/* Of one program. */
static int find_kernels(struct sylvite_model* model, uint32_t number) {
  const struct sylvite_cuda_program* program = &model->tables->programs[number];
  cuda_handle* functions = model->all[number].functions;
  for (uint32_t i = 0; i < program->launch_count; ++i) {
    const struct sylvite_cuda_launch* launch = &program->launches[i];
    CALL(create_error, launch->name, module_function, &functions[i], model->modules[launch->image],
         launch->function);
    if (launch->shared_bytes > default_shared_bytes) {
      CALL(create_error, launch->name, set_attribute, functions[i], CUDA_DYNAMIC_SHARED_BYTES,
           (int)launch->shared_bytes);
    }
  }
  return SYLVITE_OK;
}

static int load_code(struct sylvite_model* model) {
  const struct sylvite_cuda_tables* tables = model->tables;
  int major = 0, minor = 0;
  CALL(create_error, tables->interface.model, device_attribute, &major, CUDA_CAPABILITY_MAJOR, model->device);
  CALL(create_error, tables->interface.model, device_attribute, &minor, CUDA_CAPABILITY_MINOR, model->device);
  for (uint32_t i = 0; i < tables->image_count; ++i) {
    const int status = load_image(model, i, 10 * major + minor);
    if (status != SYLVITE_OK) return status;
  }
  for (uint32_t i = 0; i < tables->interface.program_count; ++i) {
    const int status = find_kernels(model, i);
    if (status != SYLVITE_OK) return status;
  }
  return SYLVITE_OK;
}

static void* zeros(size_t count, size_t size) {
  return calloc(count + 1, size);
}

static void bind_arguments(const struct sylvite_cuda_tables* tables,
                           const struct sylvite_cuda_program* program, struct prepared* prepared) {
  for (uint32_t i = 0; i < program->argument_count; ++i) {
    const struct sylvite_cuda_argument* argument = &program->arguments[i];
    switch (argument->kind) {
      case SYLVITE_CUDA_BYTES:
        prepared->parameters[i] = (void*)(tables->bytes + argument->first);
        break;
      case SYLVITE_CUDA_POINTERS:
        prepared->parameters[i] = &prepared->pointers[argument->first];
        break;
      case SYLVITE_CUDA_MAP:
        prepared->parameters[i] = &prepared->maps[argument->first];
        break;
      default:
        prepared->parameters[i] = &prepared->maps[program->map_count];
    }
  }
}

/* Whether there was enough memory. */
static int prepare(const struct sylvite_cuda_tables* tables, const struct sylvite_cuda_program* program,
                   struct prepared* prepared) {
  const size_t map_bytes = (program->map_count + (size_t)1) * sizeof(*prepared->maps);
  void* maps = NULL;
  prepared->functions = zeros(program->launch_count, sizeof(*prepared->functions));
  prepared->pointers = zeros(program->place_count, sizeof(*prepared->pointers));
  prepared->parameters = zeros(program->argument_count, sizeof(*prepared->parameters));
  if (posix_memalign(&maps, 64, map_bytes) == 0) prepared->maps = memset(maps, 0, map_bytes);
  if (prepared->functions == NULL || prepared->pointers == NULL || prepared->parameters == NULL ||
      prepared->maps == NULL)
    return 0;
  bind_arguments(tables, program, prepared);
  return 1;
}

static int make_tables(struct sylvite_model* model) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const size_t outer = (size_t)tables->interface.input_count + tables->interface.output_count;
  int is_made;
  model->own = zeros(outer, sizeof(*model->own));
  model->given = zeros(outer, sizeof(*model->given));
  model->bound = zeros(outer, sizeof(*model->bound));
  model->modules = zeros(tables->image_count, sizeof(*model->modules));
  model->widened = zeros(tables->interface.input_count, sizeof(*model->widened));
  model->all = zeros(tables->interface.program_count, sizeof(*model->all));
  is_made = sylvite_allocate_taken(&tables->interface, &model->taken) && model->own != NULL &&
            model->given != NULL && model->bound != NULL && model->widened != NULL &&
            model->modules != NULL && model->all != NULL;
  for (uint32_t i = 0; is_made && i < tables->interface.program_count; ++i)
    is_made = prepare(tables, &tables->programs[i], &model->all[i]);
  return is_made ? SYLVITE_OK
                 : sylvite_fail(create_error, SYLVITE_OUT_OF_MEMORY, "%s: out of memory",
                                tables->interface.model);
}

static int allocate_widened(struct sylvite_model* model) {
  const struct sylvite_interface* interface = &model->tables->interface;
  for (uint32_t i = 0; i < interface->program_count; ++i) {
    for (uint32_t j = 0; j < interface->boxes[i].grown_count; ++j) {
      const uint32_t input = interface->boxes[i].grown[j].input;
      if (model->widened[input] != 0) continue;
      const int status = allocate(model, &model->widened[input], interface->inputs[input].bytes);
      if (status != SYLVITE_OK) return status;
    }
  }
  return SYLVITE_OK;
}

static int build(struct sylvite_model* model, const char* weights_path) {
  const struct sylvite_cuda_tables* tables = model->tables;
  int status = make_tables(model);
  if (status == SYLVITE_OK) status = upload_weights(model, weights_path);
  if (status == SYLVITE_OK) status = allocate(model, &model->arena, tables->arena_bytes);
  if (status == SYLVITE_OK) status = allocate(model, &model->scratch, tables->scratch_bytes);
  if (status == SYLVITE_OK) status = allocate(model, &model->states, tables->interface.state_bytes);
  if (status == SYLVITE_OK) status = allocate_widened(model);
  if (status == SYLVITE_OK) status = sylvite_cuda_clear_states(model, create_error);
  if (status == SYLVITE_OK) status = load_code(model);
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
  if (weights_path == NULL && tables->interface.weights == NULL)
    return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "create: the weights path is null");
  pthread_once(&once, find_functions);
  if (missing_driver[0] != 0)
    return sylvite_fail(create_error, SYLVITE_UNSUPPORTED_DEVICE, "%s: %s", tables->interface.model,
                        missing_driver);
  struct sylvite_model* made = calloc(1, sizeof(*made));
  if (made == NULL) return sylvite_fail(create_error, SYLVITE_OUT_OF_MEMORY, "create: out of memory");
  made->tables = tables;
  status = enter_context(made);
  if (status == SYLVITE_OK) {
    status = build(made, weights_path);
    sylvite_cuda_leave_context();
  }
  if (status != SYLVITE_OK) {
    sylvite_cuda_destroy(made);
    return status;
  }
  *model = made;
  return SYLVITE_OK;
}

int sylvite_cuda_enter(const struct sylvite_cuda_tables* tables, sylvite_model* model, const char* what) {
  if (model == NULL) return sylvite_fail(create_error, SYLVITE_NULL_ARGUMENT, "%s: the model is null", what);
  const int status =
      sylvite_enter(&model->guard, model->tables == tables, tables->interface.model, create_error);
  if (status == SYLVITE_OK) model->error[0] = 0;
  return status;
}

/* Errors are of no use any more. */
static void free_on_device(struct sylvite_model* model) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const struct sylvite_interface* interface = &tables->interface;
  const cuda_address blocks[] = {model->weights, model->arena, model->scratch, model->states};
  if (model->context == NULL || sylvite_cuda.context_push(model->context) != 0) return;
  if (model->stream != NULL) sylvite_cuda.stream_destroy(model->stream);
  for (uint32_t i = 0; i < 4; ++i)
    if (blocks[i] != 0) sylvite_cuda.memory_free(blocks[i]);
  for (uint32_t i = 0; model->own != NULL && i < interface->input_count + interface->output_count; ++i)
    if (model->own[i] != 0) sylvite_cuda.memory_free(model->own[i]);
  for (uint32_t i = 0; model->widened != NULL && i < interface->input_count; ++i)
    if (model->widened[i] != 0) sylvite_cuda.memory_free(model->widened[i]);
  for (uint32_t i = 0; model->modules != NULL && i < tables->image_count; ++i)
    if (model->modules[i] != NULL) sylvite_cuda.module_unload(model->modules[i]);
  sylvite_cuda_leave_context();
  if (model->context_is_ours) sylvite_cuda.primary_context_release(model->device);
}

void sylvite_cuda_destroy(sylvite_model* model) {
  if (model == NULL) return;
  sylvite_forget(&model->guard);
  free_on_device(model);
  free(model->own);
  free(model->given);
  free(model->bound);
  free(model->modules);
  free(model->widened);
  sylvite_free_taken(&model->taken);
  for (uint32_t i = 0; model->all != NULL && i < model->tables->interface.program_count; ++i) {
    free(model->all[i].functions);
    free(model->all[i].pointers);
    free(model->all[i].parameters);
    free(model->all[i].maps);
  }
  free(model->all);
  free(model);
}

const char* sylvite_cuda_error_message(const sylvite_model* model) {
  return model != NULL && !sylvite_was_refused(&model->guard) ? model->error : create_error;
}
