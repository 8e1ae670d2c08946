// SPDX-License-Identifier: Apache-2.0
#include "schedule/check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "schedule/layout.h"

namespace coll {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr int kMaxRounds = 1 << 24;
constexpr int kMaxCells = 1 << 26;  // of one buffer, over all ranks

std::string peers_text(const Program& program, const Step& step) {
  std::string text;
  const auto peers = program.peers(step);
  for (std::size_t i = 0; i < peers.size() && i < 4; ++i) {
    text += (i == 0 ? "" : ",") + (peers[i] == kSelf ? "self" : std::to_string(peers[i]));
  }
  return peers.size() > 4 ? text + ",..." : text;
}

class StructureCheck {
 public:
  explicit StructureCheck(const Schedule& s) : s_(s), layout_(s) {}

  std::optional<std::string> run() {
    if (s_.p < 1 || s_.p > kMaxRanks) return "the number of ranks is impossible";
    if (s_.programs.size() != static_cast<std::size_t>(s_.p)) return "a rank has no program";
    if (s_.root < 0 || s_.root >= s_.p) return "the root is not a rank";
    const int copies = s_.kind == Kind::alltoall ? 1 : s_.p;  // of a chunk, in each buffer
    if (s_.chunks > kMaxCells / copies) return "the number of chunks is impossible";
    if (!layout_.chunks_suit()) return "the number of chunks does not suit the kind";
    seen_.assign(static_cast<std::size_t>(s_.p), 0);
    for (int rank = 0; rank < s_.p; ++rank) {
      const Program& program = s_.programs[static_cast<std::size_t>(rank)];
      int round = 0;
      for (std::size_t i = 0; i < program.steps.size(); ++i) {
        const char* fault = step_fault(rank, program, program.steps[i], round);
        if (fault != nullptr) return describe(rank, program, i) + ": " + fault;
        round = program.steps[i].round;
      }
    }
    return std::nullopt;
  }

 private:
  const char* step_fault(int rank, const Program& program, const Step& step, int round) {
    if (step.round < round) return "its round is below that of the step before";
    if (step.round > kMaxRounds) return "its round is impossible";
    const auto peers = program.peers(step);
    const bool folds_own = std::find(peers.begin(), peers.end(), kSelf) != peers.end();
    const bool needs_source = step.op == Op::recv_reduce ? folds_own : step.op != Op::recv;
    const bool needs_target = step.op != Op::send;
    if ((step.op == Op::copy || step.op == Op::reduce) != peers.empty())
      return "wrong number of peers";
    if (step.op == Op::recv && peers.size() != 1) return "a recv has one peer";
    if (const char* fault = peer_fault(rank, step, peers)) return fault;
    const auto source = program.source(step), target = program.target(step);
    if (needs_source == source.empty() || needs_target == target.empty()) {
      return "an operand is missing or superfluous";
    }
    for (const auto ranges : {source, target}) {
      if (const char* fault = range_fault(rank, ranges)) return fault;
    }
    if (needs_source && needs_target && total(source) != total(target)) {
      return "its operands differ in size";
    }
    return nullptr;
  }

  // Wider than cells_of(): many ranges, each within its buffer, can add up to more than an int.
  static std::int64_t total(std::span<const CellRange> ranges) {
    std::int64_t sum = 0;
    for (const CellRange& r : ranges) sum += r.cells;
    return sum;
  }

  const char* peer_fault(int rank, const Step& step, std::span<const int> peers) {
    ++stamp_;
    bool self = false;
    for (const int peer : peers) {
      if (peer == kSelf) {
        if (step.op != Op::recv_reduce || self) return "self has no place here";
        self = true;
        continue;
      }
      if (peer < 0 || peer >= s_.p) return "a peer is not a rank";
      if (peer == rank) return "a rank does not send to itself";
      if (std::exchange(seen_[static_cast<std::size_t>(peer)], stamp_) == stamp_) {
        return "a peer is named twice";
      }
    }
    if (self && peers.size() == 1) return "it folds nothing but its own operand";
    return nullptr;
  }

  const char* range_fault(int rank, std::span<const CellRange> ranges) {
    for (const CellRange& r : ranges) {
      const int cells = layout_.cells(rank, r.buffer);
      if (r.first < 0 || r.cells < 1 || r.first > cells - r.cells) {
        return "cells outside the buffer";
      }
    }
    return nullptr;
  }

  const Schedule& s_;
  Layout layout_;
  std::vector<long> seen_;
  long stamp_ = 0;
};

}  // namespace

std::string describe(int rank, const Program& program, std::size_t index) {
  static constexpr std::array names = {"send to ", "recv from ", "recv_reduce of ", "copy",
                                       "reduce"};
  const Step& step = program.steps[index];
  return "rank " + std::to_string(rank) + ", step " + std::to_string(index) + " (round " +
         std::to_string(step.round) + ", " + names[static_cast<std::size_t>(step.op)] +
         peers_text(program, step) + ")";
}

std::optional<std::string> broken_structure(const Schedule& schedule) {
  return StructureCheck(schedule).run();
}

}  // namespace coll
