// SPDX-License-Identifier: Apache-2.0
#include "transport/segment.h"

#include <bit>
#include <new>
#include <string>

#include "base/system_error.h"
#include "transport/core_cache.h"
#include "transport/memory.h"

namespace coll {
namespace {

// Above these a shape is a mistake or an attack, and the sums below could overflow.
constexpr std::uint32_t kMostRanks = 65'535;
constexpr std::uint64_t kMostSlot = std::uint64_t{1} << 40;
// There are p * p rings of messages. Only those in use are backed by memory, but address space and
// the size of a file have limits as well.
constexpr std::uint64_t kMostMail = std::uint64_t{256} << 20;

struct SegmentLayout {
  std::size_t failure = 0, control = 0, inline_rings = 0, slot_rings = 0;
  std::size_t inline_stride = 0, slot_stride = 0;
  std::size_t mail = 0, mail_stride = 0, mail_rings = 0, mail_bytes = 0;
  std::size_t end = 0;  // 0: the shape cannot be
};

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) noexcept {
  return (bytes + to - 1) / to * to;
}

bool legal_depth(std::uint32_t slots) noexcept {
  return std::has_single_bit(slots) && slots <= kMostDepth;
}

bool legal_slot(std::uint64_t bytes) noexcept {
  return bytes > 0 && bytes <= kMostSlot && bytes % kLine == 0;
}

bool legal_mail(std::uint64_t bytes) noexcept {
  return bytes >= kPage && bytes <= kMostSlot && std::has_single_bit(bytes);
}

// Sets the end of the layout where nothing overflows.
void lay_out_mail(SegmentLayout& layout, const SegmentShape& shape) noexcept {
  const std::uint64_t pairs = std::uint64_t{shape.ranks} * shape.ranks;
  layout.mail_bytes = shape.mail_bytes;
  while (layout.mail_bytes > kPage && layout.mail_bytes > kMostMail / pairs) {
    layout.mail_bytes /= 2;
  }
  layout.mail_stride = round_up(sizeof(MailLine) + shape.ranks * sizeof(MailCursor), kPage);
  std::size_t rings = 0, end = 0;
  if (__builtin_add_overflow(layout.mail, shape.ranks * layout.mail_stride, &layout.mail_rings) ||
      __builtin_mul_overflow(layout.mail_bytes, pairs, &rings) ||
      __builtin_add_overflow(layout.mail_rings, rings, &end)) {
    return;
  }
  layout.end = end;
}

SegmentLayout layout_of(const SegmentShape& shape) noexcept {
  SegmentLayout layout;
  const bool legal = shape.ranks > 0 && shape.ranks <= kMostRanks && legal_depth(shape.depth) &&
                     legal_depth(shape.inline_depth) && legal_slot(shape.inline_bytes) &&
                     legal_slot(shape.slot_bytes) && legal_mail(shape.mail_bytes);
  if (!legal) return layout;
  layout.failure = round_up(sizeof(SegmentHeader), kLine);
  // Two lines apart: the prefetcher of x86 fetches lines in pairs.
  layout.control = round_up(layout.failure + sizeof(FailureBlock), 2 * kLine);
  // Whole pages per ring, so that each rank can have its own on its side of the machine.
  layout.inline_rings = round_up(layout.control + shape.ranks * sizeof(RankControl), kPage);
  layout.inline_stride = round_up(shape.inline_depth * shape.inline_bytes, kPage);
  layout.slot_stride = round_up(shape.depth * shape.slot_bytes, kPage);
  std::size_t rings = 0, slots = 0;
  if (__builtin_mul_overflow(layout.inline_stride, shape.ranks, &rings) ||
      __builtin_mul_overflow(layout.slot_stride, shape.ranks, &slots) ||
      __builtin_add_overflow(layout.inline_rings, rings, &layout.slot_rings) ||
      __builtin_add_overflow(layout.slot_rings, slots, &layout.mail)) {
    return layout;
  }
  lay_out_mail(layout, shape);
  return layout;
}

// Robust: the kernel marks it when the thread that holds it ends. Shared: between processes.
void make_mutex(pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  int error = pthread_mutexattr_init(&attributes);
  if (error == 0) error = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  if (error == 0) error = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  if (error == 0) error = pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  if (error != 0) throw system_error("making a robust mutex shared between processes", error);
}

Error foreign(const std::string& why) {
  return Error(Status::bootstrap, "this is no segment of this library: " + why);
}

}  // namespace

Segment::Segment(void* base, const SegmentShape& shape) noexcept
    : base_(static_cast<std::byte*>(base)) {
  const SegmentLayout layout = layout_of(shape);
  failure_ = layout.failure;
  control_ = layout.control;
  inline_ = layout.inline_rings;
  slots_ = layout.slot_rings;
  inline_stride_ = layout.inline_stride;
  slot_stride_ = layout.slot_stride;
  mail_ = layout.mail;
  mail_stride_ = layout.mail_stride;
  mail_rings_ = layout.mail_rings;
  mail_bytes_ = layout.mail_bytes;
}

std::size_t Segment::bytes(const SegmentShape& shape) noexcept { return layout_of(shape).end; }

std::size_t Segment::control_bytes(const SegmentShape& shape) noexcept {
  return layout_of(shape).inline_rings;
}

std::size_t Segment::checked_bytes(const SegmentShape& shape) {
  if (const std::size_t all = bytes(shape); all != 0) return all;
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  throw Error(
      Status::invalid_argument,
      "a segment for " + number(shape.ranks) + " ranks with " + number(shape.inline_depth) +
          " slots of " + number(shape.inline_bytes) + " bytes, " + number(shape.depth) + " of " +
          number(shape.slot_bytes) + " and " + number(shape.mail_bytes) +
          " bytes of mail cannot be: sizes are positive multiples of 64, slots 1, 2, 4 or " +
          number(kMostDepth) + ", mail a power of two from " + number(kPage));
}

Segment Segment::create(void* base, const SegmentShape& shape, std::uint64_t group) {
  checked_bytes(shape);
  const Segment segment(base, shape);
  SegmentHeader* header = new (base) SegmentHeader{};
  header->version = kSegmentVersion;
  header->group = group;
  header->shape = shape;
  header->core_cache = core_cache();
  new (&segment.failure()) FailureBlock{};
  for (std::uint32_t r = 0; r < shape.ranks; ++r) {
    RankControl* control = new (&segment.rank(static_cast<int>(r))) RankControl{};
    make_mutex(&control->life.alive);
  }
  header->magic.store(kSegmentMagic, std::memory_order_release);
  return segment;
}

Segment Segment::attach(void* base, std::size_t bytes) {
  if (base == nullptr || bytes < sizeof(SegmentHeader)) throw foreign("it is too small");
  const SegmentHeader& header = *static_cast<const SegmentHeader*>(base);
  if (header.magic.load(std::memory_order_acquire) != kSegmentMagic) {
    throw foreign("the magic number is missing");
  }
  if (header.version != kSegmentVersion) {
    throw foreign("its layout has version " + std::to_string(header.version) +
                  ", this library's has " + std::to_string(kSegmentVersion));
  }
  // Read once: what is checked here is what the offsets are computed from.
  const SegmentShape shape = header.shape;
  if (Segment::bytes(shape) == 0 || Segment::bytes(shape) != bytes) {
    throw foreign("its size is " + std::to_string(bytes) + " bytes, its header promises " +
                  std::to_string(Segment::bytes(shape)));
  }
  return Segment(base, shape);
}

}  // namespace coll
