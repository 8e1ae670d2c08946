// SPDX-License-Identifier: Apache-2.0
// The thread of a communicator, which begins when it is first needed: for communicators that do not
// block, and where one thread drives several.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace coll::nccl {

class Worker {
 public:
  using Task = std::function<void()>;  // must not throw

  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();  // after the task

  // One task at a time: waits for the one before.
  void post(Task task);
  // Returns when there is no task.
  void wait();
  bool idle();

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    Task task;  // null: none
    bool ending = false;
    std::thread thread;
  };

  static void run(State& state);
  bool is_of_parent() const noexcept;

  std::unique_ptr<State> state_ = std::make_unique<State>();
  pid_t owner_ = 0;  // the process that has the thread
};

}  // namespace coll::nccl
