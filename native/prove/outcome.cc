// SPDX-License-Identifier: Apache-2.0
#include "prove/outcome.h"

#include "base/looks.h"

namespace coll {
namespace {

// Compares the trees of the results: between ranks, along the vector, with rank order.
class TreeClassifier {
 public:
  TreeClassifier(const Layout& layout, Report& report)
      : layout_(layout), report_(report), tree_(static_cast<std::size_t>(layout.chunks), 0) {}

  void add(int rank, int chunk, const Value& value, Interval wanted) {
    if (!layout_.folds()) return;
    compare(rank, chunk, value, wanted);
    if (wanted != contributors_) {
      contributors_ = wanted;
      canonical_ = Algebra::canonical_tree(wanted);
    }
    const Witness here{rank, static_cast<std::size_t>(chunk)};
    note(value.tree == canonical_, report_.canonical, report_.not_canonical, here);
    note(value.folds <= 1, report_.one_fold, report_.more_folds, here);
  }

 private:
  void compare(int rank, int chunk, const Value& value, Interval wanted) {
    const Witness here{rank, static_cast<std::size_t>(chunk)};
    // Prefixes of different ranks are different sums.
    std::uint64_t& known = tree_[layout_.scans() ? 0 : here.at];
    if (layout_.scans() && rank != rank_) known = first_ = 0;
    rank_ = rank;
    if (known == 0) known = value.tree;
    if (first_ == 0) first_ = value.tree;
    note(known == value.tree, report_.same_on_ranks, report_.other_on_ranks, here);
    note(first_ == value.tree, report_.same_in_vector, report_.other_in_vector, here);
    note(Interval{value.low, value.high} == wanted, report_.rank_order, report_.out_of_order, here);
  }

  static void note(bool holds, bool& held, Witness& first, const Witness& here) {
    if (holds || !held) return;
    held = false;
    first = here;
  }

  const Layout& layout_;
  Report& report_;
  std::vector<std::uint64_t> tree_;
  std::uint64_t first_ = 0;
  int rank_ = -1;
  Interval contributors_{-1, -1};
  std::uint64_t canonical_ = 0;
};

}  // namespace

void judge_outcome(const Outcome& o, Report& report) {
  const Layout& layout = o.layout;
  TreeClassifier classifier(layout, report);
  Interval known{-1, -1};
  std::uint64_t full = 0;
  for (int rank = 0; rank < layout.p; ++rank) {
    look();
    for (int cell = 0; cell < layout.cells(rank, Buffer::output); ++cell) {
      const int chunk = layout.chunk(rank, Buffer::output, cell);
      const Interval wanted = layout.contributors(rank, chunk);
      if (wanted != known) {
        known = wanted;
        full = Algebra::full_set(wanted);
      }
      const Value& value = o.values[o.cells.id(rank, Buffer::output, cell)];
      classifier.add(rank, chunk, value, wanted);
      const auto count = static_cast<std::uint32_t>(wanted.size());
      if (value.chunk == chunk && value.count == count && value.set == full) continue;
      if (report.first(kResult)) {
        report.message =
            "rank " + std::to_string(rank) + ", at the end: chunk " + std::to_string(chunk) +
            " of the output " +
            (value.defined() && value.chunk != chunk ? "holds chunk " + std::to_string(value.chunk)
                                                     : o.algebra.explain(value, wanted));
      }
    }
  }
}

}  // namespace coll
