// SPDX-License-Identifier: Apache-2.0
#include "simulate/wire_time.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/index.h"
#include "base/looks.h"
#include "simulate/arrivals.h"
#include "simulate/cores_in_use.h"
#include "simulate/links_in_use.h"
#include "simulate/steady.h"
#include "simulate/wire_rank.h"

namespace coll {
namespace {

// Between calls that are alone: as long as a program needs for little, and races for a barrier.
constexpr double kPause = 200e-6;
// Before all that comes later.
constexpr double kNow = -std::numeric_limits<double>::infinity();
// Bytes of a message that may go with the one before: longer ones are many packets anyway.
constexpr double kJoined = 4096;

class WireRun {
 public:
  WireRun(std::span<const WirePlan> plans, const Network& network, const Tiling& tiling, bool alone,
          double filled)
      : network_(network),
        tiling_(tiling),
        tiles_(tiling.count()),
        calls_(alone ? 1 : calls_to_play(tiles_)),
        links_(network, filled),
        cores_(network.cores),
        next_(plans.size()),
        ends_(index(calls_)) {
    for (const WirePlan& plan : plans) ranks_.emplace_back(plan, tiles_);
  }

  // Seconds from call to call.
  double period() {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) look_again(rank);
    LooksNowAndThen looks;
    for (; !begins_.empty() || !messages_.empty(); looks.step()) {
      const bool carries =
          begins_.empty() ||
          (!messages_.empty() && messages_.top().head <= std::get<double>(begins_.top()));
      if (carries) {
        carry();
      } else {
        begin();
      }
    }
    for (const WireRank& rank : ranks_) {
      if (rank.call < calls_) {
        throw Error(Status::internal, "simulation: the ranks of a plan wait for another");
      }
    }
    if (calls_ == 1) return ends_.front();
    const int counted = calls_ / 2;
    return (ends_[index(calls_ - 1)] - ends_[index(calls_ - counted - 1)]) / counted;
  }

  // For how long a call keeps the busiest link: known once all have been played.
  double busiest() const {
    double most = 0;
    for (std::size_t i = 0; i < links_.size(); ++i) most = std::max(most, links_.taken(i));
    return most / calls_;
  }

 private:
  struct Next {
    int lane = -1;
    std::uint64_t version = 0;  // of what is said in begins_
  };

  // On its way to its first link, where it is at `head`; its rank is busy until it is handed over.
  struct Message {
    double head, handed_over, bytes;
    std::uint64_t number;  // of all, by the order in which ranks hand them over
    int rank, peer, op, tile;
    bool operator>(const Message& other) const noexcept {
      return std::tie(head, number) > std::tie(other.head, other.number);
    }
  };

  std::uint64_t pair(int from, int to) const {
    return static_cast<std::uint64_t>(to) * ranks_.size() + static_cast<std::uint64_t>(from);
  }

  // When the op at the head of a lane can begin, were the rank free; infinity where it waits.
  double begin_of(int rank, const WireCursor& lane) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const WireRank& mine = ranks_[index(rank)];
    const auto ready = mine.ready(lane);
    if (!ready) return kNever;
    const WireOp& op = mine.plan().ops[index(lane.op())];
    if (op.act != WireAct::receive) return *ready;
    const double arrived = arrivals_.first(pair(op.peer, rank));
    if (arrived < 0) return kNever;
    const double bytes = bytes_of(mine.plan(), op, lane);
    return std::max(*ready, arrived - network_.overhead(rank, op.peer).meanwhile(bytes));
  }

