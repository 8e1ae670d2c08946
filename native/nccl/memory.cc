// SPDX-License-Identifier: Apache-2.0
// Memory for arrays, of a GPU where there is one, and arrays that are to be reached without a copy:
// every array is as good as any other, so registration is a receipt.
#include <cstdlib>
#include <string>

#include "collectives_gpu.h"
#include "nccl/communicator.h"
#include "nccl/driver.h"

namespace coll::nccl {
namespace {

constexpr std::size_t kPage = 4096;

void* of_host(std::size_t size) {
  const std::size_t whole = (size + kPage - 1) / kPage * kPage;
  void* const memory = whole < size ? nullptr : std::aligned_alloc(kPage, whole);
  if (memory != nullptr) return memory;
  throw Refusal(ncclSystemError, "there is no memory for " + std::to_string(size) + " bytes");
}

void* of_gpu(std::size_t size) {
  void* memory = nullptr;
  expect(coll_gpu_allocate(current_device(), size, &memory));
  return memory;
}

void expect_no_driver() {
  if (!has_driver()) return;
  throw Refusal(ncclInvalidUsage,
                "there is a CUDA driver, so memory of a GPU is expected, and there are no kernels "
                "for it here: " +
                    why_no_gpus());
}

}  // namespace
}  // namespace coll::nccl

using coll::nccl::answered;
using coll::nccl::Refusal;

extern "C" {

ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  return answered([&] {
    if (ptr == nullptr || size == 0) {
      throw Refusal(ncclInvalidArgument, "ptr is a null pointer, or size is 0");
    }
    *ptr = nullptr;
    coll::nccl::look_for_driver();
    if (!coll::nccl::has_gpus()) coll::nccl::expect_no_driver();
    *ptr = coll::nccl::has_gpus() ? coll::nccl::of_gpu(size) : coll::nccl::of_host(size);
    return ncclSuccess;
  });
}

ncclResult_t ncclMemFree(void* ptr) {
  return answered([&] {
    const int device = coll::nccl::gpu_of(ptr);
    if (device < 0) {
      std::free(ptr);
    } else {
      coll::nccl::expect(coll_gpu_free(device, ptr));
    }
    return ncclSuccess;
  });
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return answered([&] {
    ncclComm& own = coll::nccl::alive(comm);
    if (buff == nullptr || size == 0 || handle == nullptr) {
      throw Refusal(ncclInvalidArgument, "buff or handle is a null pointer, or size is 0");
    }
    *handle = own.receipts.issue();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return answered([&] {
    if (coll::nccl::alive(comm).receipts.take_back(handle)) return ncclSuccess;
    throw Refusal(ncclInvalidArgument,
                  "the handle is not of this communicator, or deregistered already");
  });
}

}  // extern "C"
