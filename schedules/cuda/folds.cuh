// What templates of folds do at an element. Ahead of this text stands what schedules/cuda/row_folds.cuh lists.

template <int F = 0>
DEVICE void begin(Folds& own) {
  if constexpr (F < FOLDS) {
    fold_of<F>(own) = identity<F>();
    begin<F + 1>(own);
  }
}

/// Element j of an item joins the folds of a pass, which may read those of the passes before.
template <int PASS, int F = 0>
DEVICE void add_element(const Item& item, const Folds& folds, const Extents& e, int j, int place, Folds& own) {
  if constexpr (F < FOLDS) {
    if constexpr (pass_of<F>() == PASS) fold_of<F>(own) = take<F>(fold_of<F>(own), term<F>(item, folds, e, j), place);
    add_element<PASS, F + 1>(item, folds, e, j, place, own);
  }
}
