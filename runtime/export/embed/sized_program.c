/* See sized_program.h. */
#include "sized_program.h"

#include <stdlib.h>
#include <string.h>

#include "weights_file.h"

int sylvite_allocate_taken(const struct sylvite_interface* interface, struct sylvite_taken* taken) {
  taken->sizes = calloc((size_t)interface->size_count + 1, sizeof(*taken->sizes));
  taken->numbers = calloc((size_t)interface->number_count + 1, sizeof(*taken->numbers));
  return taken->sizes != NULL && taken->numbers != NULL;
}

void sylvite_free_taken(struct sylvite_taken* taken) {
  free(taken->sizes);
  free(taken->numbers);
}

static int check_sizes(const struct sylvite_interface* interface, const int64_t* sizes, char* error) {
  if (sizes == NULL && interface->size_count > 0)
    return sylvite_fail(error, SYLVITE_NULL_ARGUMENT, "run: sizes is null");
  for (uint32_t i = 0; i < interface->size_count; ++i) {
    const struct sylvite_size_info* info = &interface->sizes[i];
    if (sizes[i] >= info->low && sizes[i] <= info->high && sizes[i] % info->multiple == 0) continue;
    if (info->multiple == 1) {
      return sylvite_fail(error, SYLVITE_BAD_SIZES, "run: size %u '%s' is %lld, expected %lld to %lld",
                          (unsigned)i, info->name, (long long)sizes[i], (long long)info->low,
                          (long long)info->high);
    }
    return sylvite_fail(error, SYLVITE_BAD_SIZES,
                        "run: size %u '%s' is %lld, expected a multiple of %lld from %lld to %lld",
                        (unsigned)i, info->name, (long long)sizes[i], (long long)info->multiple,
                        (long long)info->low, (long long)info->high);
  }
  return SYLVITE_OK;
}

/* Whether the program is for these sizes; then the numbers are those of the program. */
static int serves(const struct sylvite_box* box, const int64_t* sizes, uint32_t count, int64_t* numbers) {
  for (uint32_t i = 0; i < count; ++i)
    if (sizes[i] < box->low[i] || sizes[i] > box->high[i]) return 0;
  if (box->numbers != NULL) box->numbers(sizes, numbers);
  for (uint32_t i = 0; i < box->condition_count; ++i) {
    const struct sylvite_condition* condition = &box->conditions[i];
    const int64_t number = sylvite_value_of(numbers, condition->number);
    if (number < condition->low || number > condition->high) return 0;
  }
  return 1;
}

int sylvite_take(const struct sylvite_interface* interface, struct sylvite_taken* taken, const int64_t* sizes,
                 int* is_new, char* error) {
  const size_t bytes = interface->size_count * sizeof(*sizes);
  uint32_t i = 0;
  *is_new = 0;
  if (taken->box != NULL && (bytes == 0 || (sizes != NULL && memcmp(sizes, taken->sizes, bytes) == 0)))
    return SYLVITE_OK;
  const int status = check_sizes(interface, sizes, error);
  if (status != SYLVITE_OK) return status;
  taken->box = NULL; /* the numbers are of none from here on */
  while (i < interface->program_count &&
         !serves(&interface->boxes[i], sizes, interface->size_count, taken->numbers))
    ++i;
  if (i == interface->program_count)
    return sylvite_fail(error, SYLVITE_BAD_SIZES, "run: the library has no program for these sizes");
  if (bytes > 0) memcpy(taken->sizes, sizes, bytes);
  taken->box = &interface->boxes[i];
  taken->program = i;
  *is_new = 1;
  return SYLVITE_OK;
}

int sylvite_check_room(const struct sylvite_interface* interface, const struct sylvite_taken* taken,
                       int64_t length, char* error) {
  const int64_t added = sylvite_value_of(taken->numbers, taken->box->added);
  if (interface->capacity == 0 || (length >= 0 && length <= interface->capacity - added)) return SYLVITE_OK;
  return sylvite_fail(error, SYLVITE_NO_ROOM,
                      "run: '%s' is %lld, and this run adds %lld: states have room for %lld",
                      interface->states[interface->length_state].name, (long long)length, (long long)added,
                      (long long)interface->capacity);
}

/* Where the dims of an input or an output stand. */
static const int64_t* dims_of(const struct sylvite_interface* interface, const struct sylvite_taken* taken,
                              int is_output, int number) {
  const struct sylvite_tensor_info* infos = is_output ? interface->outputs : interface->inputs;
  const int64_t* dims = is_output ? taken->box->output_dims : taken->box->input_dims;
  for (int i = 0; i < number; ++i) dims += infos[i].rank;
  return dims;
}

struct sylvite_rows sylvite_rows_of(const struct sylvite_interface* interface,
                                    const struct sylvite_taken* taken, const struct sylvite_grown* grown,
                                    int64_t length) {
  const int64_t* dims = dims_of(interface, taken, 0, (int)grown->input);
  const int64_t extent = length + sylvite_value_of(taken->numbers, grown->beyond);
  struct sylvite_rows rows = {1, grown->element_bytes, grown->element_bytes};
  for (int i = 0; i < interface->inputs[grown->input].rank; ++i) {
    const size_t wide = (size_t)sylvite_value_of(taken->numbers, dims[i]);
    if (i < (int)grown->axis) {
      rows.count *= wide;
    } else {
      rows.wide *= wide;
      rows.given *= i == (int)grown->axis ? (size_t)extent : wide;
    }
  }
  return rows;
}

int sylvite_check_port(const struct sylvite_interface* interface, int is_output, int number,
                       const int64_t* dims, char* error) {
  const uint32_t count = is_output ? interface->output_count : interface->input_count;
  const char* port = is_output ? "output" : "input";
  if (number < 0 || (uint32_t)number >= count) {
    return sylvite_fail(error, SYLVITE_NULL_ARGUMENT, "%s_dims: there is no %s %d; the model has %u", port,
                        port, number, (unsigned)count);
  }
  if (dims == NULL)
    return sylvite_fail(error, SYLVITE_NULL_ARGUMENT, "%s_dims: the place for the dims is null", port);
  return SYLVITE_OK;
}

void sylvite_write_dims(const struct sylvite_interface* interface, const struct sylvite_taken* taken,
                        int is_output, int number, int64_t length, int64_t* dims) {
  const int64_t* from = dims_of(interface, taken, is_output, number);
  const int rank = (is_output ? interface->outputs : interface->inputs)[number].rank;
  for (int i = 0; i < rank; ++i) dims[i] = sylvite_value_of(taken->numbers, from[i]);
  for (uint32_t i = 0; !is_output && i < taken->box->grown_count; ++i) {
    const struct sylvite_grown* grown = &taken->box->grown[i];
    if (grown->input == (uint32_t)number)
      dims[grown->axis] = length + sylvite_value_of(taken->numbers, grown->beyond);
  }
}

size_t sylvite_bytes_of(const struct sylvite_interface* interface, const struct sylvite_taken* taken,
                        int is_output, int number) {
  const struct sylvite_tensor_info* info = &(is_output ? interface->outputs : interface->inputs)[number];
  const int64_t* dims = dims_of(interface, taken, is_output, number);
  size_t most = 1, count = 1;
  for (int i = 0; i < info->rank; ++i) {
    most *= (size_t)info->dims[i];
    count *= (size_t)sylvite_value_of(taken->numbers, dims[i]);
  }
  return most == 0 ? 0 : info->bytes / most * count;
}
