// SPDX-License-Identifier: Apache-2.0
#include "communicator/process_forks.h"

#include <pthread.h>

#include <atomic>

namespace coll {
namespace {

std::atomic<unsigned> forks{0};

void count_fork() { forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

unsigned process_forks() noexcept {
  static const int registered = pthread_atfork(nullptr, nullptr, count_fork);
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace coll
