// SPDX-License-Identifier: Apache-2.0
#include "nccl/worker.h"

#include <utility>

#include "nccl/quiet_thread.h"

namespace coll::nccl {

Worker::~Worker() {
  wait();
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::post(Task task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return task_ == nullptr; });
  if (!thread_.joinable()) thread_ = quiet_thread([this] { run(); });
  task_ = std::move(task);
  changed_.notify_all();
}

void Worker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return task_ == nullptr; });
}

bool Worker::idle() {
  const std::lock_guard lock(mutex_);
  return task_ == nullptr;
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || task_ != nullptr; });
    if (task_ == nullptr) return;
    const Task& task = task_;  // stays until it is done: so nobody posts another
    lock.unlock();
    task();
    lock.lock();
    task_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace coll::nccl
