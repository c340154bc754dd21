#include "frontend/onnx/linear_attention.h"

#include "base/error.h"
#include "frontend/graph/loop_builder.h"
#include "frontend/onnx/attention.h"

namespace sylvite {

std::pair<Sym, Sym> linear_recurrence(const LinearAttention& in, Sym state) {
  LoopSpec spec{in.q.dim(0), false, {{state}, {in.q, in.k, in.v}}};
  if (spec.trips < 1) throw UnsupportedError("a sequence without elements");
  if (in.decay) spec.given.slices.push_back(apply(Op::exp, in.decay));
  if (in.beta) spec.given.slices.push_back(in.beta);
  const TripValues results = run_loop(state.builder(), spec, [&](const TripValues& step) -> TripValues {
    const Sym query = unsqueeze(step.slices[0], {2});  // [B, Hq, 1, Dk]
    const Sym key = unsqueeze(step.slices[1], {3});    // [B, H, Dk, 1]
    Sym value = unsqueeze(step.slices[2], {2});        // [B, H, 1, Dv]
    Sym next = step.states[0];
    if (in.decay) next = next * unsqueeze(step.slices[3], {3});
    if (in.beta)
      value = unsqueeze(step.slices.back(), {3}) * (value - reduce(Op::reduce_sum, next * key, {2}));
    next = next + key * value;
    const Sym read = matmul(query, repeat_heads(next, query.dim(1))) * in.scale;
    return {{next}, {squeeze(read, {2})}};
  });
  return {results.slices[0], results.states[0]};
}

}  // namespace sylvite
