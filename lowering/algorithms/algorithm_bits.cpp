#include "base/error.h"
#include "lowering/algorithms/algorithm_forms.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/batch_vars.h"
#include "lowering/algorithms/bits_words.h"
#include "lowering/algorithms/dot_product.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/algorithms/problems.h"
#include "lowering/algorithms/row_quantization.h"

// Products by weights of a few bits. Plain, with v0 the product:
//   v0_fold(d0, d1...)             the sum, over r0 = k
//   v0_peak(s, d1...)              of a quantized_matmul_bits: the key of the largest magnitude of block s, over r0
//   v0_steps(k, d1...)             ... the left operand in 8 bits
// Form matmul_bits, whose weights stay packed and are widened inside the product:
//   v0_a(k, d1...)                 the left operand in f32, or in steps; zeros behind its end
//   v0_units(u, j, g, s, d1...)    steps in the order in which they are multiplied: number j of byte u of word g
//   v0_units(j, g, s, d1...)       in f32 what number j of word g is multiplied by, over 2^(j * bits): there the number lies in
//                                  its word, which is masked and not shifted
//   v0_total(s, d1...)             the sum of block s of it, over r0
//   v0_part(v, p, s, d1...)        products of block s, less those of the usual zero: v is the column in a panel, p
//                                  the panel. Over r0 = j and r1 = g; with steps over r0 = u, r1 = j, r2 = g
// With `pairs`, for processors that multiply steps in pairs and no more at once:
//   v0_pairs(h, v, c, p, s, d1)    ... of bytes 2h and 2h + 1 of each word, over a few words, number c of the block's: as few
//                                  as i16 has room for. Over r0 = u - 2h, r1 = j, r2 = words; parts are over r0 = h, r1 = c
//   v0_fold(v, p, d1...)           the sum of blocks, scaled, over r0 = s
// Packed weights are (u, v, g, s, p); scales and zeros (v, s, p).

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

/// Number `place` of a byte, as it lies or in a wider type.
Expr number_of(const Expr& byte, const Expr& place, std::int64_t bits) {
  if (bits == 8) return byte;
  const Halide::Type type = byte.type();
  const Expr shift = Halide::cast(type, place * to_int(bits));
  return (byte >> shift) & Halide::Internal::make_const(type, (1 << bits) - 1);
}

/// The same of a stored byte, as u8. Of numbers that it sees to fit i8, the code generator makes products of two i8, for
/// which there is no instruction: signed shifts and masks hide it.
Expr stored_number(const Expr& byte, const Expr& place, std::int64_t bits) {
  return Halide::reinterpret<std::uint8_t>(number_of(Halide::reinterpret<std::int8_t>(byte), place, bits));
}

BitsProblem require_bits(const Kernel& kernel) {
  Reading<BitsProblem> reading = read_bits(kernel);
  if (!reading.refusal.empty())
    throw UnsupportedError("a product by packed bits cannot take the kernel: {}", reading.refusal);
  return reading.problem;
}

std::vector<Packing> bits_packings(const Kernel& kernel, const BitsProblem& problem) {
  std::vector<Packing> packings = layout_packings(kernel);
  for (std::size_t i = 0; i < packings.size(); ++i) {
    const ValueId id = kernel.body.inputs[i];
    if (id == problem.product.weight) packings[i] = Packing{{panel_width, 1, word_bytes}, {0, 2, 4, 1, 5}};
    if (id == problem.scales || id == problem.zeros) packings[i] = Packing{{panel_width, 1}, {0, 2, 1}};
  }
  return packings;
}

/// Builds the stages of the form one after the other.
class BitsForm {
 public:
  /// `pairs`: how many words are summed in i16; 0 for none.
  BitsForm(AlgorithmBuilder& builder, const BitsProblem& problem, std::int64_t pairs)
      : builder_(builder),
        problem_(problem),
        pair_words_(pairs),
        name_(builder.name(problem.product.anchor)),
        batch_(builder.type(problem.product.anchor)) {}

  void define() {
    if (problem_.is_quantized) define_steps();
    define_left();
    define_total();
    define_part();
    const Func fold = define_fold();
    const Var d0("d0");
    builder_.define(problem_.product.anchor, [&](const Coordinates&) -> Expr {
      return fold(batch_.with({d0 % panel_width, d0 / panel_width, d1_}));
    });
  }

