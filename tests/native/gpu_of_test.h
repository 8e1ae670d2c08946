// SPDX-License-Identifier: Apache-2.0
// What tests of collectives on the emulated GPU share: arrays in its memory, and ranks that are
// threads of this process.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "groups_of_test.h"

namespace coll::testing {

// A rank's array on the GPU; the emulated one's memory can be looked at.
class Array {
 public:
  explicit Array(std::size_t n, float value = 0, int device = 0) : n_(n), device_(device) {
    ok(coll_gpu_allocate(device, n * sizeof(float) + 1, &memory_));
    std::fill_n(data(), n, value);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { coll_gpu_free(device_, memory_); }
  float* data() const { return static_cast<float*>(memory_); }
  bool all(float value) const {
    return std::all_of(data(), data() + n_, [&](float x) { return x == value; });
  }

 private:
  std::size_t n_;
  int device_;
  void* memory_ = nullptr;
};

inline coll_call allreduce(const Array& in, const Array& out, std::size_t n) {
  coll_call call{};
  call.size = sizeof(call);
  call.kind = COLL_ALLREDUCE;
  call.dtype = COLL_FLOAT32;
  call.op = COLL_SUM;
  call.input = in.data();
  call.output = out.data();
  call.count = n;
  call.algorithm = call.mode = -1;
  return call;
}

inline coll_status run(const Comm& comm, const coll_call& call, int device = 0) {
  coll_status status = coll_gpu_run(comm.get(), &call, device, nullptr);
  while (status == COLL_IN_PROGRESS) status = coll_resume(comm.get());
  return status;
}

inline coll_status run_on(const Comm& comm, const coll_call& call, void* stream) {
  coll_status status = coll_gpu_run(comm.get(), &call, 0, stream);
  while (status == COLL_IN_PROGRESS) status = coll_resume(comm.get());
  return status;
}

struct Freed {
  void operator()(coll_gpu_persistent* call) const { coll_gpu_persistent_free(call); }
};
using Persistent = std::unique_ptr<coll_gpu_persistent, Freed>;

inline Persistent prepared(const Comm& comm, const coll_call& call) {
  coll_gpu_persistent* made = nullptr;
  coll_status status = coll_gpu_persistent_new(comm.get(), &call, 0, &made);
  while (status == COLL_IN_PROGRESS) status = coll_resume(comm.get());
  ok(status);
  return Persistent(made);
}

inline coll_status run_on(const Comm& comm, const Persistent& call, void* stream) {
  coll_status status = coll_gpu_persistent_run(call.get(), stream);
  while (status == COLL_IN_PROGRESS) status = coll_resume(comm.get());
  return status;
}

// For the threads of this process only.
template <class Work>
void in_threads(int p, Work work) {
  const coll_options options = options_of(0, p);
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  ok(coll_local(&options, comms.data()));
  run_ranks(p, [&](int rank) { work(Comm(comms[static_cast<std::size_t>(rank)])); });
}

inline bool fails(coll_status status, coll_status expected, const std::string& words) {
  if (status == expected && says(words)) return true;
  std::fprintf(stderr, "status %d: %s\n", status, coll_last_error());
  return false;
}

}  // namespace coll::testing
