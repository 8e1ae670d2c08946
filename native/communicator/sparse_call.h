// SPDX-License-Identifier: Apache-2.0
// A collective of sparse vectors: by what the ranks tell each other of theirs all choose alike;
// then messages, as the schedule says.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "communicator/message_steps.h"
#include "communicator/sparse_wish.h"
#include "sparse/largest_of_all.h"
#include "sparse/openings.h"
#include "sparse/sparse_run.h"

namespace coll {

// What a call gave, and what it took.
struct SparseResult {
  SparseTerms terms = {};
  SparseStream stream = {};
  int algorithm = -1;
  std::uint64_t bytes = 0, messages = 0;  // that this rank sent
  int rounds = 0;
};

class SparseCall : public MessageSteps {
 public:
  SparseResult take() { return std::move(result_); }

 protected:
  // The arrays of the wish must live as long. `usual` is what automatic coding is; `rooms` are of
  // the communicator.
  SparseCall(int rank, int ranks, double timeout, const SparseCosts& costs, Coding usual,
             const SparseWish& wish, OpeningRooms& rooms);

 private:
  enum class Stage : std::uint8_t { agreeing, by_messages, counting, dividing, dense };

  Status begin() override;
  bool step(Status& status) override;
  std::uint64_t bytes_of_dense() const noexcept;
  void take_room();
  void check_room() const;
  bool hears_all();
  void deliver_at_once();
  void prepare();
  Status begin_dense();
  bool goes_on_selecting();
  Status exchange_counts();
  bool next_round();
  SparseProblem problem() const;
  bool may_follow() const noexcept;
  void find_room(const SparseProblem& problem, int chosen);
  SparseStream stretch_of(int rank) const noexcept;
  SparseStream added(const std::vector<SparseStream>& streams) const;
  Stretches stretches_of(const SparseAlgorithm& chosen, int chunks) const;
  std::vector<SparseStream> input(const Layout& layout, const Stretches& stretches) const;
  bool folds() const noexcept { return reduces(wish_.kind); }
  std::uint64_t total() const noexcept;
  Form form_of(const std::vector<SparseStream>& streams) const;
  void finish();
  void deliver(Form form, const std::vector<SparseStream>& streams);

  SparseCosts costs_;
  SparseWish wish_;
  std::string words_;
  SparseTerms terms_;
  double result_dense_above_ = 1;  // where indices are in memory, not coded
  bool divided_ = false;           // an average is one already
  SparseStream own_;
  std::shared_ptr<std::byte[]> room_;  // of a dense result, so that it is there
  OpeningRooms& rooms_;
  std::optional<Openings> openings_;
  std::vector<Sketch> sketches_;
  Stage stage_ = Stage::agreeing;
  std::optional<SparseRun> run_;
  std::optional<LargestOfAll> largest_;
  DigitCounts counts_ = {};  // of all ranks
  std::vector<std::uint64_t> equals_;
  SparseResult result_;
};

}  // namespace coll
