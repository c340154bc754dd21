#pragma once
// Cards where there is none, and smaller ones than there are.

#include "schedules/card.h"

namespace sylvite {

/// The GPU that schedules are made for where there is none.
inline Card sample_card() {
  return {"NVIDIA H200", 90, 13000, 132, 227 << 10, 50 << 20};
}

/// The same with so few multiprocessors that blocks take several tiles in turn.
inline Card small_card(int multiprocessors = 4) {
  Card card = sample_card();
  card.multiprocessors = multiprocessors;
  return card;
}

}  // namespace sylvite
