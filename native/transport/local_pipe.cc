// SPDX-License-Identifier: Apache-2.0
#include "transport/local_pipe.h"

#include <utility>

#include "base/error.h"

namespace coll {
namespace {

constexpr std::uint32_t kWantsBytes = 1, kWantsRoom = 2;
// A writer is woken for so much room, and not for every piece that is read.
constexpr std::size_t kEnough = ByteRing::kBytes / 2;
constexpr auto kTotalOrder = std::memory_order_seq_cst;

}  // namespace

struct LocalPipe::Shared {
  Key key;
  struct alignas(64) Sleep {
    std::atomic<std::uint32_t> wants;
  };
  std::array<Sleep, 2> sleeps;  // by side: 0 is the maker
  struct Ring {
    ByteRingCounters counters;
    alignas(64) std::array<std::byte, ByteRing::kBytes> bytes;
  };
  std::array<Ring, 2> rings;  // by writer
};

LocalPipe::LocalPipe(Memory&& memory, bool maker) noexcept
    : memory_(std::move(memory)),
      shared_(static_cast<Shared*>(memory_.data())),
      self_(maker ? 0 : 1),
      out_(&shared_->rings[maker ? 0 : 1].counters, shared_->rings[maker ? 0 : 1].bytes.data()),
      in_(&shared_->rings[maker ? 1 : 0].counters, shared_->rings[maker ? 1 : 0].bytes.data()) {}

std::unique_ptr<LocalPipe> LocalPipe::make(const Key& key) {
  std::unique_ptr<LocalPipe> pipe(new LocalPipe(Memory::shared(sizeof(Shared)), true));
  pipe->shared_->key = key;
  return pipe;
}

std::unique_ptr<LocalPipe> LocalPipe::open(Descriptor memfd, const Key& key) {
  Memory memory = Memory::map(std::move(memfd));
  if (memory.size() != sizeof(Shared)) {
    throw Error(Status::bootstrap, "the memory for a pair of ranks has another size");
  }
  std::unique_ptr<LocalPipe> pipe(new LocalPipe(std::move(memory), false));
  if (pipe->shared_->key != key) {
    throw Error(Status::bootstrap, "the memory is not that of this pair of ranks");
  }
  return pipe;
}

bool LocalPipe::bell_due() noexcept {
  auto& wants = shared_->sleeps[static_cast<std::size_t>(1 - self_)].wants;
  const std::uint32_t now = wants.load(kTotalOrder);
  if (now == 0) return false;
  const bool bytes = (now & kWantsBytes) != 0 && out_.waiting() > 0;
  const bool room = (now & kWantsRoom) != 0 && in_.room() >= kEnough;
  return (bytes || room) && wants.exchange(0, kTotalOrder) != 0;
}

bool LocalPipe::doze(bool wants_bytes, bool wants_room) noexcept {
  auto& wants = shared_->sleeps[static_cast<std::size_t>(self_)].wants;
  wants.store((wants_bytes ? kWantsBytes : 0) | (wants_room ? kWantsRoom : 0), kTotalOrder);
  const bool there = (wants_bytes && in_.waiting() > 0) || (wants_room && out_.room() >= kEnough);
  if (there) wake();
  return !there;
}

void LocalPipe::wake() noexcept {
  shared_->sleeps[static_cast<std::size_t>(self_)].wants.store(0, std::memory_order_relaxed);
}

}  // namespace coll
