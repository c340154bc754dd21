#include "schedules/directives/wide_access.h"

namespace sylvite {
namespace {

using namespace Halide;
using namespace Halide::Internal;

/// The word that the access `index` of `type` can be, and the index in such words; an undefined index when it
/// cannot.
struct Word {
  Type type;
  Expr index;
};

Word word_of(const Type& type, const Expr& index, const Expr& predicate, const ModulusRemainder& alignment) {
  const int bits = type.bits() * type.lanes();
  const Ramp* ramp = index.as<Ramp>();
  const bool is_word = bits == 32 || bits == 64 || bits == 128;
  if (ramp == nullptr || !is_word || type.lanes() < 2 || type.is_bool() || !is_const_one(ramp->stride) ||
      !is_const_one(predicate)) {
    return {};
  }
  const int lanes = type.lanes();
  if (alignment.modulus % lanes != 0 || alignment.remainder % lanes != 0) return {};
  return {UInt(bits), simplify(ramp->base / lanes)};
}

ModulusRemainder in_words(const ModulusRemainder& alignment, int lanes) {
  return ModulusRemainder(alignment.modulus / lanes, alignment.remainder / lanes);
}

}  // namespace

Stmt WideAccess::visit(const For* loop) {
  const bool enters = is_gpu(loop->for_type);
  const bool was = on_device_;
  on_device_ = on_device_ || enters;
  Stmt result = IRMutator::visit(loop);
  on_device_ = was;
  return result;
}

Expr WideAccess::visit(const Load* load) {
  const Word word = on_device_ ? word_of(load->type, load->index, load->predicate, load->alignment) : Word{};
  if (!word.index.defined()) return IRMutator::visit(load);
  const Expr wide = Load::make(word.type, load->name, mutate(word.index), load->image, load->param,
                               const_true(), in_words(load->alignment, load->type.lanes()));
  return reinterpret(load->type, wide);
}

Stmt WideAccess::visit(const Store* store) {
  const Type type = store->value.type();
  const Word word = on_device_ ? word_of(type, store->index, store->predicate, store->alignment) : Word{};
  if (!word.index.defined()) return IRMutator::visit(store);
  return Store::make(store->name, reinterpret(word.type, mutate(store->value)), mutate(word.index),
                     store->param, const_true(), in_words(store->alignment, type.lanes()));
}

}  // namespace sylvite
