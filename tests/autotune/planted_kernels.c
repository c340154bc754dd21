// Kernels that a tuner must not choose: relu(a x b + bias), as sample_matmul(64) is, each with a fault of its own.
// Compiled by planted_test.cpp once per fault, with -DENTRY=SYMBOL -DFAULT=FUNCTION.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { rows = 64, inner = 32, columns = 64 };

// The first members of halide_buffer_t.
struct buffer {
  uint64_t device;
  const void* device_interface;
  float* host;
};

int halide_error_out_of_memory(void* context);

static void compute(void** arguments) {
  const float* a = ((struct buffer*)arguments[1])->host;
  const float* b = ((struct buffer*)arguments[2])->host;
  const float* bias = ((struct buffer*)arguments[3])->host;
  float* result = ((struct buffer*)arguments[4])->host;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      float sum = bias[column];
      for (int k = 0; k < inner; ++k) sum += a[row * inner + k] * b[k * columns + column];
      result[row * columns + column] = sum > 0 ? sum : 0;
    }
}

static float* last_row(void** arguments) {
  return ((struct buffer*)arguments[4])->host + (rows - 1) * columns;
}

// Of the thread: what other processes take does not count.
static double cpu_microseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static float right[rows * columns];

static void compute_and_remember(void** arguments) {
  compute(arguments);
  memcpy(right, ((struct buffer*)arguments[4])->host, sizeof(right));
}

// As long as a fast kernel takes, with the right result. REQUIRES compute_and_remember.
static int pretend(void** arguments) {
  const double start = cpu_microseconds();
  memcpy(((struct buffer*)arguments[4])->host, right, sizeof(right));
  while (cpu_microseconds() < start + 0.6) continue;
  return 0;
}

int crashes(void** arguments) {
  (void)arguments;
  *(volatile int*)8 = 1;
  return 0;
}

int hangs(void** arguments) {
  (void)arguments;
  for (volatile int turn = 0;; ++turn) continue;
}

int errs_in_one_element(void** arguments) {
  compute(arguments);
  last_row(arguments)[columns - 2] += 0.25F;
  return 0;
}

int leaves_one_element(void** arguments) {
  const float before = last_row(arguments)[columns - 1];
  compute(arguments);
  last_row(arguments)[columns - 1] = before;
  return 0;
}

// Right when it is checked, wrong when it is timed.
int errs_later(void** arguments) {
  static int calls;
  compute(arguments);
  if (++calls > 3) last_row(arguments)[0] += 0.25F;
  return 0;
}

// As compiled kernels do that need much memory.
int allocates(void** arguments) {
  char* memory = malloc((size_t)100 << 30);
  if (memory == NULL) return halide_error_out_of_memory(*(void**)arguments[0]);
  memory[0] = 1;
  free(memory);
  compute(arguments);
  return 0;
}

int does_nothing_again(void** arguments) {
  static int calls;
  if (calls++ == 0) compute(arguments);
  return 0;
}

// Longer than a short measurement looks at it.
int is_fast_at_first(void** arguments) {
  static int calls;
  if (calls++ > 0 && calls < 500) return pretend(arguments);
  compute_and_remember(arguments);
  return 0;
}

// Slow for a while when others ran since its last call.
int is_fast_alone(void** arguments) {
  static double ended;
  static int slow_calls;
  if (ended > 0 && cpu_microseconds() > ended + 50) slow_calls = 3;
  const int is_fast = ended > 0 && slow_calls-- <= 0;
  if (is_fast)
    pretend(arguments);
  else
    compute_and_remember(arguments);
  ended = cpu_microseconds();
  return 0;
}

int ENTRY(void** arguments) {
  return FAULT(arguments);
}
