#include "python/native/result_blocks.h"

#include <new>
#include <utility>

#include "base/rounding.h"
#include "base/sanitizer.h"

namespace sylvite::python {
namespace {

constexpr auto alignment = std::align_val_t{alignof(ResultBlocks::Block)};

}  // namespace

ResultBlocks::~ResultBlocks() {
  for (Block* block = first_.load(); block != nullptr;) {
    show_memory(block->data(), bytes_);
    free(std::exchange(block, block->next));
  }
}

ResultBlocks::Block* ResultBlocks::make() {
  const std::size_t rounded = round_up(bytes_, alignof(Block));
  auto* block = new (::operator new(sizeof(Block) + rounded, alignment)) Block();
  block->managed = {
      .version = {dlpack::major_version, 0},
      .manager_ctx = block,
      .deleter =
          [](dlpack::ManagedVersioned* managed) { give_back(static_cast<Block*>(managed->manager_ctx)); },
      .flags = 0,
      .dl_tensor = {.data = block->data(),
                    .device = {dlpack::cpu_device, 0},
                    .ndim = static_cast<std::int32_t>(view_.dims.size()),
                    .dtype = view_.type,
                    .shape = view_.dims.data(),
                    .strides = view_.strides.data(),
                    .byte_offset = 0}};
  return block;
}

void ResultBlocks::free(Block* block) {
  block->~Block();
  ::operator delete(block, alignment);
}

/// Nobody else takes, so that the block behind the first stays behind it.
ResultBlocks::Taken ResultBlocks::take() {
  Block* block = first_.load(std::memory_order_acquire);
  while (block != nullptr && !first_.compare_exchange_weak(block, block->next, std::memory_order_acquire)) {
  }
  if (block == nullptr)
    block = make();
  else
    kept_.fetch_sub(1, std::memory_order_relaxed);
  show_memory(block->data(), bytes_);
  block->owner = shared_from_this();
  return Taken(block);
}

void ResultBlocks::give_back(Block* block) {
  const std::shared_ptr<ResultBlocks> owner = std::move(block->owner);
  if (owner->kept_.fetch_add(1, std::memory_order_relaxed) >= most_kept) {
    owner->kept_.fetch_sub(1, std::memory_order_relaxed);
    free(block);
    return;
  }
  hide_memory(block->data(), owner->bytes_);
  block->next = owner->first_.load(std::memory_order_relaxed);
  while (!owner->first_.compare_exchange_weak(block->next, block, std::memory_order_release)) {
  }
}

}  // namespace sylvite::python
