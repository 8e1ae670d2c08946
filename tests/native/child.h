// SPDX-License-Identifier: Apache-2.0
// Child processes for tests: always ended and reaped, also when the test fails.
#pragma once

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <utility>

namespace check {

inline void nap(int milliseconds) { ::usleep(static_cast<useconds_t>(milliseconds) * 1000); }

class Child {
 public:
  // Runs `body` in a fork. Its exit status: 0, or 1 after an exception, which it prints.
  template <class Body>
  explicit Child(Body body) {
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ > 0) return;
    try {
      body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ < 0) return;
    kill(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const noexcept { return pid_; }
  void kill(int signal) const noexcept { ::kill(pid_, signal); }

  // The exit status, 128 + signal where one ended it; throws where it is still there after `limit`.
  int wait(std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("a child hangs");
      nap(1);
    }
  }

 private:
  pid_t pid_ = -1;
};

// Open descriptors of this process.
inline int descriptors() {
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) throw std::runtime_error("no /proc/self/fd");
  int count = -3;  // ".", ".." and the directory itself
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

}  // namespace check
