// SPDX-License-Identifier: Apache-2.0
#include "kernels/index_hash.h"

#include <cstring>

namespace coll::kernels {
namespace {

// One loop without branches, compiled for each instruction set.
template <class Index>
struct HashLoop {
  [[gnu::always_inline]] static std::uint32_t count(const std::byte* indices, std::size_t n,
                                                    std::uint32_t limit) noexcept {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < n; ++i) {
      Index index;
      std::memcpy(&index, indices + i * sizeof index, sizeof index);
      found += hash_of(index) <= limit ? 1U : 0U;
    }
    return found;
  }

  static std::uint32_t baseline(const std::byte* indices, std::size_t n,
                                std::uint32_t limit) noexcept {
    return count(indices, n, limit);
  }
#if defined(__x86_64__)
  [[gnu::target("avx2")]] static std::uint32_t avx2(const std::byte* indices, std::size_t n,
                                                    std::uint32_t limit) noexcept {
    return count(indices, n, limit);
  }
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static std::uint32_t avx512(
      const std::byte* indices, std::size_t n, std::uint32_t limit) noexcept {
    return count(indices, n, limit);
  }
#endif
};

template <class Index>
HashesUpTo loop_for([[maybe_unused]] InstructionSet set) noexcept {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return HashLoop<Index>::avx512;
  if (set == InstructionSet::avx2) return HashLoop<Index>::avx2;
#endif
  return HashLoop<Index>::baseline;
}

}  // namespace

HashesUpTo hashes_up_to(InstructionSet set, std::size_t index_bytes) noexcept {
  return index_bytes == sizeof(std::uint32_t) ? loop_for<std::uint32_t>(set)
                                              : loop_for<std::uint64_t>(set);
}

}  // namespace coll::kernels
