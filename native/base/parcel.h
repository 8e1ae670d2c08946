// SPDX-License-Identifier: Apache-2.0
// Memory for bytes of which only their sender knows how many they are: made when they come.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "base/memory_pool.h"

namespace coll {

class Parcel {
 public:
  // False: there is no memory.
  bool make_room(std::size_t size) noexcept {
    bytes_ = pooled(size);
    size_ = bytes_ != nullptr ? size : 0;
    return bytes_ != nullptr;
  }

  std::byte* data() noexcept { return bytes_.get(); }
  std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), size_}; }
  // The memory alone, for who knows how long it is.
  std::shared_ptr<const std::byte[]> release() noexcept {
    size_ = 0;
    return std::shared_ptr<const std::byte[]>(std::move(bytes_));
  }

 private:
  PooledBytes bytes_;
  std::size_t size_ = 0;
};

}  // namespace coll
