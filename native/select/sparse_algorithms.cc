// SPDX-License-Identifier: Apache-2.0
#include "select/sparse_algorithms.h"

#include <array>
#include <cstring>

namespace coll {
namespace {

constexpr const char* kSparcml =
    "Renggli, Ashkboos, Aghagolzadeh, Alistarh & Hoefler, SparCML: High-Performance Sparse "
    "Communication for Machine Learning, SC, 2019";
constexpr const char* kTraeff =
    "Traeff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, arXiv:2410.14234, "
    "2024";
constexpr const char* kThakur =
    "Thakur, Rabenseifner & Gropp, Optimization of Collective Communication Operations in MPICH, "
    "IJHPCA 19(1), 2005";

constexpr std::array kTable = {
    SparseAlgorithm{Kind::allreduce, "ssar_recursive_double", kSparcml,
                    "Whole sums are exchanged in L rounds: for few elements.", Kind::allreduce,
                    "recursive_doubling"},
    SparseAlgorithm{Kind::allreduce, "ssar_split_allgather", kSparcml,
                    "Every part goes straight to its owner, whose sum all get, as pairs.",
                    Kind::allreduce, "split_allgather"},
    SparseAlgorithm{Kind::allreduce, "dsar_split_allgather", kSparcml,
                    "Every part goes straight to its owner, whose sum all get, as all values.",
                    Kind::allreduce, "split_allgather", true},
    SparseAlgorithm{Kind::allreduce, "circulant", kTraeff,
                    "Parts are added up on their way: 2 L messages a rank in the place of p - 1.",
                    Kind::allreduce, "circulant"},
    SparseAlgorithm{Kind::allreduce, "ring", kThakur,
                    "Parts go around twice, and grow the first time.", Kind::allreduce, "ring"},
    SparseAlgorithm{Kind::allreduce, "allgather", kTraeff,
                    "All get all vectors, and add them up: where no two have one element.",
                    Kind::allgather, "circulant"},
    SparseAlgorithm{Kind::reduce_scatter, "direct", kSparcml,
                    "Every part goes straight to its owner.", Kind::reduce_scatter, "direct"},
    SparseAlgorithm{Kind::reduce_scatter, "circulant", kTraeff,
                    "Parts are added up on their way, in L rounds.", Kind::reduce_scatter,
                    "circulant"},
    SparseAlgorithm{Kind::allgather, "circulant", kTraeff, "L rounds for any number of ranks.",
                    Kind::allgather, "circulant"},
    SparseAlgorithm{Kind::allgather, "ring", kThakur, "Neighbours only.", Kind::allgather, "ring"},
    SparseAlgorithm{Kind::broadcast, "binomial", kThakur,
                    "Whoever has it passes it on, in L rounds.", Kind::broadcast, "binomial"},
};

}  // namespace

const Algorithm& SparseAlgorithm::algorithm() const {
  return *algorithms()[static_cast<std::size_t>(find_algorithm(schedule_kind, schedule))];
}

bool SparseAlgorithm::sums_as(const TreeNeeds& needs, int ranks) const {
  if (gathers()) return true;  // all operands are where they are added
  const auto& tree = algorithm().tree;
  return (!needs.canonical || tree.canonical(ranks)) && (!needs.one_fold || tree.one_fold);
}

std::span<const SparseAlgorithm> sparse_algorithms() noexcept { return kTable; }

int find_sparse_algorithm(Kind kind, const char* name) noexcept {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].kind == kind && std::strcmp(kTable[i].name, name) == 0) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace coll
