// SPDX-License-Identifier: Apache-2.0
// Collectives of arrays on GPUs among ranks that share no process, through the C interface, on the
// emulated one: through memory of the host, whatever way the ranks reach each other. Copies are
// done as late as may be there, so an order that is missing shows.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cuda/library.h"
#include "emulated_gpu.h"
#include "gpu_of_test.h"

namespace {

using namespace coll::testing;

// More than two blocks of 4 MiB.
constexpr std::size_t kLong = 2'200'000;

// As processes of one machine meet, and as those of several.
template <class Work>
void apart(int p, Work work) {
  run_ranks(p, [&](int rank) { work(met(job_of_test(), rank, p)); });
  const std::vector<coll_comm*> wires = wired(p);
  run_ranks(p, [&](int rank) { work(Comm(wires[static_cast<std::size_t>(rank)])); });
}

void* stream_of_rank(const Comm& comm) { return stream_of(100 + coll_rank(comm.get())); }

// What is there for whoever comes on the stream.
std::vector<float> fetched(const Array& array, std::size_t n, void* stream, int device = 0) {
  std::vector<float> host(n);
  ok(coll_gpu_copy(device, host.data(), array.data(), n * sizeof(float), stream));
  return host;
}

// Small numbers, of which no two blocks have the same.
void fill(float* to, std::size_t n, int rank) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = static_cast<float>((i * 7 + i / 1000) % 61 + static_cast<std::size_t>(rank) * 3);
  }
}

coll_status run_host(const Comm& comm, const coll_call& call) {
  coll_status status = coll_run(comm.get(), &call);
  while (status == COLL_IN_PROGRESS) status = coll_resume(comm.get());
  return status;
}

struct Lengths {
  std::size_t in, out;
};
Lengths lengths_of(int kind, std::size_t n, int rank, int p) {
  const std::size_t all = n * static_cast<std::size_t>(p);
  const bool root = rank == 1;
  switch (kind) {
    case COLL_ALLGATHER:
      return {n, all};
    case COLL_GATHER:
      return {n, root ? all : 0};
    case COLL_SCATTER:
      return {root ? all : 0, n};
    case COLL_REDUCE_SCATTER:
      return {all, n};
    case COLL_ALLTOALL:
      return {all, all};
    case COLL_BROADCAST:
      return {root ? n : 0, n};
    case COLL_REDUCE:
      return {n, root ? n : 0};
    case COLL_EXSCAN:
      return {n, rank == 0 ? 0 : n};
    default:
      return {n, n};
  }
}

// The same call of arrays of the host has the same result.
void check_kind(const Comm& comm, int kind, std::size_t n) {
  const int rank = coll_rank(comm.get()), p = coll_ranks(comm.get());
  const Lengths lengths = lengths_of(kind, n, rank, p);
  const Array in(lengths.in), out(lengths.out + 1, -5);
  fill(in.data(), lengths.in, rank);
  std::vector<float> host_in(in.data(), in.data() + lengths.in), host_out(lengths.out + 1, -5);
  coll_call call = allreduce(in, out, n);
  call.kind = kind;
  call.root = 1;
  if (kind == COLL_REDUCE_SCATTER || kind == COLL_ALLTOALL) {
    call.count = n * static_cast<std::size_t>(p);
  }
  void* const stream = stream_of_rank(comm);
  ok(run_on(comm, call, stream));
  call.input = host_in.data();
  call.output = host_out.data();
  ok(run_host(comm, call));
  CHECK(fetched(out, lengths.out + 1, stream) == host_out);
  CHECK(fetched(in, lengths.in, stream) == host_in);
}

