#include "first_places.h"

#include <stdlib.h>

#include "halide_buffer.h"

/* What is moved. */
struct element {
  uint64_t word;
  uint32_t before; /* of equal words the one with the larger number comes first; 0 where the library's steps decide */
  int32_t place;
};

enum { FEW = 16 }; /* so many are sorted by insertion */

static int is_before(struct element a, struct element b) {
  return a.word > b.word || (a.word == b.word && a.before > b.before);
}

static void swap(struct element* a, struct element* b) {
  const struct element kept = *a;
  *a = *b;
  *b = kept;
}

static int32_t twice_log2(int32_t count) {
  return 2 * (31 - __builtin_clz((uint32_t)count));
}

/* Heaps: the last of the order is on top. */

static void sift(struct element* heap, int32_t hole, int32_t count, struct element value) {
  const int32_t top = hole;
  int32_t child = hole;
  while (child < (count - 1) / 2) {
    child = 2 * (child + 1);
    if (is_before(heap[child], heap[child - 1])) --child;
    heap[hole] = heap[child];
    hole = child;
  }
  if (count % 2 == 0 && child == (count - 2) / 2) {
    child = 2 * (child + 1);
    heap[hole] = heap[child - 1];
    hole = child - 1;
  }
  int32_t parent = (hole - 1) / 2;
  while (hole > top && is_before(heap[parent], value)) {
    heap[hole] = heap[parent];
    hole = parent;
    parent = (hole - 1) / 2;
  }
  heap[hole] = value;
}

static void pop(struct element* heap, int32_t count, struct element* result) {
  const struct element value = *result;
  *result = heap[0];
  sift(heap, 0, count, value);
}

/* The first `kept` of begin..end become a heap. */
static void select_by_heap(struct element* row, int32_t begin, int32_t kept, int32_t end) {
  struct element* heap = row + begin;
  for (int32_t parent = (kept - 2) / 2; kept >= 2 && parent >= 0; --parent)
    sift(heap, parent, kept, heap[parent]);
  for (int32_t i = begin + kept; i < end; ++i)
    if (is_before(row[i], heap[0])) pop(heap, kept, row + i);
}

static void partial_sort(struct element* row, int32_t begin, int32_t kept, int32_t end) {
  select_by_heap(row, begin, kept, end);
  struct element* heap = row + begin;
  for (int32_t last = kept - 1; last > 0; --last) pop(heap, last, heap + last);
}

/* Partitions and insertions. */

static void median_to_first(struct element* row, int32_t result, int32_t a, int32_t b, int32_t c) {
  int32_t median;
  if (is_before(row[a], row[b]))
    median = is_before(row[b], row[c]) ? b : is_before(row[a], row[c]) ? c : a;
  else
    median = is_before(row[a], row[c]) ? a : is_before(row[b], row[c]) ? c : b;
  swap(row + result, row + median);
}

static int32_t partition(struct element* row, int32_t begin, int32_t end) {
  median_to_first(row, begin, begin + 1, begin + (end - begin) / 2, end - 1);
  int32_t first = begin + 1, last = end;
  for (;;) {
    while (is_before(row[first], row[begin])) ++first;
    --last;
    while (is_before(row[begin], row[last])) --last;
    if (first >= last) return first;
    swap(row + first, row + last);
    ++first;
  }
}

static void insert_behind(struct element* row, int32_t last) {
  const struct element value = row[last];
  while (is_before(value, row[last - 1])) {
    row[last] = row[last - 1];
    --last;
  }
  row[last] = value;
}

static void sort_by_insertion(struct element* row, int32_t begin, int32_t end) {
  for (int32_t i = begin + 1; i < end; ++i) {
    if (!is_before(row[i], row[begin])) {
      insert_behind(row, i);
      continue;
    }
    const struct element value = row[i];
    for (int32_t j = i; j > begin; --j) row[j] = row[j - 1];
    row[begin] = value;
  }
}

static void select_nth(struct element* row, int32_t nth, int32_t count) {
  int32_t begin = 0, end = count;
  for (int32_t depth = twice_log2(count); end - begin > 3; --depth) {
    if (depth == 0) {
      select_by_heap(row, begin, nth + 1 - begin, end);
      swap(row + begin, row + nth);
      return;
    }
    const int32_t cut = partition(row, begin, end);
    if (cut <= nth)
      begin = cut;
    else
      end = cut;
  }
  sort_by_insertion(row, begin, end);
}

