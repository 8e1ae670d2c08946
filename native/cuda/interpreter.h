// SPDX-License-Identifier: Apache-2.0
// The kernel: a block of threads runs the code of one rank on one channel, from its entry into the
// call to its exit. Channels share no element, so each is a call of its own, with a clock of its
// own, whose base is where the call before has left it: a graph can replay a launch without the
// host telling it anything. What the code says of waits has been derived and proved for the plan.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/block_fold.h"
#include "cuda/launch.h"
#include "cuda/operands.h"
#include "cuda/packet_fold.h"
#include "cuda/patience.h"

namespace coll::cuda {

// A Group is a block of threads: thread(), threads(), sync(), all(bool) and memory that its threads
// share.
template <class Element, class Operation, class Order, class Group>
class Interpreter {
 public:
  constexpr Interpreter(Group& group, const Launch& launch, int rank, int channel) noexcept
      : group_(group),
        launch_(launch),
        rank_(rank),
        channel_(static_cast<std::uint32_t>(channel)) {}

  // False where the launch has been stopped; then ticks say nothing any more.
  constexpr bool run() noexcept {
    const bool whole = run_code();
    if (!whole && launch_.apart() && group_.thread() == 0) tell_of_stop();
    return whole;
  }

 private:
  constexpr bool run_code() noexcept {
    take_code();
    const std::uint32_t tiles = tiles_of(launch_, channel_);
    tiles_ = static_cast<std::int32_t>(launch_.tiles_at_once == 1 ? tiles : tiles > 0 ? 1 : 0);
    base_ = *tick_of(rank_);
    group_.sync();
    if constexpr (Order::entries) {
      if (launch_.apart() && !await_others()) return false;
    }
    if (posts(code_->instruction_list()[0])) post(base_ + 1);
    const auto exit = static_cast<std::int32_t>(code_->instructions) - 1;
    const std::int32_t iterations = tiles_ + static_cast<std::int32_t>(code_->max_lag);
    for (std::int32_t i = 0; i < iterations; ++i) {
      for (std::int32_t op = 1; op < exit; ++op) {
        const std::int32_t tile = i - code_->instruction_list()[op].lag;
        if (tile >= 0 && tile < tiles_ && !step(op, tile)) return false;
      }
    }
    if (launch_.apart() && !await(exit, tiles_ - 1)) return false;
    leave(base_ + 2 + static_cast<std::uint64_t>(iterations) * code_->stride);
    return true;
  }

  // Where nobody waits for it, the end of the launch is enough of an order.
  constexpr void leave(std::uint64_t value) noexcept {
    if (code_->awaited != 0 || launch_.apart()) {
      post(value);
    } else if (group_.thread() == 0) {
      Signals<Order>::set(tick_of(rank_), value);
    }
  }

  // Ranks of one launch have all entered the call when it begins, and none has left it before all
  // of it is done: so only what they wait for in between is told.
  constexpr bool posts(const Instruction& in) const noexcept {
    return in.post != 0 && (in.within != 0 || launch_.apart());
  }

  // Tells the host who stopped this launch, or the others that it gave up: here, since code beside
  // every wait would take registers of the folds. By stores, since not every link between GPUs has
  // atomics: of several ranks that give up the last one is told.
  constexpr void tell_of_stop() const noexcept {
    const std::uint64_t word = Signals<Order>::acquire(launch_.stop_of(rank_));
    std::uint64_t* const abort = &launch_.control->abort;
    if (word != 0) Signals<Order>::set_first(abort, word);
    if (Signals<Order>::acquire(abort) != kTimedOut) return;
    const auto self = static_cast<std::uint64_t>(rank_);
    for (std::int32_t rank = 0; rank < launch_.ranks; ++rank) {
      if (rank != rank_) Signals<Order>::release(launch_.stop_of(rank), kStoppedByRank + self);
    }
  }

  // Code and operands lie where all threads of the block read them fast.
  constexpr void take_code() noexcept {
    const Code* const whole = launch_.codes[rank_];
    auto* const copy = as<std::uint64_t>(group_.shared());
    const auto* const words = as<const std::uint64_t>(whole);
    for (std::size_t i = group_.thread(); i < whole->bytes / sizeof(std::uint64_t);
         i += group_.threads()) {
      copy[i] = words[i];
    }
    operands_ = as<BoundOperand>(group_.shared() + whole->bytes);
    find_operands(launch_, *whole, channel_, operands_, static_cast<std::uint32_t>(group_.thread()),
                  static_cast<std::uint32_t>(group_.threads()));
    code_ = as<const Code>(group_.shared());
  }

  constexpr bool step(std::int32_t op, std::int32_t tile) noexcept {
    const Instruction& in = code_->instruction_list()[op];
    if (in.awaits != in.awaits_end && !await(op, tile)) return false;
    if (!move(in, op, tile)) return false;
    if constexpr (Order::barriers) group_.sync();
    if (posts(in)) post(base_ + in.when + ticks_of(tile));
    return true;
  }

