// Mixtures of experts of com.microsoft: each token goes through the few experts that its scores choose.

#include <optional>

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/packed_numbers.h"
#include "frontend/onnx/refuse.h"

namespace sylvite {
namespace {

/// Of each token: the experts that it goes through, [tokens, k], and how much of each it takes.
struct Routes {
  Sym experts;
  Sym shares;
  std::int64_t tokens = 0;
  std::int64_t count = 0;  ///< k
  std::int64_t most = 0;   ///< experts that there are
};

/// Where the shares of experts come from.
enum class Shares : std::uint8_t {
  of_all,     ///< the scores' softmax, of those that are chosen
  of_chosen,  ///< the softmax of the scores of those that are chosen
};

/// `weights`, where given, are the shares.
Routes choose(ImportContext& c, Sym scores, Sym weights, Shares kind, std::int64_t tokens) {
  Routes routes;
  routes.tokens = tokens;
  routes.count = c.integer("k", 1);
  if (scores.rank() != 2 || scores.dim(0) != tokens)
    throw ModelError("router_probs are no matrix of {} rows, one for each token", tokens);
  routes.most = scores.dim(1);
  if (routes.count < 1 || routes.count > routes.most)
    throw ModelError("k is {}, there are {} experts", routes.count, routes.most);
  const std::vector<Sym> chosen = c.builder().add_all(
      Op::top_k, {scores},
      {{"axis", std::int64_t{1}}, {"k", Dims{routes.count}}, {"largest", std::int64_t{1}}});
  routes.experts = chosen[1];
  const auto of_chosen = [&](Sym x) {
    return c.builder().add(Op::gather_elements, {x, routes.experts}, {{"axis", std::int64_t{1}}});
  };
  const bool is_normalized = c.integer("normalize_routing_weights", 0) != 0;
  if (!weights) {
    routes.shares =
        is_normalized || kind == Shares::of_chosen ? softmax(chosen[0], 1) : of_chosen(softmax(scores, 1));
    return routes;
  }
  if (weights.dims() != scores.dims()) throw ModelError("router_weights have other dims than router_probs");
  routes.shares = of_chosen(weights);
  if (is_normalized) routes.shares = routes.shares / reduce(Op::reduce_sum, routes.shares, {1});
  return routes;
}

/// The weights of all experts, [experts, columns, depth], as they are or as numbers of a few bits with scales.
struct ExpertWeights {
  Sym values, bias;
  Sym scales, zeros;       ///< of numbers of a few bits: [experts, columns, blocks]
  std::int64_t bits = 0;   ///< 0: as they are
  std::int64_t block = 0;  ///< elements of a row that have one scale

  [[nodiscard]] std::int64_t depth() const { return bits == 0 ? values.dim(2) : values.dim(2) * 8 / bits; }

