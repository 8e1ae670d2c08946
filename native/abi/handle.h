// SPDX-License-Identifier: Apache-2.0
// What a coll_comm is.
#pragma once

#include <memory>

#include "abi/guarded.h"
#include "communicator/communicator.h"
#include "communicator/regroup.h"

struct coll_comm {
  coll::Communicator communicator;
  // Groups being formed, where COLL_IN_PROGRESS was returned, and where the new one is to go.
  std::unique_ptr<coll::Regroup> regroup = nullptr;
  coll_comm** made = nullptr;
};

namespace coll {

inline Communicator& communicator(coll_comm* comm) {
  if (comm == nullptr) throw Error(Status::closed, "the communicator is closed");
  return comm->communicator;
}

// Goes on forming groups.
Status resume_regroup(coll_comm& comm);

}  // namespace coll
