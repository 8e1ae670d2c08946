// SPDX-License-Identifier: Apache-2.0
#include "prove/wire_proof.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/index.h"
#include "base/looks.h"
#include "prove/outcome.h"
#include "prove/value.h"
#include "prove/wire_order.h"
#include "schedule/cells.h"

namespace coll {
namespace {

// One rank in the midst of the run: how far it is in each lane, and what its memory holds.
struct WireRankState {
  const WirePlan* plan = nullptr;
  std::vector<WireEvent> folds;
  std::map<int, std::vector<WireEvent>> sends, receives;  // by peer
  std::map<int, std::size_t> sent, received;
  std::size_t folded = 0;
  std::vector<int> done;                  // by op: tiles
  std::vector<std::vector<Value>> areas;  // [area * depth + slot][cell]
};

class WireProof {
 public:
  WireProof(const std::vector<WirePlan>& plans, bool in_place, int tiles, Report& report)
      : layout_(plans.front().layout),
        tiles_(tiles),
        report_(report),
        cells_(layout_, in_place),
        algebra_(layout_.kind, layout_.p, false),
        values_(cells_.total() * index(tiles)) {
    for (const WirePlan& plan : plans) enter(plan);
  }

  void run() {
    fill_inputs();
    for (bool moved = true; moved && report_.proved;) {
      moved = false;
      for (int rank = 0; rank < layout_.p; ++rank) {
        look();
        while (fold_next(rank)) moved = true;
        for (auto& [peer, lane] : state(rank).sends) {
          while (pass(rank, peer)) moved = true;
        }
      }
    }
    expect_all_done();
    judge();
  }

 private:
  WireRankState& state(int rank) { return ranks_[index(rank)]; }
  Value& user(int rank, Buffer buffer, int cell, int tile) {
    return values_[cells_.id(rank, buffer, cell) * index(tiles_) + index(tile)];
  }
  std::vector<Value>& area(WireRankState& mine, int number, int tile) {
    return mine.areas[index(number * mine.plan->depth + tile % mine.plan->depth)];
  }

  void enter(const WirePlan& plan) {
    const WireOrder order(plan, tiles_);
    WireRankState mine;
    mine.plan = &plan;
    for (const WireEvent& e : order.events()) {
      const WireOp& op = plan.ops[index(e.op)];
      auto& lane = op.act == WireAct::fold   ? mine.folds
                   : op.act == WireAct::send ? mine.sends[op.peer]
                                             : mine.receives[op.peer];
      lane.push_back(e);
    }
    mine.done.assign(plan.ops.size(), 0);
    for (const int cells : plan.areas) {
      for (int d = 0; d < plan.depth; ++d) mine.areas.emplace_back(index(cells));
    }
    ranks_.push_back(std::move(mine));
  }

  void fault(Check check, const WirePlan& plan, const WireEvent& event, const std::string& text) {
    if (report_.first(check)) report_.message = describe(plan, event) + ": " + text;
  }

  void fill_inputs() {
    for (int rank = 0; rank < layout_.p; ++rank) {
      for (int c = 0; c < layout_.cells(rank, Buffer::input); ++c) {
        for (int tile = 0; tile < tiles_; ++tile) {
          Value& value = user(rank, Buffer::input, c, tile);
          value = algebra_.leaf(layout_.chunk(rank, Buffer::input, c), rank);
          value.tag = static_cast<std::uint32_t>(tile);
        }
      }
    }
  }

  bool ready(const WireRankState& mine, const WireEvent& e) const {
    return std::ranges::all_of(mine.plan->after(mine.plan->ops[index(e.op)]), [&](const After& a) {
      return mine.done[index(a.op)] > e.tile - a.back;
    });
  }

  // The values of an operand, in the order of its message.
  std::vector<Value> read(int rank, const Operand& o, int tile) {
    WireRankState& mine = state(rank);
    if (o.area >= 0) return area(mine, o.area, tile);
    std::vector<Value> values;
    for (const PlaceRange& r : mine.plan->ranges(o)) {
      for (int c = r.first; c < r.first + r.cells; ++c) {
        values.push_back(user(rank, static_cast<Buffer>(r.place), c, tile));
      }
    }
    return values;
  }

  void write(int rank, const Operand& o, const WireEvent& e, const std::vector<Value>& values) {
    WireRankState& mine = state(rank);
    if (o.area >= 0) {
      area(mine, o.area, e.tile) = values;
      return;
    }
    std::size_t at = 0;
    for (const PlaceRange& r : mine.plan->ranges(o)) {
      if (r.place == Place::input) fault(kInput, *mine.plan, e, "writes the caller's input");
      for (int c = r.first; c < r.first + r.cells; ++c) {
        const Value value = at < values.size() ? values[at++] : Value{};
        const auto buffer = static_cast<Buffer>(r.place);
        if (!value.defined() || layout_.cell(rank, buffer, value.chunk) != c) {
          fault(kResult, *mine.plan, e,
                "puts chunk " + std::to_string(value.chunk) + " into the cell of chunk " +
                    std::to_string(layout_.chunk(rank, buffer, c)));
        }
        user(rank, buffer, c, e.tile) = value;
      }
    }
  }

