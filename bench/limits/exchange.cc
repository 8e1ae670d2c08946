// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

#include <stdexcept>
#include <string>

#include "team.h"

namespace limits {
namespace {

constexpr std::size_t kPeriod = 1024;

}  // namespace

const char* name_of(Collective collective) noexcept {
  switch (collective) {
    case Collective::allreduce:
      return "allreduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::allgather:
      return "allgather";
    case Collective::broadcast:
      return "broadcast";
    case Collective::alltoall:
      break;
  }
  return "alltoall";
}

Exchange::Exchange(Collective collective, std::size_t bytes, int rank)
    : collective_(collective),
      rank_(rank),
      n_(bytes / sizeof(float)),
      half_(n_ / 2),
      in_(collective == Collective::allgather ? half_ : n_) {
  if (collective == Collective::reduce_scatter) out_.resize(half_);
  if (collective == Collective::allgather || collective == Collective::alltoall) out_.resize(n_);
}

// Element i of rank r in a call: call + i mod kPeriod + r.
void Exchange::rewrite(int call) noexcept {
  const float first = static_cast<float>(call + rank_);
  for (std::size_t i = 0; i < in_.size(); ++i) in_[i] = first + static_cast<float>(i % kPeriod);
}

// What element i of the result is above the number of the call; twice that of a sum.
inline float Exchange::expected(std::size_t i) const noexcept {
  const auto of = [](std::size_t at) { return static_cast<float>(at % kPeriod); };
  const auto own = static_cast<std::size_t>(rank_) * half_;
  switch (collective_) {
    case Collective::allreduce:
      return 2 * of(i) + 1;
    case Collective::reduce_scatter:
      return 2 * of(own + i) + 1;
    case Collective::allgather:
      return i < half_ ? of(i) : of(i - half_) + 1;
    case Collective::broadcast:
      return of(i);
    case Collective::alltoall:
      break;
  }
  return i < half_ ? of(own + i) : of(own + i - half_) + 1;
}

void Exchange::check(int call) const {
  const std::vector<float>& result = out_.empty() ? in_ : out_;
  const bool sums =
      collective_ == Collective::allreduce || collective_ == Collective::reduce_scatter;
  const float base = static_cast<float>(sums ? 2 * call : call);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < result.size(); ++i) wrong += result[i] != base + expected(i);
  if (wrong > 0) {
    throw std::runtime_error(std::to_string(wrong) + " wrong elements of " + name_of(collective_));
  }
}

void Exchange::by_library(coll_comm* comm) {
  float *in = in_.data(), *out = out_.data();
  coll_status status = COLL_OK;
  switch (collective_) {
    case Collective::allreduce:
      status = coll_allreduce(comm, in, in, n_, COLL_FLOAT32, COLL_SUM);
      break;
    case Collective::reduce_scatter:
      status = coll_reduce_scatter(comm, in, out, n_, COLL_FLOAT32, COLL_SUM);
      break;
    case Collective::allgather:
      status = coll_allgather(comm, in, out, half_, COLL_FLOAT32);
      break;
    case Collective::broadcast:
      status = coll_broadcast(comm, in, in, n_, COLL_FLOAT32, 0);
      break;
    case Collective::alltoall:
      status = coll_alltoall(comm, in, out, n_, COLL_FLOAT32);
      break;
  }
  if (status != COLL_OK) require(status);
}

void Exchange::by_hand(Hand& hand, Form form) {
  float *in = in_.data(), *out = out_.data();
  const std::size_t mine = static_cast<std::size_t>(rank_) * half_, theirs = half_ - mine;
  switch (collective_) {
    case Collective::allreduce:
      if (form == Form::two_shot) return hand.allreduce_halves(in, n_);
      return hand.run({.send = in, .sent = n_, .own = in, .out = in, .received = n_});
    case Collective::reduce_scatter:
      return hand.run(
          {.send = in + theirs, .sent = half_, .own = in + mine, .out = out, .received = half_});
    case Collective::allgather:
      return hand.run({.send = in,
                       .sent = half_,
                       .out = out + theirs,
                       .received = half_,
                       .keep = in,
                       .kept_at = out + mine,
                       .kept = half_});
    case Collective::broadcast:
      if (rank_ == 0) return hand.run({.send = in, .sent = n_});
      return hand.run({.out = in, .received = n_});
    case Collective::alltoall:
      return hand.run({.send = in + theirs,
                       .sent = half_,
                       .out = out + theirs,
                       .received = half_,
                       .keep = in + mine,
                       .kept_at = out + mine,
                       .kept = half_});
  }
}

}  // namespace limits
