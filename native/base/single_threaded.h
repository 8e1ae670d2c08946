// SPDX-License-Identifier: Apache-2.0
// Whether this process has but one thread, where the C library tells: then nothing has to be atomic
// among its threads, which costs a short call as much as a tenth of a line's way.
#pragma once

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace coll {

inline bool single_threaded() noexcept {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

}  // namespace coll
