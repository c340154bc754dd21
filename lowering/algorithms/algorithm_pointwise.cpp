#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/algorithms/pointwise_bodies.h"

// Pointwise operations, and two more that compute each element of the result by itself.

namespace sylvite {

using Halide::Expr;

void define_pointwise(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const PointwiseBody& body = pointwise_body(node.op);
  builder.define(out, [&](const Coordinates& at) {
    std::vector<Expr> operands;
    operands.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) operands.push_back(builder.read_broadcast(input, at));
    return body.expression(
        {node, operands, builder.type(node.inputs.front()).dtype, builder.type(out).dtype});
  });
}

void define_iota(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  builder.define(out, [&](const Coordinates& at) {
    return Halide::cast(compute_type_of(builder.type(out).dtype), at.at(axis).full);
  });
}

void define_batch_norm(AlgorithmBuilder& builder, const Node& node) {
  const double epsilon = node.attributes.real("epsilon");
  builder.define(node.outputs.front(), [&](const Coordinates& at) {
    const auto of_channel = [&](std::size_t input) { return builder.read(node.inputs[input], {at[1]}); };
    const Expr x = builder.read(node.inputs[0], at);
    const Expr root = math_sqrt(strict_add(of_channel(4), Halide::Internal::make_const(x.type(), epsilon)));
    return strict_add(strict_mul(strict_sub(x, of_channel(3)), strict_div(of_channel(1), root)),
                      of_channel(2));
  });
}

}  // namespace sylvite
