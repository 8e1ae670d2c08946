// SPDX-License-Identifier: Apache-2.0
// The table of algorithms. Explicit: linkers drop objects that register themselves.
#include <array>
#include <cstring>
#include <new>
#include <string>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "base/looks.h"
#include "schedule/kind_name.h"

namespace coll {

std::span<const Algorithm* const> algorithms() {
  static const auto table = std::to_array<const Algorithm*>({
#define ALGORITHM(name) &name,
#include "algorithms/algorithms.inc"
#undef ALGORITHM
  });
  return table;
}

int find_algorithm(Kind kind, const char* name) {
  int index = 0;
  for (const Algorithm* a : algorithms()) {
    if (a->kind == kind && std::strcmp(a->name, name) == 0) return index;
    ++index;
  }
  return -1;
}

namespace {

// What an alltoall numbers: pairs of ranks.
constexpr int kMostPairs = 46340;

void refuse_ranks(const Algorithm& a, int p, int root) {
  if (p < 1) throw Error(Status::invalid_argument, "a schedule needs at least one rank");
  if (root < 0 || root >= p) {
    throw Error(Status::invalid_argument,
                "root " + std::to_string(root) + " is not a rank of " + std::to_string(p));
  }
  if (!a.fits(p)) {
    throw Error(Status::unsupported, std::string(a.name) + " is not defined for " +
                                         std::to_string(p) + " ranks: " + a.restriction);
  }
  if (a.kind == Kind::alltoall && p > kMostPairs) {
    throw Error(Status::unsupported, "an alltoall has at most " + std::to_string(kMostPairs) +
                                         " ranks, not " + std::to_string(p));
  }
}

// What a schedule of all ranks is made of: steps, and the peers and ranges that they name. So many
// take half a GiB.
constexpr std::size_t kMostParts = std::size_t{1} << 25;

std::size_t parts_of(const Program& program) {
  return program.steps.size() + program.peer_pool.size() + program.range_pool.size();
}

std::string called(const Algorithm& a, int p) {
  return std::string(name_of(a.kind)) + " " + a.name + " for " + std::to_string(p) +
         (p == 1 ? " rank" : " ranks");
}

// What an algorithm throws itself is a fault of its file, which is to be found.
Program program_of(const Algorithm& a, const Layout& layout, int rank) {
  const auto where = [&] { return called(a, layout.p) + ", rank " + std::to_string(rank) + ": "; };
  try {
    Builder builder(layout, rank);
    a.generate(builder);
    return std::move(builder).finish();
  } catch (const Error& error) {
    throw Error(error.status, where() + error.what(), error.rank);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(Status::internal, where() + error.what());
  }
}

}  // namespace

Program make_program(const Algorithm& a, int p, int root, int rank) {
  refuse_ranks(a, p, root);
  return program_of(a, Layout(a.kind, p, root, a.chunks(p)), rank);
}

Schedule make_schedule(const Algorithm& a, int p, int root) {
  refuse_ranks(a, p, root);
  Schedule s{.kind = a.kind, .p = p, .root = root, .chunks = a.chunks(p), .programs = {}};
  s.programs.reserve(static_cast<std::size_t>(p));
  std::size_t parts = 0;
  for (int rank = 0; rank < p; ++rank) {
    look();
    s.programs.push_back(program_of(a, Layout(s), rank));
    parts += parts_of(s.programs.back());
    if (parts > kMostParts) {
      throw Error(Status::unsupported, called(a, p) +
                                           " has too many steps for a schedule of all ranks, which "
                                           "would fill the memory: take fewer ranks");
    }
  }
  return s;
}

}  // namespace coll