  bool fold_next(int rank) {
    WireRankState& mine = state(rank);
    if (mine.folded == mine.folds.size() || !ready(mine, mine.folds[mine.folded])) return false;
    const WireEvent e = mine.folds[mine.folded++];
    const WireOp& op = mine.plan->ops[index(e.op)];
    std::vector<std::vector<Value>> operands;
    for (const Operand& o : mine.plan->sources(op)) operands.push_back(read(rank, o, e.tile));
    std::vector<Value> results;
    for (std::size_t c = 0; c < operands.front().size(); ++c) {
      results.push_back(folded(op, operands, c));
    }
    write(rank, mine.plan->destinations(op).front(), e, results);
    ++mine.done[index(e.op)];
    return true;
  }

  Value folded(const WireOp& op, const std::vector<std::vector<Value>>& operands, std::size_t c) {
    Value value = algebra_.fold(operands.size(), op.shape, [&](std::size_t k) {
      return c < operands[k].size() ? operands[k][c] : Value{};
    });
    if (op.complete && layout_.folds_all()) value.finished = true;
    return value;
  }

  // One message, where both ends have come to it.
  bool pass(int from, int to) {
    WireRankState &sender = state(from), &receiver = state(to);
    const auto& out = sender.sends[to];
    const auto& in = receiver.receives[from];
    std::size_t &sent = sender.sent[to], &received = receiver.received[from];
    if (sent == out.size() || received == in.size()) return false;
    const WireEvent s = out[sent], r = in[received];
    if (!ready(sender, s) || !ready(receiver, r)) return false;
    const WireOp& send = sender.plan->ops[index(s.op)];
    const WireOp& receive = receiver.plan->ops[index(r.op)];
    const std::vector<Value> values = read(from, sender.plan->sources(send).front(), s.tile);
    const auto wanted = read(to, receiver.plan->sources(receive).front(), r.tile).size();
    if (send.round != receive.round || s.tile != r.tile || values.size() != wanted) {
      fault(kMatching, *receiver.plan, r, "gets the message of " + describe(*sender.plan, s));
      return false;
    }
    for (const Value& value : values) {
      if (!value.defined()) fault(kDefined, *sender.plan, s, "sends what holds nothing yet");
    }
    write(to, receiver.plan->destinations(receive).front(), r, values);
    ++sender.done[index(s.op)];
    ++receiver.done[index(r.op)];
    ++sent;
    ++received;
    return true;
  }

  void expect_all_done() {
    for (int rank = 0; rank < layout_.p; ++rank) {
      const WireRankState& mine = state(rank);
      for (int op = 0; op < static_cast<int>(mine.plan->ops.size()); ++op) {
        const int tile = mine.done[index(op)];
        if (tile < tiles_) fault(kMatching, *mine.plan, {op, tile}, "never ends");
      }
    }
  }

  void judge() {
    std::vector<Value> outputs(cells_.total());
    for (int tile = 0; tile < tiles_ && report_.proved; ++tile) {
      for (int rank = 0; rank < layout_.p; ++rank) {
        for (int c = 0; c < layout_.cells(rank, Buffer::output); ++c) {
          const Value& value = user(rank, Buffer::output, c, tile);
          const bool right = value.tag == static_cast<std::uint32_t>(tile);
          outputs[cells_.id(rank, Buffer::output, c)] = right ? value : Value{};
          if (layout_.folds_all() && layout_.p > 1 && !value.finished && report_.first(kResult)) {
            report_.message = "rank " + std::to_string(rank) + ", at the end: chunk " +
                              std::to_string(value.chunk) + " of the output lacks its epilogue";
          }
        }
      }
      judge_outcome({layout_, cells_, outputs, algebra_}, report_);
    }
  }

  Layout layout_;
  int tiles_;
  Report& report_;
  Cells cells_;
  Algebra algebra_;
  std::vector<Value> values_;  // [cell][tile]
  std::vector<WireRankState> ranks_;
};

}  // namespace

Report prove_wire(const std::vector<WirePlan>& plans, bool in_place, int tiles, unsigned checks,
                  const Claims& claims) {
  Report report(checks);
  for (const WirePlan& plan : plans) {
    const WireOrder order(plan, tiles);
    auto broken = order.broken();
    if (!broken) broken = order.race(in_place);
    if (broken && report.first(kDefined)) report.message = *broken;
    if (broken) return report;
  }
  WireProof(plans, in_place, tiles, report).run();
  if (report.proved) hold_to_trees(claims, report);
  return report;
}

Report prove_wire(const std::vector<WirePlan>& plans, bool in_place, const Claims& claims) {
  const WirePlan& one = plans.front();
  // Of many ranks the deepest run alone: more of them prove little more.
  const bool few = one.layout.p <= 16;
  Report report;
  for (const int tiles : {1, 2, one.depth + 2, one.depth + one.max_lag + 1}) {
    if (!few && tiles != one.depth + 2) continue;
    if (report.proved) {
      report = prove_wire(plans, in_place, std::min(tiles, one.depth + 8), kAllChecks, claims);
    }
  }
  return report;
}

}  // namespace coll
