// SPDX-License-Identifier: Apache-2.0
#include "communicator/call.h"

#include <array>
#include <limits>
#include <numeric>
#include <string>

#include "base/error.h"
#include "communicator/fingerprint.h"
#include "communicator/reproducible.h"
#include "kernels/user_op.h"
#include "kernels/widening.h"
#include "schedule/layout.h"

namespace coll {
namespace {

[[noreturn]] void refuse(const Call& call, const std::string& why) {
  throw Error(Status::invalid_argument, std::string(name_of(call.kind)) + ": " + why);
}

// What depends on neither chunks nor counts.
Layout layout_of(const Call& call, int ranks) {
  return {call.kind, ranks, call.root, call.kind == Kind::alltoall ? ranks * ranks : ranks};
}

// What to do where an operation is not defined on a dtype.
const char* instead(Dtype dtype, Reduction op) noexcept {
  const bool located = op == Reduction::minloc || op == Reduction::maxloc;
  const bool bitwise = op == Reduction::band || op == Reduction::bor || op == Reduction::bxor;
  const Family family = family_of(dtype);
  if (family == Family::pair) return "pairs of a value and its index take minloc and maxloc";
  if (located) return "minloc and maxloc take pairs of a value and its index, as float32_int32";
  if (bitwise) return "bitwise operations take integers and bool";
  if (family == Family::complex) {
    return "complex numbers take sum, prod and avg; reduce their real and imaginary parts";
  }
  return "convert to a floating-point dtype, or use sum";
}

// What partial results of a dtype may be kept in; null where it is never anything else.
const char* accumulators_of(Dtype dtype) noexcept {
  if (family_of(dtype) == Family::complex) {
    return dtype == Dtype::complex64 ? "complex64 or complex128" : "complex128";
  }
  if (family_of(dtype) != Family::floating) return nullptr;
  return dtype == Dtype::float64 ? "float64" : "float32 or float64";
}

void validate_accumulate(const Call& call) {
  if (call.accumulate == Accumulate::as_stored) return;
  const auto wish = static_cast<int>(call.accumulate);
  if (wish < 0 || wish > static_cast<int>(Accumulate::complex128)) {
    refuse(call, "unknown dtype to accumulate in");
  }
  if (!reduces(call.kind)) refuse(call, "nothing is folded here: leave accumulate out");
  const Dtype wide = folded_dtype(call);
  if (wide == call.dtype || widens(call.dtype, wide)) return;
  const std::string what =
      std::string(name_of(call.dtype)) + " is not accumulated in " + name_of(wide) + ": ";
  const char* instead = accumulators_of(call.dtype);
  if (instead != nullptr) refuse(call, what + "give " + instead + ", or leave accumulate out");
  refuse(call, what + (family_of(call.dtype) == Family::pair
                           ? "minloc and maxloc add nothing up; leave accumulate out"
                           : "integers wrap around alike in any width; leave accumulate out, or "
                             "convert the array"));
}

void validate_enums(const Call& call, int ranks) {
  const auto within = [](auto value, int limit) {
    return static_cast<int>(value) >= 0 && static_cast<int>(value) < limit;
  };
  if (!within(call.kind, kKinds)) throw Error(Status::invalid_argument, "unknown collective");
  if (!within(call.dtype, kDtypes)) refuse(call, "unknown dtype");
  const bool user_op = find_user_op(static_cast<int>(call.op)) != nullptr;
  if (!user_op && !within(call.op, kReductions)) refuse(call, "unknown operation");
  if (layout_of(call, ranks).scans() && call.op == Reduction::avg) {
    refuse(call, "avg is not defined, since every rank gets a fold of another number of operands");
  }
  if (!user_op && reduces(call.kind) && fold_kernel(call.dtype, call.op) == nullptr) {
    refuse(call, std::string(name_of(call.op)) + " of " + name_of(call.dtype) +
                     " is not defined: " + instead(call.dtype, call.op));
  }
  if (layout_of(call, ranks).rooted() && (call.root < 0 || call.root >= ranks)) {
    refuse(call,
           "root " + std::to_string(call.root) + " is not a rank of " + std::to_string(ranks));
  }
  validate_accumulate(call);
  validate_reproducible(call);
  if (!(call.timeout >= 0)) refuse(call, "the time-out must be 0 seconds or more");
}

// Elements of the parts [first, last) of the ranks.
std::size_t parts(const Call& call, int ranks, int first, int last) {
  const std::size_t each =
      counts_own_part(call.kind) ? call.count : call.count / static_cast<std::size_t>(ranks);
  if (call.counts == nullptr) return each * static_cast<std::size_t>(last - first);
  std::size_t sum = 0;
  for (int r = first; r < last; ++r) sum += call.counts[r];
  return sum;
}

// Elements of alltoall's blocks from, or to, one rank.
std::size_t blocks(const Call& call, int ranks, int rank, bool from) {
  if (call.counts == nullptr) return call.count;
  const auto p = static_cast<std::size_t>(ranks), r = static_cast<std::size_t>(rank);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < p; ++i) sum += call.counts[from ? r * p + i : i * p + r];
  return sum;
}

void validate_counts(const Call& call, int ranks, std::size_t most) {
  if (call.counts == nullptr) return;
  if (!may_have_counts(call.kind)) {
    refuse(call,
           "all ranks get equal parts: counts belong to allgather, reduce_scatter, gather, "
           "scatter and alltoall");
  }
  const std::size_t n = number_of_counts(call.kind, ranks);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (call.counts[i] > most - sum) refuse(call, "the counts are larger than any memory");
    sum += call.counts[i];
  }
}

