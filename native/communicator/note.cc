// SPDX-License-Identifier: Apache-2.0
#include "communicator/note.h"

#include <optional>
#include <string>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "communicator/reproducible.h"
#include "kernels/half_pairs.h"

namespace coll {

void check_given(const Call& call, const GivenSchedules& known) {
  if (call.algorithm < kGivenSchedules) return;
  const GivenSchedules::Given& given = known.at(call.algorithm);
  if (given.schedule.kind != call.kind) {
    throw Error(Status::invalid_argument, std::string("the schedule is one for ") +
                                              name_of(given.schedule.kind) + ", not for " +
                                              name_of(call.kind));
  }
  if (Layout(given.schedule).rooted() && given.schedule.root != call.root) {
    throw Error(Status::invalid_argument, "the schedule has root " +
                                              std::to_string(given.schedule.root) + ", the call " +
                                              std::to_string(call.root));
  }
  if (keeps_rank_order(call) && !given.tree.rank_order) {
    throw Error(Status::unsupported,
                "the schedule does not keep the order of ranks, which an operation that does not "
                "commute, or one of the program that is to be reproducible, needs");
  }
  if (wants_canonical(call) && !given.tree.canonical) {
    throw Error(Status::unsupported,
                "the schedule does not sum in the canonical tree, which a reproducible result "
                "needs");
  }
}

void check_blocks(const Call& call, bool passed_on) {
  if (call.kind != Kind::alltoall || call.counts == nullptr || !passed_on) return;
  throw Error(Status::unsupported,
              "this algorithm passes blocks on through other ranks, so they must be of one size: "
              "choose pairwise, or none");
}

Call settled(const Call& call, const GivenSchedules& known) {
  if (!wants_one_fold(call) || call.algorithm < 0) return call;
  const auto table = algorithms();
  const auto index = static_cast<std::size_t>(call.algorithm);
  const bool one_fold = call.algorithm >= kGivenSchedules
                            ? known.at(call.algorithm).tree.one_fold
                            : index < table.size() && table[index]->tree.one_fold;
  Call settled = call;
  if (!one_fold) settled.accumulate = Accumulate::float32;
  return settled;
}

CallNote note_of(const Call& call, int ranks, const Made& made, const GivenSchedules& known) {
  CallNote note;
  note.kind = static_cast<int>(call.kind);
  note.dtype = static_cast<int>(call.dtype);
  note.op = reduces(call.kind) ? static_cast<int>(call.op) : 0;
  note.mode = made.mode;
  note.algorithm = made.algorithm;
  note.table = made.table;
  note.root = root_of(call);
  note.count = call.counts != nullptr ? vector_elements(call, ranks) : call.count;
  note.parts = call.counts != nullptr;
  note.purpose = static_cast<int>(call.purpose);
  note.accumulate = accumulates_wider(call) ? static_cast<int>(folded_dtype(call)) : -1;
  std::optional<GivenName> given;
  if (call.algorithm >= kGivenSchedules) {
    given = GivenName{known.at(call.algorithm).name, known.at(call.algorithm).hash};
  }
  note.reproducible = static_cast<int>(call.reproducible);
  note.detail = detail_of(call, ranks, given);
  return note;
}

namespace {

// Of ranks of one machine all say the same.
bool converts(const Call& call) noexcept {
  const bool added = call.dtype == Dtype::float16 && call.op == Reduction::sum;
  return is_narrow_float(call.dtype) && !(added && kernels::adds_halves());
}

}  // namespace

Wish wish_of(const Call& call) noexcept {
  return {.algorithm = call.algorithm,
          .mode = call.mode,
          .rank_order = keeps_rank_order(call),
          .canonical = wants_canonical(call),
          .one_fold = wants_one_fold(call),
          .unequal = call.kind == Kind::alltoall && call.counts != nullptr,
          .converts = converts(call)};
}

}  // namespace coll
