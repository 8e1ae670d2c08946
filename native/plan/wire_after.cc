// SPDX-License-Identifier: Apache-2.0
#include "plan/wire_after.h"

#include <algorithm>
#include <map>

#include "base/looks.h"
#include "schedule/cells.h"

namespace coll {
namespace {

// Who wrote a cell last, and who has read it since.
struct Accesses {
  int writer = -1;
  std::vector<int> readers;
};

void put_after(WirePlan& plan, WireOp& op, const std::vector<After>& all) {
  op.after = {static_cast<std::uint32_t>(plan.after_pool.size()),
              static_cast<std::uint32_t>(all.size())};
  plan.after_pool.insert(plan.after_pool.end(), all.begin(), all.end());
}

class Derivation {
 public:
  explicit Derivation(WirePlan& plan)
      : plan_(plan),
        cells_(plan.layout, true),
        user_(cells_.total()),
        areas_(plan.areas.size()),
        reaches_(plan.ops.size(), std::vector<bool>(plan.ops.size())) {}

  void run() {
    plan_.after_pool.clear();
    for (int op = 0; op < static_cast<int>(plan_.ops.size()); ++op) {
      look();
      found_.clear();
      find(op);
      keep(op);
    }
    reuse_areas();
  }

 private:
  template <class F>
  void each(const Operand& o, F&& f) {
    if (o.area >= 0) return f(areas_[static_cast<std::size_t>(o.area)]);
    for (const PlaceRange& r : plan_.ranges(o)) {
      for (int c = 0; c < r.cells; ++c) {
        f(user_[cells_.id(plan_.rank, static_cast<Buffer>(r.place), r.first + c)]);
      }
    }
  }

  void find(int op) {
    const WireOp& now = plan_.ops[static_cast<std::size_t>(op)];
    for (const Operand& o : plan_.sources(now)) {
      if (now.act == WireAct::receive) break;  // nothing is read there
      each(o, [&](Accesses& a) {
        if (a.writer >= 0) found_.push_back(a.writer);
        a.readers.push_back(op);
      });
    }
    for (const Operand& o : plan_.destinations(now)) {
      each(o, [&](Accesses& a) {
        if (a.writer >= 0) found_.push_back(a.writer);
        found_.insert(found_.end(), a.readers.begin(), a.readers.end());
        a = {.writer = op, .readers = {}};
      });
    }
  }

  // The newest first: what they wait for need not be waited for again.
  void keep(int op) {
    std::ranges::sort(found_, std::ranges::greater{});
    found_.erase(std::ranges::unique(found_).begin(), found_.end());
    std::erase(found_, op);
    auto& reach = reaches_[static_cast<std::size_t>(op)];
    std::vector<After> kept;
    for (const int earlier : found_) {
      if (reach[static_cast<std::size_t>(earlier)]) continue;
      kept.push_back({earlier, 0});
      const auto& theirs = reaches_[static_cast<std::size_t>(earlier)];
      for (std::size_t i = 0; i < reach.size(); ++i) reach[i] = reach[i] || theirs[i];
      reach[static_cast<std::size_t>(earlier)] = true;
    }
    put(op, kept);
  }

  void put(int op, const std::vector<After>& all) {
    put_after(plan_, plan_.ops[static_cast<std::size_t>(op)], all);
  }

  // The slot that a tile's area lies in was that of the tile `depth` before.
  void reuse_areas() {
    for (int op = 0; op < static_cast<int>(plan_.ops.size()); ++op) {
      const WireOp& now = plan_.ops[static_cast<std::size_t>(op)];
      if (now.act == WireAct::fold || now.area < 0) continue;
      const auto& readers = areas_[static_cast<std::size_t>(now.area)].readers;
      // One message after the other lands, and is unpacked, on a connection.
      if (now.act == WireAct::receive && readers.empty()) continue;
      const auto old = plan_.after(now);
      std::vector<After> all(old.begin(), old.end());
      all.push_back({readers.empty() ? op : readers.back(), plan_.depth});
      put(op, all);
    }
  }

  WirePlan& plan_;
  Cells cells_;
  std::vector<Accesses> user_, areas_;
  std::vector<std::vector<bool>> reaches_;  // [op][earlier op]: by waits
  std::vector<int> found_;
};

}  // namespace

void derive_after(WirePlan& plan) { Derivation(plan).run(); }

void keep_pace(WirePlan& plan, int pace) {
  std::map<int, std::vector<After>> heard;  // by round
  for (int op = 0; op < static_cast<int>(plan.ops.size()); ++op) {
    const WireOp& now = plan.ops[static_cast<std::size_t>(op)];
    if (now.act == WireAct::receive) heard[now.round].push_back({op, pace});
  }
  for (WireOp& op : plan.ops) {
    if (op.act != WireAct::send || heard[op.round].size() < 2) continue;
    const auto old = plan.after(op);
    std::vector<After> all(old.begin(), old.end());
    all.insert(all.end(), heard[op.round].begin(), heard[op.round].end());
    put_after(plan, op, all);
  }
}

}  // namespace coll
