// SPDX-License-Identifier: Apache-2.0
#include "sparse/largest_of_all.h"

#include <algorithm>

namespace coll {

LargestOfAll::LargestOfAll(const SparseTerms& terms, const SparseStream& part, std::uint64_t wanted)
    : terms_(terms),
      part_(made_sparse(terms, part)),
      left_(wanted),
      digits_(magnitude_digits(terms.dtype)) {
  count();
}

void LargestOfAll::count() {
  own_ = {};
  count_digits(terms_.dtype, part_.values, part_.entries, prefix_, digits_ - 1, own_);
}

void LargestOfAll::narrow(const DigitCounts& of_all) {
  std::size_t digit = of_all.size();
  while (digit > 0 && of_all[digit - 1] < left_) left_ -= of_all[--digit];
  --digits_;
  if (digit == 0) {  // there are no more than are wanted, so all are taken
    digits_ = 0;
    return;
  }
  --digit;
  prefix_ = (prefix_ << kDigitBits) | digit;
  least_ = prefix_ << (digits_ * kDigitBits);
  if (of_all[digit] == left_) {  // all that begin so
    digits_ = 0;
  } else if (digits_ > 0) {
    count();
  } else {
    tied_ = true;
    equal_ = own_[digit];
  }
}

SparseStream LargestOfAll::taken(std::span<const std::uint64_t> equals, int rank) const {
  std::uint64_t equal = equal_;
  if (tied_) {
    std::uint64_t left = left_;
    for (const std::uint64_t before : equals.first(static_cast<std::size_t>(rank))) {
      left -= std::min(left, before);
    }
    equal = std::min(left, equal);
  }
  const StreamRoom room(terms_, part_.entries);
  return room.stream(part_, keep_from(terms_.dtype, terms_.index_bytes, part_.pairs(), least_,
                                      equal, room.room()));
}

}  // namespace coll
