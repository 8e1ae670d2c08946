// SPDX-License-Identifier: Apache-2.0
// Persistent calls, behind the C interface.
#include <memory>

#include "abi/convert.h"
#include "abi/guarded.h"
#include "abi/handle.h"

struct coll_persistent {
  coll_comm* comm;
  coll::Persistent* call;
};

namespace coll {
namespace {

coll_persistent& given(coll_persistent* persistent) {
  if (persistent == nullptr) throw Error(Status::invalid_argument, "no persistent call is given");
  return *persistent;
}

}  // namespace
}  // namespace coll

using coll::given;
using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_persistent_new(coll_comm* comm, const coll_call* call,
                                coll_persistent** persistent) {
  return guarded([&] {
    if (persistent == nullptr) {
      throw coll::Error(Status::invalid_argument, "no place for the persistent call");
    }
    auto made = std::make_unique<coll_persistent>();
    made->comm = comm;
    made->call = &coll::communicator(comm).prepare(coll::to_call(call));
    *persistent = made.release();
    return Status::ok;
  });
}

coll_status coll_start(coll_persistent* persistent) {
  return guarded([&] {
    coll_persistent& p = given(persistent);
    p.comm->communicator->start(*p.call);
    return Status::ok;
  });
}

coll_status coll_finish(coll_persistent* persistent) {
  return guarded([&] {
    coll_persistent& p = given(persistent);
    return p.comm->communicator->finish(*p.call);
  });
}

coll_status coll_run_persistent(coll_persistent* persistent) {
  return guarded([&] {
    coll_persistent& p = given(persistent);
    return p.comm->communicator->run(*p.call);
  });
}

coll_status coll_persistent_free(coll_persistent* persistent) {
  return guarded([&] {
    if (persistent == nullptr) return Status::ok;
    persistent->comm->communicator->forget(*persistent->call);
    delete persistent;
    return Status::ok;
  });
}

}  // extern "C"
