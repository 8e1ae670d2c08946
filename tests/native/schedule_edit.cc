// SPDX-License-Identifier: Apache-2.0
#include "schedule_edit.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "schedule/layout.h"

namespace mutants {
namespace {

using coll::Buffer;
using coll::CellRange;
using coll::kSelf;
using coll::Op;
using loose::Schedule;
using loose::Step;

// The messages of a right schedule: those of a round from one rank to another match in order.
std::vector<Message> messages(Schedule& s) {
  std::map<std::tuple<int, int, int>, std::deque<Place>> sent;
  std::vector<Message> all;
  for (const bool sending : {true, false}) {
    for (int rank = 0; rank < s.p; ++rank) {
      for (std::size_t i = 0; i < steps(s, rank).size(); ++i) {
        const Step& step = steps(s, rank)[i];
        if ((step.op == Op::send) != sending) continue;
        for (const int peer : step.peers) {
          if (peer == kSelf) continue;
          if (sending) {
            sent[{step.round, rank, peer}].push_back({rank, i});
          } else {
            auto& channel = sent[{step.round, peer, rank}];
            all.push_back({channel.front(), {rank, i}});
            channel.pop_front();
          }
        }
      }
    }
  }
  return all;
}

}  // namespace

std::string name(const Place& p) {
  return "rank " + std::to_string(p.rank) + " step " + std::to_string(p.step);
}
std::string name(const Message& m) { return "message " + name(m.from) + " to " + name(m.to); }

bool any_step(Schedule& s, Random& random, Place& place, bool (*wanted)(const Step&)) {
  std::vector<Place> all;
  for (int rank = 0; rank < s.p; ++rank) {
    for (std::size_t i = 0; i < steps(s, rank).size(); ++i) {
      if (wanted(steps(s, rank)[i])) all.push_back({rank, i});
    }
  }
  if (all.empty()) return false;
  place = random.pick(all);
  return true;
}

bool any_message(Schedule& s, Random& random, Message& m) {
  std::vector<Message> all = messages(s);
  if (all.empty()) return false;
  m = random.pick(all);
  return true;
}

std::vector<std::pair<Buffer, int>> cells_of(const Ranges& ranges) {
  std::vector<std::pair<Buffer, int>> cells;
  for (const CellRange& r : ranges) {
    for (int c = 0; c < r.cells; ++c) cells.emplace_back(r.buffer, r.first + c);
  }
  return cells;
}

Ranges ranges_of(const std::vector<std::pair<Buffer, int>>& cells) {
  Ranges ranges;
  for (const auto& [buffer, cell] : cells) {
    if (!ranges.empty() && ranges.back().buffer == buffer &&
        ranges.back().first + ranges.back().cells == cell) {
      ++ranges.back().cells;
    } else {
      ranges.push_back({buffer, cell, 1});
    }
  }
  return ranges;
}

bool give_chunks(const Schedule& s, int rank, Ranges& ranges, const std::vector<int>& chunks) {
  const coll::Layout layout(s.kind, s.p, s.root, s.chunks);
  auto cells = cells_of(ranges);
  if (cells.size() != chunks.size()) return ranges.empty();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i].second = layout.cell(rank, cells[i].first, chunks[i]);
    if (cells[i].second < 0) return false;
  }
  ranges = ranges_of(cells);
  return true;
}

std::vector<int> chunks_of(const Schedule& s, int rank, const Ranges& ranges) {
  const coll::Layout layout(s.kind, s.p, s.root, s.chunks);
  std::vector<int> chunks;
  for (const auto& [buffer, cell] : cells_of(ranges)) {
    const int chunk = layout.chunk(rank, buffer, cell);
    // Of the chunks that may lie in a scratch cell of alltoall, the one that this rank has.
    chunks.push_back(chunk >= 0 ? chunk : rank * s.p + (rank + cell) % s.p);
  }
  return chunks;
}

void sort_rounds(Schedule& s) {
  for (auto& mine : s.ranks) {
    std::stable_sort(mine.begin(), mine.end(),
                     [](const Step& a, const Step& b) { return a.round < b.round; });
  }
}

}  // namespace mutants
