// SPDX-License-Identifier: Apache-2.0
#include "simulate/traffic.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"

namespace coll {
namespace {

void add_receives(const Program& program, const Step& step, int round, std::vector<Deed>& deeds) {
  const int cells = cells_of(program.target(step));
  const auto peers = program.peers(step);
  for (const int peer : peers) {
    if (peer == kSelf) continue;
    deeds.push_back({.peer = peer, .cells = cells, .round = round, .act = Act::receive});
  }
  if (step.op != Op::recv_reduce) return;
  deeds.push_back({.peer = 0,
                   .cells = cells,
                   .round = round,
                   .operands = static_cast<std::uint16_t>(std::min<std::size_t>(
                       peers.size(), std::numeric_limits<std::uint16_t>::max())),
                   .act = Act::fold});
}

}  // namespace

std::vector<Deed> deeds_of(const Program& program) {
  std::vector<Deed> deeds;
  for (const Step& step : program.steps) {
    const int round = step.round;
    switch (step.op) {
      case Op::send:
        for (const int peer : program.peers(step)) {
          deeds.push_back({.peer = peer,
                           .cells = cells_of(program.source(step)),
                           .round = round,
                           .act = Act::send});
        }
        break;
      case Op::recv:
      case Op::recv_reduce:
        add_receives(program, step, round, deeds);
        break;
      case Op::copy:
      case Op::reduce:
        deeds.push_back({.peer = 0,
                         .cells = cells_of(program.target(step)),
                         .round = round,
                         .operands = static_cast<std::uint16_t>(step.op == Op::copy ? 1 : 2),
                         .act = step.op == Op::copy ? Act::copy : Act::fold});
        break;
    }
  }
  deeds.shrink_to_fit();
  return deeds;
}

Traffic::Traffic(int p, Symmetry symmetry, const std::function<Program(int rank)>& program,
                 bool tiled)
    : p_(p), symmetry_(symmetry), tiled_(tiled) {
  if (symmetry != Symmetry::none) {
    keep(deeds_of(program(0)), p);
    return;
  }
  programs_.reserve(static_cast<std::size_t>(p));
  for (int rank = 0; rank < p; ++rank) keep(deeds_of(program(rank)), 1);
}

void Traffic::keep(std::vector<Deed> deeds, std::int64_t ranks) {
  const auto sends = std::ranges::count(deeds, Act::send, &Deed::act);
  messages_ += static_cast<std::int64_t>(sends) * ranks;
  if (messages_ > kMostMessages) {
    throw Error(Status::out_of_memory,
                "this schedule has more than " + std::to_string(kMostMessages) +
                    " messages: simulate fewer ranks, or an algorithm that sends fewer");
  }
  for (const Deed& deed : deeds) {
    if (deed.act != Act::send) continue;
    const auto round = static_cast<std::size_t>(deed.round);
    if (round >= used_.size()) used_.resize(round + 1);
    used_[round] = true;
  }
  if (tiled_) {
    std::ranges::stable_partition(deeds, [](const Deed& d) { return d.act == Act::send; });
  }
  programs_.push_back(std::move(deeds));
}

}  // namespace coll
