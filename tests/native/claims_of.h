// SPDX-License-Identifier: Apache-2.0
// What an algorithm claims for p ranks, as numbers: what the tests of the provers hold it to.
#pragma once

#include <optional>

#include "algorithms/algorithm.h"
#include "base/formula.h"
#include "prove/schedule_proof.h"

inline coll::Claims claims_of(const coll::Algorithm& a, int p) {
  const auto value = [&](const char* formula) -> std::optional<double> {
    if (*formula == '\0') return std::nullopt;
    return coll::evaluate(formula, p);
  };
  return {.rounds = value(a.rounds),
          .bytes = value(a.bytes),
          .reductions = value(a.reductions),
          .same_on_ranks = a.tree.same_on_ranks,
          .same_in_vector = a.tree.same_in_vector,
          .rank_order = a.tree.rank_order};
}
