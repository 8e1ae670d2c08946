// SPDX-License-Identifier: Apache-2.0
#include "communicator/detail.h"

#include <algorithm>
#include <bit>

#include "base/fitting.h"
#include "communicator/fingerprint.h"
#include "kernels/user_op.h"

namespace coll {
namespace {

using Words = std::array<std::uint64_t, kDetailWords>;

template <std::size_t n>
void begin_with(Beginning<n>& to, std::string_view text) noexcept {
  constexpr std::string_view more = "...";
  const bool all = text.size() < n;
  const std::string_view kept = text.substr(0, all ? n : fitting(text, n - 1 - more.size()));
  const auto end = std::ranges::copy(kept, to.text.begin()).out;
  if (!all) std::ranges::copy(more, end);
}

}  // namespace

std::optional<CallDetail> detail_of(const Call& call, int ranks,
                                    const std::optional<GivenName>& schedule) {
  const UserOp* op = reduces(call.kind) ? find_user_op(static_cast<int>(call.op)) : nullptr;
  if (call.counts == nullptr && call.words.empty() && op == nullptr && !schedule) return {};
  CallDetail detail;
  detail.counts = hash_counts(call, ranks);
  detail.words = hash_words(call.words);
  begin_with(detail.agreed, call.words);
  std::uint64_t names = 0;
  if (schedule) {
    detail.schedule = schedule->hash;
    names = hash_words(schedule->name);
    begin_with(detail.algorithm, schedule->name);
  }
  if (op != nullptr) {
    detail.not_commutative = op->commutes ? 0 : 1;
    names = chain(names, hash_words(op->name));
    begin_with(detail.operation, op->name);
  }
  detail.whole = names;
  for (const std::uint64_t part :
       {detail.counts, detail.words, detail.schedule, detail.not_commutative}) {
    detail.whole = chain(detail.whole, part);
  }
  return detail;
}

// Releasing, so that nothing comes before the mark that the record is being written.
void write_detail(DetailRecord& record, const CallDetail& detail) noexcept {
  const auto words = std::bit_cast<Words>(detail);
  for (std::size_t i = 0; i < words.size(); ++i) {
    record.word[i].store(words[i], std::memory_order_release);
  }
}

CallDetail read_detail(const DetailRecord& record) noexcept {
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = record.word[i].load(std::memory_order_acquire);
  }
  auto detail = std::bit_cast<CallDetail>(words);
  // A peer wrote this: nothing in it may lead the reader astray.
  detail.operation.text.back() = detail.algorithm.text.back() = detail.agreed.text.back() = 0;
  return detail;
}

std::string hidden_difference(const CallDetail& one, const CallDetail& other) {
  if (one.counts != other.counts) return ", with other counts per rank";
  if (one.schedule != other.schedule) return ", whose schedules differ";
  return ", which differ further on";
}

}  // namespace coll
