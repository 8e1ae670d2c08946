// SPDX-License-Identifier: Apache-2.0
#include "sparse/index_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "sparse/bits.h"

namespace coll {
namespace {

constexpr std::size_t kBlock = 256;
constexpr std::size_t kMostWidth = 6;  // bytes of the field `most`: no vector has 2^48 elements

constexpr std::size_t bytes_for(std::uint64_t bits) noexcept {
  return static_cast<std::size_t>((bits + 7) / 8);
}

// What is derived from how many indices a block has, and of how many elements it is.
struct BlockShape {
  enum class Kind : std::uint8_t { run, bitmap, elias_fano };
  Kind kind = Kind::run;
  unsigned low = 0;            // bits
  std::size_t ones_bytes = 0;  // of the bitmap, or of the upper parts
  std::size_t low_bytes = 0;

  BlockShape(std::size_t n, std::uint64_t most) noexcept {
    if (most + 1 == n) return;
    const std::uint64_t mean = most / n;
    low = mean > 0 ? static_cast<unsigned>(std::bit_width(mean)) - 1 : 0;
    const std::uint64_t upper = n + (most >> low);
    const bool dense = most + 1 <= upper + n * low;
    kind = dense ? Kind::bitmap : Kind::elias_fano;
    ones_bytes = bytes_for(dense ? most + 1 : upper);
    low_bytes = dense ? 0 : bytes_for(n * low);
  }
  std::size_t bytes() const noexcept { return ones_bytes + low_bytes; }
};

// Upper parts and bitmaps end below 4 n.
using Places = std::array<std::uint16_t, kBlock + kBitSlack>;
constexpr std::size_t kMostBytes = bytes_for(4 * kBlock) + bytes_for(kBlock * 48);

std::size_t width_of(std::uint64_t most) noexcept {
  return std::max<std::size_t>(1, bytes_for(static_cast<std::uint64_t>(std::bit_width(most))));
}

struct BlockHead {
  std::uint64_t most;  // as told, or else to the end of the range
  std::size_t width;   // of what tells it

