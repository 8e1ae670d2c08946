// SPDX-License-Identifier: Apache-2.0
// Folds in a wider dtype than their arrays have: in every algorithm and mode the result is the
// exact one, rounded once; and what cannot be so is refused.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "collectives.h"
#include "kernels/widening.h"

namespace {

using coll::Dtype;

struct Case {
  int dtype, accumulate;
  double large;  // of rank 0: what a dtype as narrow as its own cannot add the others' to
};

constexpr std::array kCases = {Case{COLL_BFLOAT16, COLL_ACCUMULATE_FLOAT32, 512},
                               Case{COLL_FLOAT16, COLL_ACCUMULATE_FLOAT64, 4096},
                               Case{COLL_FLOAT8_E5M2, COLL_ACCUMULATE_FLOAT32, 16},
                               Case{COLL_FLOAT32, COLL_ACCUMULATE_FLOAT64, 1 << 25}};
constexpr std::array kFolding = {COLL_ALLREDUCE, COLL_REDUCE_SCATTER, COLL_REDUCE, COLL_SCAN,
                                 COLL_EXSCAN};
constexpr double kUntouched = 3;

std::vector<coll_comm*> group(int p) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = p;
  options.timeout = 20;
  std::vector<coll_comm*> comms(static_cast<std::size_t>(p));
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  return comms;
}

double element(const Case& c, int rank, std::size_t i) {
  return rank == 0 ? c.large : static_cast<double>((i + static_cast<std::size_t>(rank)) % 3);
}

// An array of the dtype of a case, made of doubles and seen as such.
class Array {
 public:
  Array(const Case& c, std::size_t n) : dtype_(static_cast<Dtype>(c.dtype)), n_(n) {
    bytes_.resize(n * coll::size_of(dtype_) + 1);  // never empty
  }
  void* data() { return bytes_.data(); }
  void set(const std::vector<double>& values) {
    coll::round_array(dtype_, bytes_.data(), Dtype::float64, values.data(), n_);
  }
  std::vector<double> get() const {
    std::vector<double> values(n_);
    coll::widen_array(Dtype::float64, values.data(), dtype_, bytes_.data(), n_);
    return values;
  }

 private:
  Dtype dtype_;
  std::size_t n_;
  std::vector<std::byte> bytes_;
};

coll_call call_of(const Case& c, int kind) {
  coll_call call{};
  call.size = sizeof call;
  call.kind = kind;
  call.dtype = c.dtype;
  call.algorithm = call.mode = -1;
  call.accumulate = c.accumulate;
  return call;
}

// One rank's view of a call with `count` elements for each rank.
struct Fold {
  const Case& c;
  int p, rank, kind, op;
  std::size_t count;

  bool scatters() const { return kind == COLL_REDUCE_SCATTER; }
  bool gets() const {
    return (kind != COLL_REDUCE || rank == p - 1) && (kind != COLL_EXSCAN || rank > 0);
  }
  std::size_t operands() const { return scatters() ? count * static_cast<std::size_t>(p) : count; }

  std::vector<double> input() const {
    std::vector<double> values(operands());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(c, rank, i);
    return values;
  }
  // The exact results, rounded once.
  std::vector<double> results() const {
    const int last = kind == COLL_SCAN ? rank : kind == COLL_EXSCAN ? rank - 1 : p - 1;
    const std::size_t first = scatters() ? count * static_cast<std::size_t>(rank) : 0;
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      for (int r = 0; r <= last; ++r) values[i] += element(c, r, first + i);
      if (op == COLL_AVG) values[i] /= p;
    }
    Array rounded(c, count);
    rounded.set(values);
    return rounded.get();
  }

  void run(coll_comm* comm, int algorithm, int mode, bool in_place) const {
    Array in(c, operands()), out(c, count);
    in.set(input());
    out.set(std::vector<double>(count, kUntouched));
    coll_call call = call_of(c, kind);
    call.op = op;
    call.root = p - 1;
    call.input = in.data();
    call.output = in_place ? in.data() : out.data();
    call.count = operands();
    call.algorithm = algorithm;
    call.mode = mode;
    if (coll_run(comm, &call) != COLL_OK) check::fail(coll_last_error());
    const std::vector<double> untouched = in_place ? input() : std::vector(count, kUntouched);
    CHECK((in_place ? in : out).get() == (gets() ? results() : untouched));
    CHECK(in_place || in.get() == input());
  }
};

