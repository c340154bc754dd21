#pragma once
// Which of equal elements top_k takes: its attribute `ties`.

#include <cstdint>

namespace sylvite {

/// On a CPU; elsewhere it is always the first.
enum TopKTies : std::int64_t {
  first_of_equals,      ///< the lower index first
  as_library,           ///< as torch's topk: libstdc++'s partial_sort, or its nth_element and sort
  as_library_unsorted,  ///< the same, and what nth_element leaves is not sorted
  as_kth_value,         ///< as the partitions of torch's kthvalue
};

}  // namespace sylvite