  // Each thread looks at one wait of the instruction.
  constexpr bool await(std::int32_t op, std::int32_t tile) noexcept {
    const Instruction& in = code_->instruction_list()[op];
    bool met = true;
    for (std::size_t i = in.awaits + group_.thread(); met && i < in.awaits_end;
         i += group_.threads()) {
      met = reach(code_->await_list()[i], op, tile);
    }
    return group_.all(met);
  }

  // Other ranks' launches may be in the call before, and read what this one has told them there:
  // nothing is written over it before they have left.
  constexpr bool await_others() noexcept {
    bool met = true;
    for (std::size_t peer = group_.thread(); met && peer < static_cast<std::size_t>(launch_.ranks);
         peer += group_.threads()) {
      met = reach(static_cast<std::int32_t>(peer), base_, 0, 0);
    }
    return group_.all(met);
  }

  constexpr bool reach(const Await& wait, std::int32_t op, std::int32_t tile) noexcept {
    if (wait.back > tile) return true;  // of a call before this launch
    if (wait.entry != 0 && !launch_.apart()) return true;
    const std::uint64_t ticks = wait.entry != 0 ? 0 : ticks_of(tile - wait.back);
    return reach(wait.peer, base_ + wait.when + ticks, op, tile);
  }

  constexpr bool reach(std::int32_t peer, std::uint64_t expected, std::int32_t op,
                       std::int32_t tile) noexcept {
    Record record = record_of(op, tile);
    record.peer = peer;
    record.expected = expected;
    Patience<Order> patience(launch_, record);
    const std::uint64_t* const tick = tick_of(peer);
    const bool near = !launch_.apart();
    std::uint64_t seen = Signals<Order>::acquire(tick, near);
    while (seen < record.expected) {
      if (!patience.goes_on(seen)) return false;
      seen = Signals<Order>::acquire(tick, near);
    }
    return true;
  }

  // Whether it could be done. Only instructions that read packets can fail.
  constexpr bool move(const Instruction& in, std::int32_t op, std::int32_t tile) noexcept {
    bool done = true;
    const std::uint32_t first = static_cast<std::uint32_t>(tile) * launch_.tiles_at_once;
    const std::uint32_t all = tiles_of(launch_, channel_), left = all - first;
    const std::uint32_t end = left < launch_.tiles_at_once ? all : first + launch_.tiles_at_once;
    for (std::uint32_t i = in.pieces; done && i < in.pieces_end; ++i) {
      const Piece& piece = code_->piece_list()[i];
      for (std::uint32_t part = first; done && part < end; ++part) {
        const std::uint64_t before = elements_before(launch_, channel_, part);
        if (piece.elements <= before) break;
        done = move_part(in, op, tile, piece, before);
      }
    }
    return code_->packets == 0 || group_.all(done);
  }

  // The elements of a piece from `before` on, a tile of them at most.
  constexpr bool move_part(const Instruction& in, std::int32_t op, std::int32_t tile,
                           const Piece& piece, std::uint64_t before) noexcept {
    const std::uint64_t left = piece.elements - before;
    const std::uint64_t n = left < launch_.tile_elements ? left : launch_.tile_elements;
    const Shift shift{before * launch_.element_bytes,
                      launch_.tiles_at_once == 1 ? slot_of(tile) : 0};
    const Span span{operands_ + piece.operands,
                    shift,
                    n * launch_.units,
                    in.k,
                    in.m,
                    in.balanced != 0,
                    in.complete != 0 ? launch_.divisor : 1.0};
    if (code_->packets != 0) return fold_packets(span, in, op, tile);
    fold_span<Element, Operation>(span, group_.thread(), group_.threads());
    return true;
  }

  constexpr std::uint64_t slot_of(std::int32_t tile) const noexcept {
    return static_cast<std::uint32_t>(tile) % code_->depth * launch_.slot_bytes;
  }

  constexpr bool fold_packets(const Span& span, const Instruction& in, std::int32_t op,
                              std::int32_t tile) noexcept {
    if constexpr (sizeof(typename Element::Memory) <= kWordBytes) {
      const Record wait = record_of(op, tile);
      return PacketFold<Element, Operation, Order>(launch_, span, base_ + ticks_of(tile), in.when,
                                                   wait)
          .run(group_.thread(), group_.threads());
    } else {
      return false;  // no code with packets is made of such elements
    }
  }

  constexpr void post(std::uint64_t value) noexcept {
    if (group_.thread() == 0) Signals<Order>::release(tick_of(rank_), value, !launch_.apart());
  }

  constexpr std::uint64_t* tick_of(int rank) const noexcept {
    return launch_.ticks[rank] + std::size_t{channel_} * kTickWords;
  }
  constexpr std::uint64_t ticks_of(std::int32_t tile) const noexcept {
    return static_cast<std::uint64_t>(tile) * code_->stride;
  }
  constexpr Record record_of(std::int32_t op, std::int32_t tile) const noexcept {
    return {rank_, static_cast<std::int32_t>(channel_), op, tile, -1, 0, 0, 0};
  }

  Group& group_;
  const Launch& launch_;
  std::int32_t rank_;
  std::uint32_t channel_;
  const Code* code_ = nullptr;
  BoundOperand* operands_ = nullptr;
  std::int32_t tiles_ = 0;
  std::uint64_t base_ = 0;
};

}  // namespace coll::cuda
