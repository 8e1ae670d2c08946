// SPDX-License-Identifier: Apache-2.0
#include "plan/messages.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/looks.h"
#include "schedule/cells.h"

namespace coll {
namespace {

// The cells of one rank that the steps of a round read by sending, or write by receiving.
class RoundAccess {
 public:
  RoundAccess(const Schedule& s, bool in_place) : cells_(Layout(s), in_place) {
    for (int rank = 0; rank < s.p; ++rank) {
      look();
      const Program& program = s.programs[static_cast<std::size_t>(rank)];
      for (const Step& step : program.steps) {
        if (step.op == Op::send) add(sent_, rank, step.round, program.source(step));
        if (step.op == Op::recv || step.op == Op::recv_reduce) {
          add(received_, rank, step.round, program.target(step));
        }
      }
    }
  }
  // Does a receive of the round write cells that this rank sends in it?
  bool overwritten(int rank, int round, std::span<const CellRange> ranges) const {
    return touches(received_, rank, round, ranges);
  }
  // Does a send of the round read cells that this rank receives in it?
  bool sent(int rank, int round, std::span<const CellRange> ranges) const {
    return touches(sent_, rank, round, ranges);
  }

 private:
  using Accesses = std::set<std::pair<int, std::size_t>>;  // (round, cell)

  void add(Accesses& set, int rank, int round, std::span<const CellRange> ranges) {
    for (const CellRange& r : ranges) {
      for (int c = 0; c < r.cells; ++c) set.emplace(round, cells_.id(rank, r.buffer, r.first + c));
    }
  }
  bool touches(const Accesses& set, int rank, int round, std::span<const CellRange> ranges) const {
    for (const CellRange& r : ranges) {
      for (int c = 0; c < r.cells; ++c) {
        if (set.contains({round, cells_.id(rank, r.buffer, r.first + c)})) return true;
      }
    }
    return false;
  }

  Cells cells_;
  Accesses sent_, received_;
};

}  // namespace

Messages match(const Schedule& s) {
  Messages out;
  const auto ranks = static_cast<std::size_t>(s.p);
  out.by_receiver.resize(ranks);
  out.by_sender.resize(ranks);
  std::map<std::tuple<int, int, int>, std::deque<int>> channels;  // (round, from, to)
  for (int rank = 0; rank < s.p; ++rank) {
    look();
    const Program& program = s.programs[static_cast<std::size_t>(rank)];
    auto& mine = out.by_sender[static_cast<std::size_t>(rank)];
    mine.resize(program.steps.size());
    for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      if (step.op != Op::send) continue;
      for (const int peer : program.peers(step)) {
        const int index = static_cast<int>(out.all.size());
        out.all.push_back({.from = rank, .to = peer, .send_step = i, .recv_step = 0});
        mine[i].push_back(index);
        channels[{step.round, rank, peer}].push_back(index);
      }
    }
  }
  for (int rank = 0; rank < s.p; ++rank) {
    look();
    const Program& program = s.programs[static_cast<std::size_t>(rank)];
    auto& mine = out.by_receiver[static_cast<std::size_t>(rank)];
    mine.resize(program.steps.size());
    for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      if (step.op == Op::send) continue;
      for (const int peer : program.peers(step)) {
        if (peer == kSelf) {
          mine[i].push_back(-1);
          continue;
        }
        const auto channel = channels.find({step.round, peer, rank});
        if (channel == channels.end() || channel->second.empty()) {
          throw Error(Status::internal, "lowering: a receive without its send");
        }
        const int index = channel->second.front();
        channel->second.pop_front();
        out.all[static_cast<std::size_t>(index)].recv_step = i;
        mine[i].push_back(index);
      }
    }
  }
  for (const auto& [channel, left] : channels) {
    if (!left.empty()) throw Error(Status::internal, "lowering: a send without its receive");
  }
  return out;
}

namespace {

bool in_one_buffer_of_the_caller(std::span<const CellRange> ranges) {
  return std::ranges::all_of(ranges, [&](const CellRange& r) {
    return r.buffer == ranges.front().buffer && r.buffer != Buffer::scratch;
  });
}

}  // namespace

void choose_modes(const Schedule& s, const ModeWish& wish, Messages& messages) {
  if (wish.mode == Mode::staged || wish.mode == Mode::inlined) return;
  const RoundAccess access(s, !wish.apart);
  for (Message& m : messages.all) {
    look();
    const Program& sender = s.programs[static_cast<std::size_t>(m.from)];
    const Program& receiver = s.programs[static_cast<std::size_t>(m.to)];
    const Step& send = sender.steps[m.send_step];
    const Step& recv = receiver.steps[m.recv_step];
    const bool reads = !wish.mixed || in_one_buffer_of_the_caller(sender.source(send));
    const bool writes = !wish.mixed || in_one_buffer_of_the_caller(receiver.target(recv));
    const bool may_pull = reads && !access.overwritten(m.from, send.round, sender.source(send));
    const bool may_push =
        writes && recv.op == Op::recv && !access.sent(m.to, recv.round, receiver.target(recv));
    if (wish.mode == Mode::push && may_push) {
      m.mode = Mode::push;
    } else if (may_pull) {
      m.mode = Mode::pull;
    }
  }
}

}  // namespace coll
