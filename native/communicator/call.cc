// SPDX-License-Identifier: Apache-2.0
#include "communicator/call.h"

#include <array>
#include <limits>

#include "base/error.h"
#include "communicator/fingerprint.h"

namespace coll {
namespace {

[[noreturn]] void refuse(const Call& call, const std::string& why) {
  throw Error(Status::invalid_argument, std::string(name_of(call.kind)) + ": " + why);
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

void validate_enums(const Call& call, int ranks) {
  const auto within = [](auto value, int limit) {
    return static_cast<int>(value) >= 0 && static_cast<int>(value) < limit;
  };
  if (!within(call.kind, kKinds)) throw Error(Status::invalid_argument, "unknown collective");
  if (!within(call.dtype, kDtypes)) refuse(call, "unknown dtype");
  if (!within(call.op, kReductions)) refuse(call, "unknown operation");
  if (reduces(call.kind) && fold_kernel(call.dtype, call.op) == nullptr) {
    refuse(call, std::string(name_of(call.op)) + " of " + name_of(call.dtype) +
                     " is not defined: convert to a floating-point dtype, or use sum");
  }
  const bool rooted = call.kind == Kind::broadcast || call.kind == Kind::reduce;
  if (rooted && (call.root < 0 || call.root >= ranks)) {
    refuse(call,
           "root " + std::to_string(call.root) + " is not a rank of " + std::to_string(ranks));
  }
  if (!(call.timeout >= 0)) refuse(call, "the time-out must not be negative");
}

// Elements that this rank hands in and gets out.
struct Sides {
  std::size_t in, out;
};

Sides sides_of(const Call& call, int rank, int ranks) {
  const std::size_t all = vector_elements(call, ranks);
  const auto parts = static_cast<std::size_t>(ranks);
  switch (call.kind) {
    case Kind::reduce_scatter:
      return {all, all / parts};
    case Kind::allgather:
      return {call.counts != nullptr ? call.counts[rank] : call.count, all};
    case Kind::broadcast:
      return {rank == call.root ? all : 0, all};
    case Kind::reduce:
      return {all, rank == call.root ? all : 0};
    case Kind::barrier:
      return {0, 0};
    case Kind::allreduce:
      break;
  }
  return {all, all};
}

void validate_sizes(const Call& call, int ranks) {
  const std::size_t most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) /
                           (size_of(call.dtype) * static_cast<std::size_t>(ranks));
  std::size_t sum = 0;
  for (int r = 0; call.counts != nullptr && r < ranks; ++r) {
    if (call.counts[r] > most - sum) refuse(call, "the counts are larger than any memory");
    sum += call.counts[r];
  }
  if (call.count > most) refuse(call, "the count is larger than any memory");
  if (call.kind == Kind::reduce_scatter && call.count % static_cast<std::size_t>(ranks) != 0) {
    refuse(call, std::to_string(call.count) + " elements are not a multiple of the " +
                     std::to_string(ranks) + " ranks: pad the input so that all parts are equal");
  }
  if (call.counts != nullptr && call.kind != Kind::allgather) {
    refuse(call, "counts per rank belong to allgather only");
  }
}

}  // namespace

void validate(const Call& call, int rank, int ranks) {
  validate_enums(call, ranks);
  validate_sizes(call, ranks);
  const Sides sides = sides_of(call, rank, ranks);
  if (sides.in > 0 && call.input == nullptr) refuse(call, "the input is a null pointer");
  if (sides.out > 0 && call.output == nullptr) refuse(call, "the output is a null pointer");
  const std::size_t size = size_of(call.dtype);
  if (!overlap(call.input, sides.in * size, call.output, sides.out * size)) return;
  // In place: the input is where its chunks belong in the output, or the other way round.
  std::size_t own =
      call.kind == Kind::reduce_scatter ? static_cast<std::size_t>(rank) * sides.out : 0;
  for (int r = 0; call.kind == Kind::allgather && r < rank; ++r) {
    own += call.counts != nullptr ? call.counts[r] : call.count;
  }
  const auto* in = static_cast<const std::byte*>(call.input);
  const auto* out = static_cast<const std::byte*>(call.output);
  const bool in_place =
      call.kind == Kind::allgather ? in == out + own * size : out == in + own * size;
  if (!in_place) {
    refuse(call,
           "input and output overlap without being in place: pass the same array, or two "
           "that share no memory");
  }
}

std::size_t vector_elements(const Call& call, int ranks) noexcept {
  if (call.kind == Kind::barrier) return 0;
  if (call.kind != Kind::allgather) return call.count;
  if (call.counts == nullptr) return call.count * static_cast<std::size_t>(ranks);
  std::size_t sum = 0;
  for (int r = 0; r < ranks; ++r) sum += call.counts[r];
  return sum;
}

std::uint64_t hash_counts(const Call& call, int ranks) noexcept {
  if (call.counts == nullptr) return 0;
  std::uint64_t hash = 1;
  for (int r = 0; r < ranks; ++r) hash = mix(hash ^ call.counts[r]);
  return hash;
}

const char* name_of(Kind kind) noexcept {
  static constexpr std::array names = {"allreduce", "reduce_scatter", "allgather",
                                       "broadcast", "reduce",         "barrier"};
  const auto i = static_cast<std::size_t>(kind);
  return i < names.size() ? names[i] : "collective";
}

const char* name_of(Dtype dtype) noexcept {
  static constexpr std::array names = {"float32", "float64", "int32", "int64", "uint8", "bfloat16"};
  const auto i = static_cast<std::size_t>(dtype);
  return i < names.size() ? names[i] : "?";
}

const char* name_of(Reduction op) noexcept {
  static constexpr std::array names = {"sum", "prod", "min", "max", "avg"};
  const auto i = static_cast<std::size_t>(op);
  return i < names.size() ? names[i] : "?";
}

bool reduces(Kind kind) noexcept {
  return kind == Kind::allreduce || kind == Kind::reduce_scatter || kind == Kind::reduce;
}

}  // namespace coll