void check_algorithm(const std::vector<coll_comm*>& comms, int index, const Case& c, int mode) {
  coll_algorithm info{};
  CHECK(coll_algorithm_get(index, &info) == COLL_OK);
  const int p = static_cast<int>(comms.size());
  const bool scans = info.kind == COLL_SCAN || info.kind == COLL_EXSCAN;
  const bool averages = p == 4 && !scans;  // exact by a power of two
  run_ranks(p, [&](int rank) {
    for (const std::size_t count : {0, 1, 37}) {
      for (const bool in_place : {false, true}) {
        // A part at its place in the input is tried elsewhere.
        if (in_place && info.kind == COLL_REDUCE_SCATTER) continue;
        const Fold fold{c, p, rank, info.kind, averages ? COLL_AVG : COLL_SUM, count};
        fold.run(comms[static_cast<std::size_t>(rank)], index, mode, in_place);
      }
    }
  });
}

TEST(every_algorithm_rounds_once) {
  for (const int p : {1, 3, 4}) {
    const std::vector<coll_comm*> comms = group(p);
    int folding = 0;
    for (int index = 0; index < coll_algorithm_count(); ++index) {
      coll_algorithm info{};
      CHECK(coll_algorithm_get(index, &info) == COLL_OK);
      if (std::find(kFolding.begin(), kFolding.end(), info.kind) == kFolding.end()) continue;
      if (!coll_algorithm_fits(index, p)) continue;
      ++folding;
      for (const Case& c : kCases) check_algorithm(comms, index, c, folding % 4);
    }
    CHECK(folding > 15);
    for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
  }
}

TEST(every_mode) {
  const std::vector<coll_comm*> comms = group(3);
  for (const char* name : {"ring", "direct_two_shot"}) {
    const int index = coll_algorithm_find(COLL_ALLREDUCE, name);
    for (const int mode : {COLL_MODE_STAGED, COLL_MODE_INLINE, COLL_MODE_PULL, COLL_MODE_PUSH}) {
      check_algorithm(comms, index, kCases[0], mode);
    }
  }
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

// Parts of any length, one at its place in the input; what is shorter runs after what was longer.
TEST(unequal_parts) {
  const Case& c = kCases[0];
  const std::vector<coll_comm*> comms = group(3);
  for (const std::vector<std::size_t>& counts :
       {std::vector<std::size_t>{3, 0, 500}, {0, 4, 0}, {1, 2, 3}}) {
    const std::size_t all = counts[0] + counts[1] + counts[2];
    run_ranks(3, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const std::size_t first = r == 0 ? 0 : r == 1 ? counts[0] : counts[0] + counts[1];
      std::vector<double> given(all), wanted(counts[r]);
      for (std::size_t i = 0; i < all; ++i) given[i] = element(c, rank, i);
      for (std::size_t i = 0; i < counts[r]; ++i) {
        for (int other = 0; other < 3; ++other) wanted[i] += element(c, other, first + i);
      }
      Array x(c, all), rounded(c, counts[r]);
      x.set(given);
      rounded.set(wanted);
      coll_call call = call_of(c, COLL_REDUCE_SCATTER);
      call.input = x.data();
      call.output = static_cast<std::byte*>(x.data()) + 2 * first;
      call.counts = counts.data();
      if (coll_run(comms[r], &call) != COLL_OK) check::fail(coll_last_error());
      const std::vector<double> found = x.get();
      const auto begin = found.begin() + static_cast<std::ptrdiff_t>(first);
      CHECK(std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(counts[r])) ==
            rounded.get());
    });
  }
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

