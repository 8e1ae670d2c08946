// SPDX-License-Identifier: Apache-2.0
// A schedule: what every rank does, over chunks of the vector. Data, and nothing but data: it knows
// no memory, dtype, count, transport or time. schedule/check.h holds the rules of a valid one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace coll {

// Numeric values of all enums are those of the C interface and of the encoding.
enum class Kind : std::int32_t {
  allreduce,
  reduce_scatter,
  allgather,
  broadcast,
  reduce,
  barrier,
  gather,
  scatter,
  alltoall,
  scan,   // rank r gets the fold of ranks 0 ... r
  exscan  // of ranks 0 ... r-1; rank 0 gets nothing
};
inline constexpr int kKinds = 11;

enum class Buffer : std::int32_t { input, output, scratch };
inline constexpr int kBuffers = 3;

enum class Op : std::int32_t {
  send,         // hand the source cells to each of the peers
  recv,         // overwrite the target cells with what the one peer sent
  recv_reduce,  // target := fold, in the order of `peers`, of what they sent; kSelf = the source
  copy,         // target := source, on this rank
  reduce        // target := fold of source and target, in this order, on this rank
};

inline constexpr int kOps = 5;

// Shape of the fold of a recv_reduce over its order: ((a+b)+c)+d, or (a+b)+(c+d).
enum class Shape : std::int32_t { left, balanced };

// The place of the rank's own operand in the order of a recv_reduce.
inline constexpr int kSelf = -1;

// `cells` consecutive cells of a buffer. A cell stands for a chunk: see layout.h.
struct CellRange {
  Buffer buffer;
  int first;
  int cells;
  bool operator==(const CellRange&) const = default;
};

// A slice of one of the pools of a Program.
struct Slice {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
};

struct Step {
  Op op;
  int round;  // a message is sent and received in the same round
  Shape shape = Shape::left;
  Slice peers = {}, source = {}, target = {};
};

// One rank's steps by ascending round. Inside a round sends read before receives write; copies and
// local reduces come last, in listed order.
struct Program {
  std::vector<Step> steps;
  std::vector<int> peer_pool;
  std::vector<CellRange> range_pool;

  std::span<const int> peers(const Step& s) const { return view(peer_pool, s.peers); }
  std::span<const CellRange> source(const Step& s) const { return view(range_pool, s.source); }
  std::span<const CellRange> target(const Step& s) const { return view(range_pool, s.target); }

 private:
  template <class T>
  static std::span<const T> view(const std::vector<T>& pool, Slice s) {
    return std::span<const T>(pool).subspan(s.begin, s.count);
  }
};

struct Schedule {
  Kind kind = Kind::allreduce;
  int p = 1;
  int root = 0;
  int chunks = 1;  // the vector is cut in this many nearly equal (or given) parts; empty ones legal
  std::vector<Program> programs;
};

inline int cells_of(std::span<const CellRange> ranges) {
  int sum = 0;
  for (const CellRange& r : ranges) sum += r.cells;
  return sum;
}

}  // namespace coll
