// SPDX-License-Identifier: Apache-2.0
// One turn of a spinning wait: tells the core that nothing useful happens.
#pragma once

namespace coll {

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace coll
