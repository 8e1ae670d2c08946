// SPDX-License-Identifier: Apache-2.0
// The small calls of late, each bound by a binding of its own: a program that goes through the same
// few calls, as an allreduce, a barrier and a broadcast, has none of them prepared again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "communicator/prepared.h"

namespace coll {

class Recent {
 public:
  Recent() {
    for (Used& used : calls_) {
      used.kept.prepared.counts.reserve(kMostCounts);
      used.kept.prepared.words.reserve(kMostWords);
    }
  }

  // Whether a call is one to be kept: preparing it costs as much as running it, and what is kept
  // for it is small. It need not be valid.
  static bool takes(const Call& call, int ranks) noexcept {
    return call.count <= kMostElements && takes_counts(call, ranks) && takes_words(call) &&
           call.accumulate == Accumulate::as_stored && call.reproducible != Reproducible::any_p;
  }

  // What serves a call; else what was not used for longest, to be prepared anew.
  Kept& of(const Call& call) noexcept {
    Used* found = &calls_.front();
    for (Used& used : calls_) {
      if (used.kept.prepared.serves(call)) {
        found = &used;
        break;
      }
      if (used.turn < found->turn) found = &used;
    }
    found->turn = ++turn_;
    return found->kept;
  }

  // Chooses for all of them anew.
  void forget() noexcept {
    unbind();
    for (Used& used : calls_) used.kept.prepared.binding = nullptr;
  }
  // Binds all of them anew.
  void unbind() noexcept {
    for (Used& used : calls_) used.kept.prepared.bound = false;
  }

 private:
  static constexpr std::size_t kCalls = 8, kMostElements = 1024, kMostCounts = 64, kMostWords = 128;

  static bool takes_counts(const Call& call, int ranks) noexcept {
    return call.counts == nullptr ||
           (may_have_counts(call.kind) && number_of_counts(call.kind, ranks) <= kMostCounts &&
            vector_elements(call, ranks) <= kMostElements);
  }

  // Those of a step of another call seldom come twice.
  static bool takes_words(const Call& call) noexcept {
    return call.words.empty() ||
           (call.purpose == Purpose::itself && call.words.size() <= kMostWords);
  }

  struct Used {
    Kept kept;
    std::uint64_t turn = 0;
  };

  std::array<Used, kCalls> calls_;
  std::uint64_t turn_ = 0;
};

}  // namespace coll
