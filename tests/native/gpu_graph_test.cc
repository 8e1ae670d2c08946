// SPDX-License-Identifier: Apache-2.0
// Persistent calls on the emulated GPU, graphs of launches, and parts of unequal length.
#include <array>
#include <cstring>
#include <string>

#include "emulated_gpu.h"
#include "gpu_of_test.h"

namespace {

using namespace coll::testing;

void meet(const Comm& comm) { ok(coll_barrier(comm.get())); }

TEST(parts_of_unequal_length) {
  in_threads(3, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    const std::array<std::size_t, 3> counts = {2, 0, 5000};
    const std::size_t mine = counts[static_cast<std::size_t>(rank)];
    const Array part(mine, static_cast<float>(rank + 1)), whole(5002);
    coll_call call = allreduce(part, whole, mine);  // which is not looked at
    call.counts = counts.data();
    call.kind = COLL_ALLGATHER;
    ok(run(comm, call));
    CHECK(whole.data()[1] == 1 && whole.data()[2] == 3 && whole.data()[5001] == 3);
    call.kind = COLL_REDUCE_SCATTER;
    call.input = whole.data();
    call.output = part.data();
    ok(run(comm, call));
    CHECK(part.all(static_cast<float>(3 * (rank + 1))));
  });
}

TEST(blocks_of_unequal_length) {
  in_threads(3, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    // Rank s sends s + 2 r elements to rank r.
    std::array<std::size_t, 9> counts{};
    for (std::size_t i = 0; i < 9; ++i) counts[i] = i / 3 + 2 * (i % 3);
    const Array in(40, static_cast<float>(rank)), out(40, -1);
    coll_call call = allreduce(in, out, 0);
    call.kind = COLL_ALLTOALL;
    call.counts = counts.data();
    ok(run(comm, call));
    std::size_t at = 0;
    for (int from = 0; from < 3; ++from) {
      for (int i = 0; i < from + 2 * rank; ++i) {
        CHECK(out.data()[at++] == static_cast<float>(from));
      }
    }
    CHECK(out.data()[at] == -1);
    for (int algorithm = 0; algorithm < coll_algorithm_count(); ++algorithm) {
      coll_algorithm info{};
      ok(coll_algorithm_get(algorithm, &info));
      if (std::string(info.name) != "bruck" || info.kind != COLL_ALLTOALL) continue;
      call.algorithm = algorithm;
      CHECK(fails(run(comm, call), COLL_UNSUPPORTED, "blocks on through other ranks"));
    }
  });
}

TEST(a_persistent_call_takes_nothing_after_it_was_made) {
  in_threads(3, [](const Comm& comm) {
    const auto rank = static_cast<float>(coll_rank(comm.get()));
    const Array in(9000, rank), out(9000);
    coll_call call = allreduce(in, out, 9000);
    call.mode = COLL_MODE_STAGED;
    const Persistent made = prepared(comm, call);
    meet(comm);
    const std::size_t before = taken();
    meet(comm);
    for (int i = 0; i < 3; ++i) {
      std::fill_n(in.data(), 9000, rank + static_cast<float>(i));
      ok(run_on(comm, made, nullptr));
      CHECK(out.all(static_cast<float>(3 + 3 * i)));
    }
    CHECK(taken() == before);
    meet(comm);
  });
}

TEST(who_makes_another_persistent_call_is_told) {
  in_threads(2, [](const Comm& comm) {
    const std::size_t n = coll_rank(comm.get()) == 0 ? 4 : 5;
    const Array in(8), out(8);
    const coll_call call = allreduce(in, out, n);
    coll_gpu_persistent* made = nullptr;
    coll_status status = coll_gpu_persistent_new(comm.get(), &call, 0, &made);
    while (status == COLL_IN_PROGRESS) status = coll_resume(comm.get());
    CHECK(fails(status, COLL_MISMATCH, "persistent allreduce of 5 float32") && made == nullptr);
  });
}

TEST(counts_of_a_persistent_call_are_its_own) {
  in_threads(2, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    std::array<std::size_t, 2> counts = {1, 2};
    const Array in(2, static_cast<float>(rank + 1)), out(3);
    coll_call call = allreduce(in, out, 0);
    call.kind = COLL_ALLGATHER;
    call.counts = counts.data();
    const Persistent made = prepared(comm, call);
    counts = {9, 9};
    ok(run_on(comm, made, nullptr));
    CHECK(out.data()[0] == 1 && out.data()[1] == 2 && out.data()[2] == 2);
  });
}

// Calls on one stream do not wait for those on another, unless the library says so.
TEST(calls_on_any_streams_come_one_after_another) {
  in_threads(3, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    const Array in(100, static_cast<float>(rank)), out(100);
    for (int i = 0; i < 4; ++i) {
      ok(run_on(comm, allreduce(in, out, 100), stream_of(10 + 3 * i + rank)));
      CHECK(out.all(3));
    }
  });
}

