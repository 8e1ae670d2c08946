// SPDX-License-Identifier: Apache-2.0
#include "transport/memory_limit.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "transport/system_calls.h"

namespace coll {
namespace {

constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

std::string contents(const char* path) {
  std::array<char, 4096> text{};
  const int fd = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = sys::read(fd, text.data(), text.size());
  sys::close(fd);
  return {text.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

std::optional<std::size_t> number(std::string_view text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::size_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc{}) return std::nullopt;
  return value;
}

std::size_t of_machine() {
  constexpr std::string_view kLabel = "MemAvailable:";
  const std::string text = contents("/proc/meminfo");
  const std::size_t at = text.find(kLabel);
  if (at == std::string::npos) return kUnknown;
  const auto kib = number(std::string_view(text).substr(at + kLabel.size()));
  return kib ? *kib * 1024 : kUnknown;
}

// Of the control group as it is seen from inside of it: where the root is mounted there is no
// limit.
std::size_t of_group(const char* limit, const char* use) {
  const auto most = number(contents(limit)), used = number(contents(use));
  if (!most || !used) return kUnknown;
  return *most - std::min(*most, *used);
}

}  // namespace

std::size_t available_memory() {
  return std::min({of_machine(),
                   of_group("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
                   of_group("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                            "/sys/fs/cgroup/memory/memory.usage_in_bytes")});
}

std::size_t machine_memory() noexcept {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page)
                               : 0;
}

}  // namespace coll
