// SPDX-License-Identifier: Apache-2.0
#include "communicator/process_forks.h"

#include <pthread.h>

namespace coll {
namespace {

void count_fork() { counted_forks.fetch_add(1, std::memory_order_relaxed); }

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, count_fork);

}  // namespace

std::atomic<unsigned> counted_forks{0};

}  // namespace coll