TEST(every_kind_is_that_of_the_host) {
  apart(3, [](const Comm& comm) {
    for (const int kind :
         {COLL_ALLREDUCE, COLL_REDUCE_SCATTER, COLL_ALLGATHER, COLL_BROADCAST, COLL_REDUCE,
          COLL_GATHER, COLL_SCATTER, COLL_ALLTOALL, COLL_SCAN, COLL_EXSCAN}) {
      for (const std::size_t n : {0, 1, 1000}) check_kind(comm, kind, n);
      check_kind(comm, kind, 800'000);  // several blocks of what has a part for each rank
    }
  });
}

TEST(long_vectors_go_by_blocks_and_slots_are_used_again) {
  apart(2, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    void* const stream = stream_of_rank(comm);
    const Array x(kLong);
    for (int again = 0; again < 2; ++again) {
      fill(x.data(), kLong, rank);
      std::vector<float> sum(kLong), other(kLong);
      fill(sum.data(), kLong, 0);
      fill(other.data(), kLong, 1);
      std::transform(sum.begin(), sum.end(), other.begin(), sum.begin(), std::plus<>());
      ok(run_on(comm, allreduce(x, x, kLong), stream));
      CHECK(fetched(x, kLong, stream) == sum);
    }
    coll_last_call last{};
    last.size = sizeof last;
    ok(coll_last(comm.get(), &last));
    CHECK(last.way == COLL_GPU_HOST && last.blocks == (kLong * 4 + (4 << 20) - 1) / (4 << 20));
    CHECK(last.kind == COLL_ALLREDUCE && last.bytes == kLong * 4);
    CHECK(last.number == coll_sequence(comm.get()));
    // A program that was made before there were ways.
    last.size = offsetof(coll_last_call, way);
    last.way = -7;
    ok(coll_last(comm.get(), &last));
    CHECK(last.way == -7 && last.bytes == kLong * 4);
    ok(coll_barrier(comm.get()));
    last.size = sizeof last;
    ok(coll_last(comm.get(), &last));
    CHECK(last.way == 0 && last.kind == COLL_BARRIER);
  });
}

TEST(parts_of_unequal_length_in_place_and_apart) {
  apart(3, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    void* const stream = stream_of_rank(comm);
    const std::array<std::size_t, 3> counts = {2, 0, 900'000};
    const std::size_t mine = counts[static_cast<std::size_t>(rank)], all = 900'002;
    const Array whole(all, -1);
    // Rank 1 has nothing, between two that have.
    float* const own = whole.data() + (rank == 0 ? 0 : 2);
    std::fill_n(own, mine, static_cast<float>(rank + 1));
    coll_call call = allreduce(whole, whole, 0);
    call.kind = COLL_ALLGATHER;
    call.counts = counts.data();
    call.input = own;
    ok(run_on(comm, call, stream));
    std::vector<float> expected(all, 3);
    expected[0] = expected[1] = 1;
    CHECK(fetched(whole, all, stream) == expected);
    call.kind = COLL_REDUCE_SCATTER;
    call.input = whole.data();
    call.output = own;
    ok(run_on(comm, call, stream));
    const std::vector<float> found = fetched(whole, all, stream);
    const std::size_t begin = rank == 0 ? 0 : 2;
    for (std::size_t i = begin; i < begin + mine; ++i) CHECK(found[i] == expected[i] * 3);
  });
}

TEST(what_the_host_can_do_can_be_done) {
  apart(3, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    void* const stream = stream_of_rank(comm);
    const Array x(10, static_cast<float>(rank), rank);  // each has a GPU of its own
    coll_call call = allreduce(x, x, 10);
    call.op = COLL_LAND;
    coll_status status = coll_gpu_run(comm.get(), &call, rank, stream);
    ok(status);
    CHECK(fetched(x, 10, stream, rank) == std::vector<float>(10, 0));
    call.op = COLL_AVG;
    call.accumulate = COLL_ACCUMULATE_FLOAT64;
    std::fill_n(x.data(), 10, static_cast<float>(rank));
    ok(coll_gpu_run(comm.get(), &call, rank, stream));
    CHECK(fetched(x, 10, stream, rank) == std::vector<float>(10, 1));
    ok(coll_gpu_wait(comm.get(), rank, stream));
    call = allreduce(x, x, 0);
    call.kind = COLL_BARRIER;
    ok(coll_gpu_run(comm.get(), &call, rank, stream));
  });
}

TEST(persistent_calls) {
  apart(2, [](const Comm& comm) {
    const auto rank = static_cast<float>(coll_rank(comm.get()));
    void* const stream = stream_of_rank(comm);
    const Array in(900, rank), out(900);
    const Persistent made = prepared(comm, allreduce(in, out, 900));
    for (int i = 0; i < 3; ++i) {
      std::fill_n(in.data(), 900, rank + static_cast<float>(i));
      ok(run_on(comm, made, stream));
      CHECK(fetched(out, 900, stream) == std::vector<float>(900, static_cast<float>(1 + 2 * i)));
    }
  });
}

