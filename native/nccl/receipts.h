// SPDX-License-Identifier: Apache-2.0
// The handles of arrays that a communicator has registered: addresses of nothing, known while they
// are not given back. Any thread may ask.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace coll::nccl {

class Receipts {
 public:
  void* issue() {
    auto made = std::make_unique<std::byte>();
    void* const handle = made.get();
    const std::lock_guard lock(mutex_);
    known_.emplace(handle, std::move(made));
    return handle;
  }

  // Whether it was issued here, and is not back yet.
  bool take_back(const void* handle) {
    const std::lock_guard lock(mutex_);
    return known_.erase(handle) > 0;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, std::unique_ptr<std::byte>> known_;
};

}  // namespace coll::nccl
