// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/rendezvous.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "bootstrap/claim.h"
#include "bootstrap/environment.h"
#include "bootstrap/guest.h"
#include "bootstrap/host.h"

namespace coll {
namespace {

constexpr std::size_t kLongestJob = 255;

void check(const Identity& identity, const SegmentShape& shape, double timeout_s,
           const Terms& terms) {
  const auto refuse = [](const std::string& text) { throw Error(Status::invalid_argument, text); };
  const std::string rank = std::to_string(identity.rank), ranks = std::to_string(identity.ranks);
  if (identity.ranks < 1) refuse("a group needs at least one rank, not " + ranks);
  if (identity.rank < 0 || identity.rank >= identity.ranks) {
    refuse("rank " + rank + " is not among the " + ranks + " ranks 0 to " +
           std::to_string(identity.ranks - 1));
  }
  if (identity.attempt < 0)
    refuse("an attempt is 0 or more, not " + std::to_string(identity.attempt));
  // It is printed in messages.
  const bool printable = std::none_of(identity.job.begin(), identity.job.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (identity.job.empty() || identity.job.size() > kLongestJob || !printable) {
    refuse("the name of a job is printable text of 1 to " + std::to_string(kLongestJob) + " bytes");
  }
  if (shape.ranks != static_cast<std::uint32_t>(identity.ranks)) {
    refuse("the segment is shaped for " + std::to_string(shape.ranks) + " ranks, the group has " +
           ranks);
  }
  if (terms.trusted.size() >= sizeof(Notice::text)) {
    refuse("the networks that are trusted take " + std::to_string(terms.trusted.size()) +
           " bytes, at most " + std::to_string(sizeof(Notice::text) - 1) + " are allowed");
  }
  if (!(timeout_s > 0)) refuse("the time-out must be more than 0 s");
}

}  // namespace

Membership rendezvous(const Identity& identity, const SegmentShape& shape, double timeout_s,
                      const Stop& stop, const Terms& terms) {
  arm_faults_from_environment();
  check(identity, shape, timeout_s, terms);
  if (identity.ranks == 1) {
    if (!terms.refusal.empty()) throw cannot_take_part(0, terms.refusal);
    return std::move(local_group(shape).front());
  }
  Claim claim = claim_rank(identity);
  Membership membership = identity.rank == 0 ? Host(identity, timeout_s, stop, terms).run(shape)
                                             : Guest(identity, timeout_s, stop, terms).run(shape);
  membership.claim = std::move(claim);
  return membership;
}

}  // namespace coll
