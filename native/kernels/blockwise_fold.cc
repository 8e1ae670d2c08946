// SPDX-License-Identifier: Apache-2.0
#include "kernels/blockwise_fold.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace coll::kernels {
namespace {

using Partial = std::array<std::byte, kBlockBytes>;

// A balanced fold holds one partial result for each binary digit of the number of pairs so far.
constexpr std::size_t kLevels = std::bit_width(kMaxSources / 2);

class BlockwiseFold {
 public:
  BlockwiseFold(const Fold& fold, const BlockLoops& loops, const void* element) noexcept
      : fold_(fold), loops_(loops), element_(element) {}

  void run() noexcept {
    const bool around_cache = streams(fold_, bytes(fold_.n));
    const std::size_t whole = kBlockBytes / loops_.value_bytes;
    std::size_t n = around_cache ? whole - cells_into_line() : whole;
    for (std::size_t first = 0; first < fold_.n; first += n, n = whole) {
      n = std::min(n, fold_.n - first);
      if (fold_.balanced) {
        fold_balanced(first, n);
      } else {
        fold_left(first, n);
      }
      if (loops_.divide != nullptr && fold_.divisor != 1) {
        loops_.divide(partials_[0].data(), fold_.divisor, n);
      }
      write(first, n, around_cache);
    }
    if (around_cache) end_streaming();
  }

 private:
  std::size_t bytes(std::size_t n) const noexcept { return n * loops_.cell_bytes; }

  const std::byte* source(std::size_t j, std::size_t first) const noexcept {
    return static_cast<const std::byte*>(fold_.sources[j]) + bytes(first);
  }
  std::byte* destination(std::size_t j, std::size_t first) const noexcept {
    return static_cast<std::byte*>(fold_.destinations[j]) + bytes(first);
  }

  // Cells of the first streamed destination in front of its first whole cache line, counted from
  // the line's start: blocks that end where lines end write no line in two parts.
  std::size_t cells_into_line() const noexcept {
    const auto j = static_cast<std::size_t>(std::countr_zero(fold_.streaming));
    if (j >= fold_.m) return 0;
    return reinterpret_cast<std::uintptr_t>(fold_.destinations[j]) % 64 / loops_.cell_bytes;
  }

  void load(std::byte* to, const std::byte* from, std::size_t n) const noexcept {
    if (loops_.load == nullptr) {
      std::memcpy(to, from, bytes(n));
    } else {
      loops_.load(element_, to, from, n);
    }
  }
  void fold_in(std::byte* to, const std::byte* from, std::size_t n) const noexcept {
    if (loops_.load == nullptr) {
      loops_.combine(element_, to, to, from, n);
    } else {
      loops_.fold_in(element_, to, from, n);
    }
  }
  void join(std::byte* to, const std::byte* from, std::size_t n) const noexcept {
    if (loops_.load == nullptr) {
      loops_.combine(element_, to, to, from, n);
    } else {
      loops_.join(to, from, n);
    }
  }

  void fold_left(std::size_t first, std::size_t n) noexcept {
    std::byte* to = partials_[0].data();
    if (fold_.k == 1) return load(to, source(0, first), n);
    loops_.combine(element_, to, source(0, first), source(1, first), n);
    for (std::size_t j = 2; j < fold_.k; ++j) fold_in(to, source(j, first), n);
  }

  // Pairs are leaves of the tree; two partial results of equal size are joined as soon as both
  // are there, as a binary counter carries, and the unequal ones that are left from the last on.
  // That is the tree split at the largest power of two below k.
  void fold_balanced(std::size_t first, std::size_t n) noexcept {
    std::size_t depth = 0;
    for (std::size_t j = 0; j < fold_.k; j += 2) {
      const bool last = j + 2 >= fold_.k;
      std::byte* to = partials_[depth++].data();
      if (j + 1 < fold_.k) {
        loops_.combine(element_, to, source(j, first), source(j + 1, first), n);
      } else {
        load(to, source(j, first), n);
      }
      auto joins = last ? depth - 1 : static_cast<std::size_t>(std::countr_zero(j / 2 + 1));
      for (; joins > 0; --joins, --depth) {
        join(partials_[depth - 2].data(), partials_[depth - 1].data(), n);
      }
    }
  }

  // The one rounding, and the way to the destinations.
  void write(std::size_t first, std::size_t n, bool around_cache) noexcept {
    const std::byte* values = partials_[0].data();
    if (loops_.load == nullptr) return copy(first, n, values, around_cache);
    if (fold_.m == 1 && !around_cache) {
      return loops_.store(element_, destination(0, first), values, n);
    }
    loops_.store(element_, partials_[1].data(), values, n);  // cells are no wider than values
    copy(first, n, partials_[1].data(), around_cache);
  }

  void copy(std::size_t first, std::size_t n, const std::byte* from,
            bool around_cache) const noexcept {
    for (std::uint32_t j = 0; j < fold_.m; ++j) {
      if (around_cache && streamed(fold_, j)) {
        stream_bytes(destination(j, first), from, bytes(n));
      } else {
        std::memcpy(destination(j, first), from, bytes(n));
      }
    }
  }

  const Fold& fold_;
  const BlockLoops& loops_;
  const void* element_;
  alignas(64) std::array<Partial, kLevels> partials_;
};

}  // namespace

void fold_blockwise(const Fold& fold, const BlockLoops& loops, const void* element) noexcept {
  BlockwiseFold(fold, loops, element).run();
}

}  // namespace coll::kernels
