// SPDX-License-Identifier: Apache-2.0
// Writes one rank's program in the words of the literature. It knows where each chunk's current
// value lies (still in the input, already in the output, in scratch), so an algorithm speaks of
// chunks only, and in place, out of place and p = 1 need no special case.
#pragma once

#include <span>
#include <vector>

#include "schedule/chunks.h"
#include "schedule/layout.h"
#include "schedule/places.h"
#include "schedule/schedule.h"

namespace coll {

class Builder {
 public:
  Builder(Layout layout, int rank);

  int p() const { return layout_.p; }
  int rank() const { return rank_; }
  int root() const { return layout_.root; }
  int chunks() const { return layout_.chunks; }
  Chunks all() const { return Chunks(0, layout_.chunks); }

  // Sends of a round must be written before its receives: they read what was there before. A
  // message of no chunks is left out, on both sides.
  void send(int round, std::span<const int> to, const Chunks& chunks);
  void send(int round, int to, const Chunks& chunks);
  void recv(int round, int from, const Chunks& chunks);
  // `order` names the peers with kSelf at the place of this rank's own value.
  void recv_reduce(int round, std::span<const int> order, const Chunks& chunks,
                   Shape shape = Shape::left);
  // Own value and one peer's, the lower rank's first: the same bits on both sides.
  void recv_reduce(int round, int from, const Chunks& chunks);

  // For algorithms that hold two values of one chunk at a time (scans): verbs that say which
  // buffer. Whatever is written last is the value that the verbs above speak of.
  void send_from(Buffer source, int round, int to, const Chunks& chunks);
  void recv_into(Buffer target, int round, int from, const Chunks& chunks);
  // Folds the sender's value, which comes first, with the one in the buffer.
  void recv_reduce_into(Buffer target, int round, int from, const Chunks& chunks);
  // Folds what two or more peers sent, in this order, without an operand of its own.
  void recv_fold_into(Buffer target, int round, std::span<const int> from, const Chunks& chunks,
                      Shape shape);
  void copy(int round, Buffer source, Buffer target, const Chunks& chunks);
  // target := source folded with target.
  void reduce(int round, Buffer source, Buffer target, const Chunks& chunks);

  // What follows begins at this round again, beside what was written since, and speaks of other
  // chunks: several phases at a time.
  void beside(int round);

  // Copies to the output what never left the input.
  Program finish() &&;

 private:
  void open(int round, bool receive);
  void local(Op op, int round, Buffer source, Buffer target, const Chunks& chunks);
  Slice in(Buffer buffer, const Chunks& chunks);
  Slice into(Buffer buffer, const Chunks& chunks);
  Slice peers(std::span<const int> list);
  Slice where(const Chunks& chunks);
  Slice move(const Chunks& chunks);
  void append(std::uint32_t begin, Buffer buffer, int chunk);

  Layout layout_;
  int rank_;
  int round_ = -1;
  bool received_ = false;
  bool unsorted_ = false;
  Places place_;
  Program program_;
};

}  // namespace coll
