// SPDX-License-Identifier: Apache-2.0
// THE list of what the emulator of `make test-extras`, qemu-user 7.2, does not implement, and of
// the tests that must fail for it. A test of this list that passes is a failure: the list is too
// long.
//
// Not needed here, because the library does without: set_robust_list and get_robust_list (the death
// of a process is then read from /proc: liveness.cc).
#pragma once

#include <string_view>

namespace check {

struct Lack {
  std::string_view test;
  const char* call;
};

inline constexpr const char* kTcpInfo = "getsockopt(TCP_INFO), of which it hands over four bytes";

inline constexpr Lack kLacks[] = {
    {"a_forked_child_has_neither_the_memory_nor_its_address", "madvise(MADV_DONTFORK)"},
    {"a_line_that_is_cut_is_silent", kTcpInfo},
    {"a_machine_that_vanishes_during_a_meeting_ends_it", kTcpInfo},
};

// The system call for lack of which this test fails; nullptr: it must pass.
inline const char* lack_of([[maybe_unused]] std::string_view test) noexcept {
#if defined(COLL_EMULATED)
  for (const Lack& lack : kLacks) {
    if (lack.test == test) return lack.call;
  }
#endif
  return nullptr;
}

}  // namespace check