  /// As floats, of those that `chosen` takes from each.
  template <typename Chosen>
  [[nodiscard]] Sym floats(const Chosen& chosen) const {
    if (bits == 0) return chosen(values);
    const Sym numbers = cast(unpacked_rows(chosen(values), bits), scales.dtype());
    const Dims dims = numbers.dims();
    const Sym blocks = reshape(numbers, {dims[0], dims[1], dims[2] / block, block});
    const Sym shifted = zeros ? blocks - unsqueeze(cast(chosen(zeros), scales.dtype()), {3})
                              : blocks - static_cast<double>(std::int64_t{1} << (bits - 1));
    return reshape(shifted * unsqueeze(chosen(scales), {3}), dims);
  }
};

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
  /// By weights, and plus their bias if there is one.
  [[nodiscard]] Sym product(Sym x, const ExpertWeights& weights) const {
    if (weights.values.rank() != 3 || weights.values.dim(0) != routes_.most || weights.depth() != x.dim(-1))
      throw ModelError("weights of [{}] for {} experts and rows of {} elements",
                       fmt::join(weights.values.dims(), ","), routes_.most, x.dim(-1));
    const auto of_chosen = [&](Sym of_all) { return chosen(of_all); };
    const Sym y = matmul(x, transpose(cast(weights.floats(of_chosen), x.dtype()), {0, 2, 1}));
    if (!weights.bias) return y;
    if (weights.bias.dims() != Dims{routes_.most, weights.values.dim(1)})
      throw ModelError("biases of [{}] for {} experts of {} columns", fmt::join(weights.bias.dims(), ","),
                       routes_.most, weights.values.dim(1));
    return y + unsqueeze(chosen(weights.bias), {1});
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

Sym swiglu_between(const Between& between, Sym gate, Sym linear) {
  if (between.limit) {
    gate = apply(Op::minimum, gate, *between.limit);
    linear = apply(Op::minimum, apply(Op::maximum, linear, -*between.limit), *between.limit);
  }
  return gate * apply(Op::sigmoid, gate * between.alpha) * (linear + between.beta);
}

Sym activated_between(Sym x, const std::string& name) {
  if (name == "gelu") return x.builder().add(Op::gelu, {x}, {{"approximate", std::string("tanh")}});
  if (name == "silu") return apply(Op::silu, x);
  if (name == "relu") return apply(Op::relu, x);
  if (name != "identity") throw UnsupportedError("activation_type '{}' is not supported", name);
  return x;
}

/// The layers of an expert: what there is before and behind the activation, and the gate's own weights if it has such.
struct Layers {
  ExpertWeights first, second;
  std::optional<ExpertWeights> third;
};

Sym between_products(ImportContext& c, const Experts& experts, const Layers& layers, Sym x) {
  const Between between = Between::read(c);
  const Sym first = experts.product(x, layers.first);
  if (between.name == "swiglu" && between.fusion != 0) {
    const auto [gate, linear] = parted(first, between.fusion);
    return swiglu_between(between, gate, linear);
  }
  if (between.name == "swiglu") {
    if (!layers.third) throw ModelError("swiglu needs a third layer, or swiglu_fusion");
    return swiglu_between(between, first, experts.product(x, *layers.third));
  }
  const Sym y = activated_between(first, between.name);
  return layers.third ? y * experts.product(x, *layers.third) : y;
}

void mix(ImportContext& c, const Layers& layers, Sym weights, Shares kind) {
  refuse_attributes(c, {"use_sparse_mixer", "swiglu_limit_after_activation"});
  const Sym input = c.input(0);
  if (input.rank() < 2 || input.size() == 0)
    throw ModelError("the input has rank {} and {} elements", input.rank(), input.size());
  const std::int64_t depth = input.dim(-1);
  const Routes routes = choose(c, c.input(1), weights, kind, input.size() / depth);
  const Experts experts(c, routes);
  const Sym x = experts.given(reshape(input, {routes.tokens, depth}));
  const Sym y = experts.product(between_products(c, experts, layers, x), layers.second);
  c.output(reshape(experts.sum(y), input.dims()));
}

void mixture_of_experts(ImportContext& c) {
  const auto read = [&](int i) {
    ExpertWeights weights;
    weights.values = c.input(i);
    weights.bias = c.optional(i + 1);
    return weights;
  };
  Layers layers{read(2), read(4), {}};
  if (c.has_input(6)) layers.third = read(6);
  mix(c, layers, Sym(), Shares::of_all);
}

/// [experts, columns, blocks]: a zero point for each scale; those of a row, or without blocks those of an expert, fill bytes.
Sym read_zeros(Sym given, const ExpertWeights& weights, bool has_blocks) {
  if (!given) return {};
  const Dims scales = weights.scales.dims();
  const Sym numbers = unpacked_rows(given, weights.bits);
  const std::int64_t needed = has_blocks ? scales[2] : scales[1];
  if (numbers.dim(-1) < needed) throw ModelError("{} zero points for {} scales", numbers.dim(-1), needed);
  return reshape(slice(numbers, numbers.rank() - 1, 0, needed), scales);
}

/// Layer n of 3, whose weights are input `i`, with their scales and bias behind them.
ExpertWeights read_quantized(ImportContext& c, int n, int i) {
  ExpertWeights weights;
  weights.values = c.input(i);
  weights.bits = c.integer("expert_weight_bits", 4);
  weights.bits = c.integer(fmt::format("fc{}_expert_weight_bits", n), weights.bits);
  if (weights.bits != 2 && weights.bits != 4 && weights.bits != 8)
    throw UnsupportedError("weights of {} bits; 2, 4 and 8 are supported", weights.bits);
  if (weights.values.rank() != 3) throw ModelError("weights of rank {}, expected 3", weights.values.rank());
  const std::int64_t asked = c.integer("block_size", 0);
  weights.block = asked > 0 ? asked : weights.depth();
  if (weights.block < 1 || weights.depth() % weights.block != 0)
    throw ModelError("rows of {} elements in blocks of {}", weights.depth(), weights.block);
  const Dims scales{weights.values.dim(0), weights.values.dim(1), weights.depth() / weights.block};
  weights.scales = reshape(c.input(i + 1), scales);
  weights.bias = c.optional(i + 2);
  constexpr int first_zeros = 10;  // behind the three layers
  weights.zeros = read_zeros(c.optional(first_zeros + n), weights, asked > 0);
  return weights;
}

/// Weights of a few bits are widened where they are multiplied; of few tokens, those of the experts that these choose.
void quantized_mixture(ImportContext& c) {
  if (const std::string kind = c.string("quant_type", "int"); kind != "int")
    throw UnsupportedError("quant_type '{}' is not supported", kind);
  if (c.integer("weights_prepacked", -1) > 0)
    throw UnsupportedError("weights_prepacked is supported as 0 only");
  (void)c.integer("accuracy_level", 0);
  (void)c.integer("fc3_expert_weight_bits", 0);
  Layers layers{read_quantized(c, 1, 2), read_quantized(c, 2, 5), {}};
  if (c.has_input(8)) layers.third = read_quantized(c, 3, 8);
  mix(c, layers, c.optional(14), Shares::of_chosen);
}

const OnnxOp contrib_experts_rows[] = {
    {"MoE", 1, mixture_of_experts, microsoft},
    {"QMoE", 1, quantized_mixture, microsoft},
};

}  // namespace

std::span<const OnnxOp> onnx_contrib_expert_ops() {
  return contrib_experts_rows;
}

}  // namespace sylvite
