// SPDX-License-Identifier: Apache-2.0
// Sanitizers and counters of lines make a program ten times as slow and its cases no more right:
// long tests take fewer of them there. COLL_INSTRUMENTED: set by the preset that counts lines.
#pragma once

namespace check {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(COLL_INSTRUMENTED)
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

}  // namespace check
