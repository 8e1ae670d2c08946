// SPDX-License-Identifier: Apache-2.0
// What two ranks tell each other last, once both have proved themselves: which version of the
// library they run. One message each, sealed with the key of the conversation: a disagreement is
// then a fact about the job, and not the word of a stranger.
#pragma once

#include <cstdint>
#include <string>

#include "base/version.h"
#include "bootstrap/challenge.h"

namespace coll {

struct RunningVersion {
  std::string library = kLibraryVersion;
  std::uint32_t wire = kWireVersion;
};

ChallengeMessage version_message(const Secret& session, Role from, const RunningVersion& own);

// Why not to go on with the peer, which has said `message` in the role `from`: a sentence that
// begins with "it", the peer; or nothing.
std::string fault_in_version(Bytes message, const Secret& session, Role from,
                             const RunningVersion& own);

}  // namespace coll
