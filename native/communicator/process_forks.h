// SPDX-License-Identifier: Apache-2.0
// Tells a forked child from its parent without a system call.
#pragma once

namespace coll {

// How many forks lie between this process and the one that loaded the library.
unsigned process_forks() noexcept;

}  // namespace coll
