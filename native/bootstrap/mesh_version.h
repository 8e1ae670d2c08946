// SPDX-License-Identifier: Apache-2.0
// What two ranks tell each other last, once both have proved themselves: which version of the
// library they run, and which of how many connections between them this one is. One message each,
// sealed with the key of the conversation: a disagreement is then a fact about the job, and not the
// word of a stranger.
#pragma once

#include <cstdint>
#include <string>

#include "base/version.h"
#include "bootstrap/challenge.h"

namespace coll {

struct RunningVersion {
  std::string library = kLibraryVersion;
  std::uint32_t wire = kWireVersion;
  int streams = 1;  // what ranks of two machines have for data
  int lane = 0;     // which of these this connection is; only the connector says it
};

ChallengeMessage version_message(const Secret& session, Role from, const RunningVersion& own);

// Why not to go on with the peer, which has said `message` in the role `from`: a sentence that
// begins with "it", the peer; or nothing.
std::string fault_in_version(Bytes message, const Secret& session, Role from,
                             const RunningVersion& own);
// Which connection this is, in a message of the connector without a fault.
int lane_in(Bytes message) noexcept;

}  // namespace coll
