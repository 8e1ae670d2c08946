// SPDX-License-Identifier: Apache-2.0
#include "nccl/worker.h"

#include <unistd.h>

#include <utility>

#include "nccl/quiet_thread.h"

namespace coll::nccl {

Worker::~Worker() {
  if (is_of_parent()) {
    // The thread is not here, and waits there: it would be waited for. Nothing is to be touched.
    [[maybe_unused]] const State* const left = state_.release();
    return;
  }
  wait();
  if (!state_->thread.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

void Worker::post(Task task) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return state.task == nullptr; });
  if (!state.thread.joinable()) {
    owner_ = ::getpid();
    state.thread = quiet_thread([&state] { run(state); });
  }
  state.task = std::move(task);
  state.changed.notify_all();
}

// Whether this is a forked child of the process that has the thread.
bool Worker::is_of_parent() const noexcept { return owner_ != 0 && owner_ != ::getpid(); }

void Worker::wait() {
  if (is_of_parent()) return;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->task == nullptr; });
}

bool Worker::idle() {
  if (is_of_parent()) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->task == nullptr;
}

void Worker::run(State& state) {
  std::unique_lock lock(state.mutex);
  for (;;) {
    state.changed.wait(lock, [&] { return state.ending || state.task != nullptr; });
    if (state.task == nullptr) return;
    const Task& task = state.task;  // stays until it is done: so nobody posts another
    lock.unlock();
    task();
    lock.lock();
    state.task = nullptr;
    state.changed.notify_all();
  }
}

}  // namespace coll::nccl
