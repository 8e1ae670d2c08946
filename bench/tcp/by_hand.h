// SPDX-License-Identifier: Apache-2.0
// The best that we know to do with a bare socket, for others to stand beside.
#pragma once

#include <cstddef>
#include <span>

namespace tcp_bench {

// Sends all of `out` and receives all of `in` at once over a non-blocking socket: no bound on a
// call, receiving before sending, spinning. Throws std::runtime_error where the connection ends.
void exchange_by_hand(int fd, std::span<const std::byte> out, std::span<std::byte> in);

}  // namespace tcp_bench
