// SPDX-License-Identifier: Apache-2.0
// A collective of sparse vectors. Its first step is an allgather of how many elements each rank has:
// it is a collective like any other, so ranks that do not make the same call are told so, and by what
// it tells all choose alike. The rest are messages, as the schedule says.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "communicator/call.h"
#include "communicator/diagnosis.h"
#include "communicator/pair_call.h"
#include "communicator/steps.h"
#include "select/choose_sparse.h"
#include "sparse/canonical.h"
#include "sparse/sparse_run.h"

namespace coll {

// In which form a result is delivered; automatic: that which takes fewer bytes. Numeric values are
// those of the C interface.
enum class SparseOutput : std::int32_t { automatic = 0, pairs, dense };

// What one rank asks for.
struct SparseWish {
  Kind kind = Kind::allreduce;
  Dtype dtype = Dtype::float32;
  Reduction op = Reduction::sum;  // or avg
  std::uint64_t length = 0;       // elements of this rank's vector, zeros among them
  GivenPairs pairs = {};
  int root = 0;
  int algorithm = -1;  // of sparse_algorithms(), or kSparseDense
  SparseOutput output = SparseOutput::automatic;
  double dense_above = std::numeric_limits<double>::quiet_NaN();  // as of SparseTerms
  double timeout = 0;                                             // seconds; 0: the communicator's
  std::string agreed = "";                                        // that all ranks must say
};

// What a call gave, and what it took.
struct SparseResult {
  SparseTerms terms = {};
  SparseStream stream = {};
  int algorithm = -1;
  std::uint64_t bytes = 0, messages = 0;  // that this rank sent
  int rounds = 0;
};

class SparseCall : public Steps {
 public:
  Status start() override;
  Status resume() override;
  SparseResult take() { return std::move(result_); }

 protected:
  // The arrays of the wish must live as long.
  SparseCall(int rank, int ranks, double timeout, const SparseWish& wish);

  // The communicator's calls.
  virtual Status run(const Call& call) = 0;
  virtual Status run(const PairCall& call) = 0;
  virtual coll_request post(const PairCall& call) = 0;
  virtual Status go_on() = 0;
  virtual std::uint64_t calls() const = 0;
  [[noreturn]] virtual void fail(const Cause& cause) = 0;

 private:
  enum class Stage : std::uint8_t { agreeing, by_messages, dense };

  Status advance(Status status);
  bool next(Status& status);
  Status begin();
  Status begin_dense();
  void open_round();
  Status wait();
  void finish();
  void finish(Form form, std::vector<SparseStream> streams);
  Form form_of(const std::vector<SparseStream>& streams) const;
  std::vector<SparseStream> input(const Layout& layout, const Stretches& stretches) const;
  std::uint64_t total() const noexcept;
  double left() const;
  std::string label() const;
  [[noreturn]] void fail_here(const Error& error);
  template <class Step>
  auto guarded(Step step);

  int rank_, ranks_;
  SparseWish wish_;
  double limit_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::string words_;
  SparseTerms terms_;
  SparseStream own_;
  SparseOffer offer_{};
  std::vector<SparseOffer> offers_;
  Stage stage_ = Stage::agreeing;
  std::optional<SparseRun> run_;
  std::vector<coll_request> requests_;  // of the round, that were not waited for
  SparseResult result_;
};

// On a communicator of either kind.
template <class C>
class SparseCallOn final : public SparseCall {
 public:
  SparseCallOn(C& communicator, const SparseWish& wish)
      : SparseCall(communicator.rank(), communicator.ranks(), communicator.timeout(), wish),
        communicator_(communicator) {}

 private:
  Status run(const Call& call) override { return communicator_.run(call); }
  Status run(const PairCall& call) override { return communicator_.run(call); }
  coll_request post(const PairCall& call) override { return communicator_.post(call); }
  Status go_on() override { return communicator_.resume(); }
  std::uint64_t calls() const override { return communicator_.calls(); }
  [[noreturn]] void fail(const Cause& cause) override { communicator_.fail(cause); }

  C& communicator_;
};

}  // namespace coll
