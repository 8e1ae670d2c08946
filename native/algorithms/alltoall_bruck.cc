// SPDX-License-Identifier: Apache-2.0
// Bruck, Ho, Kipnis, Upfal & Weathersby, "Efficient Algorithms for All-to-All Communications in
// Multiport Message-Passing Systems", IEEE TPDS 8(11), 1997. A block for the rank d places on goes
// 2^t places on in every round t in which d has the bit 2^t. Each rank has one block of every d at
// any time.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {
namespace {

// The block of a rank for the rank `distance` places on.
Chunks block(int p, int rank, int distance) { return {rank * p + (rank + distance) % p, 1}; }

// What a rank sends in round t. Of the way of a block the lower bits are behind it.
Chunks moving(int p, int rank, int t) {
  Chunks chunks;
  for (int distance = 1; distance < p; ++distance) {
    if ((distance >> t & 1) == 0) continue;
    const int behind = distance % (1 << t);
    chunks.add(block(p, (rank - behind + p) % p, distance));
  }
  return chunks;
}

}  // namespace

const Algorithm alltoall_bruck = {
    .kind = Kind::alltoall,
    .name = "bruck",
    .paper =
        "Bruck, Ho, Kipnis, Upfal & Weathersby, Efficient Algorithms for All-to-All "
        "Communications in Multiport Message-Passing Systems, IEEE TPDS 8(11), 1997",
    .summary = "Few rounds for short blocks: a block is sent once for every bit of its distance.",
    .rounds = "L",
    .bytes = "",
    .reductions = "0",
    .restriction = "",
    .tree = {},
    .fits = any_p,
    .chunks = chunk_per_pair,
    .generate =
        [](Builder& b) {
          const int p = b.p(), me = b.rank();
          // Phase 1 of the paper. Not needed where p is a power of two: there, in place too, the
          // block for a rank has left before the one from it arrives.
          Chunks blocks;
          for (int d = 1; d < p; ++d) blocks.add(block(p, me, d));
          if (p != power_below(p)) b.copy(0, Buffer::input, Buffer::scratch, blocks);
          for (int t = 0; 1 << t < p; ++t) {
            const int step = 1 << t, to = (me + step) % p, from = (me - step + p) % p;
            b.send(t + 1, to, moving(p, me, t));
            b.recv(t + 1, from, moving(p, from, t));
          }
        },
    .passes_on = true,
    .symmetry = rotation};

}  // namespace coll
