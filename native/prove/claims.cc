// SPDX-License-Identifier: Apache-2.0
#include "prove/claims.h"

#include <string>

namespace coll {

void hold_to_trees(const Claims& claims, Report& report) {
  const auto hold = [&](bool claimed, bool holds, const Witness& w, const char* what) {
    if (!claimed || holds || !report.first(kTree)) return;
    report.message = "rank " + std::to_string(w.rank) + ", at the end: chunk " +
                     std::to_string(w.at) + " of the output: its summation tree " + what;
  };
  hold(claims.same_on_ranks, report.same_on_ranks, report.other_on_ranks,
       "is not that of the ranks below");
  hold(claims.same_in_vector, report.same_in_vector, report.other_in_vector,
       "is not that of the first chunk");
  hold(claims.rank_order, report.rank_order, report.out_of_order, "does not keep rank order");
  hold(claims.canonical, report.canonical, report.not_canonical, "is not the canonical one");
  hold(claims.one_fold, report.one_fold, report.more_folds, "is more than one fold");
}

}  // namespace coll
