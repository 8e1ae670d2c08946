// SPDX-License-Identifier: Apache-2.0
// The random bed: ranks as threads, random calls of every algorithm in every mode, no barrier
// between calls, buffers poisoned the moment a call returns. Inputs are small integers, whose sums
// are exact in any order, so every element is compared bit by bit. Runs under ThreadSanitizer as
// well.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "collectives.h"
#include "instrumented.h"

namespace {

struct Plan {
  int kind, algorithm, mode, root, dtype, op;
  std::size_t count;                // elements per part, where ranks own parts, or of the vector
  std::vector<std::size_t> counts;  // unequal parts; alltoall: by sender and receiver
  bool in_place;
  unsigned seed;
};

std::size_t random_count(std::mt19937& rng, int p) {
  switch (rng() % 8) {
    case 0:
      return rng() % 3;
    case 1:
      return static_cast<std::size_t>(p) - 1 + rng() % 3;
    case 2:
      return 1000 + rng() % 5000;
    case 3:
      return 20000 + rng() % 40000;
    default:
      return rng() % 300;
  }
}

// Whether every rank owns a part of the vector.
bool owned(int kind) {
  return kind == COLL_ALLGATHER || kind == COLL_REDUCE_SCATTER || kind == COLL_GATHER ||
         kind == COLL_SCATTER;
}

// Blocks that travel over other ranks are of one size.
bool takes_unequal_blocks(const coll_algorithm& info) {
  return info.kind == COLL_ALLTOALL && std::string(info.name) != "bruck";
}

Plan random_plan(std::mt19937& rng, int p) {
  Plan plan{};
  do {
    plan.algorithm = static_cast<int>(rng() % static_cast<unsigned>(coll_algorithm_count()));
  } while (coll_algorithm_fits(plan.algorithm, p) == 0);
  coll_algorithm info{};
  CHECK(coll_algorithm_get(plan.algorithm, &info) == COLL_OK);
  plan.kind = info.kind;
  plan.mode = static_cast<int>(rng() % 5) - 1;
  plan.root = static_cast<int>(rng() % static_cast<unsigned>(p));
  plan.dtype = rng() % 2 == 0 ? COLL_INT32 : COLL_FLOAT64;
  plan.op = static_cast<int>(rng() % 2) * COLL_MAX;
  plan.count = random_count(rng, p);
  // Inline slots are small; a choice that does not fit is refused, which is tested elsewhere.
  if (plan.mode == COLL_MODE_INLINE) plan.count = plan.count % 60;
  const bool unequal = rng() % 2 == 0 && (owned(plan.kind) || takes_unequal_blocks(info));
  const int parts = plan.kind == COLL_ALLTOALL ? p * p : p;
  for (int i = 0; unequal && i < parts; ++i) {
    plan.counts.push_back(rng() % 3 == 0 ? 0 : rng() % (plan.count + 1));
  }
  // Blocks of alltoall change places: in place they are of one size.
  plan.in_place = rng() % 2 == 0 && !(unequal && plan.kind == COLL_ALLTOALL);
  plan.seed = static_cast<unsigned>(rng());
  return plan;
}

double element(const Plan& plan, int rank, std::size_t i) {
  return static_cast<double>((plan.seed + 31U * static_cast<unsigned>(rank) + 7U * i) % 97U);
}

// Of the ranks 0 ... last.
double fold(const Plan& plan, int last, std::size_t i) {
  double result = element(plan, 0, i);
  for (int r = 1; r <= last; ++r) {
    const double x = element(plan, r, i);
    result = plan.op == COLL_MAX ? std::max(result, x) : result + x;
  }
  return result;
}

template <class T>
class RankCall {
 public:
  RankCall(coll_comm* comm, const Plan& plan)
      : comm_(comm), plan_(plan), rank_(coll_rank(comm)), p_(coll_ranks(comm)) {
    start_.push_back(0);
    for (int r = 0; r < p_; ++r) start_.push_back(start_.back() + part(r));
    for (int r = 0; r < p_; ++r) {
      for (std::size_t i = 0; i < block(rank_, r); ++i) sent_.push_back({r, i});
      for (std::size_t i = 0; i < block(r, rank_); ++i) received_.push_back({r, i});
    }
  }

  void run() {
    const std::size_t in = input_size(), out = output_size(), shift = own_start();
    std::vector<T> input(in), output(out, static_cast<T>(-5));
    for (std::size_t i = 0; i < in; ++i) input[i] = static_cast<T>(value_at(i));
    const T* from = input.data();
    T* to = output.data();
    if (plan_.in_place && owned(plan_.kind) && in <= out) {
      std::copy(input.begin(), input.end(), output.begin() + static_cast<std::ptrdiff_t>(shift));
      from = to + shift;
    } else if (plan_.in_place && owned(plan_.kind) && out > 0) {
      to = input.data() + shift;
    } else if (plan_.in_place && in == out) {
      output = input;
      from = to = output.data();
    }
    const std::vector<T> before = input;
    call(from, to);
    verify(to, out);
    if (!plan_.in_place) CHECK(input == before);
    std::fill(input.begin(), input.end(), static_cast<T>(-77));
    std::fill(output.begin(), output.end(), static_cast<T>(-77));
  }

 private:
  struct Place {
    int peer;
    std::size_t i;
  };

  bool is_root() const { return rank_ == plan_.root; }
  std::size_t own_start() const { return owned(plan_.kind) ? start_[me()] : 0; }
  std::size_t me() const { return static_cast<std::size_t>(rank_); }

