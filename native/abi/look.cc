// SPDX-License-Identifier: Apache-2.0
// Which ranks are lost, without a call, behind the C interface.
#include <optional>

#include "abi/guarded.h"
#include "abi/handle.h"
#include "communicator/diagnosis.h"

namespace coll {
namespace {

// Of a forked child the one that it was forked from knows.
std::optional<Cause> lost(const Communicator& communicator, int rank) {
  if (rank < 0) return find_dead(communicator.membership().segment, communicator.rank());
  return find_dead_peer(communicator.membership().segment, rank);
}

std::optional<Cause> lost(WireCommunicator& communicator, int rank) {
  return communicator.lost_meanwhile(rank);
}

}  // namespace
}  // namespace coll

extern "C" {

coll_status coll_look(coll_comm* comm, int32_t rank) {
  return coll::guarded([&] {
    coll::on_either(comm, [rank](auto& communicator) {
      if (rank < -1 || rank >= communicator.ranks()) {
        throw coll::Error(coll::Status::invalid_argument,
                          "there is no rank " + std::to_string(rank));
      }
      if (const auto cause = coll::lost(communicator, rank)) {
        throw coll::Error(cause->status, cause->text, cause->culprit);
      }
    });
    return coll::Status::ok;
  });
}

}  // extern "C"