 private:
  /// Element k of a row of the left operand, in f32.
  [[nodiscard]] Expr left_at(const Expr& k) const {
    const ValueId a = problem_.product.a;
    const Expr inside = problem_.is_padded() ? Halide::min(k, to_int(problem_.product.k) - 1) : k;
    return Halide::cast<float>(builder_.read(a, builder_.broadcast_coordinates(a, batch_.at(d1_, inside))));
  }
  [[nodiscard]] Halide::RDom block_domain() const { return reduction_domain({problem_.block}); }

  void define_steps() {
    const Halide::RDom r = block_domain();
    peak_ = builder_.stage(name_ + "_peak");
    peak_(batch_.vars({s_, d1_})) = 0;
    peak_(batch_.vars({s_, d1_})) = Halide::max(peak_(batch_.with({s_, d1_})),
                                                magnitude_key(left_at(s_ * to_int(problem_.block) + r[0])));
    const BlockQuantization block = block_quantization(peak_(batch_.with({s_, d1_})));
    inverse_ = builder_.stage(name_ + "_inverse");
    inverse_(batch_.vars({s_, d1_})) = block.inverse;
    scale_ = builder_.stage(name_ + "_scale");
    scale_(batch_.vars({s_, d1_})) = block.scale;
  }

  void define_left() {
    const Var d0("d0");
    left_ = builder_.stage(name_ + "_a");
    Expr element = left_at(d0);
    if (problem_.is_quantized)
      element = signed_steps(element, inverse_(batch_.with({d0 / to_int(problem_.block), d1_})));
    if (problem_.is_padded())
      element = Halide::select(d0 < to_int(problem_.product.k), element,
                               Halide::Internal::make_zero(element.type()));
    left_(batch_.vars({d0, d1_})) = element;
    const Var j("j");
    const Var g("g");
    units_ = builder_.stage(name_ + "_units");
    if (problem_.is_quantized) {
      const Var u("u");
      const Expr byte = g * to_int(word_bytes) + u;
      units_(batch_.vars({u, j, g, s_, d1_})) =
          left_(batch_.with({s_ * to_int(problem_.block) + byte * to_int(problem_.per_byte()) + j, d1_}));
      return;
    }
    const Expr at = s_ * to_int(problem_.block) + g * to_int(word_numbers(problem_)) + j;
    units_(batch_.vars({j, g, s_, d1_})) = left_(batch_.with({at, d1_})) * over_place(j);
  }

  /// Number j of a word: the last, whose top bit would be a sign, is shifted; others stay where they are, times 2^(j * bits).
  [[nodiscard]] Expr number_in_place(const Expr& word, const Expr& j) const {
    const Expr mask = Halide::cast<std::uint32_t>((1 << problem_.bits) - 1)
                      << Halide::cast<std::uint32_t>(j * to_int(problem_.bits));
    const Expr top = word >> Halide::cast<std::uint32_t>(32 - to_int(problem_.bits));
    return Halide::cast<float>(
        Halide::reinterpret<std::int32_t>(Halide::select(is_last(j), top, word & mask)));
  }
  /// 2^-(j * bits), 1 for the last: exact, but for elements below 2^-98, which lose bits.
  [[nodiscard]] Expr over_place(const Expr& j) const {
    constexpr int bias = 127;
    constexpr int mantissa_bits = 23;
    const Expr exponent = Halide::select(is_last(j), bias, bias - j * to_int(problem_.bits));
    return Halide::reinterpret<float>(exponent << mantissa_bits);
  }
  [[nodiscard]] Expr is_last(const Expr& j) const { return j == to_int(word_numbers(problem_)) - 1; }

  void define_total() {
    const Halide::RDom r = block_domain();
    total_ = builder_.stage(name_ + "_total");
    const Expr element = left_(batch_.with({s_ * to_int(problem_.block) + r[0], d1_}));
    const Expr wide = problem_.is_quantized ? Halide::cast<std::int32_t>(element) : element;
    total_(batch_.vars({s_, d1_})) = Halide::Internal::make_zero(wide.type());
    total_(batch_.vars({s_, d1_})) += wide;
  }