/* By partitions about the middle one of three, as torch does for the nth of all. */
static void select_as_torch(struct element* row, int32_t nth, int32_t count) {
  int32_t first = 0, last = count - 1;
  while (last > first + 1) {
    struct element* const second = row + first + 1;
    swap(row + first + (last - first) / 2, second);
    if (is_before(row[last], *second)) swap(second, row + last);
    if (is_before(row[last], row[first])) swap(row + first, row + last);
    if (is_before(row[first], *second)) swap(second, row + first);
    const struct element pivot = row[first];
    int32_t up = first + 1, down = last;
    for (;;) {
      do ++up;
      while (is_before(row[up], pivot));
      do --down;
      while (is_before(pivot, row[down]));
      if (down < up) break;
      swap(row + up, row + down);
    }
    swap(row + first, row + down);
    if (down <= nth) first = up;
    if (down >= nth) last = down - 1;
  }
  if (last == first + 1 && is_before(row[last], row[first])) swap(row + first, row + last);
}

static void sort_roughly(struct element* row, int32_t begin, int32_t end, int32_t depth) {
  while (end - begin > FEW) {
    if (depth == 0) {
      partial_sort(row, begin, end - begin, end);
      return;
    }
    --depth;
    const int32_t cut = partition(row, begin, end);
    sort_roughly(row, cut, end, depth);
    end = cut;
  }
}

static void sort(struct element* row, int32_t count) {
  if (count < 1) return;
  sort_roughly(row, 0, count, twice_log2(count));
  sort_by_insertion(row, 0, count < FEW ? count : FEW);
  for (int32_t i = FEW; i < count; ++i) insert_behind(row, i);
}

/* One call. */
struct rows {
  const struct halide_buffer *words, *is_needed, *places;
  int32_t count, k, way;
  struct element* scratch; /* of scratch_elements(rows) */
};

/* In order of words and places: elements that come behind a limit are passed over many at a time. What is left is collected, and
 * once there are enough, the first of it stay and the last of these is the next limit. As places rise, what equals the limit comes
 * behind it. */

enum { GLANCE = 16 }; /* elements at a time */

static int32_t scratch_elements(const struct rows* rows) {
  enum { MORE = 64 };
  const int64_t enough = 3 * (int64_t)rows->k + MORE;
  return rows->way != FIRST_PLACES_IN_ORDER || enough > rows->count ? rows->count + GLANCE : (int32_t)enough;
}

static struct element in_order(uint64_t word, int32_t place) {
  return (struct element){word, ~(uint32_t)place, place};
}

/* Elements of words from `place` on that are above the limit, behind the `filled` ones of scratch, as long as there is room.
 * Gives the place behind the last that was looked at. */
#define DEFINE_COLLECT(name, word_type)                                                                    \
  static int32_t name(const struct rows* rows, const word_type* words, int32_t place, word_type limit,     \
                      int32_t* filled) {                                                                   \
    struct element* row = rows->scratch;                                                                   \
    const int32_t most = scratch_elements(rows) - GLANCE;                                                  \
    int32_t count = *filled;                                                                               \
    for (; place + GLANCE <= rows->count && count <= most; place += GLANCE) {                              \
      word_type any = 0;                                                                                   \
      for (int32_t i = 0; i < GLANCE; ++i) any |= (word_type) - (word_type)(words[place + i] > limit);     \
      if (!any) continue;                                                                                  \
      for (int32_t i = 0; i < GLANCE; ++i) {                                                               \
        row[count] = in_order(words[place + i], place + i);                                                \
        count += words[place + i] > limit;                                                                 \
      }                                                                                                    \
    }                                                                                                      \
    for (; place < rows->count && place + GLANCE > rows->count && count <= most; ++place) {                \
      row[count] = in_order(words[place], place);                                                          \
      count += words[place] > limit;                                                                       \
    }                                                                                                      \
    *filled = count;                                                                                       \
    return place;                                                                                          \
  }
DEFINE_COLLECT(collect_narrow, uint32_t)
DEFINE_COLLECT(collect_wide, uint64_t)

