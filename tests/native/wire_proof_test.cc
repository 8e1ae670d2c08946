// SPDX-License-Identifier: Apache-2.0
// Plans for the wire: all of them prove; weakened ones do not.
#include "prove/wire_proof.h"

#include <chrono>
#include <string>

#include "algorithms/algorithm.h"
#include "check.h"
#include "communicator/claims_of.h"
#include "instrumented.h"
#include "plan/wire_lower.h"
#include "prove/wire_order.h"

namespace {

using namespace coll;

std::vector<WirePlan> plans_of(const Algorithm& a, int p, int root, const WireLowering& how) {
  const Schedule schedule = make_schedule(a, p, root);
  std::vector<WirePlan> plans;
  for (int rank = 0; rank < p; ++rank) plans.push_back(lower_for_wire(schedule, rank, how));
  return plans;
}

bool rooted(const Algorithm& a) { return Layout(a.kind, 2, 0, 2).rooted(); }

TEST(every_plan_for_the_wire_proves) {
  int proofs = 0;
  for (const Algorithm* a : algorithms()) {
    for (int p = 1; p <= (check::kShort ? 3 : 7); ++p) {
      if (!a->fits(p)) continue;
      for (int root = 0; root < (rooted(*a) ? p : 1); ++root) {
        for (const WireLowering how :
             {WireLowering{1, 0}, WireLowering{2, 1}, WireLowering{3, 2, 1}}) {
          const auto plans = plans_of(*a, p, root, how);
          for (const bool in_place : {false, true}) {
            const Report report = prove_wire(plans, in_place, claims_of(*a, p));
            if (!report.proved) check::fail(std::string(a->name) + ": " + report.message);
            ++proofs;
          }
        }
      }
    }
  }
  CHECK(proofs > (check::kShort ? 300 : 1000));
}

struct Score {
  int made = 0, rejected = 0, equal = 0;
  std::string survivors;
};

// A wait that follows from the others: every op still begins after the same ones.
bool same_order(const WirePlan& one, const WirePlan& other) {
  for (const int tiles : {1, 2, one.depth + 2}) {
    if (!WireOrder(one, tiles).equals(WireOrder(other, tiles))) return false;
  }
  return true;
}

void judge(Score& score, const std::vector<WirePlan>& plans, const std::string& what) {
  ++score.made;
  for (const bool in_place : {false, true}) {
    const Report report = prove_wire(plans, in_place);
    if (report.proved) continue;
    CHECK(report.message.find("rank ") != std::string::npos);
    ++score.rejected;
    return;
  }
  score.survivors += "\n  " + what;
}

// Every wait of every rank left out, or for a tile, or an op, too early.
void weaken_waits(Score& score, const std::vector<WirePlan>& plans, const std::string& name) {
  for (std::size_t r = 0; r < plans.size(); ++r) {
    for (std::size_t o = 0; o < plans[r].ops.size(); ++o) {
      const Slice all = plans[r].ops[o].after;
      for (std::uint32_t i = all.begin; i < all.begin + all.count; ++i) {
        const std::string what = name + ", rank " + std::to_string(r) + ", op " +
                                 std::to_string(o) + ", wait " + std::to_string(i);
        auto later = plans;
        ++later[r].after_pool[i].back;
        if (!same_order(plans[r], later[r])) {
          judge(score, later, what + " a tile too early");
        } else {
          ++score.equal;
        }
        auto dropped = plans;
        dropped[r].after_pool.erase(dropped[r].after_pool.begin() + i);
        for (WireOp& op : dropped[r].ops) {
          if (op.after.begin > i) --op.after.begin;
        }
        --dropped[r].ops[o].after.count;
        if (!same_order(plans[r], dropped[r])) {
          judge(score, dropped, what + " dropped");
        } else {
          ++score.equal;
        }
      }
    }
  }
}

// What moves, and where to: another cell, another round's lag, the order of two ops of a lane.
void bend_ops(Score& score, const std::vector<WirePlan>& plans, const std::string& name) {
  for (std::size_t r = 0; r < plans.size(); ++r) {
    for (std::size_t o = 0; o < plans[r].ops.size(); ++o) {
      const WireOp& op = plans[r].ops[o];
      const std::string what = name + ", rank " + std::to_string(r) + ", op " + std::to_string(o);
      if (op.act == WireAct::send && plans[r].layout.chunks > 1) {
        auto bent = plans;
        PlaceRange& range = bent[r].range_pool[bent[r].sources(op).front().ranges.begin];
        const int cells =
            plans[r].layout.cells(static_cast<int>(r), static_cast<Buffer>(range.place));
        if (range.cells == cells) continue;
        range.first = range.first + range.cells < cells ? range.first + 1 : range.first - 1;
        judge(score, bent, what + " sends another cell");
      }
      if (op.act == WireAct::fold && op.sources.count > 1) {
        auto bent = plans;
        --bent[r].ops[o].sources.count;
        judge(score, bent, what + " forgets an operand");
      }
    }
  }
}

TEST(weakened_plans_for_the_wire_are_rejected) {
  Score score;
  for (const Algorithm* a : algorithms()) {
    for (const int p : {2, 3}) {
      if (!a->fits(p)) continue;
      if (check::kShort && p > 2) continue;
      const auto plans = plans_of(*a, p, p - 1 - (rooted(*a) ? 0 : p - 1), {2, 1});
      const std::string name = std::string(a->name) + " p " + std::to_string(p);
      weaken_waits(score, plans, name);
      bend_ops(score, plans, name);
    }
  }
  if (score.rejected < score.made) {
    std::printf("%d of %d rejected, %d more equal; left:%s\n", score.rejected, score.made,
                score.equal, score.survivors.substr(0, 3000).c_str());
  }
  CHECK(score.made > (check::kShort ? 100 : 500));
  CHECK(score.rejected * 100 >= score.made * 99);
}

}  // namespace