void validate_sizes(const Call& call, int ranks) {
  const std::size_t most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) /
                           (travel_of(call, ranks).bytes() * static_cast<std::size_t>(ranks));
  validate_counts(call, ranks, most);
  if (call.count > most) refuse(call, "the count is larger than any memory");
  const bool split = call.kind == Kind::reduce_scatter || call.kind == Kind::alltoall;
  if (split && call.counts == nullptr && call.count % static_cast<std::size_t>(ranks) != 0) {
    refuse(call, std::to_string(call.count) + " elements are not a multiple of the " +
                     std::to_string(ranks) +
                     " ranks: pad the input so that all parts are equal, or give counts");
  }
}

// In place: the input is where its chunks belong in the output, or the other way round.
bool in_place(const Call& call, int rank, int ranks, const Sides& sides) {
  const auto* in = static_cast<const std::byte*>(call.input);
  const auto* out = static_cast<const std::byte*>(call.output);
  const Layout layout = layout_of(call, ranks);
  if (call.kind == Kind::alltoall && call.counts != nullptr) {
    // Blocks change places: they must be of one size.
    for (int i = 0; i < ranks; ++i) {
      if (call.counts[rank * ranks + i] != call.counts[i * ranks + rank]) return false;
    }
  }
  const std::size_t before = layout.owned() ? parts(call, ranks, 0, rank) * size_of(call.dtype) : 0;
  return sides.in < sides.out ? in == out + before : out == in + before;
}

}  // namespace

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) noexcept {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

Dtype folded_dtype(const Call& call) noexcept {
  static constexpr std::array wide = {Dtype::float32, Dtype::float64, Dtype::complex64,
                                      Dtype::complex128};
  const auto i = static_cast<std::size_t>(call.accumulate);
  return i == 0 || i > wide.size() ? call.dtype : wide[i - 1];
}

bool accumulates_wider(const Call& call) noexcept { return folded_dtype(call) != call.dtype; }

Sides sides_of(const Call& call, int rank, int ranks) {
  if (call.kind == Kind::barrier) return {0, 0};
  if (call.kind == Kind::alltoall) {
    return {blocks(call, ranks, rank, true), blocks(call, ranks, rank, false)};
  }
  const Layout layout = layout_of(call, ranks);
  const std::size_t all = vector_elements(call, ranks), own = parts(call, ranks, rank, rank + 1);
  const auto side = [&](Buffer buffer) -> std::size_t {
    const int cells = layout.cells(rank, buffer);
    return cells == 0 ? 0 : cells < ranks ? own : all;
  };
  // With one rank a part is all.
  return {side(Buffer::input), side(Buffer::output)};
}

void validate(const Call& call, int rank, int ranks) {
  validate_enums(call, ranks);
  validate_sizes(call, ranks);
  const Sides sides = sides_of(call, rank, ranks);
  if (sides.in > 0 && call.input == nullptr) refuse(call, "the input is a null pointer");
  if (sides.out > 0 && call.output == nullptr) refuse(call, "the output is a null pointer");
  const std::size_t size = size_of(call.dtype);
  if (!overlap(call.input, sides.in * size, call.output, sides.out * size)) return;
  if (!in_place(call, rank, ranks, sides)) {
    refuse(call,
           "input and output overlap without being in place: pass the same array, or two "
           "that share no memory");
  }
}

int root_of(const Call& call) noexcept {
  return Layout(call.kind, 1, 0, 1).rooted() ? call.root : 0;
}

bool counts_own_part(Kind kind) noexcept {
  return kind == Kind::allgather || kind == Kind::gather || kind == Kind::scatter;
}

std::size_t vector_elements(const Call& call, int ranks) noexcept {
  if (call.kind == Kind::barrier) return 0;
  const auto p = static_cast<std::size_t>(ranks);
  if (call.counts != nullptr) {
    const std::size_t* const end = call.counts + number_of_counts(call.kind, ranks);
    return std::accumulate(call.counts, end, std::size_t{0});
  }
  return counts_own_part(call.kind) || call.kind == Kind::alltoall ? call.count * p : call.count;
}

std::size_t chosen_by_elements(const Call& call, int ranks) noexcept {
  const std::size_t all = vector_elements(call, ranks);
  return call.kind == Kind::alltoall ? all / static_cast<std::size_t>(ranks) : all;
}

bool may_have_counts(Kind kind) noexcept {
  return kind == Kind::alltoall || Layout(kind, 1, 0, 1).owned();
}

std::size_t number_of_counts(Kind kind, int ranks) noexcept {
  const auto p = static_cast<std::size_t>(ranks);
  return kind == Kind::alltoall ? p * p : p;
}

std::uint64_t hash_counts(const Call& call, int ranks) noexcept {
  if (call.counts == nullptr) return 0;
  const std::size_t n = number_of_counts(call.kind, ranks);
  std::uint64_t hash = 1;
  for (std::size_t i = 0; i < n; ++i) hash = mix(hash ^ call.counts[i]);
  return hash;
}

const char* name_of(Dtype dtype) noexcept {
  static constexpr std::array names = {
      "float32",       "float64",     "int32",      "int64",         "uint8",       "bfloat16",
      "int8",          "int16",       "uint16",     "uint32",        "uint64",      "bool",
      "float16",       "complex64",   "complex128", "float8_e4m3fn", "float8_e5m2", "float32_int32",
      "float64_int64", "int32_int32", "int64_int64"};
  static_assert(names.size() == kDtypes);
  const auto i = static_cast<std::size_t>(dtype);
  return i < names.size() ? names[i] : "?";
}

const char* name_of(Reduction op) noexcept {
  static constexpr std::array names = {"sum",  "prod", "min", "max",  "avg",    "land",  "lor",
                                       "lxor", "band", "bor", "bxor", "minloc", "maxloc"};
  static_assert(names.size() == kReductions);
  const auto i = static_cast<std::size_t>(op);
  return i < names.size() ? names[i] : i >= kUserOps ? "an operation of the user" : "?";
}

bool keeps_rank_order(const Call& call) noexcept {
  const UserOp* user = reduces(call.kind) ? find_user_op(static_cast<int>(call.op)) : nullptr;
  return user != nullptr && (!user->commutes || call.reproducible == Reproducible::canonical);
}

const char* name_of(Purpose purpose) noexcept {
  static constexpr std::array names = {"",
                                       "split",
                                       "subgroup",
                                       "dup",
                                       "mesh",
                                       "sparse allreduce",
                                       "sparse reduce_scatter",
                                       "sparse allgather",
                                       "sparse broadcast",
                                       "sparse_plan",
                                       "plan.reduce",
                                       "adasum",
                                       "collective on a GPU"};
  const auto i = static_cast<std::size_t>(purpose);
  return i < names.size() ? names[i] : "?";
}

bool reduces(Kind kind) noexcept { return Layout(kind, 1, 0, 1).folds(); }

}  // namespace coll
