// SPDX-License-Identifier: Apache-2.0
// The thread of a communicator, which begins when it is first needed: for communicators that do not
// block, and where one thread drives several.
#pragma once

#include <condition_variable>
#include <functional>
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
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  Task task_;  // null: none
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace coll::nccl
