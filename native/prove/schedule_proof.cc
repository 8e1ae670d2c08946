// SPDX-License-Identifier: Apache-2.0
#include "prove/schedule_proof.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/looks.h"
#include "prove/outcome.h"
#include "schedule/cells.h"
#include "schedule/check.h"
#include "schedule/layout.h"

namespace coll {
namespace {

struct Message {
  int from;
  std::uint32_t begin, count;  // in the pool of the round's values
  std::uint32_t step;
  bool taken = false;
};

class SymbolicRun {
 public:
  SymbolicRun(const Schedule& s, bool in_place, bool details, Report& report)
      : s_(s),
        layout_(s),
        report_(report),
        algebra_(s.kind, s.p, details),
        cells_(layout_, in_place),
        values_(cells_.total()),
        writer_(cells_.total(), kNobody),
        cursor_(static_cast<std::size_t>(s.p)),
        inbox_(static_cast<std::size_t>(s.p)) {}

  void run() {
    fill_inputs();
    for (int round = next_round(); round != kNoRound; round = next_round()) {
      if (send(round)) ++report_.rounds;
      receive(round);
      expect_empty_channels(round);
      copy(round);
    }
    count_cost();
    judge_outcome({layout_, cells_, values_, algebra_}, report_);
  }

 private:
  static constexpr int kNoRound = std::numeric_limits<int>::max();
  static constexpr std::int32_t kNobody = -1;
  static constexpr std::size_t kStepsBetweenLooks = 16;

  const Program& program(int rank) const { return s_.programs[static_cast<std::size_t>(rank)]; }
  std::size_t& cursor(int rank) { return cursor_[static_cast<std::size_t>(rank)]; }

  void fault(Check check, int rank, std::size_t step, const std::string& text) {
    if (report_.first(check)) report_.message = describe(rank, program(rank), step) + ": " + text;
  }

  // "chunk 3", "chunks 3, 4, 5, 6, ...": what these cells of a rank stand for.
  std::string chunks_of(int rank, std::span<const CellRange> ranges) const {
    constexpr int kMost = 4;
    std::string text;
    int listed = 0;
    for (const CellRange& r : ranges) {
      for (int c = r.first; c < r.first + r.cells; ++c) {
        if (++listed > kMost) return "chunks " + text + ", ...";
        text += (listed == 1 ? "" : ", ") + std::to_string(layout_.chunk(rank, r.buffer, c));
      }
    }
    return (listed == 1 ? "chunk " : "chunks ") + text;
  }

  void fill_inputs() {
    for (int rank = 0; rank < s_.p; ++rank) {
      look();
      for (int c = 0; c < layout_.cells(rank, Buffer::input); ++c) {
        values_[cells_.id(rank, Buffer::input, c)] =
            algebra_.leaf(layout_.chunk(rank, Buffer::input, c), rank);
      }
    }
  }

  int next_round() {
    int round = kNoRound;
    for (int rank = 0; rank < s_.p; ++rank) {
      const auto& steps = program(rank).steps;
      if (cursor(rank) < steps.size()) round = std::min(round, steps[cursor(rank)].round);
    }
    return round;
  }

  // Calls f(rank, index, step) for the steps of the round whose operation is one of two.
  template <class F>
  void each(int round, Op one, Op other, F&& f) {
    look();
    for (int rank = 0; rank < s_.p; ++rank) {
      const auto& steps = program(rank).steps;
      for (std::size_t i = cursor(rank); i < steps.size() && steps[i].round == round; ++i) {
        if (steps[i].op != one && steps[i].op != other) continue;
        f(rank, i, steps[i]);
        if (i % kStepsBetweenLooks == 0) look();
      }
    }
  }

  template <class F>
  void each_cell(int rank, std::span<const CellRange> ranges, F&& f) {
    for (const CellRange& r : ranges) {
      for (int c = r.first; c < r.first + r.cells; ++c)
        f(cells_.id(rank, r.buffer, c), r.buffer, c);
    }
  }

