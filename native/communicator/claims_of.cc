// SPDX-License-Identifier: Apache-2.0
#include "communicator/claims_of.h"

#include <optional>

#include "base/formula.h"

namespace coll {

Claims claims_of(const Algorithm& a, int p) {
  const auto value = [&](const char* formula) -> std::optional<double> {
    if (*formula == '\0') return std::nullopt;
    return evaluate(formula, p);
  };
  return {.rounds = value(a.rounds),
          .bytes = value(a.bytes),
          .reductions = value(a.reductions),
          .same_on_ranks = a.tree.same_on_ranks,
          .same_in_vector = a.tree.same_in_vector,
          .rank_order = a.tree.rank_order,
          .canonical = a.tree.canonical(p),
          .one_fold = a.tree.one_fold};
}

Claims claims_of(Kind kind, const ProductCost& cost) {
  return {.rounds = cost.rounds,
          .bytes = cost.bytes,
          .reductions = cost.reductions,
          .same_on_ranks = kind == Kind::allreduce || kind == Kind::broadcast};
}

}  // namespace coll
