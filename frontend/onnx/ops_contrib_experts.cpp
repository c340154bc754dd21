// Mixtures of experts of com.microsoft: each token goes through the few experts that its scores choose.

#include <optional>

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/refuse.h"

namespace sylvite {
namespace {

constexpr std::string_view domain = "com.microsoft";

/// Of each token: the experts that it goes through, [tokens, k], and how much of each it takes.
struct Routes {
  Sym experts;
  Sym shares;
  std::int64_t tokens = 0;
  std::int64_t count = 0;  ///< k
  std::int64_t most = 0;   ///< experts that there are
};

/// Shares are the scores' softmax, over all experts or over those that are chosen.
Routes choose(ImportContext& c, Sym scores, std::int64_t tokens) {
  Routes routes;
  routes.tokens = tokens;
  routes.count = c.integer("k", 1);
  if (scores.rank() != 2 || scores.dim(0) != tokens)
    throw ModelError("router_probs are no matrix of {} rows, one for each token", tokens);
  routes.most = scores.dim(1);
  if (routes.count < 1 || routes.count > routes.most)
    throw ModelError("k is {}, there are {} experts", routes.count, routes.most);
  const std::vector<Sym> chosen = c.builder().add_all(
      Op::top_k, {scores}, {{"axis", std::int64_t{1}}, {"k", routes.count}, {"largest", std::int64_t{1}}});
  routes.experts = chosen[1];
  routes.shares = c.integer("normalize_routing_weights", 0) != 0
                      ? softmax(chosen[0], 1)
                      : c.builder().add(Op::gather_elements, {softmax(scores, 1), routes.experts},
                                        {{"axis", std::int64_t{1}}});
  return routes;
}

/// The experts at work: all of them on every token, or copies of those that few tokens choose on one token each.
class Experts {
 public:
  Experts(ImportContext& c, const Routes& routes) : c_(c), routes_(routes) {}

  /// What the products take: x [tokens, depth] as [1, tokens, depth], or a row for each choice.
  [[nodiscard]] Sym given(Sym x) const {
    if (!is_few()) return unsqueeze(x, {0});
    const Sym rows = broadcast_to(unsqueeze(x, {1}), {routes_.tokens, routes_.count, x.dim(1)});
    return reshape(rows, {routes_.tokens * routes_.count, 1, x.dim(1)});
  }
  /// By the weights [experts, columns, depth] of input i, and the bias of the next one if it is given.
  [[nodiscard]] Sym product(Sym x, int i) const {
    const Sym weights = c_.input(i);
    if (weights.rank() != 3 || weights.dim(0) != routes_.most || weights.dim(2) != x.dim(-1))
      throw ModelError("input {} should have {} matrices of {} columns", i, routes_.most, x.dim(-1));
    const Sym y = matmul(x, transpose(chosen(weights), {0, 2, 1}));
    const Sym bias = c_.optional(i + 1);
    if (!bias) return y;
    if (bias.dims() != Dims{routes_.most, weights.dim(1)})
      throw ModelError("input {} should be {} biases of {} columns", i + 1, routes_.most, weights.dim(1));
    return y + unsqueeze(chosen(bias), {1});
  }
  /// The sum of what the experts of a token gave, by their shares: [tokens, columns].
  [[nodiscard]] Sym sum(Sym y) const {
    const std::int64_t columns = y.dim(2);
    if (is_few()) {
      const Sym rows = reshape(y, {routes_.tokens, routes_.count, columns});
      return reduce(Op::reduce_sum, rows * unsqueeze(routes_.shares, {2}), {1}, false);
    }
    const Sym none = c_.builder().filled(y.dtype(), {routes_.tokens, routes_.most}, 0);
    const Sym shares = c_.builder().add(Op::scatter_elements, {none, routes_.experts, routes_.shares},
                                        {{"axis", std::int64_t{1}}});
    return reduce(Op::reduce_sum, y * unsqueeze(transpose(shares, {1, 0}), {2}), {0}, false);
  }