static void choose_in_order(const struct rows* rows, const char* words) {
  struct element* row = rows->scratch;
  const int is_wide = rows->words->type_bits == 64;
  const int32_t k = rows->k, room = scratch_elements(rows) - GLANCE;
  int32_t filled = room < rows->count ? room : rows->count;
  for (int32_t i = 0; i < filled; ++i)
    row[i] = in_order(is_wide ? ((const uint64_t*)words)[i] : ((const uint32_t*)words)[i], i);
  for (int32_t place = filled;;) {
    if (k < filled) select_nth(row, k - 1, filled);
    filled = k;
    if (place == rows->count) break;
    const uint64_t limit = row[k - 1].word;
    place = is_wide ? collect_wide(rows, (const uint64_t*)words, place, limit, &filled)
                    : collect_narrow(rows, (const uint32_t*)words, place, (uint32_t)limit, &filled);
  }
  sort(row, k);
}

static void put_places(const struct rows* rows, int32_t* places) {
  const struct halide_dimension along = rows->places->dim[0];
  for (int32_t i = 0; i < along.extent && along.min + i < rows->k; ++i)
    places[(int64_t)i * along.stride] = rows->scratch[along.min + i].place;
}

static void choose_by_library(const struct rows* rows, const char* words) {
  struct element* row = rows->scratch;
  const int is_wide = rows->words->type_bits == 64;
  for (int32_t i = 0; i < rows->count; ++i) {
    row[i].word = is_wide ? ((const uint64_t*)words)[i] : ((const uint32_t*)words)[i];
    row[i].before = 0;
    row[i].place = i;
  }
  if (rows->way == FIRST_PLACES_OF_TORCH) {
    select_as_torch(row, rows->k - 1, rows->count);
  } else if (64 * (int64_t)rows->k <= rows->count) {
    partial_sort(row, 0, rows->k, rows->count);
  } else {
    select_nth(row, rows->k - 1, rows->count);
    if (rows->way == FIRST_PLACES_SORTED) sort(row, rows->k - 1);
  }
}

/* All rows whose coordinates beyond `dim` are those of the addresses. */
static void choose_within(const struct rows* rows, int32_t dim, const char* words, const int32_t* is_needed,
                          int32_t* places) {
  if (dim == 0) {
    if (!*is_needed) return;
    if (rows->way == FIRST_PLACES_IN_ORDER)
      choose_in_order(rows, words);
    else
      choose_by_library(rows, words);
    put_places(rows, places);
    return;
  }
  const struct halide_dimension of_words = rows->words->dim[dim], of_places = rows->places->dim[dim],
                                of_needed = rows->is_needed->dim[dim - 1];
  const int64_t bytes = rows->words->type_bits / 8;
  for (int32_t i = 0; i < of_places.extent; ++i) {
    const int64_t at = (int64_t)of_places.min + i;
    choose_within(rows, dim - 1, words + (at - of_words.min) * of_words.stride * bytes,
                  is_needed + (at - of_needed.min) * of_needed.stride,
                  places + (int64_t)i * of_places.stride);
  }
}

static void ask_for(struct halide_dimension* input, int32_t min, int32_t extent) {
  input->min = min;
  input->extent = extent;
}

int sylvite_first_places(struct halide_buffer* words, struct halide_buffer* is_needed, int32_t count,
                         int32_t k, int32_t way, struct halide_buffer* places) {
  const int32_t last = places->dimensions - 1;
  if (words->host == NULL || is_needed->host == NULL) {
    ask_for(&words->dim[0], 0, count);
    for (int32_t i = 1; i <= last; ++i) {
      ask_for(&words->dim[i], places->dim[i].min, places->dim[i].extent);
      ask_for(&is_needed->dim[i - 1], places->dim[i].min, places->dim[i].extent);
    }
    return 0;
  }
  if (count < 1 || k < 1) return 0;
  struct rows rows = {words, is_needed, places, count, k, way, NULL};
  rows.scratch = malloc((size_t)scratch_elements(&rows) * sizeof(struct element));
  if (rows.scratch == NULL) return -1;
  choose_within(&rows, last, words->host, is_needed->host, places->host);
  free(rows.scratch);
  return 0;
}
