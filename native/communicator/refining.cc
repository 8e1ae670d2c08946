// SPDX-License-Identifier: Apache-2.0
#include "communicator/refining.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "communicator/communicator.h"
#include "communicator/guard.h"
#include "select/rivals.h"
#include "transport/usable_cores.h"

namespace coll {
namespace {

double refining_since(std::chrono::steady_clock::time_point begin) noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Refining::Refining(int ranks, int most_lag, double budget, const MachineCosts& machine,
                   bool crowded)
    : ranks_(ranks),
      most_lag_(most_lag),
      machine_(machine),
      crowded_(crowded),
      refiner_(budget, [this](Kind kind, std::size_t bytes) { return rivals(kind, bytes); }) {}

void Refining::note(std::uint64_t call, Kind kind, std::size_t bytes, bool timed) {
  if (!refiner_.count(kind, bytes) || !timed) return;
  pending_[call % pending_.size()] = {.call = call, .kind = kind, .bytes = bytes};
}

void Refining::learn(const CallTimes& times, std::uint64_t call) {
  for (std::uint64_t ago = kTimedCalls - 1; ago > 0; --ago) {
    if (call <= ago) continue;
    Pending& pending = pending_[(call - ago) % pending_.size()];
    if (pending.call != call - ago) continue;
    if (const std::optional<double> seconds = times.of(pending.call)) {
      refiner_.note(pending.kind, pending.bytes, *seconds);
      pending.call = 0;
    }
  }
}

void Refining::begins() noexcept {
  pending_ = {};
  refiner_.begins();
}

// To look for them is part of what refining costs. Where that fails the rule stays.
std::vector<TunedLine> Refining::rivals(Kind kind, std::size_t bytes) noexcept {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<TunedLine> found;
  try {
    found = rivals_of_rule(kind, ranks_, bytes, most_lag_, machine_, crowded_);
  } catch (const std::exception&) {
    found.clear();
  }
  refiner_.charge(refining_since(begin));
  return found;
}

void Communicator::refine(double budget, const std::optional<MachineCosts>& machine) {
  const Guard guard(*this);
  enter();
  if (rank_ != 0 || ranks_ < 2 || ranks_ > kMostRivalRanks) return;
  if (refining_) {
    refining_->refiner().allow(budget);
  } else if (budget > 0) {
    MachineCosts costs = machine.value_or(usual_costs());
    if (!machine) costs.cores = shared_cores();
    refining_ = std::make_unique<Refining>(ranks_, most_lag(), budget, costs, crowded_);
  }
  attentive_ = given_news_ || refining_ != nullptr;
}

void Communicator::announce(std::vector<TunedLine> lines, int cores) {
  const Guard guard(*this);
  enter();
  if (rank_ != 0) {
    throw Error(Status::invalid_argument,
                "choices are announced by rank 0, this is rank " + std::to_string(rank_));
  }
  if (lines.size() > kMostAnnounced) {
    throw Error(Status::invalid_argument,
                "at most " + std::to_string(kMostAnnounced) + " choices are announced at once");
  }
  (void)Tuned(ranks_, false, most_lag(), lines);
  given_ = std::move(lines);
  given_cores_ = cores;
  given_news_ = attentive_ = true;
}

namespace {

bool has_kind(const std::vector<TunedLine>& lines, Kind kind) noexcept {
  return std::ranges::find(lines, kind, &TunedLine::kind) != lines.end();
}

// Those of `first`, and of other kinds those of `then`.
std::vector<TunedLine> of_other_kinds_behind(std::vector<TunedLine> first,
                                             const std::vector<TunedLine>& then) {
  const std::size_t own = first.size();
  for (const TunedLine& line : then) {
    if (!has_kind({first.begin(), first.begin() + static_cast<std::ptrdiff_t>(own)}, line.kind)) {
      first.push_back(line);
    }
  }
  return first;
}

}  // namespace

// What tune() has given goes before what is announced.
void Communicator::choose_by(const std::vector<TunedLine>& announced) {
  tuned_ = Tuned(ranks_, false, most_lag(), of_other_kinds_behind(base_, announced));
  recent_.forget();
  large_.binding = nullptr;
  large_.bound = false;
}

// Between two calls. All ranks take an announcement before the same call.
void Communicator::take_news() {
  const std::uint64_t next = clock_.calls + 1;
  if (announced_.news() && announced_.due(next)) {
    const News news = announced_.take();
    timed_ = news.timed;
    if (news.base == tunes_) {
      choose_by(news.lines);
      if (refining_) refining_->begins();
    }
    if (rank_ != 0) attentive_ = timed_;
  }
  if (rank_ != 0 || !announced_.free(next)) return;
  if (given_news_ && given_cores_ != 0) {
    if (next <= kFingerprints + 1) return;  // then all have entered a call, and said their cores
    if (std::exchange(given_cores_, 0) != cores_between(segment_)) given_ = {};
  }
  if (given_news_ || (refining_ && refining_->refiner().news())) {
    News news{.lines = given_, .base = tunes_};
    if (refining_) {
      news.lines = of_other_kinds_behind(given_, refining_->refiner().lines());
      news.timed = refining_->refiner().timed();
    }
    announced_.publish(news, next);
    given_news_ = false;
  }
  attentive_ = timed_ || (refining_ && !refining_->refiner().over());
}

void Communicator::observe_begin(const Prepared& prepared) noexcept {
  if (timed_ && prepared.by_rule_bytes > 0 && Refiner::refines(prepared.call.kind)) times_.enter();
}

void Communicator::observe_end() {
  const std::uint64_t call = clock_.calls;
  if (!refining_) return;
  refining_->learn(times_, call);
  const Kind kind = now_->call.kind;
  const bool within = now_->within != nullptr && executor_.binding() == now_->within;
  const bool by_rule = now_->by_rule_bytes > 0 && !has_kind(base_, kind) && !has_kind(given_, kind);
  if (by_rule && !within) refining_->note(call, kind, now_->by_rule_bytes, timed_);
}

}  // namespace coll
