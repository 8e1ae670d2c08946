// SPDX-License-Identifier: Apache-2.0
// Communicators for all ranks at once: those of one thread.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/secret.h"
#include "nccl/communicator.h"
#include "nccl/connect.h"
#include "nccl/driver.h"
#include "nccl/group.h"

namespace coll::nccl {
namespace {

using Made = std::vector<std::unique_ptr<ncclComm>>;

// The GPU of each is what the program says, or its number.
Made unconnected(int ranks, const int* devices) {
  Made made;
  for (int r = 0; r < ranks; ++r) {
    made.push_back(std::make_unique<ncclComm>(r, ranks, Config()));
    made.back()->device = devices != nullptr ? devices[r] : r;
    made.back()->algorithms = algorithms_for(wished_algorithms(), ranks);
    if (without_peer_access() || without_shared_memory()) made.back()->mode = COLL_MODE_STAGED;
  }
  return made;
}

void connect_within(const Made& made) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = static_cast<std::int32_t>(made.size());
  options.timeout = call_seconds();
  std::vector<coll_comm*> engines(made.size(), nullptr);
  expect(coll_local(&options, engines.data()));
  const std::string job = job_of(Secret::make());  // by which those that shrink meet
  for (std::size_t r = 0; r < made.size(); ++r) {
    made[r]->engine = engines[r];
    made[r]->job = job;
  }
}

// As ranks of several processes: those of one share a launch, so they share a GPU.
void connect_as_processes(const Made& made) {
  const std::string job = job_of(Secret::make());
  std::atomic<bool> failed = false;
  Outcome first;
  const Look look = [&failed] {
    if (failed.load()) throw Refusal(ncclRemoteError, "another rank could not join");
  };
  for (const auto& comm : made) {
    comm->worker.post([&, its = comm.get()] {
      const Outcome outcome = outcome_of([&] { join_memory(*its, job, look); });
      if (outcome.result != ncclSuccess && !failed.exchange(true)) first = outcome;
    });
  }
  for (const auto& comm : made) comm->worker.wait();
  if (failed.load()) throw Refusal(first.result, first.text);
}

void make_all(ncclComm_t* place, int ranks, const int* devices) {
  Made made = unconnected(ranks, devices);
  const bool one_gpu = std::all_of(made.begin(), made.end(), [&made](const auto& comm) {
    return comm->device == made.front()->device;
  });
  if (one_gpu || !has_gpus()) {
    connect_within(made);
  } else {
    connect_as_processes(made);
  }
  for (std::size_t r = 0; r < made.size(); ++r) place[r] = made[r].release();
}

}  // namespace
}  // namespace coll::nccl

using coll::nccl::answered;
using coll::nccl::noted;
using coll::nccl::Refusal;

extern "C" {

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return noted(answered([&] {
    if (comm == nullptr) throw Refusal(ncclInvalidArgument, "comm is a null pointer");
    if (ndev < 1) {
      throw Refusal(ncclInvalidArgument, std::to_string(ndev) + " communicators are none");
    }
    coll::nccl::debug_level();
    coll::nccl::look_for_driver();
    coll::nccl::make_all(comm, ndev, devlist);
    return ncclSuccess;
  }));
}

}  // extern "C"
