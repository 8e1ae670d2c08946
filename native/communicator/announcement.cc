// SPDX-License-Identifier: Apache-2.0
#include "communicator/announcement.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "communicator/ahead.h"

namespace coll {
namespace {

using LineWords = std::array<std::uint64_t, kAnnouncedWords>;

LineWords line_words(const TunedLine& line) noexcept {
  return {static_cast<std::uint64_t>(line.kind) | static_cast<std::uint64_t>(line.placement) << 8 |
              static_cast<std::uint64_t>(line.mode) << 16 |
              static_cast<std::uint64_t>(line.lag) << 32,
          line.from, static_cast<std::uint64_t>(line.algorithm + 1), line.tile_bytes};
}

TunedLine line_from(const LineWords& words) noexcept {
  const auto byte = [&](int shift) { return static_cast<int>(words[0] >> shift & 0xFF); };
  return {.kind = static_cast<Kind>(byte(0)),
          .placement = static_cast<Placement>(byte(8)),
          .from = words[1],
          .algorithm = static_cast<int>(words[2]) - 1,
          .mode = static_cast<Mode>(byte(16)),
          .lag = static_cast<int>(words[0] >> 32),
          .tile_bytes = words[3]};
}

}  // namespace

News Announcement::take() {
  const AnnouncementBlock& b = block();
  taken_ = b.from.load(std::memory_order_acquire);
  News news;
  news.base = b.base.load(std::memory_order_relaxed);
  news.timed = b.timed.load(std::memory_order_relaxed) != 0;
  const std::size_t count =
      std::min<std::size_t>(b.lines.load(std::memory_order_relaxed), kMostAnnounced);
  news.lines.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    LineWords words{};
    for (std::size_t w = 0; w < words.size(); ++w) {
      words[w] = b.word[i][w].load(std::memory_order_relaxed);
    }
    news.lines.push_back(line_from(words));
  }
  return news;
}

bool Announcement::free(std::uint64_t call) const noexcept {
  const std::uint64_t from = block().from.load(std::memory_order_relaxed);
  return from == 0 || call >= from + kAhead;
}

void Announcement::publish(const News& news, std::uint64_t call) noexcept {
  AnnouncementBlock& b = block();
  const std::size_t count = std::min<std::size_t>(news.lines.size(), kMostAnnounced);
  for (std::size_t i = 0; i < count; ++i) {
    const LineWords words = line_words(news.lines[i]);
    for (std::size_t w = 0; w < words.size(); ++w) {
      b.word[i][w].store(words[w], std::memory_order_relaxed);
    }
  }
  b.lines.store(count, std::memory_order_relaxed);
  b.base.store(news.base, std::memory_order_relaxed);
  b.timed.store(news.timed ? 1 : 0, std::memory_order_relaxed);
  b.from.store(call + kAhead, std::memory_order_release);
}

}  // namespace coll
