// SPDX-License-Identifier: Apache-2.0
#include "nccl/fusion.h"

#include <algorithm>
#include <cstring>

namespace coll::nccl {
namespace {

// Above this a copy more costs as much as what a call of its own does.
constexpr std::size_t kMostOfOne = 32 << 10;
constexpr std::size_t kMostOfAll = 4 << 20;

bool can_join(const Operation& operation, const ncclComm& comm) noexcept {
  const bool kind_joins = operation.kind == COLL_ALLREDUCE || operation.kind == COLL_REDUCE ||
                          operation.kind == COLL_BROADCAST || operation.kind == COLL_ALLGATHER ||
                          operation.kind == COLL_REDUCE_SCATTER;
  const bool is_plain_memory = !is_on_gpu(operation) && operation.stream == nullptr;
  return kind_joins && is_plain_memory && comm.ranks > 1 && operation.count > 0 &&
         operation.count * element_bytes(operation) <= kMostOfOne;
}

// A factor before a sum is each rank's own affair.
bool go_together(const Operation& a, const Operation& b) noexcept {
  return a.kind == b.kind && a.datatype == b.datatype && a.op == b.op && a.root == b.root;
}

// The memory of operations side by side: of an allgather or reduce_scatter a block for each rank.
struct Laid {
  std::size_t blocks;       // how many
  std::size_t block_bytes;  // of all operations in one block
};

Laid laid(const std::vector<const Operation*>& operations, const ncclComm& comm) noexcept {
  const Operation& first = *operations.front();
  std::size_t elements = 0;
  for (const Operation* operation : operations) elements += operation->count;
  const bool by_rank = first.kind == COLL_ALLGATHER || first.kind == COLL_REDUCE_SCATTER;
  return {by_rank ? static_cast<std::size_t>(comm.ranks) : 1, elements * element_bytes(first)};
}

// Calls move(operation, place in the block, bytes) for each.
template <class Move>
void each(const std::vector<const Operation*>& operations, std::byte* block, Move move) {
  for (const Operation* operation : operations) {
    const std::size_t bytes = operation->count * element_bytes(*operation);
    move(*operation, block, bytes);
    block += bytes;
  }
}

void pack(ncclComm& comm, const std::vector<const Operation*>& operations, const Laid& all,
          std::byte* memory) {
  const Operation& first = *operations.front();
  if (first.kind == COLL_BROADCAST && comm.rank != first.root) return;
  const bool scatters = first.kind == COLL_REDUCE_SCATTER;
  const auto own = static_cast<std::size_t>(comm.rank);
  const std::size_t begin = first.kind == COLL_ALLGATHER ? own : 0;
  const std::size_t end = scatters ? all.blocks : begin + 1;
  for (std::size_t b = begin; b < end; ++b) {
    each(operations, memory + b * all.block_bytes,
         [&](const Operation& operation, std::byte* to, std::size_t bytes) {
           const auto* from = static_cast<const std::byte*>(operation.send);
           put_in(operation, from + (scatters ? b * bytes : 0), to, operation.count);
         });
  }
}

void unpack(ncclComm& comm, const std::vector<const Operation*>& operations, const Laid& all,
            std::byte* memory) {
  const Operation& first = *operations.front();
  if (first.kind == COLL_REDUCE && comm.rank != first.root) return;
  const bool scatters = first.kind == COLL_REDUCE_SCATTER;
  const bool gathers = first.kind == COLL_ALLGATHER;
  const std::size_t begin = scatters ? static_cast<std::size_t>(comm.rank) : 0;
  const std::size_t end = gathers ? all.blocks : begin + 1;
  for (std::size_t b = begin; b < end; ++b) {
    each(operations, memory + b * all.block_bytes,
         [&](const Operation& operation, const std::byte* from, std::size_t bytes) {
           std::byte* const to =
               static_cast<std::byte*>(operation.recv) + (gathers ? b * bytes : 0);
           std::memcpy(to, from, bytes);
           finish(operation, comm, to, operation.count);
         });
  }
}

// What groups must have alike that are as long as a whole: "avg, counts 3, 5", "counts 100 of 8".
void tell(const std::vector<const Operation*>& operations, std::string& words) {
  words = averages_integers(*operations.front()) ? "avg, counts " : "counts ";
  const auto end = operations.end();
  for (auto run = operations.begin(); run != end;) {
    const std::size_t count = (*run)->count;
    const auto next =
        std::find_if(run, end, [&](const Operation* other) { return other->count != count; });
    if (run != operations.begin()) words += ", ";
    if (next - run > 1) words += std::to_string(next - run) + " of ";
    words += std::to_string(count);
    run = next;
  }
}

}  // namespace

std::vector<std::vector<const Operation*>> joined(std::span<const Operation> operations,
                                                  const ncclComm& comm) {
  std::vector<std::vector<const Operation*>> all;
  std::vector<std::size_t> bytes;  // of each that may still grow; 0: it may not
  for (const Operation& operation : operations) {
    const bool joins = can_join(operation, comm);
    const std::size_t own = operation.count * element_bytes(operation);
    std::size_t i = joins ? 0 : all.size();
    while (i < all.size() && (bytes[i] == 0 || bytes[i] + own > kMostOfAll ||
                              !go_together(*all[i].front(), operation))) {
      ++i;
    }
    if (i == all.size()) {
      all.emplace_back();
      bytes.push_back(0);
    }
    all[i].push_back(&operation);
    if (joins) bytes[i] += own;
  }
  return all;
}

ncclResult_t run_joined(ncclComm& comm, const std::vector<const Operation*>& operations) {
  if (operations.size() == 1) return run(comm, *operations.front());
  const Laid all = laid(operations, comm);
  comm.scratch.resize(std::max(comm.scratch.size(), all.blocks * all.block_bytes));
  std::byte* const memory = comm.scratch.data();
  pack(comm, operations, all, memory);
  Operation one = *operations.front();
  one.count = all.block_bytes / element_bytes(one);
  if (!is_plain(one)) one.op = ncclSum;
  one.scaled = false;
  const std::size_t own = static_cast<std::size_t>(comm.rank) * all.block_bytes;
  one.send = one.kind == COLL_ALLGATHER ? memory + own : memory;
  one.recv = one.kind == COLL_REDUCE_SCATTER ? memory + own : memory;
  tell(operations, comm.words);
  const ncclResult_t result = settled(comm, run_plain(comm, one, comm.words.c_str()));
  if (result == ncclSuccess) unpack(comm, operations, all, memory);
  return result;
}

}  // namespace coll::nccl