TEST(ranks_that_call_differently_are_all_told) {
  apart(2, [](const Comm& comm) {
    const Array x(1'300'000);
    // Whose first blocks are the same.
    const std::size_t n = coll_rank(comm.get()) == 0 ? 1'200'000 : 1'300'000;
    CHECK(fails(run_on(comm, allreduce(x, x, n), stream_of_rank(comm)), COLL_MISMATCH, "1300000"));
    CHECK(says("on GPUs"));
  });
  apart(2, [](const Comm& comm) {
    const Array x(8);
    std::array<float, 8> host{};
    coll_call call = allreduce(x, x, 8);
    if (coll_rank(comm.get()) == 0) {
      CHECK(fails(run_on(comm, call, stream_of_rank(comm)), COLL_MISMATCH, "on GPUs"));
    } else {
      call.input = call.output = host.data();
      CHECK(fails(run_host(comm, call), COLL_MISMATCH, "on GPUs"));
    }
  });
}

TEST(what_a_rank_can_tell_alone_disturbs_nobody) {
  apart(2, [](const Comm& comm) {
    void* const stream = stream_of_rank(comm);
    const Array x(8, 1), elsewhere(8, 1, 2);
    std::array<float, 8> host{};
    // Whatever ranks and library take of the GPU's memory they have: none may be had in a capture.
    ok(run_on(comm, allreduce(x, x, 8), stream));
    if (coll_rank(comm.get()) == 0) {
      coll_call call = allreduce(x, x, 8);
      call.input = call.output = host.data();
      CHECK(fails(run_on(comm, call, stream), COLL_INVALID_ARGUMENT, "memory of the host"));
      call.input = call.output = elsewhere.data();
      CHECK(fails(run_on(comm, call, stream), COLL_INVALID_ARGUMENT, "memory of GPU 2"));
      CHECK(fails(coll_gpu_run(comm.get(), &call, 3, stream), COLL_INVALID_ARGUMENT, "no GPU 3"));
      if (comm->wire != nullptr) {  // ranks of one machine tell each other of a capture
        begin_capture(stream);
        CHECK(fails(run_on(comm, allreduce(x, x, 8), stream), COLL_UNSUPPORTED, "into a graph"));
        end_capture(stream);
      }
    }
    ok(run_on(comm, allreduce(x, x, 8), stream));
    CHECK(fetched(x, 8, stream) == std::vector<float>(8, 4));
  });
}

// A kernel runs for long on a rank's stream.
TEST(a_call_comes_after_what_is_on_the_stream_and_lets_its_caller_look_up) {
  run_ranks(2, [](int rank) {
    coll_options options = options_of(rank, 2);
    const std::string job = job_of_test();
    options.job = job.c_str();
    options.interruptible = 1;
    coll_comm* made = nullptr;
    ok(coll_init(&options, &made));
    const Comm comm(made);
    void* const stream = stream_of_rank(comm);
    const Array x(100, -1);
    const std::vector<float> values(100, static_cast<float>(rank + 1));
    // What it writes is what the ranks reduce.
    hold(stream, true);
    coll::cuda::Sentence why{};
    emulated<decltype(coll::cuda::coll_cuda_enqueue_copy)>("coll_cuda_enqueue_copy")(
        0, x.data(), values.data(), 400, stream, &why);
    const coll_call call = allreduce(x, x, 100);
    coll_status status = coll_gpu_run(comm.get(), &call, 0, stream);
    CHECK(status == COLL_IN_PROGRESS);
    hold(stream, false);
    while (status == COLL_IN_PROGRESS) status = coll_resume(comm.get());
    ok(status);
    CHECK(fetched(x, 100, stream) == std::vector<float>(100, 3));
  });
}

TEST(who_waits_for_its_gpu_in_vain_tells_all) {
  apart(2, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    void* const stream = stream_of_rank(comm);
    const Array x(8, 1);
    coll_call call = allreduce(x, x, 8);
    const std::vector<float> values(8);
    ok(coll_barrier(comm.get()));  // between machines only those hear of it who are connected
    if (rank == 1) {
      hold(stream, true);
      coll::cuda::Sentence why{};
      emulated<decltype(coll::cuda::coll_cuda_enqueue_copy)>("coll_cuda_enqueue_copy")(
          0, x.data(), values.data(), 32, stream, &why);
      call.timeout = 0.2;
    }
    CHECK(fails(run_on(comm, call, stream), COLL_TIMEOUT,
                "rank 1 gave up: its GPU has not done what was on the stream before the call"));
    if (rank == 1) hold(stream, false);
    // Before its arrays go.
    ok(coll_gpu_wait(comm.get(), 0, stream));
  });
}

}  // namespace
