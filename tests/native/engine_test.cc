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

namespace {

struct Plan {
  int kind, algorithm, mode, root, dtype, op;
  std::size_t count;  // elements per part (allgather, reduce_scatter) or of the vector
  std::vector<std::size_t> counts;  // allgather with unequal parts
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

Plan random_plan(std::mt19937& rng, int p) {
  Plan plan{};
  plan.algorithm = static_cast<int>(rng() % static_cast<unsigned>(coll_algorithm_count()));
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
  if (plan.kind == COLL_ALLGATHER && rng() % 2 == 0) {
    for (int r = 0; r < p; ++r)
      plan.counts.push_back(rng() % 3 == 0 ? 0 : rng() % (plan.count + 1));
  }
  plan.in_place = rng() % 2 == 0;
  plan.seed = static_cast<unsigned>(rng());
  return plan;
}

double element(const Plan& plan, int rank, std::size_t i) {
  return static_cast<double>((plan.seed + 31U * static_cast<unsigned>(rank) + 7U * i) % 97U);
}

double fold(const Plan& plan, int p, std::size_t i) {
  double result = element(plan, 0, i);
  for (int r = 1; r < p; ++r) {
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
  }

  void run() {
    const auto me = static_cast<std::size_t>(rank_);
    std::size_t in = plan_.count, out = plan_.count, shift = 0;
    if (plan_.kind == COLL_ALLGATHER) {
      in = part(rank_);
      out = start_.back();
      shift = start_[me];
    } else if (plan_.kind == COLL_REDUCE_SCATTER) {
      in = start_.back();
      shift = start_[me];
    } else if (plan_.kind == COLL_BARRIER) {
      in = out = 0;
    }
    std::vector<T> input(in), output(out);
    for (std::size_t i = 0; i < in; ++i) input[i] = static_cast<T>(value_at(i));
    const T* from = input.data();
    T* to = output.data();
    if (plan_.in_place && plan_.kind == COLL_ALLGATHER) {
      std::copy(input.begin(), input.end(), output.begin() + static_cast<std::ptrdiff_t>(shift));
      from = to + shift;
    } else if (plan_.in_place && plan_.kind == COLL_REDUCE_SCATTER) {
      to = input.data() + shift;
    } else if (plan_.in_place) {
      output = input;
      from = to;
    }
    const std::vector<T> before = input;
    call(from, to);
    verify(to, out);
    if (!plan_.in_place) CHECK(input == before);
    std::fill(input.begin(), input.end(), static_cast<T>(-77));
    std::fill(output.begin(), output.end(), static_cast<T>(-77));
  }

 private:
  std::size_t part(int rank) const {
    return plan_.counts.empty() ? plan_.count : plan_.counts[static_cast<std::size_t>(rank)];
  }
  double value_at(std::size_t i) const {
    return element(plan_, rank_,
                   plan_.kind == COLL_ALLGATHER ? start_[static_cast<std::size_t>(rank_)] + i : i);
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
    c.count = plan_.kind == COLL_REDUCE_SCATTER ? plan_.count * static_cast<std::size_t>(p_)
                                                : plan_.count;
    c.counts = plan_.counts.empty() ? nullptr : plan_.counts.data();
    c.algorithm = plan_.algorithm;
    c.mode = plan_.mode;
    const coll_status status = coll_run(comm_, &c);
    if (status != COLL_OK) std::fprintf(stderr, "rank %d: %s\n", rank_, coll_last_error());
    CHECK(status == COLL_OK);
  }

  void verify(const T* got, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) {
      double want = 0;
      switch (plan_.kind) {
        case COLL_ALLGATHER: {
          int owner = 0;
          while (start_[static_cast<std::size_t>(owner) + 1] <= i) ++owner;
          want = element(plan_, owner, i);
          break;
        }
        case COLL_REDUCE_SCATTER:
          want = fold(plan_, p_, start_[static_cast<std::size_t>(rank_)] + i);
          break;
        case COLL_BROADCAST:
          want = element(plan_, plan_.root, i);
          break;
        case COLL_REDUCE:
          if (rank_ != plan_.root) return;
          want = fold(plan_, p_, i);
          break;
        default:
          want = fold(plan_, p_, i);
      }
      CHECK(static_cast<double>(got[i]) == want);
    }
  }

  coll_comm* comm_;
  const Plan& plan_;
  int rank_, p_;
  std::vector<std::size_t> start_;
};

// Sanitizers cost ten times as much; the bed can also run for hours.
int calls_per_size() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kUsual = 100;
#else
  constexpr int kUsual = 400;
#endif
  const char* wish = std::getenv("ENGINE_TEST_CALLS");
  return wish != nullptr ? static_cast<int>(std::strtol(wish, nullptr, 10)) : kUsual;
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