  // Finds what the rank does next, and when: it goes on with a lane for as long as that has
  // something to do, then takes what it could do first.
  void look_again(int rank) {
    WireRank& mine = ranks_[index(rank)];
    while (mine.call < calls_ && mine.done()) {
      double& end = ends_[index(mine.call)];
      mine.restart();
      end = std::max(end, mine.begun);
    }
    Next& next = next_[index(rank)];
    ++next.version;
    if (mine.call == calls_) return;
    double first = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < mine.lanes().size(); ++i) {
      const WireCursor& lane = mine.lanes()[i];
      if (lane.at_end()) continue;
      const bool goes_on = static_cast<int>(i) == mine.lane;
      const double ready = begin_of(rank, lane);
      const double at = goes_on && ready <= mine.clock ? kNow : ready;
      if (at >= first) continue;
      first = at;
      next.lane = static_cast<int>(i);
    }
    if (first < std::numeric_limits<double>::infinity()) {
      begins_.emplace(std::max(first, mine.clock), rank, next.version);
    }
  }

  // Does what can begin first, if it still can and there is a core for it.
  void begin() {
    const auto [at, rank, version] = begins_.top();
    begins_.pop();
    if (version != next_[index(rank)].version) return;
    if (const double free = cores_.free(rank); free > at) {
      begins_.emplace(free, rank, version);
      return;
    }
    play(rank, at);
    look_again(rank);
  }

  // Links are taken in the order in which messages come to them, not in that in which ranks, which
  // may do many ops meanwhile, hand these over.
  void carry() {
    Message message = messages_.top();
    messages_.pop();
    if (const double free = links_.free(message.rank, message.peer); free > message.head) {
      message.head = free;
      messages_.push(message);
      return;
    }
    WireRank& mine = ranks_[index(message.rank)];
    const auto [left, arrived] =
        links_.carry(message.rank, message.peer, message.head, message.bytes,
                     std::max(message.handed_over - message.head, 0.0));
    if (!std::isfinite(arrived)) {
      throw Error(Status::invalid_argument,
                  "predict: it would take longer than a number can say: the costs are too large");
    }
    mine.finish(message.op, message.tile, left);
    arrivals_.put(pair(message.rank, message.peer), arrived);
    --mine.handed_over;
    look_again(message.rank);
    look_again(message.peer);
  }

  void play(int rank, double at) {
    WireRank& mine = ranks_[index(rank)];
    mine.lane = next_[index(rank)].lane;
    WireCursor& lane = mine.lanes()[index(mine.lane)];
    const WireOp& op = mine.plan().ops[index(lane.op())];
    const double bytes = bytes_of(mine.plan(), op, lane);
    mine.clock = at + work(mine.plan(), op, bytes);
    if (op.act == WireAct::send) {
      const double packed = mine.clock;
      messages_.push({.head = packed + occupy(rank, lane, op, at, bytes),
                      .handed_over = mine.clock,
                      .bytes = bytes,
                      .number = number_++,
                      .rank = rank,
                      .peer = op.peer,
                      .op = lane.op(),
                      .tile = lane.tile()});
      ++mine.handed_over;
    } else {
      if (op.act == WireAct::receive) {
        occupy(rank, lane, op, at, bytes);
        arrivals_.take(pair(op.peer, rank));
      }
      mine.finish(lane.op(), lane.tile(), mine.clock);
    }
    cores_.use(rank, at, mine.clock);
    lane.next();
  }

  // Of a message that is handed over, or taken in: until its first segment, or its last, is.
  // Streams hand over in one piece what follows at once, and take in one what has come meanwhile:
  // only the first of such short messages costs a message's overhead.
  double occupy(int rank, WireCursor& lane, const WireOp& op, double at, double bytes) {
    Overhead overhead = network_.overhead(rank, op.peer);
    const double there = op.act == WireAct::receive ? arrivals_.first(pair(op.peer, rank)) : at;
    const bool joins = there < lane.handled + overhead.message && bytes <= kJoined;
    if (joins) overhead.message = 0;
    double& clock = ranks_[index(rank)].clock;
    clock += overhead.of(bytes);
    if (!joins) lane.handled = clock;
    return overhead.of_segment(bytes);
  }

  static int cells(const WirePlan& plan, const WireOp& op) {
    int cells = 0;
    for (const PlaceRange& r : plan.ranges(plan.sources(op).front())) cells += r.cells;
    return cells;
  }

  double bytes_of(const WirePlan& plan, const WireOp& op, const WireCursor& lane) const {
    return cells(plan, op) * tiling_.bytes(lane.tile(), tiles_);
  }

  // What the rank itself does for an op, but for handing it over or taking it in.
  double work(const WirePlan& plan, const WireOp& op, double bytes) const {
    const RankCosts& costs = network_.costs;
    const auto sources = plan.sources(op);
    if (op.act == WireAct::fold) {
      const double each = sources.size() == 1 ? costs.copy : costs.fold;
      return bytes * static_cast<double>(sources.size()) * each;
    }
    // Cells that do not lie side by side are packed, or unpacked; what lands in an area is not.
    const bool lands_apart = op.act == WireAct::receive && plan.destinations(op).front().area >= 0;
    const std::size_t pieces =
        tiles_ > 1 ? index(cells(plan, op)) : plan.ranges(sources.front()).size();
    return pieces > 1 && !lands_apart ? bytes * costs.copy : 0;
  }

  using Begin = std::tuple<double, int, std::uint64_t>;  // when, rank, version of its Next

  const Network& network_;
  const Tiling tiling_;
  int tiles_, calls_;
  LinksInUse links_;
  CoresInUse cores_;
  Arrivals arrivals_;
  std::vector<WireRank> ranks_;
  std::vector<Next> next_;
  std::vector<double> ends_;  // of calls, on the last rank
  std::priority_queue<Begin, std::vector<Begin>, std::greater<>> begins_;
  std::priority_queue<Message, std::vector<Message>, std::greater<>> messages_;
  std::uint64_t number_ = 0;
};

}  // namespace

double wire_seconds(std::span<const WirePlan> plans, const Network& network, const WireTask& task) {
  if (static_cast<std::size_t>(network.ranks()) < plans.size()) {
    throw Error(Status::invalid_argument, "the topology has " + std::to_string(network.ranks()) +
                                              " ranks, the plan " + std::to_string(plans.size()));
  }
  if (plans.empty() || !(task.bytes >= 0) || !(task.tile_bytes >= 0)) {
    throw Error(Status::invalid_argument,
                "a plan has ranks, and its vector and tiles numbers of bytes, from 0 on");
  }
  const double chunk = task.bytes / std::max(plans.front().layout.vector_cells(), 1);
  const Tiling whole{chunk, task.tile_bytes > 0 ? std::min(task.tile_bytes, chunk) : chunk};
  const auto seconds = [&](double filled) {
    return steady(whole, plans.front().max_lag, [&](const Tiling& tiling) {
      return WireRun(plans, network, tiling, task.alone, filled).period();
    });
  };
  const double full = seconds(std::numeric_limits<double>::infinity());
  if (std::ranges::none_of(network.classes(), [](const LinkClass& c) { return c.bucket > 0; })) {
    return full;
  }
  const double pause = task.alone ? kPause : 0;
  WireRun once(plans, network, {chunk, chunk}, task.alone, pause);
  once.period();
  return once.busiest() <= full + pause ? full : seconds(pause);
}

}  // namespace coll