  // The last block may end with the range, which need not be told.
  BlockHead(std::size_t n, std::uint64_t own, std::uint64_t to_end, bool last) noexcept
      : most(own), width(width_of(own)) {
    if (!last || BlockShape(n, to_end).bytes() > width + BlockShape(n, own).bytes()) return;
    most = to_end;
    width = 0;
  }
};

// Calls visit(first place, entries, base, head) for each block.
template <class Index, class Visit>
void for_blocks(IndexCells<Index> indices, const IndexRange& range, Visit visit) noexcept {
  std::uint64_t base = range.first;
  for (std::size_t at = 0; at < indices.size(); at += kBlock) {
    const std::size_t n = std::min(kBlock, indices.size() - at);
    const std::uint64_t last = indices[at + n - 1].value;
    const std::uint64_t to_end = range.first + range.length - 1 - base;
    visit(at, n, base, BlockHead(n, last - base, to_end, at + n == indices.size()));
    base = last + 1;
  }
}

template <class Index>
void encode_block(const kernels::Stored<Index>* indices, std::size_t n, std::uint64_t base,
                  const BlockShape& shape, std::byte* to) noexcept {
  if (shape.kind == BlockShape::Kind::run) return;
  std::memset(to, 0, shape.ones_bytes);
  BitMarks ones(to);
  const auto from = static_cast<Index>(base);
  if (shape.kind == BlockShape::Kind::bitmap) {
    for (std::size_t i = 0; i < n; ++i) ones.mark(indices[i].value - from);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    ones.mark((static_cast<Index>(indices[i].value - from) >> shape.low) + i);
  }
  BitWriter low(to + shape.ones_bytes, shape.low);
  const std::uint64_t mask = (std::uint64_t{1} << shape.low) - 1;
  for (std::size_t i = 0; i < n; ++i) {
    low.put(static_cast<Index>(indices[i].value - from) & mask);
  }
}

template <class Index>
bool ascending(const Index* indices, std::size_t n) noexcept {
  unsigned wrong = 0;
  for (std::size_t i = 1; i < n; ++i) wrong |= static_cast<unsigned>(indices[i] <= indices[i - 1]);
  return wrong == 0;
}

// Of a block whose bytes may be read with kBitSlack more.
template <class Index>
bool decode_block(const std::byte* from, const BlockShape& shape, std::uint64_t most,
                  std::uint64_t base, Index* out, std::size_t n) noexcept {
  const auto first = static_cast<Index>(base);
  if (shape.kind == BlockShape::Kind::run) {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Index>(first + i);
    return true;
  }
  Places places;
  if (!places_of_ones(from, shape.ones_bytes, std::uint16_t{0}, places.data(), n)) return false;
  if (shape.kind == BlockShape::Kind::bitmap) {
    if (places[n - 1] > most) return false;
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Index>(first + places[i]);
    return true;
  }
  if (places[n - 1] - (n - 1) > most >> shape.low) return false;
  const std::byte* low = from + shape.ones_bytes;
  const std::uint64_t mask = (std::uint64_t{1} << shape.low) - 1;
  std::uint64_t bit = 0;
  for (std::size_t i = 0; i < n; ++i, bit += shape.low) {
    const auto upper = static_cast<Index>(places[i] - i);
    out[i] = static_cast<Index>(upper << shape.low | (bits_from(low, bit) & mask));
  }
  if (!ascending(out, n) || out[n - 1] > most) return false;
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Index>(out[i] + first);
  return true;
}

}  // namespace

template <class Index>
std::size_t blocks_bytes(IndexCells<Index> indices, const IndexRange& range) noexcept {
  std::size_t bytes = 0;
  for_blocks<Index>(indices, range,
                    [&](std::size_t, std::size_t n, std::uint64_t, const BlockHead& head) {
                      bytes += 1 + head.width + BlockShape(n, head.most).bytes();
                    });
  return bytes;
}

template <class Index>
void encode_blocks(IndexCells<Index> indices, const IndexRange& range, std::byte* to) noexcept {
  for_blocks<Index>(indices, range,
                    [&](std::size_t at, std::size_t n, std::uint64_t base, const BlockHead& head) {
                      *to++ = static_cast<std::byte>(head.width);
                      std::memcpy(to, &head.most, head.width);
                      to += head.width;
                      const BlockShape shape(n, head.most);
                      encode_block<Index>(indices.data() + at, n, base, shape, to);
                      to += shape.bytes();
                    });
}

template <class Index>
std::optional<std::size_t> decode_blocks(std::span<const std::byte> code, const IndexRange& range,
                                         Index* out, std::size_t n) noexcept {
  std::size_t at = 0;
  std::uint64_t base = range.first;
  const std::uint64_t end = range.first + range.length;
  std::array<std::byte, kMostBytes + kBitSlack> copy;
  for (std::size_t done = 0; done < n; done += kBlock) {
    const std::size_t block = std::min(kBlock, n - done);
    if (at == code.size() || end - base < block) return {};
    const auto width = static_cast<std::size_t>(code[at++]);
    if (width > kMostWidth || code.size() - at < width) return {};
    std::uint64_t most = width > 0 ? 0 : end - base - 1;
    std::memcpy(&most, code.data() + at, width);
    at += width;
    if (most >= end - base || most + 1 < block) return {};
    const BlockShape shape(block, most);
    if (code.size() - at < shape.bytes()) return {};
    const std::byte* from = code.data() + at;
    if (code.size() - at < shape.bytes() + kBitSlack) {  // what is read may lie behind the message
      std::memcpy(copy.data(), from, shape.bytes());
      from = copy.data();
    }
    if (!decode_block(from, shape, most, base, out + done, block)) return {};
    at += shape.bytes();
    base = std::uint64_t{out[done + block - 1]} + 1;
  }
  return at;
}

template std::size_t blocks_bytes(IndexCells<std::uint32_t>, const IndexRange&) noexcept;
template std::size_t blocks_bytes(IndexCells<std::uint64_t>, const IndexRange&) noexcept;
template void encode_blocks(IndexCells<std::uint32_t>, const IndexRange&, std::byte*) noexcept;
template void encode_blocks(IndexCells<std::uint64_t>, const IndexRange&, std::byte*) noexcept;
template std::optional<std::size_t> decode_blocks(std::span<const std::byte>, const IndexRange&,
                                                  std::uint32_t*, std::size_t) noexcept;
template std::optional<std::size_t> decode_blocks(std::span<const std::byte>, const IndexRange&,
                                                  std::uint64_t*, std::size_t) noexcept;

}  // namespace coll
