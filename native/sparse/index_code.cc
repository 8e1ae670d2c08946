// SPDX-License-Identifier: Apache-2.0
#include "sparse/index_code.h"

#include <algorithm>
#include <cstring>

#include "sparse/bits.h"
#include "sparse/index_blocks.h"

namespace coll {
namespace {

static_assert(kBitSlack <= kCodeSlack);

constexpr unsigned kTileShift = 16;
using Offset = std::uint16_t;
using TileCount = std::uint32_t;  // a full tile has 65536

std::size_t tiles_in(std::uint64_t length) noexcept {
  constexpr std::uint64_t tile = std::uint64_t{1} << kTileShift;
  return static_cast<std::size_t>((length + tile - 1) >> kTileShift);
}

std::size_t bitmap_bytes(std::uint64_t length) noexcept {
  return static_cast<std::size_t>((length + 7) / 8);
}

template <class Index>
IndexCells<Index> cells(const IndexView& view) noexcept {
  return {static_cast<const kernels::Stored<Index>*>(view.indices), view.n};
}

// work(Index{}) of the width that indices have.
template <class Work>
auto of_width(std::size_t index_bytes, Work work) noexcept {
  return index_bytes == sizeof(std::uint32_t) ? work(std::uint32_t{}) : work(std::uint64_t{});
}

template <class Index>
void encode_bitmap(IndexCells<Index> indices, const IndexRange& range, std::byte* to) noexcept {
  std::memset(to, 0, bitmap_bytes(range.length));
  BitMarks ones(to);
  for (const auto& index : indices) ones.mark(index.value - range.first);
}

template <class Index>
void encode_tiles(IndexCells<Index> indices, const IndexRange& range, std::byte* to) noexcept {
  const std::size_t tiles = tiles_in(range.length);
  std::byte* offsets = to + tiles * sizeof(TileCount);
  const auto first = static_cast<Index>(range.first);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto offset = static_cast<Offset>(indices[i].value - first);
    std::memcpy(offsets + i * sizeof offset, &offset, sizeof offset);
  }
  auto begin = indices.begin();
  for (std::size_t t = 0; t < tiles; ++t) {
    const auto most = std::min<std::ptrdiff_t>(indices.end() - begin, 1 << kTileShift);
    const auto end = std::partition_point(begin, begin + most, [&](const auto& index) {
      return (index.value - range.first) >> kTileShift <= t;
    });
    const auto count = static_cast<TileCount>(end - begin);
    std::memcpy(to + t * sizeof count, &count, sizeof count);
    begin = end;
  }
}

template <class Index>
bool in_range(const Index* out, std::size_t n, const IndexRange& range) noexcept {
  return n == 0 || (out[0] >= range.first && out[n - 1] - range.first < range.length);
}

template <class Index>
std::optional<std::size_t> decode_bitmap(std::span<const std::byte> code, const IndexRange& range,
                                         Index* out, std::size_t n) noexcept {
  const std::size_t bytes = bitmap_bytes(range.length);
  if (code.size() < bytes) return {};
  const auto first = static_cast<Index>(range.first);
  if (!places_of_ones(code.data(), bytes, first, out, n)) return {};
  if (!in_range(out, n, range)) return {};
  return bytes;
}

template <class Index>
std::optional<std::size_t> decode_tiles(std::span<const std::byte> code, const IndexRange& range,
                                        Index* out, std::size_t n) noexcept {
  const std::size_t tiles = tiles_in(range.length), heads = tiles * sizeof(TileCount);
  if (code.size() < heads || code.size() - heads < n * sizeof(Offset)) return {};
  const std::byte* offsets = code.data() + heads;
  std::size_t done = 0;
  for (std::size_t t = 0; t < tiles; ++t) {
    TileCount count;
    std::memcpy(&count, code.data() + t * sizeof count, sizeof count);
    if (count > n - done) return {};
    const auto first = static_cast<Index>(range.first + (std::uint64_t{t} << kTileShift));
    for (std::size_t i = 0; i < count; ++i) {
      Offset offset;
      std::memcpy(&offset, offsets + (done + i) * sizeof offset, sizeof offset);
      out[done + i] = static_cast<Index>(first + offset);
    }
    done += count;
  }
  unsigned wrong = done == n ? 0 : 1;
  for (std::size_t i = 1; i < done; ++i) wrong |= static_cast<unsigned>(out[i] <= out[i - 1]);
  if (wrong != 0 || !in_range(out, n, range)) return {};
  return heads + n * sizeof(Offset);
}

}  // namespace

std::size_t code_bytes(IndexCode code, const IndexView& view, const IndexRange& range) noexcept {
  switch (code) {
    case IndexCode::bitmap:
      return bitmap_bytes(range.length);
    case IndexCode::tiles:
      return tiles_in(range.length) * sizeof(TileCount) + view.n * sizeof(Offset);
    case IndexCode::blocks:
      return of_width(view.index_bytes, [&]<class Index>(Index) {
        return blocks_bytes<Index>(cells<Index>(view), range);
      });
  }
  return 0;
}

CodeSize best_code(const IndexView& view, const IndexRange& range, bool quick) noexcept {
  CodeSize best{IndexCode::bitmap, code_bytes(IndexCode::bitmap, view, range)};
  for (const IndexCode code : {IndexCode::tiles, IndexCode::blocks}) {
    if (quick && code == IndexCode::blocks) continue;
    const std::size_t bytes = code_bytes(code, view, range);
    if (bytes < best.bytes) best = {code, bytes};
  }
  return best;
}

void encode(IndexCode code, const IndexView& view, const IndexRange& range,
            std::byte* to) noexcept {
  of_width(view.index_bytes, [&]<class Index>(Index) {
    const IndexCells<Index> indices = cells<Index>(view);
    if (code == IndexCode::bitmap) encode_bitmap<Index>(indices, range, to);
    if (code == IndexCode::tiles) encode_tiles<Index>(indices, range, to);
    if (code == IndexCode::blocks) encode_blocks<Index>(indices, range, to);
  });
}

std::optional<std::size_t> decode(IndexCode code, std::span<const std::byte> bytes,
                                  const IndexRange& range, const IndexRoom& room) noexcept {
  if (room.n > range.length) return {};
  return of_width(room.index_bytes, [&]<class Index>(Index) -> std::optional<std::size_t> {
    auto* out = static_cast<Index*>(room.indices);
    switch (code) {
      case IndexCode::bitmap:
        return decode_bitmap(bytes, range, out, room.n);
      case IndexCode::tiles:
        return decode_tiles(bytes, range, out, room.n);
      case IndexCode::blocks:
        return decode_blocks(bytes, range, out, room.n);
    }
    return {};
  });
}

}  // namespace coll