  [[nodiscard]] Expr packed(ValueId id, const std::vector<Expr>& at) const {
    return from_storage(builder_.parameter(id)(at), builder_.type(id).dtype);
  }

  void define_part() {
    part_ = builder_.stage(name_ + "_part");
    const std::vector<Var> at = batch_.vars({v_, p_, s_, d1_});
    const Expr total = total_(batch_.with({s_, d1_}));
    const Expr zero = Halide::cast(total.type(), to_int(problem_.usual_zero()));
    part_(at) = problem_.zeros == no_value ? -zero * total : Halide::Internal::make_zero(total.type());
    const Halide::ImageParam& weight = builder_.parameter(problem_.product.weight);
    if (pair_words_ > 0) {
      define_pairs();
      const Halide::RDom r = reduction_domain({word_bytes / 2, block_words(problem_) / pair_words_});
      part_(at) += Halide::cast<std::int32_t>(pairs_(batch_.with({r[0], v_, r[1], p_, s_, d1_})));
      return;
    }
    if (problem_.is_quantized) {
      const Halide::RDom r = reduction_domain({word_bytes, problem_.per_byte(), block_words(problem_)});
      const Expr number = stored_number(weight(r[0], v_, r[2], s_, p_), r[1], problem_.bits);
      part_(at) += stored_product(number, units_(batch_.with({r[0], r[1], r[2], s_, d1_})));
      return;
    }
    const Halide::RDom r = reduction_domain({word_numbers(problem_), block_words(problem_)});
    const auto byte = [&](int u) { return weight(u, v_, r[1], s_, p_); };
    const Expr word = Halide::concat_bits({byte(0), byte(1), byte(2), byte(3)});
    part_(at) += number_in_place(word, r[0]) * units_(batch_.with({r[0], r[1], s_, d1_}));
  }

  void define_pairs() {
    const Var h("h");
    const Var c("c");
    pairs_ = builder_.stage(name_ + "_pairs");
    const Halide::RDom r = reduction_domain({word_bytes / 2, problem_.per_byte(), pair_words_});
    const Expr u = h * 2 + r[0];
    const Expr word = c * to_int(pair_words_) + r[2];
    const Expr number =
        stored_number(builder_.parameter(problem_.product.weight)(u, v_, word, s_, p_), r[1], problem_.bits);
    const Expr step = units_(batch_.with({u, r[1], word, s_, d1_}));
    const std::vector<Var> at = batch_.vars({h, v_, c, p_, s_, d1_});
    pairs_(at) = Halide::cast<std::int16_t>(0);
    // No sum leaves i16: what saturates is the name of an instruction.
    pairs_(at) = Halide::saturating_add(
        pairs_(at), Halide::cast<std::int16_t>(number) * Halide::cast<std::int16_t>(step));
  }

  Func define_fold() {
    const Halide::RDom blocks = reduction_domain({problem_.blocks()});
    const Expr s = blocks[0];
    Expr scale = packed(problem_.scales, {v_, s, p_});
    if (problem_.is_quantized) scale = scale * scale_(batch_.with({s, d1_}));
    Expr sum = Halide::cast<float>(part_(batch_.with({v_, p_, s, d1_})));
    if (problem_.zeros != no_value)
      sum = sum - Halide::cast<float>(packed(problem_.zeros, {v_, s, p_})) *
                      Halide::cast<float>(total_(batch_.with({s, d1_})));
    Func fold = builder_.stage(name_ + "_fold");
    const std::vector<Var> at = batch_.vars({v_, p_, d1_});
    fold(at) = 0.0F;
    fold(at) += sum * scale;
    return fold;
  }

  AlgorithmBuilder& builder_;
  const BitsProblem& problem_;
  std::int64_t pair_words_;
  std::string name_;
  BatchVars batch_;
  Func left_, units_, peak_, inverse_, scale_, total_, pairs_, part_;
  Var v_{"v"};
  Var p_{"p"};
  Var s_{"s"};
  Var d1_{"d1"};
};

