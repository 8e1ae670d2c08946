// SPDX-License-Identifier: Apache-2.0
// Symmetric memory, behind the C interface.
#include <memory>
#include <new>

#include "abi/guarded.h"
#include "abi/handle.h"
#include "transport/symmetric_heap.h"

// Threads share all their memory, and machines none: there a block is an allocation like any other.
struct coll_memory {
  std::shared_ptr<coll::SymmetricHeap> heap;
  void* data = nullptr;

  ~coll_memory() {
    if (heap) {
      heap->release(data);
    } else {
      ::operator delete(data, std::align_val_t{coll::kPage});
    }
  }
};

using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_memory_new(coll_comm* comm, size_t bytes, coll_memory** memory, void** data) {
  return guarded([&] {
    if (memory == nullptr || data == nullptr) {
      throw coll::Error(Status::invalid_argument, "no place for the memory");
    }
    const bool apart = comm != nullptr && comm->wire != nullptr;
    auto made = std::make_unique<coll_memory>();
    const auto heap = apart ? nullptr : coll::communicator(comm).heap();
    made->data =
        heap ? heap->allocate(bytes) : ::operator new(bytes, std::align_val_t{coll::kPage});
    made->heap = heap;
    *data = made->data;
    *memory = made.release();
    return Status::ok;
  });
}

void coll_memory_free(coll_memory* memory) { delete memory; }

int32_t coll_is_symmetric(const coll_comm* comm, const void* data, size_t bytes) {
  return comm != nullptr && comm->communicator && comm->communicator->reaches(data, bytes) ? 1 : 0;
}

}  // extern "C"
