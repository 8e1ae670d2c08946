// SPDX-License-Identifier: Apache-2.0
// Rabenseifner & Traeff, "More Efficient Reduction Algorithms for Non-Power-of-Two Number of
// Processors in Message-Passing Parallel Systems", EuroPVM/MPI 2004. Recursive halving among nodes
// of equally many ranks, then the way back. In every level nodes pair up. Of an odd number the
// first three become two: the second and the third exchange halves, then the third gives what it
// has summed to the first, the first its half to the second, and the third drops out. That takes a
// round more, but only once: the node that is late is the first of the next three, too, who has to
// wait anyway. All of the vector is summed in rank order with the same brackets.
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {
namespace {

// What is given to a rank in a round, and what is kept and summed with that from a rank.
struct Exchange {
  int round;
  int to;
  Chunks given;
  int from;
  Chunks kept;
};

// Ranks that hold the sum of the same operands, each for a part of the vector. The i-th ranks of
// all nodes hold the same part.
using Node = std::vector<int>;

// Collects what one rank does where nodes are joined, by two or, dropping the last, by three.
class Halving {
 public:
  Halving(int rank, const Chunks& all) : rank_(rank), mine_(all) {}

  void pair(int round, const Node& a, const Node& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (rank_ == a[i]) add({round, b[i], upper(), b[i], lower()});
      if (rank_ == b[i]) add({round, a[i], lower(), a[i], upper()});
    }
  }
  void triple(int round, const Node& a, const Node& b, const Node& c) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (rank_ == a[i]) add({round + 1, b[i], upper(), c[i], lower()});
      if (rank_ == b[i]) {
        exchanges_.push_back({round, c[i], lower(), c[i], upper()});
        add({round + 1, kNobody, {}, a[i], upper()});
      }
      if (rank_ == c[i]) {
        exchanges_.push_back({round, b[i], upper(), b[i], lower()});
        add({round + 1, a[i], lower(), kNobody, {}});
      }
    }
  }
  std::vector<Exchange> exchanges() && { return std::move(exchanges_); }

 private:
  Chunks lower() const { return mine_.part(0, 2); }
  Chunks upper() const { return mine_.part(1, 2); }
  void add(const Exchange& e) {
    exchanges_.push_back(e);
    mine_ = e.kept;
  }

  int rank_;
  Chunks mine_;
  std::vector<Exchange> exchanges_;
};

Node joined(const Node& a, const Node& b) {
  Node node = a;
  node.insert(node.end(), b.begin(), b.end());
  return node;
}

std::vector<Exchange> halving(const Builder& b) {
  Halving mine(b.rank(), b.all());
  std::vector<Node> nodes;
  for (int rank = 0; rank < b.p(); ++rank) nodes.push_back({rank});
  int late = 0;  // rounds that the first node is behind the others
  for (int level = 0; nodes.size() > 1; ++level) {
    std::vector<Node> next;
    std::size_t i = 0;
    if (nodes.size() % 2 == 1) {
      mine.triple(level, nodes[0], nodes[1], nodes[2]);
      next.push_back(joined(nodes[0], nodes[1]));
      late = 1;
      i = 3;
    }
    for (; i < nodes.size(); i += 2) {
      mine.pair(level + (i == 0 ? late : 0), nodes[i], nodes[i + 1]);
      next.push_back(joined(nodes[i], nodes[i + 1]));
    }
    nodes = std::move(next);
  }
  return std::move(mine).exchanges();
}

}  // namespace

const Algorithm allreduce_elimination_3_2 = {
    .kind = Kind::allreduce,
    .name = "elimination_3_2",
    .paper =
        "Rabenseifner & Traeff, More Efficient Reduction Algorithms for Non-Power-of-Two "
        "Number of Processors in Message-Passing Parallel Systems, EuroPVM/MPI 2004",
    .summary =
        "Recursive halving for any p: of three nodes one drops out, where folding would idle many.",
    .rounds = "2*L",
    .bytes = "",
    .reductions = "",
    .restriction = "",
    .tree = {.same_on_ranks = true,
             .same_in_vector = true,
             .rank_order = true,
             .canonical = power_of_two},
    .fits = any_p,
    .chunks = power_below,
    .generate = [](Builder& b) {
      const std::vector<Exchange> exchanges = halving(b);
      for (const Exchange& e : exchanges) {
        if (e.to >= 0) b.send(e.round, e.to, e.given);
        if (e.from >= 0) b.recv_reduce(e.round, e.from, e.kept);
      }
      const int last = 2 * ceil_log2(b.p()) - 1;
      for (auto e = exchanges.rbegin(); e != exchanges.rend(); ++e) {
        if (e->from >= 0) b.send(last - e->round, e->from, e->kept);
        if (e->to >= 0) b.recv(last - e->round, e->to, e->given);
      }
    }};

}  // namespace coll
