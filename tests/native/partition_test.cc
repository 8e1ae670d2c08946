// SPDX-License-Identifier: Apache-2.0
// Vectors of more elements than 32 bits count: where their chunks begin, and how they are tiled.
#include "plan/partition.h"

#include <array>
#include <limits>

#include "check.h"
#include "collectives.h"

namespace {

using coll::Buffer;
using coll::Kind;
using coll::Layout;
using coll::Partition;

constexpr std::size_t kBillions = (std::size_t{1} << 33) + 5;
constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max();

TEST(chunks_are_nearly_equal) {
  for (const std::size_t count : {kBillions, kMost - 1, kMost}) {
    for (const int p : {1, 3, 8, 1024}) {
      Partition partition(Layout(Kind::allreduce, p, 0, p));
      partition.cut(count, nullptr);
      const std::size_t each = count / static_cast<std::size_t>(p);
      std::size_t sum = 0;
      for (int cell = 0; cell < p; ++cell) {
        CHECK(partition.offset(0, Buffer::input, cell) == sum);
        const std::size_t n = partition.elements(0, Buffer::output, cell, 1);
        CHECK(n == each || n == each + 1);
        sum += n;
      }
      CHECK(sum == count && partition.elements(p - 1, Buffer::scratch, 0, p) == count);
      CHECK(partition.longest() == each + (count % static_cast<std::size_t>(p) != 0 ? 1 : 0));
    }
  }
}

TEST(parts_of_given_lengths) {
  constexpr std::array counts = {kBillions, std::size_t{0}, std::size_t{1} << 32, std::size_t{3}};
  constexpr std::size_t all = kBillions + (std::size_t{1} << 32) + 3;
  Partition gathered(Layout(Kind::allgather, 4, 0, 8));  // two chunks for each rank's part
  gathered.cut(all, counts.data());
  CHECK(gathered.offset(0, Buffer::output, 2) == kBillions);
  CHECK(gathered.offset(0, Buffer::output, 4) == kBillions);
  CHECK(gathered.offset(0, Buffer::output, 5) == kBillions + (std::size_t{1} << 31));
  CHECK(gathered.offset(0, Buffer::output, 8) == all);
  CHECK(gathered.elements(2, Buffer::input, 0, 2) == std::size_t{1} << 32);
  CHECK(gathered.longest() == kBillions / 2 + 1);

  Partition scattered(Layout(Kind::reduce_scatter, 4, 0, 4));
  scattered.cut(all, counts.data());
  CHECK(scattered.offset(1, Buffer::input, 3) == all - 3);
  CHECK(scattered.elements(0, Buffer::output, 0, 1) == kBillions);
  CHECK(scattered.elements(3, Buffer::output, 0, 1) == 3);
}

TEST(blocks_of_alltoall) {
  // By sender and receiver.
  constexpr std::size_t a = kBillions, b = std::size_t{1} << 32, c = 7, d = kBillions + 1;
  constexpr std::array counts = {a, b, c, d};
  Partition partition(Layout(Kind::alltoall, 2, 0, 4));
  partition.cut(a + b + c + d, counts.data());
  CHECK(partition.offset(0, Buffer::input, 1) == a);
  CHECK(partition.elements(0, Buffer::input, 0, 2) == a + b);
  CHECK(partition.elements(1, Buffer::input, 1, 1) == d);
  CHECK(partition.offset(1, Buffer::output, 1) == b);
  CHECK(partition.elements(1, Buffer::output, 0, 2) == b + d);
  CHECK(partition.offset(0, Buffer::scratch, 3) == 3 * d);
}

TEST(tiles) {
  Partition partition(Layout(Kind::allreduce, 2, 0, 2));
  partition.cut(2 * kBillions, nullptr);
  CHECK(partition.tiles() == 1);
  partition.tile(4096);
  CHECK(partition.tiles() == (1 << 21) + 1 && partition.tile_elements() == 4096);
  CHECK(partition.tiles_of(1) == kBillions && partition.tiles_of(kBillions) == 1);
  partition.cut(kMost, nullptr);
  CHECK(partition.tiles_of(2) == (kMost / 2 + 1) / 2);
}

// What would need more tiles than can be counted is refused before it is begun.
TEST(a_vector_of_too_many_tiles_is_refused) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = 2;
  std::array<coll_comm*, 2> comms{};
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  const int ring = coll_algorithm_find(COLL_ALLREDUCE, "ring");
  char x = 0;  // is not looked at
  CHECK(coll_collective(comms[0], COLL_ALLREDUCE, &x, &x, kMost / 4, COLL_UINT8, COLL_SUM, 0, ring,
                        COLL_MODE_INLINE, 0) == COLL_UNSUPPORTED);
  CHECK(std::string_view(coll_last_error()).find("the vector is too long for slots of") == 0);
  CHECK(coll_sequence(comms[0]) == 0);
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

}  // namespace
