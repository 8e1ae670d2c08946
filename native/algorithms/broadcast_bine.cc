// SPDX-License-Identifier: Apache-2.0
// De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke & Hoefler, "Bine Trees: Enhancing
// Collective Operations by Optimizing Communication Locality", SC 2025.
#include "algorithms/algorithm.h"
#include "algorithms/bine_tree.h"

namespace coll {

const Algorithm broadcast_bine = {
    .kind = Kind::broadcast,
    .name = "bine",
    .paper =
        "De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke & Hoefler, Bine Trees: "
        "Enhancing Collective Operations by Optimizing Communication Locality, SC 2025",
    .summary = "A binomial tree whose ranks are nearer each other: for networks that taper.",
    .rounds = "L",
    .bytes = "L",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = one_chunk,
    .generate = [](Builder& b) {
      const BineRank mine = bine_rank(b);
      int round = mine.first;
      if (mine.parent != kNobody) b.recv(round - 1, mine.parent, b.all());
      for (const int child : mine.children) b.send(round++, child, b.all());
    }};

}  // namespace coll
