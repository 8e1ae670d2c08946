// SPDX-License-Identifier: Apache-2.0
#include "transport/core_cache.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>

#include "transport/system_calls.h"

namespace coll {
namespace {

// The first line of a small file; empty where it cannot be read.
std::string line_of(const std::string& path) {
  std::array<char, 64> text{};
  const int fd = sys::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = sys::read(fd, text.data(), text.size());
  sys::close(fd);
  const std::string line(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return line.substr(0, line.find('\n'));
}

}  // namespace

std::size_t core_cache() noexcept {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return static_cast<std::size_t>(bytes);
#endif
  return std::size_t{1} << 20;
}

// Not by sysconf(): in a guest it tells of all third caches that the host's processor has, as
// cpuid does, and not of the one that this core reaches.
std::size_t shared_cache() {
  constexpr int kMostCaches = 8;
  const int core = sched_getcpu();
  if (core < 0) return 0;
  const std::string caches = "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cache/index";
  for (int i = 0; i < kMostCaches; ++i) {
    const std::string cache = caches + std::to_string(i);
    if (line_of(cache + "/level") == "3") return cache_bytes(line_of(cache + "/size"));
  }
  return 0;
}

std::size_t cache_bytes(std::string_view text) noexcept {
  std::size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{}) return 0;
  if (rest == end) return value;
  constexpr std::string_view kUnits = "KMG";
  const std::size_t unit = kUnits.find(*rest);
  if (unit == std::string_view::npos || rest + 1 != end) return 0;
  return value << (10 * (unit + 1));
}

}  // namespace coll
