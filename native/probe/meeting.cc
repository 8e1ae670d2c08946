// SPDX-License-Identifier: Apache-2.0
#include "probe/meeting.h"

#include <sched.h>

#include <string>

#include "base/error.h"

namespace coll {
namespace {

inline void wait_a_little() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void Meeting::line_up() {
  const std::uint64_t value = line_++;
  say(Word::met, value);
  for (int peer = 0; peer < ranks(); ++peer) {
    // Who has seen us here may be at the next line already.
    if (peer != rank_) await(peer, Word::met, value, value + 1);
  }
}

std::uint64_t Meeting::await(int peer, Word word, std::uint64_t value, std::uint64_t other) const {
  constexpr int kLook = 1024;
  const int most = shared_ ? 20 : 2000;
  for (int spins = 0;; ++spins) {
    const std::uint64_t now = said(peer, word);
    if (now == value || now == other) return now;
    if (spins < most) {
      wait_a_little();
      continue;
    }
    sched_yield();
    if (spins % kLook == 0 && deadline_.passed()) {
      throw Error(Status::timeout,
                  "rank " + std::to_string(peer) +
                      " did not come to measure the machine in time: call it on all ranks",
                  peer);
    }
  }
}

}  // namespace coll
