// SPDX-License-Identifier: Apache-2.0
// Collectives on a GPU that ranks of a process share, through the C interface, on the emulated one
// (gpu/emulated_library.cc): from calls to results in its memory, and what ranks are told where
// that does not come to pass.
#include <latch>
#include <string>

#include "gpu_of_test.h"

namespace {

using namespace coll::testing;

TEST(there_are_devices) {
  CHECK(coll_gpu_count(nullptr, 0) == 3);
  coll_gpu gpu{};
  gpu.size = sizeof(gpu);
  ok(coll_gpu_get(2, &gpu));
  CHECK(std::string(gpu.name) == "emulated" && gpu.multiprocessors == 16);
  CHECK(fails(coll_gpu_get(3, &gpu), COLL_INVALID_ARGUMENT, "there is no GPU 3, but 0 ... 2"));
  const Array array(3, 0, 1);
  CHECK(coll_gpu_owner(array.data() + 2) == 1 && coll_gpu_owner(&gpu) == -1);
}

TEST(sums_of_all_lengths_and_the_same_ones_again) {
  for (const int p : {1, 2, 3, 5}) {
    in_threads(p, [p](const Comm& comm) {
      const int rank = coll_rank(comm.get());
      for (const std::size_t n : {0, 1, 100, 4096, 4097, 100'000, 100, 4096}) {
        const Array in(n, static_cast<float>(rank + 1), 1), out(n, 0, 1);
        for (int again = 0; again < 2; ++again) {
          ok(run(comm, allreduce(in, out, n), 1));
          ok(coll_gpu_wait(comm.get(), 1, nullptr));
          const int sum = p * (p + 1) / 2;
          CHECK(out.all(static_cast<float>(sum)));
        }
      }
    });
  }
}

TEST(every_algorithm_in_every_mode) {
  in_threads(3, [](const Comm& comm) {
    for (int algorithm = 0; algorithm < coll_algorithm_count(); ++algorithm) {
      coll_algorithm info{};
      ok(coll_algorithm_get(algorithm, &info));
      if (info.kind != COLL_ALLREDUCE || coll_algorithm_fits(algorithm, 3) == 0) continue;
      for (int mode = 0; mode < 4; ++mode) {
        const Array in(1000, static_cast<float>(coll_rank(comm.get()))), out(1000);
        coll_call call = allreduce(in, out, 1000);
        call.algorithm = algorithm;
        call.mode = mode;
        ok(run(comm, call));
        CHECK(out.all(3));
      }
    }
  });
}

TEST(averages_and_what_only_moves) {
  in_threads(4, [](const Comm& comm) {
    const Array in(10, static_cast<float>(coll_rank(comm.get()))), out(10), all(40);
    coll_call call = allreduce(in, out, 10);
    call.op = COLL_AVG;
    ok(run(comm, call));
    CHECK(out.all(1.5));
    call.kind = COLL_ALLGATHER;
    call.output = all.data();
    ok(run(comm, call));
    for (int i = 0; i < 40; ++i) {
      const int from = i / 10;
      CHECK(all.data()[i] == static_cast<float>(from));
    }
    call.kind = COLL_BROADCAST;
    call.root = 2;
    call.output = out.data();
    ok(run(comm, call));
    CHECK(out.all(2));
    call = allreduce(in, out, 0);
    call.kind = COLL_BARRIER;
    call.input = call.output = nullptr;
    ok(run(comm, call));
  });
}

TEST(ranks_that_call_differently_are_all_told) {
  in_threads(3, [](const Comm& comm) {
    const Array in(8, 1), out(8);
    const coll_call call = allreduce(in, out, coll_rank(comm.get()) == 2 ? 7 : 8);
    CHECK(fails(run(comm, call), COLL_MISMATCH, "allreduce of 7 float32, sum, on GPU 0"));
    CHECK(says("allreduce of 8 float32, sum, on GPU 0"));
  });
}

TEST(who_does_not_come_is_named) {
  std::latch named(3);  // whoever leaves before is said to have left
  in_threads(3, [&named](const Comm& comm) {
    const Array in(8, 1), out(8);
    coll_call call = allreduce(in, out, 8);
    call.timeout = 0.2;
    const bool comes = coll_rank(comm.get()) != 1;
    const bool is_told = !comes || fails(run(comm, call), COLL_TIMEOUT, "rank 1");
    named.arrive_and_wait();
    CHECK(is_told);
  });
}

TEST(abort_ends_waits_and_kernels) {
  in_threads(2, [](const Comm& comm) {
    const Array in(8, 1), out(8);
    ok(run(comm, allreduce(in, out, 8)));
    if (coll_rank(comm.get()) == 1) {
      ok(coll_abort(comm.get(), "the test wants it"));
      return;
    }
    CHECK(fails(run(comm, allreduce(in, out, 8)), COLL_ABORTED, "abort"));
  });
}

TEST(memory_of_others_is_refused_before_anybody_hears_of_it) {
  in_threads(1, [](const Comm& comm) {
    float host[8] = {};
    const Array in(8, 1), out(8), elsewhere(8, 1, 2);
    coll_call call = allreduce(in, out, 8);
    call.input = host;
    CHECK(fails(run(comm, call), COLL_INVALID_ARGUMENT,
                "the input is memory of the host, and the call is one on GPU 0"));
    call.input = elsewhere.data();
    CHECK(fails(run(comm, call), COLL_INVALID_ARGUMENT, "memory of GPU 2"));
    call.input = in.data();
    call.accumulate = COLL_ACCUMULATE_FLOAT64;
    CHECK(fails(run(comm, call), COLL_UNSUPPORTED, "accumulate= is there of float32"));
    ok(run(comm, allreduce(in, out, 8)));
    CHECK(out.all(1));
  });
}

TEST(copies_between_the_host_and_a_gpu) {
  const Array array(4, 2);
  std::vector<float> host(4);
  ok(coll_gpu_copy(0, host.data(), array.data(), 16, nullptr));
  CHECK(host.back() == 2);
  host.assign(4, 5);
  ok(coll_gpu_copy(0, array.data(), host.data(), 12, nullptr));
  CHECK(array.data()[2] == 5 && array.data()[3] == 2);
  CHECK(fails(coll_gpu_copy(0, nullptr, host.data(), 8, nullptr), COLL_INVALID_ARGUMENT,
              "no memory to copy"));
  ok(coll_gpu_copy(0, nullptr, nullptr, 0, nullptr));
}

TEST(what_no_kernel_does_is_refused_on_all_ranks) {
  in_threads(2, [](const Comm& comm) {
    const Array in(8, 1), out(8);
    coll_call call = allreduce(in, out, 8);
    call.op = COLL_LAND;
    CHECK(fails(run(comm, call), COLL_UNSUPPORTED, "the GPU has no kernel for land of float32"));
    ok(run(comm, allreduce(in, out, 8)));
    CHECK(out.all(2));
  });
}

}  // namespace
