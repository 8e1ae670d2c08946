// SPDX-License-Identifier: Apache-2.0
#include "transport/core_cache.h"

#include <unistd.h>

#include <algorithm>

namespace coll {
namespace {

std::size_t measured() noexcept {
#ifdef _SC_LEVEL2_CACHE_SIZE
  const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return static_cast<std::size_t>(bytes);
#endif
  return std::size_t{1} << 20;
}

}  // namespace

std::size_t core_cache() noexcept {
  constexpr std::size_t kLeast = 256 << 10, kMost = 4 << 20;
  static const std::size_t bytes = std::clamp(measured(), kLeast, kMost);
  return bytes;
}

}  // namespace coll