  bool send(int round) {
    round_values_.clear();
    for (auto& box : inbox_) box.clear();
    bool any = false;
    each(round, Op::send, Op::send, [&](int rank, std::size_t i, const Step& step) {
      const auto begin = static_cast<std::uint32_t>(round_values_.size());
      each_cell(rank, program(rank).source(step), [&](std::size_t id, Buffer, int) {
        if (!values_[id].defined()) fault(kDefined, rank, i, "sends a cell that holds nothing yet");
        round_values_.push_back(values_[id]);
      });
      const auto count = static_cast<std::uint32_t>(round_values_.size()) - begin;
      for (const int peer : program(rank).peers(step)) {
        inbox_[static_cast<std::size_t>(peer)].push_back(
            {rank, begin, count, static_cast<std::uint32_t>(i)});
        if (!any) report_.last_round = {rank, i};
        any = true;
      }
    });
    return any;
  }

  // The oldest message of this round from a peer that was not yet received.
  Message* take(int rank, int from) {
    auto& box = inbox_[static_cast<std::size_t>(rank)];
    auto it = std::lower_bound(box.begin(), box.end(), from,
                               [](const Message& m, int f) { return m.from < f; });
    for (; it != box.end() && it->from == from; ++it) {
      if (!it->taken) {
        it->taken = true;
        return &*it;
      }
    }
    return nullptr;
  }

  void receive(int round) {
    pending_.clear();
    own_reads_.clear();
    each(round, Op::recv, Op::recv_reduce,
         [&](int rank, std::size_t i, const Step& step) { receive_step(rank, i, step); });
    for (const OwnRead& read : own_reads_) {
      const std::int32_t w = writer_[read.cell];
      if (w != kNobody && static_cast<std::size_t>(w) != read.step) {
        fault(kDefined, read.rank, read.step,
              "its own operand is written by another receive of the same round");
      }
    }
    for (const auto& [cell, value] : pending_) {
      values_[cell] = value;
      writer_[cell] = kNobody;
    }
  }

  void receive_step(int rank, std::size_t i, const Step& step) {
    const auto peers = program(rank).peers(step);
    operands_.clear();
    const auto wanted = static_cast<std::uint32_t>(cells_of(program(rank).target(step)));
    for (const int peer : peers) {
      if (peer == kSelf) {
        operands_.push_back(nullptr);
        continue;
      }
      const Message* m = take(rank, peer);
      if (m == nullptr) {
        fault(kMatching, rank, i,
              "waits for " + chunks_of(rank, program(rank).target(step)) +
                  " in a message that rank " + std::to_string(peer) + " never sends in this round");
      } else if (m->count != wanted) {
        fault(kMatching, rank, i,
              "expects " + std::to_string(wanted) + " cells (" +
                  chunks_of(rank, program(rank).target(step)) + "), rank " + std::to_string(peer) +
                  " sends " + std::to_string(m->count));
      }
      operands_.push_back(m);
    }
    own_.clear();
    each_cell(rank, program(rank).source(step), [&](std::size_t id, Buffer, int) {
      if (!values_[id].defined()) fault(kDefined, rank, i, "folds a cell that holds nothing yet");
      own_reads_.push_back({id, rank, i});
      own_.push_back(values_[id]);
    });
    std::uint32_t at = 0;
    each_cell(rank, program(rank).target(step), [&](std::size_t id, Buffer buffer, int cell) {
      write(rank, i, id, buffer, cell, received(step, at++), true);
    });
  }

  // The value that a receive step gives to its at-th cell.
  Value received(const Step& step, std::uint32_t at) {
    const auto operand = [&](std::size_t k) -> Value {
      const Message* m = operands_[k];
      if (m != nullptr) return at < m->count ? round_values_[m->begin + at] : Value{};
      return step.op == Op::recv_reduce && at < own_.size() ? own_[at] : Value{};
    };
    return algebra_.fold(operands_.size(), step.shape, operand);
  }

