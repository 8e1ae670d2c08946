// SPDX-License-Identifier: Apache-2.0
// Threads of a library: signals of the process go to the program's own threads.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace coll::nccl {

template <class Body>
std::thread quiet_thread(Body&& body) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // which a new thread inherits
  struct Restored {
    const sigset_t& mask;
    ~Restored() { ::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const restored{before};
  return std::thread(std::forward<Body>(body));
}

}  // namespace coll::nccl
