// SPDX-License-Identifier: Apache-2.0
#include "base/looks.h"

#include <cstring>
#include <utility>

namespace coll {
namespace {

constinit thread_local Looks* of_thread = nullptr;

constexpr std::size_t kBlockBytes = std::size_t{1} << 22;

template <class Work>
void in_blocks_of_bytes(std::size_t bytes, Work work) {
  for (std::size_t first = 0; first < bytes; first += kBlockBytes) {
    if (first > 0) look();
    work(first, std::min(kBlockBytes, bytes - first));
  }
}

}  // namespace

Looks::Looks(std::function<void()> look, double every)
    : look_(std::move(look)),
      every_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(every))),
      next_(Clock::now() + every_),
      before_(std::exchange(of_thread, this)) {}

Looks::~Looks() { of_thread = before_; }

void Looks::turn() {
  if (Clock::now() < next_) return;
  look_();
  next_ = Clock::now() + every_;
}

void look() {
  if (of_thread != nullptr) of_thread->turn();
}

void copy_in_blocks(void* to, const void* from, std::size_t bytes) {
  in_blocks_of_bytes(bytes, [&](std::size_t first, std::size_t n) {
    std::memcpy(static_cast<std::byte*>(to) + first, static_cast<const std::byte*>(from) + first,
                n);
  });
}

void zero_in_blocks(void* to, std::size_t bytes) {
  in_blocks_of_bytes(bytes, [&](std::size_t first, std::size_t n) {
    std::memset(static_cast<std::byte*>(to) + first, 0, n);
  });
}

}  // namespace coll