  void write(int rank, std::size_t i, std::size_t id, Buffer buffer, int cell, const Value& value,
             bool receive) {
    if (buffer == Buffer::input) fault(kInput, rank, i, "writes the caller's input");
    const int chunk = layout_.chunk(rank, buffer, cell);
    if (value.defined() && layout_.cell(rank, buffer, value.chunk) != cell) {
      fault(kResult, rank, i,
            "puts chunk " + std::to_string(value.chunk) + " into the cell of chunk " +
                std::to_string(chunk));
    } else if (!value.defined()) {
      fault(kDefined, rank, i,
            "makes chunk " + std::to_string(chunk) + " of operands that do not belong together");
    }
    if (!receive) {
      values_[id] = value;
      return;
    }
    if (writer_[id] != kNobody) {
      fault(kDefined, rank, i,
            "chunk " + std::to_string(chunk) + " is written by two receives of the same round");
    }
    writer_[id] = static_cast<std::int32_t>(i);
    pending_.emplace_back(id, value);
  }

  void expect_empty_channels(int round) {
    for (int rank = 0; rank < s_.p; ++rank) {
      for (const Message& m : inbox_[static_cast<std::size_t>(rank)]) {
        if (m.taken) continue;
        const Step& sent = program(m.from).steps[m.step];
        fault(kMatching, m.from, m.step,
              "rank " + std::to_string(rank) + " does not receive it in round " +
                  std::to_string(round) + ": " + chunks_of(m.from, program(m.from).source(sent)));
      }
    }
  }

  void copy(int round) {
    each(round, Op::copy, Op::reduce, [&](int rank, std::size_t i, const Step& step) {
      const auto read = [&](std::span<const CellRange> ranges, std::vector<Value>& into) {
        into.clear();
        each_cell(rank, ranges, [&](std::size_t id, Buffer, int) {
          if (!values_[id].defined())
            fault(kDefined, rank, i, "reads a cell that holds nothing yet");
          into.push_back(values_[id]);
        });
      };
      read(program(rank).source(step), own_);
      if (step.op == Op::reduce) {
        read(program(rank).target(step), round_values_);
        for (std::size_t c = 0; c < own_.size(); ++c) {
          own_[c] = algebra_.fold(
              2, Shape::left, [&](std::size_t k) { return k == 0 ? own_[c] : round_values_[c]; });
        }
      }
      std::size_t at = 0;
      each_cell(rank, program(rank).target(step), [&](std::size_t id, Buffer buffer, int cell) {
        write(rank, i, id, buffer, cell, own_[at++], false);
      });
    });
    for (int rank = 0; rank < s_.p; ++rank) {
      const auto& steps = program(rank).steps;
      while (cursor(rank) < steps.size() && steps[cursor(rank)].round == round) ++cursor(rank);
    }
  }

  void count_cost() {
    for (int rank = 0; rank < s_.p; ++rank) {
      const Program& p = program(rank);
      double sent = 0, folded = 0;
      std::size_t last_send = 0, last_fold = 0;
      for (std::size_t i = 0; i < p.steps.size(); ++i) {
        const Step& step = p.steps[i];
        if (step.op == Op::send) {
          sent += double(cells_of(p.source(step))) * double(step.peers.count);
          last_send = i;
        } else if (step.op == Op::recv_reduce) {
          folded += double(cells_of(p.target(step))) * double(step.peers.count - 1);
          last_fold = i;
        } else if (step.op == Op::reduce) {
          folded += double(cells_of(p.target(step)));
          last_fold = i;
        }
      }
      note_most(sent / layout_.vector_cells(), report_.bytes, report_.most_bytes,
                {rank, last_send});
      note_most(folded / layout_.vector_cells(), report_.reductions, report_.most_reductions,
                {rank, last_fold});
    }
  }

