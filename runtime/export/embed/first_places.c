#include "first_places.h"

#include <stdlib.h>

#include "halide_buffer.h"

/* What is moved. */
struct element {
  uint64_t word;
  int64_t place;
};

enum { FEW = 16 }; /* so many are sorted by insertion */

static int is_before(struct element a, struct element b) {
  return a.word > b.word;
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
  struct element* scratch; /* of `count` elements */
};

static void choose(const struct rows* rows, const char* words, int32_t* places) {
  struct element* row = rows->scratch;
  const int is_wide = rows->words->type_bits == 64;
  for (int32_t i = 0; i < rows->count; ++i) {
    row[i].word = is_wide ? ((const uint64_t*)words)[i] : ((const uint32_t*)words)[i];
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
  const struct halide_dimension along = rows->places->dim[0];
  for (int32_t i = 0; i < along.extent && along.min + i < rows->k; ++i)
    places[(int64_t)i * along.stride] = (int32_t)row[along.min + i].place;
}

/* All rows whose coordinates beyond `dim` are those of the addresses. */
static void choose_within(const struct rows* rows, int32_t dim, const char* words, const int32_t* is_needed,
                          int32_t* places) {
  if (dim == 0) {
    if (*is_needed) choose(rows, words, places);
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
  const struct rows rows = {
      words, is_needed, places, count, k, way, malloc((size_t)count * sizeof(struct element))};
  if (rows.scratch == NULL) return -1;
  choose_within(&rows, last, words->host, is_needed->host, places->host);
  free(rows.scratch);
  return 0;
}
