// SPDX-License-Identifier: Apache-2.0
// What a coll_comm is.
#pragma once

#include <memory>
#include <optional>

#include "abi/guarded.h"
#include "communicator/communicator.h"
#include "communicator/regroup.h"
#include "communicator/wire_communicator.h"

struct coll_comm {
  // One of the two: of ranks that share memory, or of ranks on several machines.
  std::optional<coll::Communicator> communicator = std::nullopt;
  std::unique_ptr<coll::WireCommunicator> wire = nullptr;
  // Groups being formed, where COLL_IN_PROGRESS was returned, and where the new one is to go.
  std::unique_ptr<coll::Regroup> regroup = nullptr;
  coll_comm** made = nullptr;
};

namespace coll {

inline Communicator& communicator(coll_comm* comm) {
  if (comm == nullptr) throw Error(Status::closed, "the communicator is closed");
  if (comm->wire != nullptr) {
    throw Error(Status::unsupported,
                "this is not here yet for ranks on several machines: collectives are, but neither "
                "messages, groups, prepared calls nor memory that ranks share");
  }
  return *comm->communicator;
}

// What ranks of one machine and of several do alike.
template <class F>
auto on_either(coll_comm* comm, F&& f) {
  if (comm != nullptr && comm->wire != nullptr) return f(*comm->wire);
  return f(communicator(comm));
}

// To construct a value in place from what a function returns.
template <class F>
struct Made {
  F make;
  operator decltype(make())() { return make(); }
};
template <class F>
Made(F) -> Made<F>;

// Goes on forming groups.
Status resume_regroup(coll_comm& comm);

}  // namespace coll
