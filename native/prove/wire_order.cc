// SPDX-License-Identifier: Apache-2.0
#include "prove/wire_order.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/index.h"
#include "base/looks.h"
#include "schedule/cells.h"

namespace coll {
namespace {

// Who touched a place last.
struct Touched {
  std::optional<std::size_t> writer;
  std::vector<std::size_t> readers;
};

void join(std::vector<std::uint64_t>& into, const std::vector<std::uint64_t>& other) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] |= other[i];
}

}  // namespace

std::string describe(const WirePlan& plan, const WireEvent& event) {
  const WireOp& op = plan.ops[index(event.op)];
  const std::string peer = "rank " + std::to_string(op.peer) + ", ";
  const std::string what = op.act == WireAct::send      ? "send to " + peer
                           : op.act == WireAct::receive ? "receive from " + peer
                                                        : "fold, ";
  return "rank " + std::to_string(plan.rank) + ", op " + std::to_string(event.op) + " (" + what +
         "round " + std::to_string(op.round) + "), tile " + std::to_string(event.tile);
}

WireOrder::WireOrder(const WirePlan& plan, int tiles) : plan_(plan), tiles_(tiles) {
  for (int op = 0; op < static_cast<int>(plan.ops.size()); ++op) {
    for (int tile = 0; tile < tiles; ++tile) events_.push_back({op, tile});
  }
  std::ranges::sort(events_, {}, [&](const WireEvent& e) {
    return std::pair(e.tile + plan.ops[index(e.op)].lag, e.op);
  });
  place_.assign(plan.ops.size(), std::vector<std::size_t>(index(tiles)));
  for (std::size_t i = 0; i < events_.size(); ++i) {
    place_[index(events_[i].op)][index(events_[i].tile)] = i;
  }
  find_order();
}

void WireOrder::begin_after(std::size_t event, Bits& began) {
  const auto [op, tile] = events_[event];
  for (const After& after : plan_.after(plan_.ops[index(op)])) {
    const int earlier = tile - after.back;
    if (earlier < 0) continue;
    const std::size_t other = place_[index(after.op)][index(earlier)];
    if (other >= event) {
      if (!broken_) broken_ = describe(plan_, events_[event]) + ": waits for what comes later";
      continue;
    }
    join(began, over_[other]);
  }
}

// A message is sent, or lands, when those before it on its connection have; a fold begins when the
// fold before it is over, and a message begins to land when the one before it has.
void WireOrder::find_order() {
  const Bits none((events_.size() + 63) / 64, 0);
  began_.assign(events_.size(), none);
  over_.assign(events_.size(), none);
  std::map<std::pair<WireAct, int>, std::size_t> last;  // of each lane
  for (std::size_t e = 0; e < events_.size(); ++e) {
    look();
    const WireOp& op = plan_.ops[index(events_[e].op)];
    const std::pair lane(op.act, op.peer);
    begin_after(e, began_[e]);
    const auto before = last.find(lane);
    if (before != last.end()) {
      join(began_[e], began_[before->second]);
      if (op.act != WireAct::send) join(began_[e], over_[before->second]);
    }
    over_[e] = began_[e];
    if (before != last.end()) join(over_[e], over_[before->second]);
    over_[e][e / 64] |= std::uint64_t{1} << (e % 64);
    last[lane] = e;
  }
}

std::optional<std::string> WireOrder::race(bool in_place) const {
  const Cells cells(plan_.layout, in_place);
  std::map<std::tuple<bool, std::size_t, int>, Touched> places;  // (area, number, tile or slot)
  std::optional<std::string> found;
  const auto follow = [&](std::size_t event, std::size_t other, const char* what) {
    if (found || event == other || has(began_[event], other)) return;
    found = describe(plan_, events_[event]) + ": " + what + " " + describe(plan_, events_[other]);
  };
  const auto read = [&](std::size_t event, Touched& place) {
    if (place.writer) follow(event, *place.writer, "reads what may not be written yet, by");
    place.readers.push_back(event);
  };
  const auto write = [&](std::size_t event, Touched& place) {
    if (place.writer) follow(event, *place.writer, "overwrites what may not be written yet, by");
    for (const std::size_t r : place.readers) {
      follow(event, r, "overwrites what may not be read yet, by");
    }
    place = {event, {}};
  };
  const auto area = [&](int number, int tile) -> Touched& {
    return places[{true, index(number), tile % plan_.depth}];
  };
  const auto each = [&](const Operand& o, int tile, auto&& f) {
    if (o.area >= 0) return f(area(o.area, tile));
    for (const PlaceRange& r : plan_.ranges(o)) {
      for (int c = r.first; c < r.first + r.cells; ++c) {
        f(places[{false, cells.id(plan_.rank, static_cast<Buffer>(r.place), c), tile}]);
      }
    }
  };
  for (std::size_t e = 0; e < events_.size() && !found; ++e) {
    look();
    const WireOp& op = plan_.ops[index(events_[e].op)];
    const int tile = events_[e].tile;
    if (op.act != WireAct::receive) {
      for (const Operand& o : plan_.sources(op)) each(o, tile, [&](Touched& t) { read(e, t); });
    }
    bool lands_in_area = false;
    for (const Operand& o : plan_.destinations(op)) {
      each(o, tile, [&](Touched& t) { write(e, t); });
      lands_in_area = lands_in_area || o.area >= 0;
    }
    // Where the message may be packed, or unpacked from.
    const bool passes = op.act != WireAct::fold && op.area >= 0 && !lands_in_area;
    if (passes) write(e, area(op.area, tile));
  }
  return found;
}

}  // namespace coll