/// What is multiplied by element k of a row, plain.
class PlainBits {
 public:
  PlainBits(AlgorithmBuilder& builder, const Node& node)
      : builder_(builder),
        node_(node),
        block_(to_int(node.attributes.integer("block"))),
        depth_(to_int(builder.type(node.inputs[0]).shape.back().known())),
        vars_(AlgorithmBuilder::vars_of(builder.type(node.outputs[0]))),
        at_(AlgorithmBuilder::coordinates_of(builder.type(node.outputs[0]))) {}

  /// Element k of the row, in f32.
  [[nodiscard]] Expr left(const Expr& k) const {
    Coordinates at = at_;
    at.back() = Coordinate(k);
    return Halide::cast<float>(builder_.read(node_.inputs[0], at));
  }

  /// What the steps of element k stand for.
  [[nodiscard]] Expr quantized_left(const Expr& k) {
    const std::string& name = builder_.name(node_.outputs[0]);
    const Halide::RDom r = reduction_domain({block_});
    const Var s("s");
    Func peak = builder_.stage(name + "_peak");
    const std::vector<Expr> at = with_first(s);
    std::vector<Var> places = vars_;
    places[0] = s;
    peak(places) = 0;
    peak(places) = Halide::max(peak(at), magnitude_key(left(Halide::min(s * block_ + r[0], depth_ - 1))));
    Func steps = builder_.stage(name + "_steps");
    const auto quantization = [&](const Expr& element) {
      return block_quantization(peak(with_first(element / block_)));
    };
    steps(vars_) = signed_steps(left(vars_[0]), quantization(vars_[0]).inverse);
    return Halide::cast<float>(steps(with_first(k))) * quantization(k).scale;
  }

  /// Element k of the column, in f32.
  [[nodiscard]] Expr right(const Expr& k) const {
    const std::int64_t bits = node_.attributes.integer("bits");
    const int per_byte = to_int(8 / bits);
    const Coordinate column = at_.back();
    const Coordinate block(k / block_);
    const Expr byte = Halide::cast<std::int32_t>(
        builder_.read(node_.inputs[1], {column, block, Coordinate(k % block_ / per_byte)}));
    const Expr number = Halide::cast<float>(number_of(byte, k % per_byte, bits));
    const bool has_zeros = node_.inputs.size() > 3 && node_.inputs[3] != no_value;
    const Expr zero = has_zeros ? Halide::cast<float>(builder_.read(node_.inputs[3], {column, block}))
                                : Expr(static_cast<float>(1 << (bits - 1)));
    return (number - zero) * Halide::cast<float>(builder_.read(node_.inputs[2], {column, block}));
  }

  void define() {
    const ValueId out = node_.outputs[0];
    const Halide::RDom k = reduction_domain({depth_});
    const Expr a = node_.op == Op::quantized_matmul_bits ? quantized_left(k[0]) : left(k[0]);
    Func fold = builder_.stage(builder_.name(out) + "_fold");
    fold(vars_) = 0.0F;
    fold(vars_) += a * right(k[0]);
    builder_.define(out, [&](const Coordinates&) { return Expr(fold(vars_)); });
  }

 private:
  [[nodiscard]] std::vector<Expr> with_first(const Expr& first) const {
    std::vector<Expr> arguments(vars_.begin(), vars_.end());
    arguments[0] = first;
    return arguments;
  }

  AlgorithmBuilder& builder_;
  const Node& node_;
  int block_;
  int depth_;
  std::vector<Var> vars_;
  Coordinates at_;
};

}  // namespace

void define_matmul_bits(AlgorithmBuilder& builder, const Node& node) {
  PlainBits(builder, node).define();
}

std::vector<Packing> matmul_bits_packings(const Kernel& kernel, const Form&) {
  return bits_packings(kernel, require_bits(kernel));
}

Algorithm build_matmul_bits(const Kernel& kernel, const Form& form) {
  const BitsProblem problem = require_bits(kernel);
  AlgorithmBuilder builder(kernel, bits_packings(kernel, problem));
  builder.define_before(kernel.anchor);
  const auto pairs = form.parameters.find("pairs");
  BitsForm(builder, problem, pairs == form.parameters.end() ? 0 : pairs->second).define();
  builder.define_rest();
  return builder.finish();
}

}  // namespace sylvite
