/* See weights_file.h. Needs libc only. */
#define _POSIX_C_SOURCE 200809L

#include "weights_file.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model_types.h"

int sylvite_fail(char* error, int status, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(error, sylvite_error_bytes, format, values);
  va_end(values);
  return status;
}

int sylvite_check_state(const char* what, int number, const void* bytes,
                        const struct sylvite_tensor_info* states, uint32_t count, char* error) {
  if (number < 0 || (uint32_t)number >= count) {
    return sylvite_fail(error, SYLVITE_NULL_ARGUMENT, "%s: there is no state %d; the model has %u", what,
                        number, (unsigned)count);
  }
  if (bytes == NULL) {
    return sylvite_fail(error, SYLVITE_NULL_ARGUMENT, "%s: the value of state %d '%s' is null", what, number,
                        states[number].name);
  }
  return SYLVITE_OK;
}

static _Thread_local const struct sylvite_guard* refused;

int sylvite_enter(struct sylvite_guard* guard, int is_own, const char* model, char* error) {
  refused = guard;
  if (!is_own)
    return sylvite_fail(error, SYLVITE_WRONG_MODEL, "the model was not created by %s_create", model);
  if (__atomic_exchange_n(&guard->is_busy, 1, __ATOMIC_ACQUIRE)) {
    return sylvite_fail(error, SYLVITE_BUSY,
                        "another thread is running this model; create one for each thread");
  }
  refused = NULL;
  return SYLVITE_OK;
}

void sylvite_leave(struct sylvite_guard* guard) {
  __atomic_store_n(&guard->is_busy, 0, __ATOMIC_RELEASE);
}

int sylvite_was_refused(const struct sylvite_guard* guard) {
  return refused == guard;
}

void sylvite_forget(const struct sylvite_guard* guard) {
  if (refused == guard) refused = NULL;
}

static int check(const struct sylvite_mapping* mapping, const char* path,
                 const struct sylvite_wanted_weights* wanted, char* error) {
  const struct sylvite_weights_header* header = mapping->data;
  if (mapping->bytes < sizeof(*header) || memcmp(header->magic, "SYLVWTS", 8) != 0)
    return sylvite_fail(error, SYLVITE_BAD_WEIGHTS, "%s is not a weights file", path);
  if (header->version != SYLVITE_WEIGHTS_VERSION) {
    return sylvite_fail(error, SYLVITE_BAD_WEIGHTS, "%s has version %u, this program reads version %d", path,
                        (unsigned)header->version, SYLVITE_WEIGHTS_VERSION);
  }
  if (memcmp(header->id, wanted->id, sizeof(header->id)) != 0 || header->bytes != wanted->bytes) {
    return sylvite_fail(error, SYLVITE_BAD_WEIGHTS, "%s was exported with another model than %s %s", path,
                        wanted->model, wanted->id);
  }
  if (mapping->is_embedded) return SYLVITE_OK; /* as sound as the code */
  if (mapping->bytes != SYLVITE_WEIGHTS_OFFSET + wanted->bytes ||
      header->checksum != sylvite_checksum(sylvite_weights_of(mapping), wanted->bytes)) {
    return sylvite_fail(error, SYLVITE_BAD_WEIGHTS, "%s is damaged: its size or checksum is wrong", path);
  }
  return SYLVITE_OK;
}

static int map_file(const char* path, struct sylvite_mapping* mapping, char* error) {
  struct stat status;
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not wait for the writer of a pipe */
  if (path[0] == 0) path = "a file without a name";
  if (file < 0) return sylvite_fail(error, SYLVITE_BAD_WEIGHTS, "%s cannot be opened", path);
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    mapping->bytes = (size_t)status.st_size;
    mapping->data = mmap(NULL, mapping->bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapping->data == MAP_FAILED) mapping->data = NULL;
  }
  close(file);
  if (mapping->data == NULL) return sylvite_fail(error, SYLVITE_BAD_WEIGHTS, "%s cannot be read", path);
  return SYLVITE_OK;
}

int sylvite_map_weights(const char* path, const struct sylvite_wanted_weights* wanted,
                        struct sylvite_mapping* mapping, char* error) {
  int result = SYLVITE_OK;
  memset(mapping, 0, sizeof(*mapping));
  if (wanted->embedded != NULL && (path == NULL || path[0] == 0)) {
    path = "what the library holds";
    mapping->data = (void*)wanted->embedded;
    mapping->bytes = SYLVITE_WEIGHTS_OFFSET + wanted->bytes;
    mapping->is_embedded = 1;
  } else {
    result = map_file(path, mapping, error);
  }
  if (result == SYLVITE_OK) result = check(mapping, path, wanted, error);
  if (result != SYLVITE_OK) sylvite_unmap_weights(mapping);
  return result;
}

void sylvite_unmap_weights(struct sylvite_mapping* mapping) {
  if (mapping->data != NULL && !mapping->is_embedded) munmap(mapping->data, mapping->bytes);
  mapping->data = NULL;
}
