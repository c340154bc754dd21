/* See sized_program.h. */
#include "sized_program.h"

#include "weights_file.h"

int sylvite_check_sizes(const struct sylvite_size_info* infos, uint32_t count, const int64_t* sizes,
                        char* error) {
  if (sizes == NULL && count > 0) return sylvite_fail(error, SYLVITE_NULL_ARGUMENT, "run: sizes is null");
  for (uint32_t i = 0; i < count; ++i) {
    const struct sylvite_size_info* info = &infos[i];
    if (sizes[i] >= info->low && sizes[i] <= info->high && sizes[i] % info->multiple == 0) continue;
    return sylvite_fail(error, SYLVITE_BAD_SIZES,
                        "run: size %u '%s' is %lld, expected a multiple of %lld from %lld to %lld",
                        (unsigned)i, info->name, (long long)sizes[i], (long long)info->multiple,
                        (long long)info->low, (long long)info->high);
  }
  return SYLVITE_OK;
}

int sylvite_takes_sizes(const struct sylvite_box* box, const int64_t* sizes, uint32_t count,
                        int64_t* numbers) {
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

const int64_t* sylvite_dims_of(const struct sylvite_tensor_info* infos, const int64_t* all, int number) {
  for (int i = 0; i < number; ++i) all += infos[i].rank;
  return all;
}

size_t sylvite_bytes_of(const struct sylvite_tensor_info* infos, const int64_t* all, const int64_t* numbers,
                        int number) {
  const struct sylvite_tensor_info* info = &infos[number];
  const int64_t* dims = sylvite_dims_of(infos, all, number);
  size_t most = 1, count = 1;
  for (int i = 0; i < info->rank; ++i) {
    most *= (size_t)info->dims[i];
    count *= (size_t)sylvite_value_of(numbers, dims[i]);
  }
  return most == 0 ? 0 : info->bytes / most * count;
}

int sylvite_check_port(int is_output, int number, uint32_t count, const int64_t* dims, char* error) {
  if (number >= 0 && (uint32_t)number < count && dims != NULL) return SYLVITE_OK;
  return sylvite_fail(error, SYLVITE_NULL_ARGUMENT, "dims: there is no %s %d, or the dims are null",
                      is_output ? "output" : "input", number);
}
