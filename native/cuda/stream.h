// SPDX-License-Identifier: Apache-2.0
// A stream of a GPU of our own, as long as its owner lives.
#pragma once

#include "cuda/opened.h"

namespace coll::cuda {

class Stream {
 public:
  // Throws Error(system).
  explicit Stream(int device) : device_(device) {
    Sentence why{};
    check(library().stream(device, &stream_, &why), why);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { library().free_stream(device_, stream_); }

  void* get() const noexcept { return stream_; }

 private:
  int device_;
  void* stream_ = nullptr;
};

}  // namespace coll::cuda