  std::size_t input_size() const {
    switch (plan_.kind) {
      case COLL_ALLGATHER:
      case COLL_GATHER:
        return part(rank_);
      case COLL_SCATTER:
        return is_root() ? start_.back() : 0;
      case COLL_REDUCE_SCATTER:
        return start_.back();
      case COLL_ALLTOALL:
        return sent_.size();
      case COLL_BARRIER:
        return 0;
      default:
        return plan_.count;
    }
  }
  std::size_t output_size() const {
    switch (plan_.kind) {
      case COLL_REDUCE_SCATTER:
      case COLL_SCATTER:
        return part(rank_);
      case COLL_GATHER:
        return is_root() ? start_.back() : 0;
      case COLL_ALLGATHER:
        return start_.back();
      case COLL_ALLTOALL:
        return received_.size();
      case COLL_BARRIER:
        return 0;
      default:
        return plan_.count;
    }
  }

  std::size_t part(int rank) const {
    return plan_.counts.empty() ? plan_.count : plan_.counts[static_cast<std::size_t>(rank)];
  }
  std::size_t block(int from, int to) const {
    if (plan_.kind != COLL_ALLTOALL) return 0;
    return plan_.counts.empty() ? plan_.count
                                : plan_.counts[static_cast<std::size_t>(from * p_ + to)];
  }
  double of_block(int from, int to, std::size_t i) const {
    return element(plan_, from, i + 1000U * static_cast<unsigned>(to));
  }

  // Of this rank's input.
  double value_at(std::size_t i) const {
    if (plan_.kind == COLL_ALLTOALL) return of_block(rank_, sent_[i].peer, sent_[i].i);
    const bool own = plan_.kind == COLL_ALLGATHER || plan_.kind == COLL_GATHER;
    return element(plan_, rank_, own ? start_[me()] + i : i);
  }

  double owners(std::size_t i) const {
    int owner = 0;
    while (start_[static_cast<std::size_t>(owner) + 1] <= i) ++owner;
    return element(plan_, owner, i);
  }

  // Of this rank's output.
  double result_at(std::size_t i) const {
    switch (plan_.kind) {
      case COLL_ALLGATHER:
      case COLL_GATHER:
        return owners(i);
      case COLL_REDUCE_SCATTER:
        return fold(plan_, p_ - 1, start_[me()] + i);
      case COLL_SCATTER:
        return element(plan_, plan_.root, start_[me()] + i);
      case COLL_BROADCAST:
        return element(plan_, plan_.root, i);
      case COLL_ALLTOALL:
        return of_block(received_[i].peer, rank_, received_[i].i);
      case COLL_SCAN:
        return fold(plan_, rank_, i);
      case COLL_EXSCAN:
        return fold(plan_, rank_ - 1, i);
      default:
        return fold(plan_, p_ - 1, i);
    }
  }

  void call(const T* from, T* to) const {
    coll_call c{};
    c.size = sizeof(c);
    c.kind = plan_.kind;
    c.dtype = plan_.dtype;
    c.op = plan_.op;
    c.root = plan_.root;
    c.input = from;
    c.output = to;
    const bool whole = plan_.kind == COLL_REDUCE_SCATTER || plan_.kind == COLL_ALLTOALL;
    c.count = whole ? plan_.count * static_cast<std::size_t>(p_) : plan_.count;
    c.counts = plan_.counts.empty() ? nullptr : plan_.counts.data();
    c.algorithm = plan_.algorithm;
    c.mode = plan_.mode;
    const coll_status status = coll_run(comm_, &c);
    if (status != COLL_OK) std::fprintf(stderr, "rank %d: %s\n", rank_, coll_last_error());
    CHECK(status == COLL_OK);
  }

  void verify(const T* got, std::size_t n) const {
    if (plan_.kind == COLL_REDUCE && !is_root()) return;
    // Nothing comes before rank 0: what it has is left alone.
    const bool nothing = plan_.kind == COLL_EXSCAN && rank_ == 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double want = !nothing ? result_at(i) : plan_.in_place ? value_at(i) : -5;
      CHECK(static_cast<double>(got[i]) == want);
    }
  }

  coll_comm* comm_;
  const Plan& plan_;
  int rank_, p_;
  std::vector<std::size_t> start_;
  std::vector<Place> sent_, received_;  // alltoall: the places of its input and output
};

// The bed can also run for hours.
int calls_per_size() {
  const int usual = check::kShort ? 24 : check::all_cases() ? 400 : 150;
  const char* wish = std::getenv("ENGINE_TEST_CALLS");
  return wish != nullptr ? static_cast<int>(std::strtol(wish, nullptr, 10)) : usual;
}

void random_bed(int p, std::size_t slot_bytes) {
  coll_options options{};
  options.size = sizeof(options);
  options.ranks = p;
  options.timeout = 30;
  options.slot_bytes = slot_bytes;
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  run_ranks(p, [&](int rank) {
    std::mt19937 rng(static_cast<unsigned>(1234 + p));  // the same calls on all ranks
    for (int i = 0; i < calls_per_size(); ++i) {
      const Plan plan = random_plan(rng, p);
      coll_comm* comm = comms[static_cast<std::size_t>(rank)];
      if (plan.dtype == COLL_INT32) {
        RankCall<int>(comm, plan).run();
      } else {
        RankCall<double>(comm, plan).run();
      }
    }
  });
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

TEST(random_calls_of_all_algorithms_in_all_modes) {
  for (int p = 1; p <= 9; ++p) random_bed(p, p % 2 == 0 ? 0 : 64 << 10);
}

}  // namespace
