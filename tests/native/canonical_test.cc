// SPDX-License-Identifier: Apache-2.0
// The canonical summation tree: what an algorithm claims of it is all that is true of it, and what
// another tree is called by the prover.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "check.h"
#include "collectives.h"
#include "communicator/claims_of.h"
#include "prove/schedule_proof.h"
#include "prove/value.h"
#include "schedule/layout.h"

using namespace coll;

namespace {

constexpr int kMostRanks = 40;

Report report_of(const Algorithm& a, int p, int root) {
  return prove(make_schedule(a, p, root), false, {});
}

bool canonical_for_all_roots(const Algorithm& a, int p) {
  const int roots = Layout(a.kind, p, 0, p).rooted() ? p : 1;
  for (int root = 0; root < roots; ++root) {
    if (!report_of(a, p, root).canonical) return false;
  }
  return true;
}

TEST(claims_are_all_that_is_true) {
  for (const Algorithm* a : algorithms()) {
    if (!Layout(a->kind, 2, 0, 2).folds() || a->kind == Kind::barrier) continue;
    for (int p = 1; p <= kMostRanks; ++p) {
      if (!a->fits(p)) continue;
      const std::string what = std::string(a->name) + " among " + std::to_string(p);
      const bool found = canonical_for_all_roots(*a, p);
      if (found != a->tree.canonical(p)) {
        check::fail(what + (found ? " is canonical" : " is not canonical"));
      }
    }
  }
}

TEST(the_tree_is_that_of_a_balanced_fold) {
  for (int p = 1; p <= kMostRanks; ++p) {
    Algebra algebra(Kind::allreduce, p, false);
    const Value sum =
        algebra.fold(static_cast<std::size_t>(p), Shape::balanced,
                     [&](std::size_t i) { return algebra.leaf(0, static_cast<int>(i)); });
    CHECK(sum.tree == Algebra::canonical_tree({0, p}));
    const Value left = algebra.fold(static_cast<std::size_t>(p), Shape::left, [&](std::size_t i) {
      return algebra.leaf(0, static_cast<int>(i));
    });
    CHECK((left.tree == Algebra::canonical_tree({0, p})) == (p <= 3));
  }
}

coll_status run(coll_comm* comm, int kind, int reproducible, std::size_t size, int algorithm) {
  std::vector<float> in(4, 1), out(4);
  coll_call call{};
  call.size = size;
  call.kind = kind;
  call.dtype = COLL_FLOAT32;
  call.input = in.data();
  call.output = out.data();
  call.count = in.size();
  call.algorithm = algorithm;
  call.mode = COLL_MODE_AUTO;
  call.reproducible = reproducible;
  return coll_run(comm, &call);
}

TEST(the_field_of_a_call) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = 1;
  coll_comm* comm = nullptr;
  CHECK(coll_local(&options, &comm) == COLL_OK);
  constexpr std::size_t whole = sizeof(coll_call), older = offsetof(coll_call, reproducible);
  for (const int way : {COLL_NOT_REPRODUCIBLE, COLL_REPRODUCIBLE, COLL_REPRODUCIBLE_ANY_P}) {
    CHECK(run(comm, COLL_ALLREDUCE, way, whole, -1) == COLL_OK);
    const bool refused = way != COLL_NOT_REPRODUCIBLE;
    CHECK(run(comm, COLL_ALLGATHER, way, whole, -1) == (refused ? COLL_INVALID_ARGUMENT : COLL_OK));
    CHECK(run(comm, COLL_ALLGATHER, way, older, -1) == COLL_OK);  // which has no such field
  }
  CHECK(run(comm, COLL_ALLREDUCE, 3, whole, -1) == COLL_INVALID_ARGUMENT);
  CHECK(run(comm, COLL_ALLREDUCE, -1, whole, -1) == COLL_INVALID_ARGUMENT);
  CHECK(run(comm, COLL_ALLREDUCE, COLL_REPRODUCIBLE, whole, 99'999) == COLL_INVALID_ARGUMENT);
  CHECK(coll_close(comm) == COLL_OK);
}

TEST(a_claim_that_does_not_hold_is_found) {
  const auto& ring =
      *algorithms()[static_cast<std::size_t>(find_algorithm(Kind::allreduce, "ring"))];
  Claims claims = claims_of(ring, 5);
  claims.canonical = true;
  Report report = prove(make_schedule(ring, 5), false, claims);
  CHECK(!report.proved && report.message.find("is not the canonical one") != std::string::npos);
  claims.canonical = false;
  claims.one_fold = true;
  report = prove(make_schedule(ring, 5), false, claims);
  CHECK(!report.proved && report.message.find("is more than one fold") != std::string::npos);
}

}  // namespace
