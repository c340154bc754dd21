/* Values that stay between the runs of a model of launcher_cuda.c. */
#define _POSIX_C_SOURCE 200809L

#include "launcher_cuda_model.h"

/* What reads and writes states waits for all that was queued on the device before. */
int sylvite_cuda_clear_states(sylvite_model* model, char* error) {
  const uint64_t bytes = model->tables->interface.state_bytes;
  model->length = 0;
  if (bytes == 0) return SYLVITE_OK;
  CALL(error, "reset", context_synchronize);
  CALL(error, "reset", fill_bytes, model->states, 0, bytes, NULL);
  CALL(error, "reset", stream_synchronize, NULL);
  return SYLVITE_OK;
}

static int copy_bytes(sylvite_model* to, const sylvite_model* from) {
  const uint64_t bytes = to->tables->interface.state_bytes;
  to->length = -1;
  if (bytes == 0) return SYLVITE_OK;
  CALL(to->error, "copy_state", context_synchronize);
  CALL(to->error, "copy_state", copy_on_device, to->states, from->states, bytes, NULL);
  CALL(to->error, "copy_state", stream_synchronize, NULL);
  return SYLVITE_OK;
}

static int move_bytes(sylvite_model* model, int number, void* value, const void* given) {
  const struct sylvite_cuda_tables* tables = model->tables;
  const struct sylvite_tensor_info* info = &tables->interface.states[number];
  const cuda_address place = model->states + tables->interface.state_offsets[number];
  if (info->bytes == 0) return SYLVITE_OK;
  CALL(model->error, info->name, context_synchronize);
  if (given != NULL) model->length = -1;
  if (given != NULL)
    CALL(model->error, info->name, copy_to_device, place, given, info->bytes, NULL);
  else
    CALL(model->error, info->name, copy_to_host, value, place, info->bytes, NULL);
  CALL(model->error, info->name, stream_synchronize, NULL);
  return SYLVITE_OK;
}

static int copy_states(sylvite_model* to, const sylvite_model* from) {
  if (to->context != from->context)
    return sylvite_fail(to->error, SYLVITE_UNSUPPORTED_DEVICE, "copy_state: the models are on two devices");
  int status = sylvite_cuda_enter_context(to, "copy_state");
  if (status != SYLVITE_OK) return status;
  status = copy_bytes(to, from);
  sylvite_cuda_leave_context();
  return status;
}

int sylvite_cuda_reset(const struct sylvite_cuda_tables* tables, sylvite_model* model) {
  int status = sylvite_cuda_enter(tables, model, "reset");
  if (status != SYLVITE_OK) return status;
  status = sylvite_cuda_enter_context(model, "reset");
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
  status = sylvite_check_state(what, number, given != NULL ? given : value, tables->interface.states,
                               tables->interface.state_count, model->error);
  if (status == SYLVITE_OK) status = sylvite_cuda_enter_context(model, what);
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
