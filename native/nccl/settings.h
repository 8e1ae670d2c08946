// SPDX-License-Identifier: Apache-2.0
// What the environment says: the variables of NCCL that count here, and a list of those that do
// not.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace coll::nccl {

// NCCL_DEBUG; what is not known of it counts as none.
enum class Debug : std::uint8_t { none, version, warn, info };
// Read once. Where it is set at all, the first call prints the version, and, from warn on, which
// variables have no meaning here.
Debug debug_level() noexcept;

// The interfaces of NCCL_SOCKET_IFNAME, whose names are beginnings of names, in the words of
// COLLECTIVES_INTERFACE; else that; else all but docker's. Throws Refusal where no interface fits.
std::string interfaces();

// Whether ranks of one machine are to speak TCP (NCCL_SHM_DISABLE), or at least not to reach into
// each other's arrays (NCCL_P2P_DISABLE).
bool without_shared_memory() noexcept;
bool without_peer_access() noexcept;

// NCCL_ALGO, "" where it is not set.
std::string wished_algorithms();

// By coll_kind, as far as NCCL has it: the index in the table of algorithms, -1: ours to choose.
using Algorithms = std::array<std::int32_t, 16>;
// What NCCL_ALGO names of what is here: Ring, Tree and PAT. Of a list the first that is; none: ours
// to choose. Throws Refusal where it names an algorithm that NCCL does not have.
Algorithms algorithms_for(const std::string& wished, int ranks);

// Seconds that the meeting of all ranks may take, and a call: COLLECTIVES_TIMEOUT, else half an
// hour, and as long as it takes. Throws Refusal where it is no number.
double meeting_seconds();
double call_seconds();

}  // namespace coll::nccl
