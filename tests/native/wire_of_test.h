// SPDX-License-Identifier: Apache-2.0
// Ranks of one thread, connected by TCP over loopback, each with an executor for the wire; and what
// a collective must give, from the layout alone.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "algorithms/algorithm.h"
#include "engine/wire_executor.h"
#include "plan/wire_lower.h"
#include "tcp_of_test.h"

namespace coll::testing {

// Executors 0 ... p-1, every two of them connected.
struct WireTeam {
  // So many ranks at a time are of one machine: bytes between them go through memory.
  explicit WireTeam(int p, const TcpOptions& options = {}, int per_host = 1) {
    for (int r = 0; r < p; ++r) ranks.push_back(std::make_unique<WireExecutor>(p));
    for (int a = 0; a < p; ++a) {
      for (int b = a + 1; b < p; ++b) {
        Ends ends = connected(options);
        PipeEnds pipes;
        if (a / per_host == b / per_host) pipes = piped();
        join(a, b, std::move(ends.a), std::move(pipes.a));
        join(b, a, std::move(ends.b), std::move(pipes.b));
      }
    }
  }
  void join(int rank, int peer, Connection end, std::unique_ptr<LocalPipe> pipe) {
    auto& mine = *ranks[static_cast<std::size_t>(rank)];
    mine.attach(peer, std::make_unique<TcpStream>(std::move(end.fd), end.peer, mine.receiver(peer),
                                                  TcpLimits{}, std::move(pipe)));
  }
  int size() const { return static_cast<int>(ranks.size()); }

  // Turns of random ranks until all have finished; false: they never did.
  bool finish(std::minstd_rand& random) {
    std::vector<bool> finished(ranks.size());
    std::size_t left = ranks.size();
    for (int idle = 0; left > 0 && idle < 20'000; ++idle) {
      const auto r = random() % ranks.size();
      if (!finished[r] && ranks[r]->advance()) {
        finished[r] = true;
        --left;
      }
      std::size_t moved = 0;
      for (int peer = 0; peer < size(); ++peer) {
        Stream* stream = ranks[r]->stream(peer);
        if (stream != nullptr) moved += stream->progress(random() % 100'000 + 1);
      }
      if (moved > 0) idle = 0;
      if (idle > 1000) ::usleep(20);
    }
    return left == 0;
  }

  std::vector<std::unique_ptr<WireExecutor>> ranks;
};

// One collective of int32 sums among all ranks of a team.
struct WireCase {
  const Schedule& schedule;
  std::size_t count;          // elements of the vector
  const std::size_t* counts;  // of unequal parts, or null
  bool in_place;
  std::size_t tile_bytes;
  WireLowering how;
};

class WireRun {
 public:
  WireRun(const WireCase& c, unsigned seed) : c_(c), layout_(c.schedule), partition_(layout_) {
    partition_.cut(c.count, c.counts);
    std::minstd_rand random(seed);
    for (int r = 0; r < layout_.p; ++r) {
      input_.emplace_back(elements(r, Buffer::input));
      for (auto& e : input_.back()) e = static_cast<std::int32_t>(random());
      output_.emplace_back(elements(r, Buffer::output), -1);
      scratch_.emplace_back(elements(r, Buffer::scratch), -2);
      plans_.push_back(lower_for_wire(c.schedule, r, c.how));
    }
    for (const WirePlan& plan : plans_) bindings_.push_back(std::make_unique<WireBinding>(plan));
    sent_ = input_;
  }

  void begin(WireTeam& team, const WireCall& call) {
    for (int r = 0; r < layout_.p; ++r) {
      const auto i = static_cast<std::size_t>(r);
      bindings_[i]->bind(data(r));
      team.ranks[i]->begin(*bindings_[i], call);
    }
  }

  CallData data(int r) {
    const auto i = static_cast<std::size_t>(r);
    CallData d{.input = input_[i].data(),
               .output = output_[i].data(),
               .scratch = scratch_[i].data(),
               .count = c_.count,
               .counts = c_.counts,
               .dtype = Dtype::int32,
               .tile_bytes = c_.tile_bytes};
    if (!c_.in_place) return d;
    // The input where its first cell belongs in the output, or the other way round.
    std::vector<std::int32_t>& longer =
        input_[i].size() > output_[i].size() ? input_[i] : output_[i];
    const bool input_is_longer = &longer == &input_[i];
    const int cells = layout_.cells(r, Buffer::input);
    std::size_t in = 0, out = 0;
    if (cells > 0 && layout_.cells(r, Buffer::output) > 0 && layout_.alias(r, 0) >= 0) {
      in = partition_.offset(r, Buffer::output, layout_.alias(r, 0));
    } else if (input_is_longer && layout_.cells(r, Buffer::output) > 0) {
      out = partition_.offset(r, Buffer::input,
                              layout_.cell(r, Buffer::input, layout_.chunk(r, Buffer::output, 0)));
    }
    if (!input_is_longer) std::copy(input_[i].begin(), input_[i].end(), longer.begin() + in);
    d.input = longer.data() + in;
    d.output = longer.data() + out;
    return d;
  }

  // How many elements are not what the layout says; also of inputs out of place.
  std::size_t wrong() {
    std::size_t wrong = 0;
    for (int r = 0; r < layout_.p; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const auto* out = static_cast<const std::int32_t*>(bindings_[i]->call().output);
      for (int cell = 0; cell < layout_.cells(r, Buffer::output); ++cell) {
        const std::size_t at = partition_.offset(r, Buffer::output, cell);
        const std::size_t n = partition_.elements(r, Buffer::output, cell, 1);
        for (std::size_t e = 0; e < n; ++e) {
          if (out[at + e] != expected(r, layout_.chunk(r, Buffer::output, cell), e)) ++wrong;
        }
      }
      if (!c_.in_place && input_[i] != sent_[i]) ++wrong;
    }
    return wrong;
  }

 private:
  std::size_t elements(int rank, Buffer buffer) const {
    return partition_.elements(rank, buffer, 0, layout_.cells(rank, buffer));
  }
  std::int32_t expected(int rank, int chunk, std::size_t e) const {
    std::uint32_t sum = 0;
    const Interval who = layout_.contributors(rank, chunk);
    for (int q = who.low; q < who.high; ++q) {
      const int cell = layout_.cell(q, Buffer::input, chunk);
      sum += static_cast<std::uint32_t>(
          sent_[static_cast<std::size_t>(q)][partition_.offset(q, Buffer::input, cell) + e]);
    }
    return static_cast<std::int32_t>(sum);
  }

  WireCase c_;
  Layout layout_;
  Partition partition_;
  std::vector<std::vector<std::int32_t>> input_, output_, scratch_, sent_;
  std::vector<WirePlan> plans_;
  std::vector<std::unique_ptr<WireBinding>> bindings_;
};

}  // namespace coll::testing
