// SPDX-License-Identifier: Apache-2.0
// A proof, as the C interface tells of it.
#pragma once

#include <cstdio>

#include "collectives.h"
#include "prove/report.h"

namespace coll {

inline void fill(const Report& report, coll_proof& out) {
  out = {};
  out.proved = report.proved ? 1 : 0;
  out.rounds = report.rounds;
  out.bytes = report.bytes;
  out.reductions = report.reductions;
  out.same_tree_on_ranks = report.same_on_ranks ? 1 : 0;
  out.same_tree_in_vector = report.same_in_vector ? 1 : 0;
  out.rank_order = report.rank_order ? 1 : 0;
  out.canonical = report.canonical ? 1 : 0;
  out.one_fold = report.one_fold ? 1 : 0;
  std::snprintf(out.message, sizeof(out.message), "%s", report.message.c_str());
}

}  // namespace coll
