// SPDX-License-Identifier: Apache-2.0
#include "select/tuned.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "schedule/kind_name.h"

namespace coll {
namespace {

auto key(const TunedLine& line) { return std::tuple(line.kind, line.placement, line.from); }

[[noreturn]] void refuse_line(const TunedLine& line, const std::string& why) {
  throw Error(Status::invalid_argument, "a table of choices, " + std::string(name_of(line.kind)) +
                                            " from " + std::to_string(line.from) +
                                            " bytes on: " + why);
}

void check_line(const TunedLine& line, int ranks, bool wire, int most_lag) {
  if (line.kind < Kind{} || static_cast<int>(line.kind) >= kKinds) {
    refuse_line(line, "there is no such collective");
  }
  if (line.placement != Placement::near && line.placement != Placement::far) {
    refuse_line(line, "cores are near or far");
  }
  if (line.algorithm == -1) return;
  const auto table = algorithms();
  if (line.algorithm < 0 || static_cast<std::size_t>(line.algorithm) >= table.size()) {
    refuse_line(line, "there is no algorithm number " + std::to_string(line.algorithm));
  }
  const Algorithm& a = *table[static_cast<std::size_t>(line.algorithm)];
  if (a.kind != line.kind || !a.fits(ranks)) {
    refuse_line(line,
                std::string(a.name) + " is none for it among " + std::to_string(ranks) + " ranks");
  }
  if (line.mode != Mode::staged && (wire || line.mode != Mode::inlined)) {
    refuse_line(line, "its mode cannot be chosen ahead");
  }
  if (line.lag < 0 || line.lag > most_lag || (line.mode == Mode::inlined && line.lag != 0)) {
    refuse_line(line, "a lag of " + std::to_string(line.lag) + " is none");
  }
}

std::uint64_t hashed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

std::uint64_t id_of(const std::vector<TunedLine>& lines) {
  if (lines.empty()) return 0;
  std::uint64_t hash = lines.size();
  for (const TunedLine& line : lines) {
    for (const int word : {static_cast<int>(line.kind), static_cast<int>(line.placement),
                           line.algorithm, static_cast<int>(line.mode), line.lag}) {
      hash = hashed(hash, static_cast<std::uint64_t>(word));
    }
    hash = hashed(hashed(hash, line.from), line.tile_bytes);
  }
  return hash | 1;
}

}  // namespace

Tuned::Tuned(int ranks, bool wire, int most_lag, std::vector<TunedLine> lines)
    : lines_(std::move(lines)) {
  std::ranges::sort(lines_, {}, key);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    check_line(lines_[i], ranks, wire, most_lag);
    if (i > 0 && key(lines_[i]) == key(lines_[i - 1])) refuse_line(lines_[i], "it is there twice");
  }
  id_ = id_of(lines_);
}

const TunedLine* Tuned::find(Kind kind, std::size_t bytes, Placement placement) const noexcept {
  const auto after = std::ranges::upper_bound(lines_, std::tuple(kind, placement, bytes), {}, key);
  if (after == lines_.begin()) return nullptr;
  const TunedLine& line = *std::prev(after);
  const bool fits = line.kind == kind && line.placement == placement && line.algorithm >= 0;
  return fits ? &line : nullptr;
}

}  // namespace coll
