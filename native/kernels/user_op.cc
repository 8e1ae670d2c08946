// SPDX-License-Identifier: Apache-2.0
#include "kernels/user_op.h"

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"

namespace coll {
namespace {

// An entry is written before its flag, and read after it.
struct Entry {
  UserOp op;
  std::atomic<bool> there{false};
};

std::array<Entry, kMostUserOps>& table() {
  static std::array<Entry, kMostUserOps> entries;
  return entries;
}

std::mutex& writing() {
  static std::mutex mutex;
  return mutex;
}

// Folds n elements, at most a block, of the sources [first, last) into `to`.
class BlockFold {
 public:
  static constexpr std::size_t kBytes = 2048;

  BlockFold(const Fold& fold, std::size_t offset, std::size_t n, std::size_t size) noexcept
      : fold_(fold), offset_(offset), n_(n), bytes_(n * size) {}

  void left(std::byte* to) const noexcept {
    alignas(64) std::byte other[kBytes];
    std::byte *sum = to, *next = other;
    std::memcpy(sum, source(0), bytes_);
    for (std::uint32_t k = 1; k < fold_.k; ++k) {
      std::memcpy(next, source(k), bytes_);
      apply(sum, next);
      std::swap(sum, next);
    }
    if (sum != to) std::memcpy(to, sum, bytes_);
  }

  // Split at the largest power of two below the number of sources.
  void balanced(std::uint32_t first, std::uint32_t last, std::byte* to) const noexcept {
    const std::uint32_t k = last - first;
    if (k == 1) {
      std::memcpy(to, source(first), bytes_);
      return;
    }
    std::uint32_t half = 1;
    while (2 * half < k) half *= 2;
    alignas(64) std::byte lower[kBytes];
    balanced(first, first + half, lower);
    balanced(first + half, last, to);
    apply(lower, to);
  }

 private:
  const std::byte* source(std::uint32_t k) const noexcept {
    return static_cast<const std::byte*>(fold_.sources[k]) + offset_;
  }
  void apply(const std::byte* lower, std::byte* upper) const noexcept {
    if (*fold_.failed) return;
    const UserOp& op = *fold_.user;
    *fold_.failed =
        op.function(lower, upper, n_, static_cast<std::int32_t>(fold_.dtype), op.context) != 0;
  }

  const Fold& fold_;
  std::size_t offset_, n_, bytes_;
};

}  // namespace

int add_user_op(UserOp&& op) {
  if (op.function == nullptr) {
    throw Error(Status::invalid_argument, "an operation needs a function: it is a null pointer");
  }
  static std::uint64_t generations = 0;
  const std::lock_guard lock(writing());
  for (int i = 0; i < kMostUserOps; ++i) {
    Entry& entry = table()[static_cast<std::size_t>(i)];
    if (entry.there.load(std::memory_order_relaxed)) continue;
    entry.op = std::move(op);
    entry.op.generation = ++generations;
    entry.there.store(true, std::memory_order_release);
    return kUserOps + i;
  }
  throw Error(Status::unsupported, "there are " + std::to_string(kMostUserOps) +
                                       " operations already, as many as there can be: free some");
}

void remove_user_op(int number) {
  const std::lock_guard lock(writing());
  if (find_user_op(number) == nullptr) {
    throw Error(Status::invalid_argument, "there is no operation " + std::to_string(number));
  }
  table()[static_cast<std::size_t>(number - kUserOps)].there = false;
}

const UserOp* find_user_op(int number) noexcept {
  if (number < kUserOps || number >= kUserOps + kMostUserOps) return nullptr;
  const Entry& entry = table()[static_cast<std::size_t>(number - kUserOps)];
  return entry.there.load(std::memory_order_acquire) ? &entry.op : nullptr;
}

std::uint64_t user_op_generation(int number) noexcept {
  const UserOp* op = find_user_op(number);
  return op != nullptr ? op->generation : 0;
}

void fold_user(const Fold& fold) noexcept {
  const std::size_t size = size_of(fold.dtype), most = BlockFold::kBytes / size;
  alignas(64) std::byte result[BlockFold::kBytes];
  for (std::size_t done = 0; done < fold.n; done += most) {
    const std::size_t n = fold.n - done < most ? fold.n - done : most;
    const BlockFold block(fold, done * size, n, size);
    fold.balanced ? block.balanced(0, fold.k, result) : block.left(result);
    for (std::uint32_t m = 0; m < fold.m; ++m) {
      std::memcpy(static_cast<std::byte*>(fold.destinations[m]) + done * size, result, n * size);
    }
  }
}

}  // namespace coll
