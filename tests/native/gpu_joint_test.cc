// SPDX-License-Identifier: Apache-2.0
// Collectives of processes that have a GPU each, through the C interface, on the emulated one: each
// rank launches its part, and the parts reach each other through windows. Here ranks are threads
// that meet as processes do; tests/processes/test_gpu.py has processes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "cuda/library.h"
#include "emulated_gpu.h"
#include "gpu_of_test.h"

namespace {

using namespace coll::testing;

void* own_stream(const Comm& comm) { return stream_of(200 + coll_rank(comm.get())); }

// Every rank on the GPU of its number.
template <class Work>
void each_on_its_own(int p, Work work) {
  run_ranks(p, [&](int rank) { work(met(job_of_test(), rank, p), rank); });
}

coll_status run_at(const Comm& comm, const coll_call& call, int device) {
  coll_status status = coll_gpu_run(comm.get(), &call, device, own_stream(comm));
  while (status == COLL_IN_PROGRESS) status = coll_resume(comm.get());
  return status;
}

std::vector<float> fetched(const Comm& comm, const Array& array, std::size_t n, int device) {
  std::vector<float> host(n);
  ok(coll_gpu_copy(device, host.data(), array.data(), n * sizeof(float), own_stream(comm)));
  return host;
}

coll_last_call last_of(const Comm& comm) {
  coll_last_call last{};
  last.size = sizeof last;
  ok(coll_last(comm.get(), &last));
  return last;
}

TEST(sums_of_all_lengths_and_the_same_ones_again) {
  for (const int p : {2, 3}) {
    each_on_its_own(p, [p](const Comm& comm, int rank) {
      const float sum = static_cast<float>(p * (p + 1)) / 2;
      for (const std::size_t n : {0, 1, 100, 4096, 4097, 100'000, 100, 4096}) {
        const Array in(n, static_cast<float>(rank + 1), rank), out(n, 0, rank);
        // Without a word to the others in between: launches may be a call ahead.
        for (int again = 0; again < 4; ++again) ok(run_at(comm, allreduce(in, out, n), rank));
        CHECK(fetched(comm, out, n, rank) == std::vector<float>(n, sum));
        const coll_last_call last = last_of(comm);
        CHECK(last.way == COLL_GPU_LAUNCH && last.bytes == n * 4);
      }
      ok(coll_gpu_wait(comm.get(), rank, own_stream(comm)));
    });
  }
  CHECK(taken() == 0);
}

TEST(every_algorithm_in_the_modes_there_are) {
  each_on_its_own(3, [](const Comm& comm, int rank) {
    for (int algorithm = 0; algorithm < coll_algorithm_count(); ++algorithm) {
      coll_algorithm info{};
      ok(coll_algorithm_get(algorithm, &info));
      if (info.kind != COLL_ALLREDUCE || coll_algorithm_fits(algorithm, 3) == 0) continue;
      for (const int mode : {COLL_MODE_STAGED, COLL_MODE_INLINE}) {
        const Array in(1000, static_cast<float>(rank), rank), out(1000, 0, rank);
        coll_call call = allreduce(in, out, 1000);
        call.algorithm = algorithm;
        call.mode = mode;
        ok(run_at(comm, call, rank));
        CHECK(fetched(comm, out, 1000, rank) == std::vector<float>(1000, 3));
        const coll_last_call last = last_of(comm);
        CHECK(last.way == COLL_GPU_LAUNCH && last.algorithm == algorithm && last.mode == mode);
      }
    }
  });
}

TEST(what_only_moves) {
  each_on_its_own(3, [](const Comm& comm, int rank) {
    for (const std::size_t n : {10, 30'000}) {
      const Array in(n, static_cast<float>(rank), rank), out(n, -1, rank), all(3 * n, -1, rank);
      coll_call call = allreduce(in, all, n);
      call.kind = COLL_ALLGATHER;
      ok(run_at(comm, call, rank));
      const std::vector<float> found = fetched(comm, all, 3 * n, rank);
      for (std::size_t i = 0; i < 3 * n; ++i) {
        const std::size_t from = i / n;
        CHECK(found[i] == static_cast<float>(from));
      }
      // From one to all, again and again: nobody tells the root that a message has been read.
      call.kind = COLL_BROADCAST;
      call.root = 2;
      call.output = out.data();
      for (int again = 0; again < 5; ++again) ok(run_at(comm, call, rank));
      CHECK(fetched(comm, out, n, rank) == std::vector<float>(n, 2));
      call.kind = COLL_BARRIER;
      call.count = 0;
      ok(run_at(comm, call, rank));
      CHECK(last_of(comm).way == COLL_GPU_LAUNCH);
    }
  });
}

TEST(what_no_kernel_does_goes_through_the_host) {
  each_on_its_own(2, [](const Comm& comm, int rank) {
    const Array in(8, static_cast<float>(rank), rank), out(8, -1, rank);
    coll_call call = allreduce(in, out, 8);
    call.op = COLL_LOR;
    ok(run_at(comm, call, rank));
    CHECK(fetched(comm, out, 8, rank) == std::vector<float>(8, 1));
    CHECK(last_of(comm).way == COLL_GPU_HOST);
    CHECK(std::string(last_of(comm).reason) == "the GPU has no kernel for lor of float32");
    call.op = COLL_SUM;
    ok(run_at(comm, call, rank));
    CHECK(last_of(comm).way == COLL_GPU_LAUNCH && last_of(comm).reason[0] == '\0');
    call.accumulate = COLL_ACCUMULATE_FLOAT64;
    ok(run_at(comm, call, rank));
    CHECK(last_of(comm).way == COLL_GPU_HOST);
  });
}

TEST(ranks_that_share_a_gpu_go_through_the_host_and_may_move) {
  each_on_its_own(3, [](const Comm& comm, int rank) {
    const std::array<std::array<int, 3>, 4> places = {{{0, 1, 0}, {0, 1, 2}, {2, 0, 1}, {1, 1, 1}}};
    for (int again = 0; again < 2; ++again) {
      for (const std::array<int, 3>& place : places) {
        const int device = place[static_cast<std::size_t>(rank)];
        const Array x(500, static_cast<float>(rank), device);
        ok(run_at(comm, allreduce(x, x, 500), device));
        CHECK(fetched(comm, x, 500, device) == std::vector<float>(500, 3));
        const bool apart = place[0] != place[1] && place[1] != place[2] && place[0] != place[2];
        const coll_last_call last = last_of(comm);
        CHECK(last.way == (apart ? COLL_GPU_LAUNCH : COLL_GPU_HOST));
        CHECK(apart == (std::string(last.reason).find("share a GPU") == std::string::npos));
      }
    }
  });
  CHECK(taken() == 0);
}

TEST(ranks_that_call_differently_are_all_told) {
  each_on_its_own(3, [](const Comm& comm, int rank) {
    const Array in(8, 1, rank), out(8, 1, rank);
    const coll_call call = allreduce(in, out, rank == 2 ? 7 : 8);
    CHECK(fails(run_at(comm, call, rank), COLL_MISMATCH, "allreduce of 7 float32, sum, on GPUs"));
    CHECK(says("allreduce of 8 float32, sum, on GPUs"));
  });
}

TEST(a_capture_is_refused_on_all_ranks_and_the_communicator_works_on) {
  each_on_its_own(2, [](const Comm& comm, int rank) {
    const Array x(8, 1, rank);
    const coll_call call = allreduce(x, x, 8);
    ok(coll_barrier(comm.get()));  // nobody takes memory during a capture
    if (rank == 1) begin_capture(own_stream(comm));
    CHECK(fails(run_at(comm, call, rank), COLL_UNSUPPORTED, "the stream of rank 1 is being"));
    if (rank == 1) CHECK(nodes(end_capture(own_stream(comm))) == 0);
    ok(run_at(comm, call, rank));
    CHECK(fetched(comm, x, 8, rank) == std::vector<float>(8, 2));
  });
}

// Rank 1 does not get as far as its launch: rank 0, whose kernel waits for it, hears of that.
TEST(who_cannot_launch_ends_the_launches_of_others) {
  each_on_its_own(2, [](const Comm& comm, int rank) {
    const Array x(8, 1, rank);
    const coll_call call = allreduce(x, x, 8);
    ok(run_at(comm, call, rank));
    void* const stream = own_stream(comm);
    if (rank == 1) {
      const std::vector<float> values(8);
      hold(stream, true);
      coll::cuda::Sentence why{};
      emulated<decltype(coll::cuda::coll_cuda_enqueue_copy)>("coll_cuda_enqueue_copy")(
          1, x.data(), values.data(), 32, stream, &why);
      CHECK(fails(run_at(comm, call, rank), COLL_SYSTEM, "held back for ever"));
      hold(stream, false);
      CHECK(fetched(comm, x, 8, rank) == values);
    } else {
      coll_status status = run_at(comm, call, rank);
      if (status == COLL_OK) status = coll_gpu_wait(comm.get(), 0, stream);
      CHECK(fails(status, COLL_SYSTEM, "held back for ever"));
    }
  });
}

// Rank 1 has agreed to the call, and aborts instead of its launch.
TEST(abort_ends_a_kernel_that_waits) {
  each_on_its_own(2, [](const Comm& comm, int rank) {
    const Array x(8, 1, rank);
    const coll_call call = allreduce(x, x, 8);
    ok(run_at(comm, call, rank));
    if (rank == 1) {
      before_launch(
          1, [](void* its) { ok(coll_abort(static_cast<coll_comm*>(its), "the test wants it")); },
          comm.get());
    }
    coll_status status = run_at(comm, call, rank);
    if (status == COLL_OK) status = coll_gpu_wait(comm.get(), rank, own_stream(comm));
    CHECK(fails(status, COLL_ABORTED, "the test wants it"));
  });
  CHECK(taken() == 0);
}

TEST(who_launches_too_late_is_told_who_gave_up) {
  std::atomic<bool> gave_up = false;
  each_on_its_own(2, [&gave_up](const Comm& comm, int rank) {
    const Array x(8, 1, rank);
    coll_call call = allreduce(x, x, 8);
    ok(run_at(comm, call, rank));
    if (rank == 1) {
      before_launch(
          1, [](void* its) { static_cast<std::atomic<bool>*>(its)->wait(false); }, &gave_up);
    }
    call.timeout = rank == 0 ? 0.2 : 20;
    // All that rank 1 needs of rank 0 may be there when it comes: then its next call tells it.
    coll_status status = COLL_OK;
    for (int again = 0; again < 2 && status == COLL_OK; ++again) {
      status = run_at(comm, call, rank);
      if (status == COLL_OK) status = coll_gpu_wait(comm.get(), rank, own_stream(comm));
      if (rank == 0) {
        gave_up = true;
        gave_up.notify_all();
        CHECK(fails(status, COLL_TIMEOUT, "waited for "));
      }
      if (rank == 0 && again == 0) status = run_at(comm, call, rank);
    }
    CHECK(fails(status, COLL_TIMEOUT, "rank 0 gave up"));
  });
  before_launch(1, [](void*) {}, nullptr);  // where rank 1 heard of it before its launch
  CHECK(taken() == 0);
}

// The other rank is a process, which dies when it has agreed to its second call.
void die_before_second_launch(const std::string& job) {
  const Comm comm = met(job, 1, 2);
  const Array x(8, 1, 1);
  ok(run_at(comm, allreduce(x, x, 8), 1));
  ok(coll_gpu_wait(comm.get(), 1, own_stream(comm)));
  before_launch(1, [](void*) { ::kill(::getpid(), SIGKILL); }, nullptr);
  run_at(comm, allreduce(x, x, 8), 1);
}

TEST(who_dies_before_its_launch_ends_those_of_others) {
  for (const bool waits : {true, false}) {
    const std::string job = job_of_test() + (waits ? " waits" : " calls");
    const pid_t child = ::fork();
    if (child == 0) {
      die_before_second_launch(job);
      ::_exit(1);
    }
    const auto begin = std::chrono::steady_clock::now();
    {
      const Comm comm = met(job, 0, 2);
      const Array x(8, 1, 0);
      for (int again = 0; again < 2; ++again) ok(run_at(comm, allreduce(x, x, 8), 0));
      const coll_status status = waits ? coll_gpu_wait(comm.get(), 0, own_stream(comm))
                                       : run_at(comm, allreduce(x, x, 8), 0);
      CHECK(fails(status, COLL_PEER_LOST, "died") && says("rank 1 (pid"));
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    CHECK(taken() == 0);
    int ended = 0;
    CHECK(::waitpid(child, &ended, 0) == child && WIFSIGNALED(ended));
  }
}

TEST(where_memory_cannot_be_opened_all_go_through_the_host) {
  for (const bool its_export : {false, true}) {
    forbid(1, its_export, !its_export);
    each_on_its_own(3, [its_export](const Comm& comm, int rank) {
      for (int again = 0; again < 2; ++again) {
        const Array x(500, static_cast<float>(rank), rank);
        ok(run_at(comm, allreduce(x, x, 500), rank));
        CHECK(fetched(comm, x, 500, rank) == std::vector<float>(500, 3));
        const coll_last_call last = last_of(comm);
        CHECK(last.way == COLL_GPU_HOST);
        CHECK(std::string(last.reason)
                  .starts_with(its_export ? "rank 1: letting other processes"
                                          : "rank 1: reaching memory"));
      }
    });
    forbid(1, false, false);
    CHECK(taken() == 0);
  }
}

}  // namespace