  static void note_most(double share, double& most, Witness& who, const Witness& here) {
    if (share <= most && who.rank >= 0) return;
    most = share;
    who = here;
  }

  struct OwnRead {
    std::size_t cell;
    int rank;
    std::size_t step;
  };

  const Schedule& s_;
  Layout layout_;
  Report& report_;
  Algebra algebra_;
  Cells cells_;
  std::vector<Value> values_;
  std::vector<std::int32_t> writer_;  // step that writes the cell in this round
  std::vector<std::size_t> cursor_;
  std::vector<std::vector<Message>> inbox_;  // ascending by sender
  std::vector<Value> round_values_, own_;
  std::vector<const Message*> operands_;
  std::vector<OwnRead> own_reads_;
  std::vector<std::pair<std::size_t, Value>> pending_;
};

void hold_to_cost(const Schedule& s, const Claims& claims, Report& report) {
  const auto hold = [&](double counted, const std::optional<double>& claimed, const Witness& w,
                        const char* what) {
    if (!claimed || std::abs(counted - *claimed) <= 1e-9 || !report.first(kCost)) return;
    const int rank = std::max(w.rank, 0);
    const Program& program = s.programs[static_cast<std::size_t>(rank)];
    const std::string where = w.at < program.steps.size()
                                  ? describe(rank, program, w.at)
                                  : "rank " + std::to_string(rank) + ", step 0 (there is none)";
    report.message = "cost for p = " + std::to_string(s.p) + ": up to " + where + ", " +
                     std::to_string(counted) + " " + what + " counted, " +
                     std::to_string(*claimed) + " claimed";
  };
  hold(report.rounds, claims.rounds, report.last_round, "rounds");
  hold(report.bytes, claims.bytes, report.most_bytes, "vectors sent");
  hold(report.reductions, claims.reductions, report.most_reductions, "vectors folded");
}

// What a proof keeps per cell is bounded: a schedule that was read from somewhere must not make the
// prover take all memory or all day. 1024 ranks with a chunk each stay well below.
std::optional<std::string> too_large(const Schedule& s) {
  constexpr std::int64_t kMostCells = std::int64_t{1} << 21;  // of one buffer, over all ranks
  constexpr std::int64_t kMostMoved = std::int64_t{1} << 24;  // cells, in all steps
  const std::int64_t ranks = s.p;
  const std::int64_t cells = s.kind == Kind::alltoall ? s.chunks : ranks * s.chunks;
  if (cells > kMostCells) return "too many chunks for a proof";
  if (s.kind == Kind::barrier && ranks * ranks * s.chunks > kMostMoved) {
    return "too many chunks for the proof of a barrier";
  }
  std::int64_t moved = 0;
  for (const Program& program : s.programs) {
    for (const CellRange& r : program.range_pool) moved += r.cells;
    moved += static_cast<std::int64_t>(program.peer_pool.size());
  }
  if (moved > kMostMoved) return "too many cells are moved for a proof";
  return std::nullopt;
}

}  // namespace

Report prove(const Schedule& schedule, bool in_place, const Claims& claims, unsigned checks) {
  Report report(checks);
  auto broken = broken_structure(schedule);
  if (!broken) broken = too_large(schedule);
  if (broken) {
    // Nothing else can be looked at: a run would index outside its buffers.
    if (report.first(kStructure)) report.message = *broken;
    return report;
  }
  SymbolicRun(schedule, in_place, false, report).run();
  if (!report.proved) {
    // Again with the contributions of every value, to say what exactly is wrong.
    Report explained(checks);
    const bool few = schedule.p <= 128 && schedule.chunks <= 1024;
    if (few) SymbolicRun(schedule, in_place, true, explained).run();
    if (!explained.proved) report.message = explained.message;
    return report;
  }
  hold_to_cost(schedule, claims, report);
  hold_to_trees(claims, report);
  return report;
}

}  // namespace coll
