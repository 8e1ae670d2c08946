// SPDX-License-Identifier: Apache-2.0
#include "switch.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "probe.h"

namespace limits {
namespace {

constexpr int kMostYields = 1'000'000;

// Who ran last on the core, and whether it is over; both processes see it.
struct Core {
  enum Process { nobody, parent, child };
  std::atomic<Process> last{nobody};
  std::atomic<bool> over{false};
};

// A Core in memory that a forked child shares with its parent.
class SharedCore {
 public:
  SharedCore() {
    void* memory =
        mmap(nullptr, sizeof(Core), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap of the probe of yields failed");
    core_ = new (memory) Core;
  }
  ~SharedCore() { munmap(core_, sizeof(Core)); }
  SharedCore(const SharedCore&) = delete;
  SharedCore& operator=(const SharedCore&) = delete;

  Core& get() const { return *core_; }

 private:
  Core* core_;
};

// Yields until the other process has run. False where it never does, or where it is over.
bool hand_over(Core& core, Core::Process self) noexcept {
  core.last.store(self, std::memory_order_relaxed);
  for (int yields = 0; yields < kMostYields; ++yields) {
    sched_yield();
    if (core.over.load(std::memory_order_relaxed)) return false;
    if (core.last.load(std::memory_order_relaxed) != self) return true;
  }
  return false;
}

// The best batch had the core for these two processes alone; 0 where the other did not run.
double best_batch(Core& core) {
  constexpr int kRounds = 500;  // there and back
  std::vector<double> batches(11);
  for (double& batch : batches) {
    const double begin = now_ns();
    for (int i = 0; i < kRounds; ++i) {
      if (!hand_over(core, Core::parent)) return 0;
    }
    batch = (now_ns() - begin) / (2.0 * kRounds);
  }
  return *std::min_element(batches.begin(), batches.end());
}

// Runs both processes on the core that the calling thread is bound to.
double measured(Core& core) {
  const pid_t other = fork();
  if (other < 0) return 0;
  if (other == 0) {
    while (hand_over(core, Core::child)) {
    }
    _exit(0);
  }
  const double best = best_batch(core);
  core.over = true;
  int status = 0;
  return waitpid(other, &status, 0) == other && status == 0 ? best : 0;
}

}  // namespace

double switching_yield_ns(int core) {
  const SharedCore shared;
  double best = 0;
  std::thread timer([&] {  // pinning stays with this thread and its child
    pin(core);
    best = measured(shared.get());
  });
  timer.join();
  if (best == 0) throw std::runtime_error("two processes could not hand over a core");
  return best;
}

}  // namespace limits
