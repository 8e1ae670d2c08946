// SPDX-License-Identifier: Apache-2.0
#include "transport/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "transport/descriptor.h"

namespace coll {
namespace {

struct TaskState {
  bool known = false;  // the file could be read
  bool exiting = false;
  std::uint64_t born = 0;
};

// Parses /proc/<pid>/stat: "pid (name) state ppid ...". The name may hold anything, also ')'.
TaskState parse(const char* text) noexcept {
  constexpr int kFlags = 9, kStartTime = 22;    // fields, counted as in proc(5)
  constexpr unsigned long long kExiting = 0x4;  // PF_EXITING of the kernel
  TaskState state;
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] != ' ') return state;
  at += 2;
  state.exiting = *at == 'Z' || *at == 'X' || *at == 'x';
  for (int field = 3; field <= kStartTime; ++field) {
    const unsigned long long value = field > 3 ? std::strtoull(at, nullptr, 10) : 0;
    if (field == kFlags) state.exiting = state.exiting || (value & kExiting) != 0;
    if (field == kStartTime) {
      state.born = value;
      state.known = true;
    }
    at = std::strchr(at, ' ');
    if (at == nullptr) break;
    ++at;
  }
  return state;
}

TaskState read_state(const char* path) noexcept {
  const Descriptor file(sys::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  char text[1024];
  const ssize_t n = sys::read(file.get(), text, sizeof text - 1);
  if (n <= 0) return {};
  text[n] = '\0';
  return parse(text);
}

// The first thread's, which is the process's own: qemu-user shows a process a /proc/<pid>/stat of
// itself that it makes up, with another time of birth than the others see.
TaskState state_of(pid_t pid) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, pid);
  return read_state(path);
}

// A process lives on when its first thread has ended, as long as another one has not.
bool every_thread_exiting(pid_t pid) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR* tasks = sys::opendir(path);
  if (tasks == nullptr) return errno == ENOENT || errno == ESRCH;
  bool all = true;
  while (const dirent* entry = ::readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    char stat[384];
    std::snprintf(stat, sizeof stat, "/proc/%d/task/%s/stat", pid, entry->d_name);
    const TaskState state = read_state(stat);
    if (state.known && !state.exiting) {
      all = false;
      break;
    }
  }
  ::closedir(tasks);
  return all;
}

}  // namespace

std::uint64_t start_time_of(pid_t pid) noexcept { return state_of(pid).born; }

bool process_gone(pid_t pid, std::uint64_t born) noexcept {
  if (sys::kill(pid, 0) != 0 && errno == ESRCH) return true;
  const TaskState state = state_of(pid);
  if (!state.known) return false;  // no /proc: kill() has the last word
  if (born != 0 && state.born != born) return true;
  return state.exiting && every_thread_exiting(pid);
}

}  // namespace coll
