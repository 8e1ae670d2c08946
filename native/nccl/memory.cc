// SPDX-License-Identifier: Apache-2.0
// Memory for arrays, and arrays that are to be reached without a copy. Of the host: every array is
// as good as any other, so registration is a receipt.
#include <cstdlib>
#include <memory>
#include <string>

#include "nccl/communicator.h"
#include "nccl/driver.h"

namespace coll::nccl {
namespace {

constexpr std::size_t kPage = 4096;

struct Registration {
  const ncclComm* comm;
};

void expect_no_driver() {
  look_for_driver();
  if (!has_driver()) return;
  throw Refusal(ncclInvalidUsage,
                "ncclMemAlloc() gives memory of the host only, in this version, and there is a "
                "CUDA driver, of which the program will expect memory of a GPU: use cudaMalloc()");
}

}  // namespace
}  // namespace coll::nccl

using coll::nccl::answered;
using coll::nccl::Refusal;
using coll::nccl::Registration;

extern "C" {

ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  return answered([&] {
    if (ptr == nullptr || size == 0) {
      throw Refusal(ncclInvalidArgument, "ptr is a null pointer, or size is 0");
    }
    coll::nccl::expect_no_driver();
    const std::size_t whole =
        (size + coll::nccl::kPage - 1) / coll::nccl::kPage * coll::nccl::kPage;
    *ptr = whole < size ? nullptr : std::aligned_alloc(coll::nccl::kPage, whole);
    if (*ptr == nullptr) {
      throw Refusal(ncclSystemError, "there is no memory for " + std::to_string(size) + " bytes");
    }
    return ncclSuccess;
  });
}

ncclResult_t ncclMemFree(void* ptr) {
  std::free(ptr);
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return answered([&] {
    const ncclComm& own = coll::nccl::alive(comm);
    if (buff == nullptr || size == 0 || handle == nullptr) {
      throw Refusal(ncclInvalidArgument, "buff or handle is a null pointer, or size is 0");
    }
    coll::nccl::expect_host(buff, nullptr, nullptr);
    *handle = std::make_unique<Registration>(Registration{&own}).release();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return answered([&] {
    const ncclComm& own = coll::nccl::alive(comm);
    const std::unique_ptr<Registration> known(static_cast<Registration*>(handle));
    if (known != nullptr && known->comm == &own) return ncclSuccess;
    throw Refusal(ncclInvalidArgument, "the handle is not of this communicator");
  });
}

}  // extern "C"
