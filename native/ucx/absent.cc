// SPDX-License-Identifier: Apache-2.0
// In place of all that calls UCX, where the build found no headers of UCX.
#include "base/error.h"
#include "ucx/ucx.h"

namespace coll {

class UcxCore {};

namespace {

[[noreturn]] void refuse() {
  throw Error(Status::unsupported,
              "this build of collectives has no UCX: its headers were not found. Install Debian's "
              "libucx-dev, or give the folder that has ucp/api/ucp.h as COLL_UCX_INCLUDE, and "
              "build again; or leave transport=\"ucx\" away");
}

}  // namespace

std::string ucx_version(const UcxSettings&) { refuse(); }

UcxWorker::UcxWorker(const UcxSettings&, int, int) { refuse(); }

std::unique_ptr<PolledStream> UcxWorker::connect(int, Descriptor, const Endpoint&, TcpReceiver&,
                                                 bool) {
  return nullptr;  // no worker was ever made
}

}  // namespace coll
