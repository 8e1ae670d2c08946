// SPDX-License-Identifier: Apache-2.0
// Blocks of a call: together they have every element of the arrays once, each is a valid call of
// the kind with just what its runs have, and all ranks cut alike.
#include "communicator/call_blocks.h"

#include <algorithm>
#include <vector>

#include "check.h"

namespace {

using namespace coll;

constexpr Kind kKindsOfBlocks[] = {Kind::allreduce, Kind::reduce_scatter, Kind::allgather,
                                   Kind::broadcast, Kind::reduce,         Kind::gather,
                                   Kind::scatter,   Kind::alltoall,       Kind::scan,
                                   Kind::exscan,    Kind::barrier};

std::size_t in_all(const std::vector<Run>& runs, std::vector<int>& seen) {
  std::size_t sum = 0;
  for (const Run& run : runs) {
    CHECK(run.elements > 0 && run.first + run.elements <= seen.size());
    for (std::size_t i = run.first; i < run.first + run.elements; ++i) ++seen[i];
    sum += run.elements;
  }
  return sum;
}

bool once(const std::vector<int>& seen) {
  return std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; });
}

// Returns the number of blocks.
std::size_t check_blocks_of(const Call& call, int rank, int ranks, std::size_t bytes) {
  const Sides sides = sides_of(call, rank, ranks);
  CallBlocks blocks(call, rank, ranks, bytes);
  std::vector<int> in(sides.in), out(sides.out);
  std::vector<std::byte> memory(1 << 16), result(1 << 16);
  const Sides most = blocks.most();
  for (std::size_t block = 0; block < blocks.count(); ++block) {
    Call made = blocks.call(block);
    made.input = memory.data();
    made.output = result.data();
    validate(made, rank, ranks);
    const Sides parts = sides_of(made, rank, ranks);
    CHECK(in_all(blocks.input(block), in) == parts.in && parts.in <= most.in);
    CHECK(in_all(blocks.output(block), out) == parts.out && parts.out <= most.out);
    const std::size_t least = static_cast<std::size_t>(ranks);  // an element of every part
    CHECK(blocks.count() == 1 || std::max(parts.in, parts.out) * 4 <= std::max(bytes, least * 4));
  }
  CHECK(once(in) && once(out));
  return blocks.count();
}

void check_all_ranks(const Call& call, int ranks, std::size_t bytes) {
  const std::size_t first = check_blocks_of(call, 0, ranks, bytes);
  for (int rank = 1; rank < ranks; ++rank) {
    CHECK(check_blocks_of(call, rank, ranks, bytes) == first);
  }
}

Call call_of(Kind kind, std::size_t each, int ranks) {
  const bool own = counts_own_part(kind) || kind == Kind::barrier;
  const bool parts = own || kind == Kind::reduce_scatter || kind == Kind::alltoall;
  const std::size_t count = parts && !own ? each * static_cast<std::size_t>(ranks) : each;
  return {.kind = kind,
          .dtype = Dtype::float32,
          .root = ranks - 1,
          .count = kind == Kind::barrier ? 0 : count};
}

TEST(equal_parts_are_cut_into_blocks) {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const Kind kind : kKindsOfBlocks) {
      for (const std::size_t each : {0, 1, 2, 63, 64, 100, 1000}) {
        for (const std::size_t bytes : {1, 16, 300, 1000, 1 << 20}) {
          check_all_ranks(call_of(kind, each, ranks), ranks, bytes);
        }
      }
    }
  }
}

TEST(unequal_parts_are_cut_into_blocks) {
  for (const int ranks : {1, 2, 3, 5}) {
    const auto p = static_cast<std::size_t>(ranks);
    for (const Kind kind :
         {Kind::allgather, Kind::reduce_scatter, Kind::gather, Kind::scatter, Kind::alltoall}) {
      std::vector<std::size_t> counts(kind == Kind::alltoall ? p * p : p);
      for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = i % 4 == 1 ? 0 : i * 37 % 200;
      Call call = call_of(kind, 0, ranks);
      call.counts = counts.data();
      for (const std::size_t bytes : {1, 300, 1000, 1 << 20}) {
        check_all_ranks(call, ranks, bytes);
      }
    }
  }
}

TEST(a_call_that_fits_a_block_is_left_as_it_is) {
  Call call = call_of(Kind::allreduce, 100, 3);
  call.algorithm = 4;
  CallBlocks blocks(call, 0, 3, 400);
  CHECK(blocks.count() == 1 && blocks.call(0).count == 100 && blocks.call(0).algorithm == 4);
  CHECK(blocks.input(0) == std::vector<Run>{{0, 100}});
  // And one that does not begins at whole vectors.
  CallBlocks cut(call, 0, 3, 396);
  CHECK(cut.count() == 2 && cut.input(1) == std::vector<Run>{{64, 36}});
}

}  // namespace