// A rank that accumulates otherwise makes another call, and is told in what way.
TEST(ranks_agree_on_it) {
  const std::vector<coll_comm*> comms = group(2);
  run_ranks(2, [&](int rank) {
    Array x(kCases[0], 5);
    coll_call call = call_of(kCases[0], COLL_ALLREDUCE);
    if (rank == 1) call.accumulate = COLL_ACCUMULATE_AS_STORED;
    call.mode = COLL_MODE_STAGED;  // inline, the one's bytes lie where the other looks for a flag
    call.input = call.output = x.data();
    call.count = 5;
    CHECK(coll_run(comms[static_cast<std::size_t>(rank)], &call) == COLL_MISMATCH);
    const std::string_view text = coll_last_error();
    CHECK(text.find("rank 0 calls allreduce of 5 bfloat16 (sum in float32, direct_one_shot") !=
          std::string_view::npos);
    CHECK(text.find("rank 1 calls allreduce of 5 bfloat16 (sum, direct_one_shot") !=
          std::string_view::npos);
  });
  for (coll_comm* comm : comms) coll_close(comm);
}

// Their own dtype is what these accumulate in anyway: it is the same call.
TEST(own_dtype_changes_nothing) {
  const std::vector<coll_comm*> comms = group(2);
  run_ranks(2, [&](int rank) {
    double x = 1;
    coll_call call = call_of({COLL_FLOAT64, COLL_ACCUMULATE_FLOAT64, 0}, COLL_ALLREDUCE);
    if (rank == 1) call.accumulate = COLL_ACCUMULATE_AS_STORED;
    call.input = call.output = &x;
    call.count = 1;
    CHECK(coll_run(comms[static_cast<std::size_t>(rank)], &call) == COLL_OK && x == 2);
  });
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

TEST(what_is_refused) {
  const std::vector<coll_comm*> comms = group(2);
  const auto refused = [&](int kind, int dtype, int accumulate, const char* why) {
    std::array<double, 8> x{};
    coll_call call = call_of({dtype, accumulate, 0}, kind);
    call.op = dtype == COLL_FLOAT32_INT32 ? COLL_MINLOC : COLL_SUM;
    call.input = call.output = x.data();
    call.count = 2;
    CHECK(coll_run(comms[0], &call) == COLL_INVALID_ARGUMENT);
    if (std::string_view(coll_last_error()).find(why) == std::string_view::npos) {
      check::fail(coll_last_error());
    }
  };
  const int f32 = COLL_ACCUMULATE_FLOAT32, f64 = COLL_ACCUMULATE_FLOAT64;
  refused(COLL_ALLREDUCE, COLL_FLOAT64, f32, "float64 is not accumulated in float32: give float64");
  refused(COLL_SCAN, COLL_BFLOAT16, COLL_ACCUMULATE_COMPLEX64, "give float32 or float64");
  refused(COLL_REDUCE, COLL_COMPLEX64, f64, "give complex64 or complex128, or leave accumulate");
  refused(COLL_ALLREDUCE, COLL_INT8, f64, "integers wrap around alike in any width");
  refused(COLL_ALLREDUCE, COLL_BOOL, f32, "integers wrap around alike in any width");
  refused(COLL_ALLREDUCE, COLL_FLOAT32_INT32, f32, "minloc and maxloc add nothing up");
  refused(COLL_BROADCAST, COLL_BFLOAT16, f32, "nothing is folded here");
  refused(COLL_ALLREDUCE, COLL_BFLOAT16, 5, "unknown dtype to accumulate in");
  refused(COLL_ALLREDUCE, COLL_BFLOAT16, -1, "unknown dtype to accumulate in");
  for (coll_comm* comm : comms) CHECK(coll_close(comm) == COLL_OK);
}

// As a program hands it in that was compiled before there was such a field.
TEST(calls_of_older_programs) {
  const std::vector<coll_comm*> comms = group(1);
  double x = 1, y = 0;
  coll_call call = call_of({COLL_FLOAT64, 77, 0}, COLL_ALLREDUCE);
  call.input = &x;
  call.output = &y;
  call.count = 1;
  call.size = offsetof(coll_call, accumulate);
  CHECK(coll_run(comms[0], &call) == COLL_OK && y == 1);
  --call.size;
  CHECK(coll_run(comms[0], &call) == COLL_INVALID_ARGUMENT);
  CHECK(coll_close(comms[0]) == COLL_OK);
}

}  // namespace
