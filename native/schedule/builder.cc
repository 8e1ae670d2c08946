// SPDX-License-Identifier: Apache-2.0
#include "schedule/builder.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/error.h"

namespace coll {

Builder::Builder(Layout layout, int rank) : layout_(layout), rank_(rank), place_(layout.chunks) {
  for (int cell = 0; cell < layout_.cells(rank_, Buffer::input); ++cell) {
    place_.set(layout_.chunk(rank_, Buffer::input, cell), Whereabouts::input);
  }
}

// An algorithm that breaks the order of rounds is a bug that no proof should have to explain.
void Builder::open(int round, bool receive) {
  if (round < round_ || (round == round_ && received_ && !receive)) {
    throw Error(Status::internal, "schedule builder: rank " + std::to_string(rank_) +
                                      " wrote a step of round " + std::to_string(round) +
                                      " after one that must follow it");
  }
  received_ = receive;
  round_ = round;
}

Slice Builder::peers(std::span<const int> list) {
  const auto begin = static_cast<std::uint32_t>(program_.peer_pool.size());
  program_.peer_pool.insert(program_.peer_pool.end(), list.begin(), list.end());
  return {begin, static_cast<std::uint32_t>(list.size())};
}

// Extends the list of ranges that starts at `begin` by the cell of one chunk.
void Builder::append(std::uint32_t begin, Buffer buffer, int chunk) {
  auto& pool = program_.range_pool;
  const int cell = layout_.cell(rank_, buffer, chunk);
  if (pool.size() > begin && pool.back().buffer == buffer &&
      pool.back().first + pool.back().cells == cell) {
    ++pool.back().cells;
  } else {
    pool.push_back({buffer, cell, 1});
  }
}

Slice Builder::where(const Chunks& chunks) {
  const auto begin = static_cast<std::uint32_t>(program_.range_pool.size());
  for (const ChunkRange& r : chunks.ranges()) {
    for (int c = r.first; c < r.first + r.count; ++c) {
      const Whereabouts place = place_.of(c);
      // A value that is nowhere is written as scratch: the prover then says that it is undefined.
      append(begin,
             place == Whereabouts::input    ? Buffer::input
             : place == Whereabouts::output ? Buffer::output
                                            : Buffer::scratch,
             c);
    }
  }
  return {begin, static_cast<std::uint32_t>(program_.range_pool.size()) - begin};
}

Slice Builder::move(const Chunks& chunks) {
  const auto begin = static_cast<std::uint32_t>(program_.range_pool.size());
  for (const ChunkRange& r : chunks.ranges()) {
    for (int c = r.first; c < r.first + r.count; ++c) {
      const bool deliver = layout_.delivers(rank_, c);
      place_.set(c, deliver ? Whereabouts::output : Whereabouts::scratch);
      append(begin, deliver ? Buffer::output : Buffer::scratch, c);
    }
  }
  return {begin, static_cast<std::uint32_t>(program_.range_pool.size()) - begin};
}

void Builder::send(int round, std::span<const int> to, const Chunks& chunks) {
  if (to.empty() || chunks.ranges().empty()) return;
  open(round, false);
  Step step{.op = Op::send, .round = round};
  step.peers = peers(to);
  step.source = where(chunks);
  program_.steps.push_back(step);
}

void Builder::send(int round, int to, const Chunks& chunks) {
  send(round, std::span<const int>(&to, 1), chunks);
}

void Builder::recv(int round, int from, const Chunks& chunks) {
  if (chunks.ranges().empty()) return;
  open(round, true);
  Step step{.op = Op::recv, .round = round};
  step.peers = peers(std::span<const int>(&from, 1));
  step.target = move(chunks);
  program_.steps.push_back(step);
}

void Builder::recv_reduce(int round, std::span<const int> order, const Chunks& chunks,
                          Shape shape) {
  if (order.size() < 2) return;  // nothing but the own value: it stays where it is
  if (chunks.ranges().empty()) return;
  open(round, true);
  Step step{.op = Op::recv_reduce, .round = round, .shape = shape};
  step.peers = peers(order);
  step.source = where(chunks);
  step.target = move(chunks);
  program_.steps.push_back(step);
}

void Builder::recv_reduce(int round, int from, const Chunks& chunks) {
  const std::array<int, 2> order =
      from < rank_ ? std::array<int, 2>{from, kSelf} : std::array<int, 2>{kSelf, from};
  recv_reduce(round, std::span<const int>(order), chunks);
}

Slice Builder::in(Buffer buffer, const Chunks& chunks) {
  const auto begin = static_cast<std::uint32_t>(program_.range_pool.size());
  for (const ChunkRange& r : chunks.ranges()) {
    for (int c = r.first; c < r.first + r.count; ++c) append(begin, buffer, c);
  }
  return {begin, static_cast<std::uint32_t>(program_.range_pool.size()) - begin};
}

Slice Builder::into(Buffer buffer, const Chunks& chunks) {
  const Whereabouts place = buffer == Buffer::output    ? Whereabouts::output
                            : buffer == Buffer::scratch ? Whereabouts::scratch
                                                        : Whereabouts::input;
  for (const ChunkRange& r : chunks.ranges()) {
    for (int c = r.first; c < r.first + r.count; ++c) {
      place_.set(c, place);
    }
  }
  return in(buffer, chunks);
}

void Builder::send_from(Buffer source, int round, int to, const Chunks& chunks) {
  open(round, false);
  Step step{.op = Op::send, .round = round};
  step.peers = peers(std::span<const int>(&to, 1));
  step.source = in(source, chunks);
  program_.steps.push_back(step);
}

void Builder::recv_into(Buffer target, int round, int from, const Chunks& chunks) {
  open(round, true);
  Step step{.op = Op::recv, .round = round};
  step.peers = peers(std::span<const int>(&from, 1));
  step.target = into(target, chunks);
  program_.steps.push_back(step);
}

void Builder::recv_reduce_into(Buffer target, int round, int from, const Chunks& chunks) {
  open(round, true);
  Step step{.op = Op::recv_reduce, .round = round};
  step.peers = peers(std::array<int, 2>{from, kSelf});
  step.source = in(target, chunks);
  step.target = into(target, chunks);
  program_.steps.push_back(step);
}

void Builder::recv_fold_into(Buffer target, int round, std::span<const int> from,
                             const Chunks& chunks, Shape shape) {
  open(round, true);
  Step step{.op = Op::recv_reduce, .round = round, .shape = shape};
  step.peers = peers(from);
  step.target = into(target, chunks);
  program_.steps.push_back(step);
}

void Builder::local(Op op, int round, Buffer source, Buffer target, const Chunks& chunks) {
  open(round, true);
  Step step{.op = op, .round = round};
  step.source = in(source, chunks);
  step.target = into(target, chunks);
  program_.steps.push_back(step);
}

void Builder::copy(int round, Buffer source, Buffer target, const Chunks& chunks) {
  local(Op::copy, round, source, target, chunks);
}

void Builder::reduce(int round, Buffer source, Buffer target, const Chunks& chunks) {
  local(Op::reduce, round, source, target, chunks);
}

void Builder::beside(int round) {
  if (round > round_) return;
  round_ = round;
  received_ = false;
  unsorted_ = true;
}

Program Builder::finish() && {
  if (unsorted_) {
    // Phases speak of different chunks: what one reads no other has written.
    const auto place = [](const Step& s) {
      const int turn = s.op == Op::send ? 0 : s.op == Op::recv || s.op == Op::recv_reduce ? 1 : 2;
      return std::pair(s.round, turn);
    };
    std::stable_sort(program_.steps.begin(), program_.steps.end(),
                     [&](const Step& a, const Step& b) { return place(a) < place(b); });
  }
  Chunks left;
  for (int cell = 0; cell < layout_.cells(rank_, Buffer::output); ++cell) {
    const int c = layout_.chunk(rank_, Buffer::output, cell);
    if (place_.of(c) == Whereabouts::input) left.add(c, 1);
  }
  if (!left.ranges().empty()) {
    // Nobody else touches these cells: in the first round a rank copies them while messages travel.
    std::vector<Step>& steps = program_.steps;
    Step step{.op = Op::copy, .round = steps.empty() ? 0 : steps.front().round};
    step.source = where(left);
    step.target = move(left);
    const auto later = [&](const Step& other) { return other.round > step.round; };
    steps.insert(std::find_if(steps.begin(), steps.end(), later), step);
  }
  return std::move(program_);
}

}  // namespace coll
