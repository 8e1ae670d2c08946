// SPDX-License-Identifier: Apache-2.0
#include "simulate/wire_rank.h"

#include <algorithm>
#include <utility>

#include "base/index.h"

namespace coll {
namespace {

constexpr double kUnfinished = -1;

}  // namespace

WireCursor::WireCursor(const WirePlan& plan, std::vector<int> ops, int tiles)
    : plan_(&plan),
      ops_(std::move(ops)),
      tiles_(tiles),
      iterations_(ops_.empty() ? 0 : tiles + plan.max_lag) {
  settle();
}

void WireCursor::next() noexcept {
  ++at_;
  settle();
}

void WireCursor::restart() noexcept {
  handled = kNever;
  iteration_ = 0;
  at_ = 0;
  settle();
}

// Goes on to the next op that has a tile in its iteration.
void WireCursor::settle() noexcept {
  for (; iteration_ < iterations_; ++iteration_, at_ = 0) {
    for (; at_ < ops_.size(); ++at_) {
      tile_ = iteration_ - plan_->ops[index(ops_[at_])].lag;
      if (tile_ >= 0 && tile_ < tiles_) return;
    }
  }
}

WireRank::WireRank(const WirePlan& plan, int tiles)
    : plan_(&plan), tiles_(tiles), finishes_(plan.ops.size() * index(tiles), kUnfinished) {
  const auto lane_of = [&](WireAct act, int peer) {
    std::vector<int> ops;
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const WireOp& op = plan.ops[i];
      if (op.act == act && (act == WireAct::fold || op.peer == peer)) {
        ops.push_back(static_cast<int>(i));
      }
    }
    if (!ops.empty()) lanes_.emplace_back(plan, std::move(ops), tiles);
  };
  // Connections share a port evenly. Here messages go one after the other: were all ranks to begin
  // with the same peer, its port would be a queue and the others idle, which they are not.
  std::vector<int> peers = plan.peers;
  const auto later = std::ranges::upper_bound(peers, plan.rank);
  std::rotate(peers.begin(), later, peers.end());
  for (const int peer : peers) lane_of(WireAct::send, peer);
  for (const int peer : plan.peers) lane_of(WireAct::receive, peer);
  lane_of(WireAct::fold, -1);
}

std::optional<double> WireRank::ready(const WireCursor& lane) const noexcept {
  double at = begun;
  for (const After& a : plan_->after(plan_->ops[index(lane.op())])) {
    const int tile = lane.tile() - a.back;
    if (tile < 0) continue;
    const double finished = finishes_[index(a.op) * index(tiles_) + index(tile)];
    if (finished == kUnfinished) return std::nullopt;
    at = std::max(at, finished);
  }
  return at;
}

void WireRank::finish(int op, int tile, double at) noexcept {
  finishes_[index(op) * index(tiles_) + index(tile)] = at;
  latest = std::max(latest, at);
}

bool WireRank::done() const noexcept {
  return handed_over == 0 &&
         std::ranges::all_of(lanes_, [](const WireCursor& lane) { return lane.at_end(); });
}

void WireRank::restart() noexcept {
  ++call;
  begun = clock = std::max(clock, latest);
  std::ranges::fill(finishes_, kUnfinished);
  for (WireCursor& lane : lanes_) lane.restart();
}

}  // namespace coll
