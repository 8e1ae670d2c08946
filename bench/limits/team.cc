// SPDX-License-Identifier: Apache-2.0
#include "team.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "probe.h"

namespace limits {
namespace {

constexpr double kTimeout = 20;  // seconds: a measurement never hangs

coll_options options_of(int rank, int ranks, const char* job) {
  coll_options options{};
  options.size = sizeof options;
  options.rank = rank;
  options.ranks = ranks;
  options.job = job;
  options.timeout = kTimeout;
  return options;
}

int core_of(int rank, const std::vector<int>& cores) {
  return cores[static_cast<std::size_t>(rank) % cores.size()];
}

// Memory that forked children share with their parent.
class Shared {
 public:
  explicit Shared(std::size_t count) : bytes_(count * sizeof(double)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap of the samples failed");
    data_ = static_cast<double*>(memory);
  }
  ~Shared() { munmap(data_, bytes_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  std::span<double> part(int rank, std::size_t samples) const {
    return {data_ + static_cast<std::size_t>(rank) * samples, samples};
  }

 private:
  std::size_t bytes_;
  double* data_ = nullptr;
};

void run_threads(int ranks, const std::vector<int>& cores, const Work& work, const Shared& shared,
                 std::size_t samples) {
  std::vector<coll_comm*> comms(static_cast<std::size_t>(ranks));
  const coll_options options = options_of(0, ranks, "limits");
  require(coll_local(&options, comms.data()));
  std::vector<std::exception_ptr> failures(comms.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto self = static_cast<std::size_t>(rank);
      try {
        pin(core_of(rank, cores));
        work(comms[self], rank, shared.part(rank, samples));
      } catch (...) {
        failures[self] = std::current_exception();
        coll_abort(comms[self], "a rank of the measurement failed");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (coll_comm* comm : comms) coll_close(comm);
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

int run_child(int rank, int ranks, const char* job, const std::vector<int>& cores, const Work& work,
              std::span<double> samples) noexcept {
  try {
    pin(core_of(rank, cores));
    coll_comm* comm = nullptr;
    const coll_options options = options_of(rank, ranks, job);
    require(coll_init(&options, &comm));
    work(comm, rank, samples);
    require(coll_close(comm));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
}

void run_processes(int ranks, const std::vector<int>& cores, const Work& work, const Shared& shared,
                   std::size_t samples) {
  static int team = 0;
  const std::string job = "limits-" + std::to_string(getpid()) + "-" + std::to_string(++team);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      _exit(run_child(rank, ranks, job.c_str(), cores, work, shared.part(rank, samples)));
    }
    if (child > 0) children.push_back(child);
  }
  bool failed = static_cast<int>(children.size()) != ranks;
  for (const pid_t child : children) {
    int status = 0;
    failed |= waitpid(child, &status, 0) != child || status != 0;
  }
  if (failed) throw std::runtime_error("a rank's process failed; its own message is above");
}

}  // namespace

void require(coll_status status) {
  if (status != COLL_OK) throw std::runtime_error(coll_last_error());
}

std::vector<double> run_team(Kind kind, int ranks, const std::vector<int>& cores,
                             std::size_t samples, const Work& work) {
  const Shared shared(static_cast<std::size_t>(ranks) * samples);
  if (kind == Kind::threads) {
    run_threads(ranks, cores, work, shared, samples);
  } else {
    run_processes(ranks, cores, work, shared, samples);
  }
  std::vector<double> slowest(samples, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::span<double> part = shared.part(rank, samples);
    for (std::size_t i = 0; i < samples; ++i) slowest[i] = std::max(slowest[i], part[i]);
  }
  return slowest;
}

}  // namespace limits
