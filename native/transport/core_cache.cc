// SPDX-License-Identifier: Apache-2.0
#include "transport/core_cache.h"

#include <unistd.h>

namespace coll {

std::size_t core_cache() noexcept {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return static_cast<std::size_t>(bytes);
#endif
  return std::size_t{1} << 20;
}

}  // namespace coll
