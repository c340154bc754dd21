#include "first_places.h"

#include <stdlib.h>

#include "halide_buffer.h"

/* Words stay where they are; their places are moved as the library moves elements. */
struct row {
  const void* words;
  int32_t* places;
  int is_wide;
};

enum { FEW = 16 }; /* so many are sorted by insertion */

static int is_before(const struct row* row, int32_t a, int32_t b) {
  if (row->is_wide) return ((const uint64_t*)row->words)[a] > ((const uint64_t*)row->words)[b];
  return ((const uint32_t*)row->words)[a] > ((const uint32_t*)row->words)[b];
}

static int is_place_before(const struct row* row, int32_t a, int32_t b) {
  return is_before(row, row->places[a], row->places[b]);
}

static void swap(int32_t* a, int32_t* b) {
  const int32_t kept = *a;
  *a = *b;
  *b = kept;
}

static int32_t twice_log2(int32_t count) {
  return 2 * (31 - __builtin_clz((uint32_t)count));
}

/* Heaps: the last of the order is on top. */

static void sift(const struct row* row, int32_t* heap, int32_t hole, int32_t count, int32_t value) {
  const int32_t top = hole;
  int32_t child = hole;
  while (child < (count - 1) / 2) {
    child = 2 * (child + 1);
    if (is_before(row, heap[child], heap[child - 1])) --child;
    heap[hole] = heap[child];
    hole = child;
  }
  if (count % 2 == 0 && child == (count - 2) / 2) {
    child = 2 * (child + 1);
    heap[hole] = heap[child - 1];
    hole = child - 1;
  }
  int32_t parent = (hole - 1) / 2;
  while (hole > top && is_before(row, heap[parent], value)) {
    heap[hole] = heap[parent];
    hole = parent;
    parent = (hole - 1) / 2;
  }
  heap[hole] = value;
}

static void pop(const struct row* row, int32_t* heap, int32_t count, int32_t* result) {
  const int32_t value = *result;
  *result = heap[0];
  sift(row, heap, 0, count, value);
}

/* The first `kept` of begin..end become a heap. */
static void select_by_heap(const struct row* row, int32_t begin, int32_t kept, int32_t end) {
  int32_t* heap = row->places + begin;
  for (int32_t parent = (kept - 2) / 2; kept >= 2 && parent >= 0; --parent)
    sift(row, heap, parent, kept, heap[parent]);
  for (int32_t i = begin + kept; i < end; ++i)
    if (is_before(row, row->places[i], heap[0])) pop(row, heap, kept, row->places + i);
}

static void partial_sort(const struct row* row, int32_t begin, int32_t kept, int32_t end) {
  select_by_heap(row, begin, kept, end);
  int32_t* heap = row->places + begin;
  for (int32_t last = kept - 1; last > 0; --last) pop(row, heap, last, heap + last);
}

/* Partitions and insertions. */

static void median_to_first(const struct row* row, int32_t result, int32_t a, int32_t b, int32_t c) {
  int32_t median;
  if (is_place_before(row, a, b))
    median = is_place_before(row, b, c) ? b : is_place_before(row, a, c) ? c : a;
  else
    median = is_place_before(row, a, c) ? a : is_place_before(row, b, c) ? c : b;
  swap(row->places + result, row->places + median);
}

static int32_t partition(const struct row* row, int32_t begin, int32_t end) {
  median_to_first(row, begin, begin + 1, begin + (end - begin) / 2, end - 1);
  int32_t first = begin + 1, last = end;
  for (;;) {
    while (is_place_before(row, first, begin)) ++first;
    --last;
    while (is_place_before(row, begin, last)) --last;
    if (first >= last) return first;
    swap(row->places + first, row->places + last);
    ++first;
  }
}

static void insert_behind(const struct row* row, int32_t last) {
  int32_t* places = row->places;
  const int32_t value = places[last];
  while (is_before(row, value, places[last - 1])) {
    places[last] = places[last - 1];
    --last;
  }
  places[last] = value;
}

static void sort_by_insertion(const struct row* row, int32_t begin, int32_t end) {
  int32_t* places = row->places;
  for (int32_t i = begin + 1; i < end; ++i) {
    if (!is_place_before(row, i, begin)) {
      insert_behind(row, i);
      continue;
    }
    const int32_t value = places[i];
    for (int32_t j = i; j > begin; --j) places[j] = places[j - 1];
    places[begin] = value;
  }
}

static void select_nth(const struct row* row, int32_t nth, int32_t count) {
  int32_t begin = 0, end = count;
  for (int32_t depth = twice_log2(count); end - begin > 3; --depth) {
    if (depth == 0) {
      select_by_heap(row, begin, nth + 1 - begin, end);
      swap(row->places + begin, row->places + nth);
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

static void sort_roughly(const struct row* row, int32_t begin, int32_t end, int32_t depth) {
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

static void sort(const struct row* row, int32_t count) {
  if (count < 1) return;
  sort_roughly(row, 0, count, twice_log2(count));
  sort_by_insertion(row, 0, count < FEW ? count : FEW);
  for (int32_t i = FEW; i < count; ++i) insert_behind(row, i);
}

/* One call. */
struct rows {
  const struct halide_buffer *words, *is_needed, *places;
  int32_t count, k, is_sorted;
  int32_t* scratch; /* of `count` places */
};

static void choose(const struct rows* rows, const char* words, int32_t* places) {
  const struct row row = {words, rows->scratch, rows->words->type_bits == 64};
  for (int32_t i = 0; i < rows->count; ++i) rows->scratch[i] = i;
  if (64 * (int64_t)rows->k <= rows->count) {
    partial_sort(&row, 0, rows->k, rows->count);
  } else {
    select_nth(&row, rows->k - 1, rows->count);
    if (rows->is_sorted) sort(&row, rows->k - 1);
  }
  const struct halide_dimension along = rows->places->dim[0];
  for (int32_t i = 0; i < along.extent && along.min + i < rows->k; ++i)
    places[(int64_t)i * along.stride] = rows->scratch[along.min + i];
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
                         int32_t k, int32_t is_sorted, struct halide_buffer* places) {
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
      words, is_needed, places, count, k, is_sorted, malloc((size_t)count * sizeof(int32_t))};
  if (rows.scratch == NULL) return -1;
  choose_within(&rows, last, words->host, is_needed->host, places->host);
  free(rows.scratch);
  return 0;
}