 private:
  /// Copies of weights pay where they are half of all at most.
  [[nodiscard]] bool is_few() const { return 2 * routes_.tokens * routes_.count <= routes_.most; }
  [[nodiscard]] Sym chosen(Sym of_all) const {
    return is_few() ? gather(of_all, reshape(routes_.experts, {routes_.tokens * routes_.count}), 0) : of_all;
  }

  ImportContext& c_;
  const Routes& routes_;
};

/// What stands between the products of an expert.
struct Between {
  std::string name;
  std::int64_t fusion = 0;
  double alpha = 1, beta = 0;
  std::optional<double> limit;

  [[nodiscard]] static Between read(ImportContext& c) {
    Between between{c.string("activation_type", "relu"),
                    c.integer("swiglu_fusion", 0),
                    c.real("activation_alpha", 1),
                    c.real("activation_beta", 0),
                    {}};
    if (c.has_attribute("swiglu_limit")) between.limit = c.real("swiglu_limit", 0);
    return between;
  }
};

/// Gates and what they let through, each [..., columns]: of one product of both.
std::pair<Sym, Sym> parted(Sym both, std::int64_t fusion) {
  const std::int64_t half = both.dim(2) / 2;
  if (fusion < 1 || fusion > 2 || both.dim(2) % 2 != 0)
    throw ModelError("swiglu_fusion is {} with {} columns", fusion, both.dim(2));
  if (fusion == 2) return {slice(both, 2, 0, half), slice(both, 2, half, 2 * half)};
  const Sym pairs = reshape(both, {both.dim(0), both.dim(1), half, 2});
  return {squeeze(slice(pairs, 3, 0, 1), {3}), squeeze(slice(pairs, 3, 1, 2), {3})};
}

Sym swiglu(const Between& between, Sym gate, Sym linear) {
  if (between.limit) {
    gate = apply(Op::minimum, gate, *between.limit);
    linear = apply(Op::minimum, apply(Op::maximum, linear, -*between.limit), *between.limit);
  }
  return gate * apply(Op::sigmoid, gate * between.alpha) * (linear + between.beta);
}

Sym activated(Sym x, const std::string& name) {
  if (name == "gelu") return x.builder().add(Op::gelu, {x}, {{"approximate", std::string("tanh")}});
  if (name == "silu") return apply(Op::silu, x);
  if (name == "relu") return apply(Op::relu, x);
  if (name != "identity") throw UnsupportedError("activation_type '{}' is not supported", name);
  return x;
}

Sym between_products(ImportContext& c, const Experts& experts, Sym x) {
  const Between between = Between::read(c);
  const Sym first = experts.product(x, 2);
  if (between.name == "swiglu" && between.fusion != 0) {
    const auto [gate, linear] = parted(first, between.fusion);
    return swiglu(between, gate, linear);
  }
  if (between.name == "swiglu") return swiglu(between, first, experts.product(x, 6));
  const Sym y = activated(first, between.name);
  return c.has_input(6) ? y * experts.product(x, 6) : y;
}

void mixture_of_experts(ImportContext& c) {
  refuse_attributes(c, {"use_sparse_mixer", "swiglu_limit_after_activation"});
  const Sym input = c.input(0);
  if (input.rank() < 2 || input.size() == 0)
    throw ModelError("the input has rank {} and {} elements", input.rank(), input.size());
  const std::int64_t depth = input.dim(-1);
  const Routes routes = choose(c, c.input(1), input.size() / depth);
  const Experts experts(c, routes);
  const Sym x = experts.given(reshape(input, {routes.tokens, depth}));
  c.output(reshape(experts.sum(experts.product(between_products(c, experts, x), 4)), input.dims()));
}

const OnnxOp rows[] = {
    {"MoE", 1, mixture_of_experts, domain},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_expert_ops() {
  return rows;
}

}  // namespace sylvite
