/* What both launchers need: the weights file of an exported model, what is said when something fails, one call at a time, and
 * what is asked of a state. */
#ifndef SYLVITE_WEIGHTS_FILE_H
#define SYLVITE_WEIGHTS_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The first bytes of a weights file; the weights follow at SYLVITE_WEIGHTS_OFFSET. Persistent. */
struct sylvite_weights_header {
  char magic[8]; /* "SYLVWTS" and a zero */
  uint32_t version;
  uint32_t reserved;
  char id[16];
  uint64_t bytes;
  uint64_t checksum; /* sylvite_checksum of the weights */
};
enum { SYLVITE_WEIGHTS_VERSION = 1, SYLVITE_WEIGHTS_OFFSET = 4096 };

/* Of a weights file. Persistent. */
static inline uint64_t sylvite_checksum(const void* data, uint64_t bytes) {
  const uint64_t prime = 0x9E3779B97F4A7C15ULL;
  const char* next = (const char*)data;
  uint64_t sum = bytes;
  for (; bytes >= 8; bytes -= 8, next += 8) {
    uint64_t word;
    memcpy(&word, next, 8);
    sum = (sum ^ word) * prime;
    sum ^= sum >> 29;
  }
  uint64_t last = 0;
  memcpy(&last, next, bytes);
  return (sum ^ last) * prime;
}

#ifdef __cplusplus
extern "C" {
#endif

enum { sylvite_error_bytes = 512 };

/* Writes the message, cut to sylvite_error_bytes, and returns the status. */
int sylvite_fail(char* error, int status, const char* format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* First in a model: who is in a call of it. Zero at first. */
struct sylvite_guard {
  int is_busy; /* atomic */
};

/* A status: SYLVITE_OK, and then sylvite_leave must follow, or a refusal with its message in `error`, which is the calling
 * thread's own: another thread's call goes on, and its message is in the model. */
int sylvite_enter(struct sylvite_guard* guard, int is_own, const char* model, char* error);
void sylvite_leave(struct sylvite_guard* guard);
int sylvite_was_refused(const struct sylvite_guard* guard); /* the calling thread's last call of the model */
void sylvite_forget(const struct sylvite_guard* guard);     /* the model is destroyed */

struct sylvite_tensor_info;
/* Whether there is a state of that number, and bytes to move it from or to. A status; `what` is the call. */
int sylvite_check_state(const char* what, int number, const void* bytes,
                        const struct sylvite_tensor_info* states, uint32_t count, char* error);

struct sylvite_mapping {
  void* data; /* null: nothing */
  size_t bytes;
  int is_embedded; /* part of the program: never unmapped */
};

/* Which weights a model wants. */
struct sylvite_wanted_weights {
  const char* model; /* its name, for messages */
  const char* id;    /* 16 hex digits; the weights file has the same */
  uint64_t bytes;
  const void* embedded; /* what the weights file would hold, at a multiple of 64; null: there is a file */
};

/* Maps and checks the file; the embedded ones, where there are, when `path` is null or empty. Returns a status; the mapping
 * is null unless it is SYLVITE_OK. */
int sylvite_map_weights(const char* path, const struct sylvite_wanted_weights* wanted,
                        struct sylvite_mapping* mapping, char* error);
void sylvite_unmap_weights(struct sylvite_mapping* mapping); /* null is fine */
static inline char* sylvite_weights_of(const struct sylvite_mapping* mapping) {
  return (char*)mapping->data + SYLVITE_WEIGHTS_OFFSET;
}

#ifdef __cplusplus
}
#endif
#endif
