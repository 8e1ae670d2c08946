// SPDX-License-Identifier: Apache-2.0
// Persistent calls, behind the C interface.
#include <memory>

#include "abi/convert.h"
#include "abi/guarded.h"
#include "abi/handle.h"

// One of the two calls, as in coll_comm.
struct coll_persistent {
  coll_comm* comm;
  coll::Persistent* call = nullptr;
  coll::WirePersistent* wire = nullptr;
};

namespace coll {
namespace {

coll_persistent& given(coll_persistent* persistent) {
  if (persistent == nullptr) throw Error(Status::invalid_argument, "no persistent call is given");
  return *persistent;
}

void prepare(coll_persistent& made, Communicator& communicator, const Call& call) {
  made.call = &communicator.prepare(call);
}
void prepare(coll_persistent& made, WireCommunicator& communicator, const Call& call) {
  made.wire = &communicator.prepare(call);
}

// f(communicator, call)
template <class F>
auto on_its_own(coll_persistent& p, F&& f) {
  if (p.wire != nullptr) return f(*p.comm->wire, *p.wire);
  return f(*p.comm->communicator, *p.call);
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
    auto made = std::make_unique<coll_persistent>(coll_persistent{.comm = comm});
    const coll::Call wanted = coll::to_call(call);
    coll::on_either(comm, [&](auto& communicator) { coll::prepare(*made, communicator, wanted); });
    *persistent = made.release();
    return Status::ok;
  });
}

coll_status coll_start(coll_persistent* persistent) {
  return guarded([&] {
    coll::on_its_own(given(persistent), [](auto& comm, auto& call) { comm.start(call); });
    return Status::ok;
  });
}

coll_status coll_finish(coll_persistent* persistent) {
  return guarded([&] {
    return coll::on_its_own(given(persistent),
                            [](auto& comm, auto& call) { return comm.finish(call); });
  });
}

coll_status coll_run_persistent(coll_persistent* persistent) {
  return guarded([&] {
    return coll::on_its_own(given(persistent),
                            [](auto& comm, auto& call) { return comm.run(call); });
  });
}

coll_status coll_persistent_free(coll_persistent* persistent) {
  return guarded([&] {
    if (persistent == nullptr) return Status::ok;
    coll::on_its_own(*persistent, [](auto& comm, auto& call) { comm.forget(call); });
    delete persistent;
    return Status::ok;
  });
}

}  // extern "C"
