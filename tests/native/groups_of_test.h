// SPDX-License-Identifier: Apache-2.0
// What the tests of groups share: communicators over both sources of memory, with ranks that are
// threads of this process.
#pragma once

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "abi/handle.h"
#include "check.h"
#include "collectives.h"
#include "transport/file_arena.h"
#include "wired_of_test.h"

namespace coll::testing {

struct Closer {
  void operator()(coll_comm* comm) const { coll_close(comm); }
};
using Comm = std::unique_ptr<coll_comm, Closer>;

inline void ok(coll_status status, const char* file = __builtin_FILE(),
               int line = __builtin_LINE()) {
  if (status != COLL_OK) check::fail(coll_last_error(), file, line);
}

// The sentence of the last failure of this thread.
inline bool says(const std::string& part) {
  return std::string(coll_last_error()).find(part) != std::string::npos;
}

inline coll_options options_of(int rank, int ranks, double timeout = 30) {
  coll_options options{};
  options.size = sizeof options;
  options.rank = rank;
  options.ranks = ranks;
  options.timeout = timeout;
  options.slot_bytes = 4096;
  return options;
}

// As ranks of a job of processes meet, whatever they are here.
inline Comm met(const std::string& job, int rank, int ranks, double timeout = 30) {
  coll_options options = options_of(rank, ranks, timeout);
  options.job = job.c_str();
  coll_comm* comm = nullptr;
  ok(coll_init(&options, &comm));
  return Comm(comm);
}

inline std::string job_of_test() { return "groups " + std::to_string(::getpid()) + check::running; }

// The same for each rank of p: once with memory of this process, once with a memfd.
template <class Work>
void on_both(int p, Work work) {
  const coll_options options = options_of(0, p);
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  ok(coll_local(&options, comms.data()));
  run_ranks(p, [&](int rank) { work(Comm(comms[static_cast<std::size_t>(rank)])); });
  run_ranks(p, [&](int rank) { work(met(job_of_test(), rank, p)); });
}

// And once more between machines.
template <class Work>
void on_each(int p, Work work) {
  on_both(p, work);
  const std::vector<coll_comm*> apart = wired(p);
  run_ranks(p, [&](int rank) { work(Comm(apart[static_cast<std::size_t>(rank)])); });
}

inline Comm split(coll_comm* comm, std::int64_t color, std::int64_t key = 0) {
  coll_comm* made = nullptr;
  ok(coll_split(comm, color, key, &made));
  return Comm(made);
}

inline Comm subgroup(coll_comm* comm, const std::vector<int>& ranks) {
  coll_comm* made = nullptr;
  ok(coll_subgroup(comm, ranks.data(), static_cast<int>(ranks.size()), &made));
  return Comm(made);
}

inline Comm dup(coll_comm* comm) {
  coll_comm* made = nullptr;
  ok(coll_dup(comm, &made));
  return Comm(made);
}

inline double sum(coll_comm* comm, double x) {
  ok(coll_allreduce(comm, &x, &x, 1, COLL_FLOAT64, COLL_SUM));
  return x;
}

// What each rank hands in, in rank order.
inline std::vector<int> gathered(coll_comm* comm, int x) {
  std::vector<int> all(static_cast<std::size_t>(coll_ranks(comm)));
  ok(coll_allgather(comm, &x, all.data(), 1, COLL_INT32));
  return all;
}

// Of a communicator whose ranks have a memfd.
inline FileArena& arena(coll_comm* comm) {
  return dynamic_cast<FileArena&>(*comm->communicator->membership().arena);
}

inline int mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

}  // namespace coll::testing
