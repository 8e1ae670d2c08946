// SPDX-License-Identifier: Apache-2.0
// The 128 bytes by which ranks find each other: where the process that made them listens, and a
// secret that nobody else knows.
#pragma once

#include "bootstrap/secret.h"
#include "nccl/nccl.h"
#include "transport/tcp_endpoint.h"

namespace coll::nccl {

struct MeetingPlace {
  Endpoint at;
  Secret secret;
};

ncclUniqueId text_of(const MeetingPlace& place);

// Throws Refusal where the bytes are not of this library: of NCCL's own, or damaged.
MeetingPlace place_of(const ncclUniqueId& id);

}  // namespace coll::nccl
