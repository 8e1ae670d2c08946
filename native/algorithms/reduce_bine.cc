// SPDX-License-Identifier: Apache-2.0
// De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke & Hoefler, "Bine Trees: Enhancing
// Collective Operations by Optimizing Communication Locality", SC 2025. The broadcast with its
// arrows turned round.
#include "algorithms/algorithm.h"
#include "algorithms/bine_tree.h"

namespace coll {

const Algorithm reduce_bine = {
    .kind = Kind::reduce,
    .name = "bine",
    .paper =
        "De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke & Hoefler, Bine Trees: "
        "Enhancing Collective Operations by Optimizing Communication Locality, SC 2025",
    .summary = "A binomial tree whose ranks are nearer each other: for networks that taper.",
    .rounds = "L",
    .bytes = "p>1",
    .reductions = "L",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      const BineRank mine = bine_rank(b);
      int round = ceil_log2(b.p()) - mine.first - static_cast<int>(mine.children.size());
      for (auto child = mine.children.rbegin(); child != mine.children.rend(); ++child) {
        b.recv_reduce(round++, *child, b.all());
      }
      if (mine.parent != kNobody) b.send(round, mine.parent, b.all());
    }};

}  // namespace coll
