// SPDX-License-Identifier: Apache-2.0
#include "plan/completion.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <string>

#include "base/error.h"
#include "base/looks.h"
#include "schedule/layout.h"

namespace coll {
namespace {

// Counts contributions per cell, round by round, in a schedule that is known to be right.
class CountingRun {
 public:
  explicit CountingRun(const Schedule& s) : s_(s), layout_(s), cursor_(s.programs.size()) {
    for (int rank = 0; rank < s.p; ++rank) {
      auto& mine = counts_.emplace_back();
      for (int b = 0; b < kBuffers; ++b) {
        const auto cells = static_cast<std::size_t>(layout_.cells(rank, static_cast<Buffer>(b)));
        mine.emplace_back(cells, b == static_cast<int>(Buffer::input) ? 1 : 0);
      }
      complete_.emplace_back(s.programs[static_cast<std::size_t>(rank)].steps.size());
    }
  }

  std::vector<std::vector<bool>> run() {
    for (int round = next_round(); round != kNoRound; round = next_round()) {
      channels_.clear();
      for (int rank = 0; rank < s_.p; ++rank) send(rank, round);
      for (int rank = 0; rank < s_.p; ++rank) receive(rank, round);
    }
    return std::move(complete_);
  }

 private:
  static constexpr int kNoRound = std::numeric_limits<int>::max();
  using Counts = std::vector<int>;

  int next_round() const {
    int round = kNoRound;
    for (std::size_t r = 0; r < s_.programs.size(); ++r) {
      const auto& steps = s_.programs[r].steps;
      if (cursor_[r] < steps.size()) round = std::min(round, steps[cursor_[r]].round);
    }
    return round;
  }

  Counts read(int rank, std::span<const CellRange> ranges) const {
    Counts out;
    for (const CellRange& r : ranges) {
      const auto& cells =
          counts_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(r.buffer)];
      out.insert(out.end(), cells.begin() + r.first, cells.begin() + r.first + r.cells);
    }
    return out;
  }

  void write(int rank, std::span<const CellRange> ranges, const Counts& values) {
    auto value = values.begin();
    for (const CellRange& r : ranges) {
      auto& cells = counts_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(r.buffer)];
      std::copy_n(value, r.cells, cells.begin() + r.first);
      value += r.cells;
    }
  }

  void send(int rank, int round) {
    look();
    const Program& program = s_.programs[static_cast<std::size_t>(rank)];
    for (std::size_t i = cursor_[static_cast<std::size_t>(rank)];
         i < program.steps.size() && program.steps[i].round == round; ++i) {
      if (program.steps[i].op != Op::send) continue;
      const Counts values = read(rank, program.source(program.steps[i]));
      for (const int peer : program.peers(program.steps[i])) {
        channels_[{rank, peer}].push_back(values);
      }
    }
  }

  void receive(int rank, int round) {
    look();
    const Program& program = s_.programs[static_cast<std::size_t>(rank)];
    std::size_t& i = cursor_[static_cast<std::size_t>(rank)];
    for (; i < program.steps.size() && program.steps[i].round == round; ++i) {
      const Step& step = program.steps[i];
      if (step.op == Op::send) continue;
      Counts sum(static_cast<std::size_t>(cells_of(program.target(step))));
      const auto add = [&](const Counts& more) {
        for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += more.at(c);
      };
      if (step.op == Op::copy || step.op == Op::reduce) add(read(rank, program.source(step)));
      if (step.op == Op::reduce) add(read(rank, program.target(step)));
      for (const int peer : program.peers(step)) {
        if (peer == kSelf) {
          add(read(rank, program.source(step)));
        } else {
          auto& channel = channels_.at({peer, rank});
          add(channel.front());
          channel.pop_front();
        }
      }
      write(rank, program.target(step), sum);
      const bool folds = step.op == Op::recv_reduce || step.op == Op::reduce;
      if (folds && layout_.folds_all()) note(rank, i, sum);
    }
  }

  void note(int rank, std::size_t step, const Counts& sum) {
    const auto full = std::count(sum.begin(), sum.end(), layout_.p);
    if (full != 0 && full != static_cast<std::ptrdiff_t>(sum.size())) {
      throw Error(Status::internal, "rank " + std::to_string(rank) + ", step " +
                                        std::to_string(step) +
                                        ": one fold mixes finished and unfinished chunks");
    }
    complete_[static_cast<std::size_t>(rank)][step] = full != 0;
  }

  const Schedule& s_;
  Layout layout_;
  std::vector<std::size_t> cursor_;
  std::vector<std::vector<Counts>> counts_;  // [rank][buffer][cell]
  std::vector<std::vector<bool>> complete_;
  std::map<std::pair<int, int>, std::deque<Counts>> channels_;
};

}  // namespace

std::vector<std::vector<bool>> completing_steps(const Schedule& schedule) {
  return CountingRun(schedule).run();
}

}  // namespace coll
