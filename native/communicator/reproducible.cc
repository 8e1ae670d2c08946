// SPDX-License-Identifier: Apache-2.0
#include "communicator/reproducible.h"

#include <string>

#include "base/error.h"
#include "kernels/user_op.h"

namespace coll {
namespace {

bool of_the_program(const Call& call) noexcept { return static_cast<int>(call.op) >= kUserOps; }

}  // namespace

void validate_reproducible(const Call& call) {
  if (call.reproducible == Reproducible::no) return;
  const std::string kind = name_of(call.kind);
  const auto wish = static_cast<int>(call.reproducible);
  if (wish < 0 || wish > static_cast<int>(Reproducible::any_p)) {
    throw Error(Status::invalid_argument, kind + ": there is no way number " +
                                              std::to_string(wish) + " of being reproducible");
  }
  if (!reduces(call.kind)) {
    throw Error(Status::invalid_argument,
                kind + ": nothing is folded here: leave reproducible out");
  }
  if (!sums_exactly(call)) return;
  if (!adds(call.op)) {
    throw Error(Status::unsupported,
                kind + ": " +
                    (of_the_program(call) ? "an operation of the program" : name_of(call.op)) +
                    " of " + name_of(call.dtype) +
                    " depends on the number of ranks: reproducible for any of them are sum, avg, "
                    "and what rounds nothing; for one number of ranks all are, reproducible=True");
  }
  if (call.accumulate != Accumulate::as_stored) {
    throw Error(Status::invalid_argument,
                kind +
                    ": sums that are reproducible for any number of ranks are exact: leave "
                    "accumulate out");
  }
}

bool order_matters(const Call& call) noexcept {
  if (!reduces(call.kind)) return false;
  if (of_the_program(call)) return true;
  const Family family = family_of(call.dtype);
  return (family == Family::floating || family == Family::complex) &&
         (adds(call.op) || call.op == Reduction::prod);
}

bool wants_canonical(const Call& call) noexcept {
  return call.reproducible == Reproducible::canonical && order_matters(call);
}

bool wants_one_fold(const Call& call) noexcept {
  return wants_canonical(call) && !of_the_program(call) &&
         family_of(call.dtype) == Family::floating &&
         size_of(call.dtype) < size_of(Dtype::float32) && !accumulates_wider(call);
}

bool sums_exactly(const Call& call) noexcept {
  return call.reproducible == Reproducible::any_p && order_matters(call);
}

Travel travel_of(const Call& call, int ranks) noexcept {
  if (!sums_exactly(call)) return {folded_dtype(call), 1};
  const int limbs = exact_format(call.dtype, ranks, false).limbs * parts_of(call.dtype);
  return {Dtype::int64, static_cast<std::size_t>(limbs)};
}

}  // namespace coll
