// SPDX-License-Identifier: Apache-2.0
// Damage that both ends of a message share, or all ranks: what no look at one message can see.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "schedule_edit.h"

namespace mutants {
namespace {

using coll::Buffer;
using coll::CellRange;
using coll::kSelf;
using coll::Op;
using loose::Schedule;
using loose::Step;

bool give_both_ends(Schedule& s, const Message& m, const std::vector<int>& chunks) {
  Step& send = at(s, m.from);
  Step& recv = at(s, m.to);
  return give_chunks(s, m.from.rank, send.source, chunks) &&
         give_chunks(s, m.to.rank, recv.target, chunks) &&
         give_chunks(s, m.to.rank, recv.source, chunks);
}

std::vector<int> rounds(const Schedule& s) {
  std::set<int> all;
  for (const auto& mine : s.ranks) {
    for (const Step& step : mine) all.insert(step.round);
  }
  return {all.begin(), all.end()};
}

bool duplicate_message(Schedule& s, Random& random, std::string& change) {
  Message m;
  if (!any_message(s, random, m)) return false;
  if (at(s, m.from).peers.size() > 1 || at(s, m.to).peers.size() > 2) return false;
  change = name(m);
  for (const Place& end : {m.from, m.to}) {
    const Step copy = at(s, end);
    steps(s, end.rank).insert(steps(s, end.rank).begin() + static_cast<int>(end.step), copy);
  }
  return true;
}

bool drop_message(Schedule& s, Random& random, std::string& change) {
  Message m;
  if (!any_message(s, random, m)) return false;
  change = name(m);
  std::erase(at(s, m.from).peers, m.to.rank);
  std::erase(at(s, m.to).peers, m.from.rank);
  for (const Place& end : {m.from, m.to}) {
    const auto& peers = at(s, end).peers;
    const bool only_self = peers.size() == 1 && peers.front() == kSelf;
    if (peers.empty() || only_self) {
      steps(s, end.rank).erase(steps(s, end.rank).begin() + static_cast<int>(end.step));
    }
  }
  return true;
}

bool shift_message(Schedule& s, Random& random, std::string& change) {
  Message m;
  if (!any_message(s, random, m)) return false;
  const int by = random.sign();
  at(s, m.from).round += by;
  at(s, m.to).round += by;
  change = name(m) + " by " + std::to_string(by);
  sort_rounds(s);
  return true;
}

// The message goes to another rank, which does what the receiver did.
bool redirect_both_ends(Schedule& s, Random& random, std::string& change) {
  Message m;
  if (s.p < 3 || !any_message(s, random, m)) return false;
  const int to = random.below(s.p);
  Step& send = at(s, m.from);
  Step recv = at(s, m.to);
  const auto& peers = send.peers;
  if (to == m.from.rank || std::find(peers.begin(), peers.end(), to) != peers.end()) return false;
  if (std::any_of(recv.peers.begin(), recv.peers.end(),
                  [&](int peer) { return peer != kSelf && peer != m.from.rank; })) {
    return false;
  }
  std::replace(send.peers.begin(), send.peers.end(), m.to.rank, to);
  steps(s, m.to.rank).erase(steps(s, m.to.rank).begin() + static_cast<int>(m.to.step));
  steps(s, to).push_back(recv);
  change = name(m) + ": now to rank " + std::to_string(to);
  sort_rounds(s);
  return true;
}

bool rerange_both_ends(Schedule& s, Random& random, std::string& change) {
  Message m;
  if (s.chunks < 2 || !any_message(s, random, m)) return false;
  std::vector<int> chunks = chunks_of(s, m.from.rank, at(s, m.from).source);
  if (random.below(2) == 0) {
    const int by = 1 + random.below(s.chunks - 1);
    for (int& c : chunks) c = (c + by) % s.chunks;
  } else {
    int& c = random.pick(chunks);
    c = (c + 1 + random.below(s.chunks - 1)) % s.chunks;
  }
  change = name(m);
  return give_both_ends(s, m, chunks);
}

bool resize_both_ends(Schedule& s, Random& random, std::string& change) {
  Message m;
  if (!any_message(s, random, m)) return false;
  if (at(s, m.from).peers.size() > 1 || at(s, m.to).peers.size() > 2) return false;
  Step& recv = at(s, m.to);
  for (Ranges* ranges : {&at(s, m.from).source, &recv.source, &recv.target}) {
    auto cells = cells_of(*ranges);
    if (cells.empty()) continue;
    if (cells.size() == 1) return false;
    cells.pop_back();
    *ranges = ranges_of(cells);
  }
  change = name(m);
  return true;
}

// Two messages carry each other's chunks, at all four ends.
bool exchange_chunks(Schedule& s, Random& random, std::string& change) {
  Message one, other;
  if (!any_message(s, random, one) || !any_message(s, random, other)) return false;
  const auto first = chunks_of(s, one.from.rank, at(s, one.from).source);
  const auto second = chunks_of(s, other.from.rank, at(s, other.from).source);
  if (first == second || first.size() != second.size()) return false;
  change = name(one) + " and " + name(other);
  return give_both_ends(s, one, second) && give_both_ends(s, other, first);
}

bool reorder_rounds(Schedule& s, Random& random, std::string& change) {
  std::vector<int> all = rounds(s);
  if (all.size() < 2) return false;
  const int one = random.pick(all), other = random.pick(all);
  if (one == other) return false;
  for (auto& mine : s.ranks) {
    for (Step& step : mine) {
      if (step.round == one || step.round == other) step.round = one + other - step.round;
    }
  }
  change = "rounds " + std::to_string(one) + " and " + std::to_string(other);
  sort_rounds(s);
  return true;
}

// Two rounds become one, on all ranks: what was read after the first is now read before it.
bool merge_rounds(Schedule& s, Random& random, std::string& change) {
  const std::vector<int> all = rounds(s);
  if (all.size() < 2) return false;
  const std::size_t first = random.index(all.size() - 1);
  for (auto& mine : s.ranks) {
    for (Step& step : mine) {
      if (step.round == all[first + 1]) step.round = all[first];
    }
  }
  change = "rounds " + std::to_string(all[first]) + " and " + std::to_string(all[first + 1]);
  return true;
}

// One rank keeps in its input what it kept in its scratch, or in its output.
bool work_in_input(Schedule& s, Random& random, std::string& change) {
  const int rank = random.below(s.p);
  const auto buffer = random.below(2) == 0 ? coll::Buffer::scratch : coll::Buffer::output;
  for (Step& step : steps(s, rank)) {
    for (Ranges* ranges : {&step.source, &step.target}) {
      const auto chunks = chunks_of(s, rank, *ranges);
      for (CellRange& r : *ranges) r.buffer = r.buffer == buffer ? coll::Buffer::input : r.buffer;
      if (!give_chunks(s, rank, *ranges, chunks)) return false;
    }
  }
  change = "rank " + std::to_string(rank);
  if (buffer == coll::Buffer::scratch) return true;
  // Its results are to come out all the same.
  const coll::Layout layout(s.kind, s.p, s.root, s.chunks);
  const int cells = layout.cells(rank, buffer), first = layout.chunk(rank, buffer, 0);
  if (cells == 0 || layout.cells(rank, coll::Buffer::input) < s.chunks) return false;
  steps(s, rank).push_back({Op::copy,
                            rounds(s).back() + 1,
                            coll::Shape::left,
                            {},
                            {{coll::Buffer::input, first, cells}},
                            {{buffer, 0, cells}}});
  return true;
}

// Two ranks play each other's part in one round, on all ranks.
bool exchange_ranks(Schedule& s, Random& random, std::string& change) {
  std::vector<int> all = rounds(s);
  if (s.p < 2 || all.empty()) return false;
  const int round = random.pick(all), a = random.below(s.p);
  const int b = (a + 1 + random.below(s.p - 1)) % s.p;
  for (auto& mine : s.ranks) {
    for (Step& step : mine) {
      if (step.round != round) continue;
      for (int& peer : step.peers) peer = peer == a ? b : peer == b ? a : peer;
    }
  }
  std::vector<Step> of_a, of_b;
  const auto take = [&](int rank, std::vector<Step>& into) {
    for (const Step& step : steps(s, rank)) {
      if (step.round == round) into.push_back(step);
    }
    std::erase_if(steps(s, rank), [&](const Step& step) { return step.round == round; });
  };
  take(a, of_a);
  take(b, of_b);
  steps(s, a).insert(steps(s, a).end(), of_b.begin(), of_b.end());
  steps(s, b).insert(steps(s, b).end(), of_a.begin(), of_a.end());
  change = "ranks " + std::to_string(a) + " and " + std::to_string(b) + " in round " +
           std::to_string(round);
  sort_rounds(s);
  return true;
}

bool shift_root(Schedule& s, Random& random, std::string& change) {
  if (s.p < 2) return false;
  s.root = (s.root + 1 + random.below(s.p - 1)) % s.p;
  change = "to rank " + std::to_string(s.root);
  return true;
}

}  // namespace

std::span<const Mutator<Schedule>> of_messages() {
  static constexpr auto all = std::to_array<Mutator<Schedule>>({
      {"duplicate a message", 3, duplicate_message},
      {"drop a message", 8, drop_message},
      {"shift the round of a message", 5, shift_message},
      {"reorder two rounds", 10, reorder_rounds},
      {"exchange two ranks in a round", 10, exchange_ranks},
      {"redirect both ends", 8, redirect_both_ends},
      {"re-range both ends", 10, rerange_both_ends},
      {"shorten both ends", 10, resize_both_ends},
      {"exchange chunks at both sides", 10, exchange_chunks},
      {"merge two rounds", 2, merge_rounds},
      {"work in the input", 6, work_in_input},
      {"shift the root", 3, shift_root},
  });
  return all;
}

}  // namespace mutants
