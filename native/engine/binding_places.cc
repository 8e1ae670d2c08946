// SPDX-License-Identifier: Apache-2.0
// Where the buffers of a bound call lie: the part of a binding that changes from call to call.
#include <array>
#include <cstdint>

#include "engine/binding.h"

namespace coll {

// Whether the call is the one bound already, but for where its buffers lie.
bool Binding::differs_in_places(const CallData& call) const noexcept {
  return bound_ && call.count == call_.count && call.dtype == call_.dtype && call.op == call_.op &&
         call.counts_hash == call_.counts_hash && call.tile_bytes == call_.tile_bytes &&
         call.payload == call_.payload;
}

void* Binding::buffer(Place place) const noexcept {
  return place == Place::input    ? const_cast<void*>(call_.input)
         : place == Place::output ? call_.output
                                  : call_.scratch;
}

// All that a call of other buffers changes: the addresses of operands in them, which ready moves
// repeat for each slot. A small collective costs less than binding it anew.
void Binding::move_to(const CallData& call) noexcept {
  std::array<std::uintptr_t, 3> from{};
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = reinterpret_cast<std::uintptr_t>(buffer(static_cast<Place>(i)));
  }
  call_ = call;
  for (BoundOperand& o : operands_) {
    if (o.home != Home::local) continue;
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(o.base) - from[o.place];
    const auto base = reinterpret_cast<std::uintptr_t>(buffer(static_cast<Place>(o.place)));
    o.base = reinterpret_cast<std::byte*>(base + offset);
  }
  if (!ready_.empty()) point_ready_moves();
}

// What can fail is looked after piece by piece.
bool Binding::is_short() const noexcept {
  const bool plain = call_.payload == nullptr && user_ == nullptr;
  return may_be_short_ && plain && !bulky_ && partition_.tiles() == 1;
}

void Binding::bind_ready_moves() {
  ready_.clear();
  pointers_.clear();
  staged_.resize(slots());
  for (Staged& staged : staged_) staged.pointers.clear();
  if (!is_short()) return;
  for (BoundOp& op : ops_) {
    op.ready = static_cast<std::uint32_t>(ready_.size());
    for (std::size_t slot = 0; slot < slots(); ++slot) {
      for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
        const std::size_t first = pointers_.size();
        pointers_.resize(first + op.k + op.m);
        for (std::size_t o = 0; o < op.k + op.m; ++o) {
          const bool staged = operands_[pieces_[i].operands + o].home == Home::stage;
          if (staged) staged_[slot].pointers.push_back(first + o);
        }
        ready_.push_back({.sources = &pointers_[first],
                          .destinations = &pointers_[first] + op.k,
                          .n = pieces_[i].elements,
                          .k = op.k,
                          .m = op.m,
                          .balanced = op.balanced,
                          .streaming = 0,
                          .divisor = op.complete ? divisor_ : 1.0});
      }
    }
  }
  point_ready_moves();
}

void Binding::point_ready_moves() noexcept {
  const std::size_t slot_bytes =
      plan_.inlined() ? segment_.shape().inline_bytes : segment_.shape().slot_bytes;
  for (Staged& staged : staged_) staged.turned = 0;
  void** pointer = pointers_.data();
  for (const BoundOp& op : ops_) {
    for (std::size_t slot = 0; slot < slots(); ++slot) {
      std::size_t stage = slot * slot_bytes;
      for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
        const BoundOperand* operand = &operands_[pieces_[i].operands];
        for (int o = 0; o < op.k + op.m; ++o, ++operand) {
          *pointer++ = operand->home == Home::stage ? operand->base + stage : operand->base;
        }
        stage += pieces_[i].elements * element_bytes_;
      }
    }
  }
}

void Binding::turn(std::size_t slot, std::size_t offset) const noexcept {
  Staged& staged = staged_[slot];
  if (staged.turned == offset) return;
  for (const std::size_t at : staged.pointers) {
    pointers_[at] = static_cast<std::byte*>(pointers_[at]) - staged.turned + offset;
  }
  staged.turned = offset;
}

}  // namespace coll
