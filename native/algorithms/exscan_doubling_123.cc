// SPDX-License-Identifier: Apache-2.0
// Traeff, "A Round-efficient Exclusive Scan (123-doubling)", arXiv 2507.04785, 2025. The ranks that
// a partial result covers grow by the skips 1, 2, 3, 6, 12, ...: only in the second round does a
// rank send its own operand too, so only there is a fold spent on sending.
#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {

const Algorithm exscan_doubling_123 = {
    .kind = Kind::exscan,
    .name = "doubling_123",
    .paper = "Traeff, 123-doubling for the exclusive scan, arXiv 2507.04785, 2025",
    .summary = "Skips 1, 2, 3, 6, 12, ...: as few rounds as an exclusive scan is known to need.",
    .rounds = "(p > 1) + (p > 2) + (p > 4) * lg((p - 1) / 3)",
    .bytes = "(p > 1) + (p > 2) + (p > 4) * lg((p - 1) / 3)",
    .reductions = "(p > 2) + (p > 4) * (1 + lg((p - 3) / 3))",
    .restriction = "",
    .tree = {.same_in_vector = true, .rank_order = true, .canonical = [](int p) { return p <= 4; }},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      const int p = b.p(), me = b.rank();
      const Chunks all = b.all();
      const bool both = me >= 1 && me + 2 < p;  // sends the fold of its result and its operand
      if (both) b.copy(0, Buffer::input, Buffer::scratch, all);
      if (me + 1 < p) b.send_from(Buffer::input, 1, me + 1, all);
      if (me >= 1) b.recv_into(Buffer::output, 1, me - 1, all);
      if (both) b.reduce(1, Buffer::output, Buffer::scratch, all);
      if (me + 2 < p) b.send_from(me == 0 ? Buffer::input : Buffer::scratch, 2, me + 2, all);
      if (me >= 2) b.recv_reduce_into(Buffer::output, 2, me - 2, all);
      for (int round = 3, skip = 3; skip + 1 < p; ++round, skip *= 2) {
        if (me >= 1 && me + skip < p) b.send_from(Buffer::output, round, me + skip, all);
        if (me > skip) b.recv_reduce_into(Buffer::output, round, me - skip, all);
      }
    }};

}  // namespace coll
