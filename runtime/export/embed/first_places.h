/* What kernels call for first elements of rows with equal ones, when these are to be chosen as the C++ library chooses. */
#ifndef SYLVITE_FIRST_PLACES_H
#define SYLVITE_FIRST_PLACES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct halide_buffer;

enum first_places_way { FIRST_PLACES_UNSORTED, FIRST_PLACES_SORTED, FIRST_PLACES_OF_TORCH, FIRST_PLACES_IN_ORDER };

/* For each row of `words`, of 32 or 64 bits, that lie one after another along dim 0: the places of the k first, the largest word
 * first, chosen by the steps of libstdc++, so that equal words come in its order: std::partial_sort where 64 k is at most
 * `count`, else std::nth_element, and then std::sort of what is before the k-th, if the way is sorted. By the way of torch the
 * k-th is found by the steps of its kthvalue, and the others are where these leave them. In order, of equal words the lower place
 * comes first. REQUIRES k at most `count`. The other dims are those of `places`, and of `is_needed`, of 32 bits: rows where
 * that is 0 are left. An extern stage of Halide: where the inputs are in no memory, they are told what is read of them. Returns
 * 0, or -1 without memory. */
int sylvite_first_places(struct halide_buffer* words, struct halide_buffer* is_needed, int32_t count,
                         int32_t k, int32_t way, struct halide_buffer* places);

#ifdef __cplusplus
}
#endif

#endif
