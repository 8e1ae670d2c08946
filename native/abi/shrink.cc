// SPDX-License-Identifier: Apache-2.0
// What is left of a communicator after a failure, behind the C interface.
#include <memory>

#include "abi/handle.h"
#include "communicator/segment_shrink.h"
#include "communicator/wire_shrink.h"

namespace coll {
namespace {

Status shrink(coll_comm* comm, Communicator& parent, double timeout, coll_comm** made) {
  auto shrink = std::make_unique<SegmentShrink>(parent, timeout);
  SegmentShrink* own = shrink.get();
  return form(
      *comm, std::move(shrink), [own] { return handle_of([own] { return own->take(); }); }, made);
}

Status shrink(coll_comm* comm, WireCommunicator& parent, double timeout, coll_comm** made) {
  auto shrink = std::make_unique<WireShrink>(parent, timeout);
  WireShrink* own = shrink.get();
  return form(*comm, std::move(shrink), [own] { return handle_of(own->take()); }, made);
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_revoke(coll_comm* comm) {
  return guarded([&] {
    coll::on_either(comm, [](auto& communicator) { communicator.revoke(); });
    return Status::ok;
  });
}

coll_status coll_shrink(coll_comm* comm, double timeout, coll_comm** made) {
  return guarded([&] {
    if (made == nullptr) {
      throw coll::Error(Status::invalid_argument, "no place for the new communicator");
    }
    *made = nullptr;
    if (!(timeout >= 0)) {
      throw coll::Error(Status::invalid_argument, "shrink: the time-out must be 0 seconds or more");
    }
    // Steps that were left end with their communicator.
    coll::on_either(comm, [](auto& parent) { parent.revoke(); });
    comm->steps.reset();
    return coll::on_either(comm,
                           [&](auto& parent) { return coll::shrink(comm, parent, timeout, made); });
  });
}

}  // extern "C"
