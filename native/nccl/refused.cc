// SPDX-License-Identifier: Apache-2.0
#include "nccl/refused.h"

#include <string>

#include "nccl/group.h"

namespace coll::nccl {

ncclResult_t refused(const char* name, const char* why) noexcept {
  return noted(answered([=]() -> ncclResult_t {
    throw Refusal(ncclInvalidUsage, std::string(name) + "() is not supported here: " + why);
  }));
}

namespace {

constexpr char kGrowing[] = "communicators do not grow; make a new one";
constexpr char kSuspending[] = "there is no memory of a GPU to release";
constexpr char kWindows[] = "there are no windows of memory that other ranks write to";

}  // namespace
}  // namespace coll::nccl

using coll::nccl::kGrowing;
using coll::nccl::kSuspending;
using coll::nccl::kWindows;
using coll::nccl::refused;

extern "C" {

ncclResult_t ncclCommRevoke(ncclComm_t, int) {
  return refused("ncclCommRevoke", "abort the communicator, or shrink it");
}
ncclResult_t ncclCommGetUniqueId(ncclComm_t, ncclUniqueId*) {
  return refused("ncclCommGetUniqueId", kGrowing);
}
ncclResult_t ncclCommGrow(ncclComm_t, int, const ncclUniqueId*, int, ncclComm_t*, ncclConfig_t*) {
  return refused("ncclCommGrow", kGrowing);
}
ncclResult_t ncclCommSuspend(ncclComm_t, int) { return refused("ncclCommSuspend", kSuspending); }
ncclResult_t ncclCommResume(ncclComm_t) { return refused("ncclCommResume", kSuspending); }
ncclResult_t ncclCommMemStats(ncclComm_t, ncclCommMemStat_t, uint64_t*) {
  return refused("ncclCommMemStats", "there is no memory of a GPU to count");
}
ncclResult_t ncclCommWindowRegister(ncclComm_t, void*, size_t, ncclWindow_t*, int) {
  return refused("ncclCommWindowRegister", kWindows);
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t) {
  return refused("ncclCommWindowDeregister", kWindows);
}
ncclResult_t ncclWinGetUserPtr(ncclComm_t, ncclWindow_t, void**) {
  return refused("ncclWinGetUserPtr", kWindows);
}
ncclResult_t ncclPutSignal(const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int,
                           unsigned int, ncclComm_t, cudaStream_t) {
  return refused("ncclPutSignal", kWindows);
}
ncclResult_t ncclSignal(int, int, int, unsigned int, ncclComm_t, cudaStream_t) {
  return refused("ncclSignal", kWindows);
}
ncclResult_t ncclWaitSignal(int, ncclWaitSignalDesc_t*, ncclComm_t, cudaStream_t) {
  return refused("ncclWaitSignal", kWindows);
}

}  // extern "C"
