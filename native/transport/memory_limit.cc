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
  std::array<char, 16384> text{};
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

// The value of a line "name value".
std::size_t line_of(std::string_view text, std::string_view name) noexcept {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    return number(text.substr(at + name.size())).value_or(0);
  }
  return 0;
}

// How the two kinds of control groups name things.
struct Names {
  const char *limit, *use, *active, *inactive;
};
constexpr Names kUnified = {"/memory.max", "/memory.current", "active_file ", "inactive_file "};
constexpr Names kLegacy = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_active_file ",
                           "total_inactive_file "};

// Pages of files count as used, and are given back when others are wanted.
std::size_t of_group(const std::string& folder, const Names& names) {
  const auto most = number(contents((folder + names.limit).c_str()));
  const auto used = number(contents((folder + names.use).c_str()));
  if (!most || !used) return kUnknown;
  const std::string pages = contents((folder + "/memory.stat").c_str());
  const std::size_t files = line_of(pages, names.active) + line_of(pages, names.inactive);
  const std::size_t kept = *used - std::min(*used, files);
  return *most - std::min(*most, kept);
}

// Of a group and all around it. Inside a container the path may be that outside, and lead nowhere:
// then the root of what is mounted is what there is.
std::size_t of_groups(const std::string& root, std::string_view path, const Names& names) {
  std::size_t least = of_group(root, names);
  while (path.size() > 1) {
    least = std::min(least, of_group(root + std::string(path), names));
    path = path.substr(0, path.rfind('/'));
  }
  return least;
}

bool names_memory(std::string_view controllers) noexcept {
  while (!controllers.empty()) {
    const std::size_t end = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, end) == "memory") return true;
    controllers.remove_prefix(std::min(end + 1, controllers.size()));
  }
  return false;
}

}  // namespace

std::size_t available_in_groups(std::string_view groups, const std::string& root) {
  std::size_t least = kUnknown;
  while (!groups.empty()) {
    const std::size_t end = std::min(groups.find('\n'), groups.size());
    const std::string_view line = groups.substr(0, end);
    groups.remove_prefix(std::min(end + 1, groups.size()));
    const std::size_t one = line.find(':'), two = line.find(':', one + 1);
    if (one == std::string_view::npos || two == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(one + 1, two - one - 1);
    const std::string_view path = line.substr(two + 1);
    if (controllers.empty()) least = std::min(least, of_groups(root, path, kUnified));
    if (names_memory(controllers)) {
      least = std::min(least, of_groups(root + "/memory", path, kLegacy));
    }
  }
  return least;
}

std::size_t available_memory() {
  return std::min(of_machine(),
                  available_in_groups(contents("/proc/self/cgroup"), "/sys/fs/cgroup"));
}

std::size_t machine_memory() noexcept {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page)
                               : 0;
}

}  // namespace coll