TEST(a_graph_is_replayed_without_the_host) {
  in_threads(2, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    const std::size_t n = 6000;
    const Array in(n, static_cast<float>(rank)), out(n);
    coll_call call = allreduce(in, out, n);
    call.mode = COLL_MODE_STAGED;
    void* const stream = stream_of(101);
    const Persistent made = prepared(comm, call);
    if (rank == 0) begin_capture(stream);
    meet(comm);
    ok(run_on(comm, made, stream));
    ok(run_on(comm, made, stream));
    CHECK(out.all(0));
    meet(comm);
    const std::uint64_t graph = rank == 0 ? end_capture(stream) : 0;
    meet(comm);
    for (int i = 0; i < 3; ++i) {
      std::fill_n(in.data(), n, static_cast<float>(i));
      std::fill_n(out.data(), n, -1.0F);
      meet(comm);
      if (rank == 0) CHECK(replay(graph, stream_of(102 + i)));
      meet(comm);
      CHECK(out.all(static_cast<float>(2 * i)));
      // Others take turns with it, and longer ones take larger rings than the graph has.
      const Array longer(300'000, 1), sums(300'000);
      coll_call other = allreduce(longer, sums, 300'000);
      other.mode = COLL_MODE_STAGED;
      ok(run_on(comm, other, stream_of(110)));
      CHECK(sums.all(2));
    }
  });
}

TEST(a_graph_outlives_the_plans_that_are_kept) {
  in_threads(2, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    const Array in(300, static_cast<float>(rank + 1)), out(300);
    void* const stream = stream_of(121);
    ok(run_on(comm, allreduce(in, out, 200), stream));
    meet(comm);
    if (rank == 0) begin_capture(stream);
    meet(comm);
    ok(run_on(comm, allreduce(in, out, 200), stream));
    meet(comm);
    const std::uint64_t graph = rank == 0 ? end_capture(stream) : 0;
    meet(comm);
    for (std::size_t n = 1; n <= 70; ++n) ok(run_on(comm, allreduce(in, out, n), stream));
    std::fill_n(out.data(), 300, 0.0F);
    meet(comm);
    if (rank == 0) CHECK(replay(graph, stream));
    meet(comm);
    CHECK(out.data()[0] == 3 && out.data()[199] == 3 && out.data()[200] == 0);
  });
}

TEST(a_capture_is_refused_what_it_would_break_of) {
  in_threads(2, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    const Array in(50'000, 1), out(50'000);
    void* const stream = stream_of(131);
    const auto captured = [&](const coll_call& call) {
      meet(comm);
      if (rank == 0) begin_capture(stream);
      meet(comm);
      const bool refused =
          fails(run_on(comm, call, stream), COLL_UNSUPPORTED, "make the call once");
      meet(comm);
      if (rank == 0) end_capture(stream);
      meet(comm);
      return refused;
    };
    CHECK(captured(allreduce(in, out, 50)));  // the first call of all
    ok(run_on(comm, allreduce(in, out, 50), stream));
    CHECK(captured(allreduce(in, out, 51)));  // a new length
    meet(comm);
    if (rank == 0) {
      begin_capture(stream);
      CHECK(fails(coll_gpu_copy(0, out.data(), in.data(), 8, stream), COLL_UNSUPPORTED,
                  "a copy to or from the host"));
      end_capture(stream);
    }
    meet(comm);
    ok(run_on(comm, allreduce(in, out, 51), stream));
    CHECK(out.all(2) || out.data()[50] == 2);
  });
}

// Which another part of the program makes: memory is taken all the same.
TEST(a_capture_of_another_stream_does_not_stand_in_the_way_of_a_first_call) {
  begin_capture(stream_of(136));
  in_threads(2, [](const Comm& comm) {
    const Array in(70'000, 1), out(70'000);
    coll_call call = allreduce(in, out, 70'000);
    call.mode = COLL_MODE_STAGED;  // which takes rings
    ok(run_on(comm, call, stream_of(137)));
    CHECK(out.all(2));
  });
  end_capture(stream_of(136));
}

TEST(a_capture_takes_the_streams_of_all_ranks) {
  in_threads(2, [](const Comm& comm) {
    const int rank = coll_rank(comm.get());
    const Array in(8, 1), out(8);
    void* const stream = stream_of(141 + rank);
    ok(run_on(comm, allreduce(in, out, 8), stream));
    meet(comm);
    if (rank == 1) begin_capture(stream);
    meet(comm);
    CHECK(fails(run_on(comm, allreduce(in, out, 8), stream), COLL_UNSUPPORTED,
                "the stream of rank 1 is being captured into a graph, and that of rank 0 is not"));
    // Rank 0's joins.
    if (rank == 0) ok(coll_gpu_follow(0, stream, stream_of(142)));
    meet(comm);
    ok(run_on(comm, allreduce(in, out, 8), stream));
    meet(comm);
    const std::uint64_t graph = rank == 1 ? end_capture(stream) : 0;
    std::fill_n(out.data(), 8, 0.0F);
    meet(comm);
    if (rank == 1) CHECK(replay(graph, stream));
    meet(comm);
    CHECK(out.all(2));
  });
}

// Bits of a sum of numbers that no float holds exactly, on the GPU and on the CPU.
TEST(reproducible_sums_have_the_bits_of_the_cpu) {
  for (const int p : {3, 5}) {
    in_threads(p, [](const Comm& comm) {
      const std::size_t n = 5000;
      const Array in(n), out(n);
      std::vector<float> host(n);
      for (std::size_t i = 0; i < n; ++i) {
        in.data()[i] =
            1.0F / static_cast<float>(i + 3 + 7 * static_cast<std::size_t>(coll_rank(comm.get())));
      }
      coll_call call = allreduce(in, out, n);
      call.reproducible = COLL_REPRODUCIBLE;
      ok(run(comm, call));
      call.output = host.data();
      ok(coll_run(comm.get(), &call));
      CHECK(std::memcmp(host.data(), out.data(), n * sizeof(float)) == 0);
      call.output = out.data();
      call.reproducible = COLL_REPRODUCIBLE_ANY_P;
      CHECK(fails(run(comm, call), COLL_UNSUPPORTED, "for any number of ranks"));
    });
  }
}

}  // namespace
