// SPDX-License-Identifier: Apache-2.0
// The layout of the memory that the ranks of one host share. It is the same whether the memory is a
// plain allocation (ranks are threads) or a memfd (ranks are processes): see memory.h.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

namespace coll {

inline constexpr std::size_t kLine = 64;
inline constexpr int kFingerprints = 7;  // more than the calls a rank can run ahead of a reader
inline constexpr std::uint32_t kMostDepth = 8;  // slots of a ring
inline constexpr int kRecords = 16;  // calls remembered per rank, for the text of a mismatch

// The one line that peers poll: how far this rank has come, on the group's common clock, and which
// calls it was making. Only its owner writes it.
struct alignas(kLine) ProgressLine {
  std::atomic<std::uint64_t> tick;
  std::atomic<std::uint64_t> fingerprint[kFingerprints];  // of call number i, at i mod 7
};

// The tick of the last finished call, and how long the last two took that were timed
// (engine/spent.h). A line of its own: on the polled line it would cost the peers one more transfer
// per call.
struct alignas(kLine) DoneLine {
  std::atomic<std::uint64_t> tick;
  std::atomic<std::uint64_t> spent, spent_before;
};

// How many ranks sleep on something that this rank will write, and the cores that it may use (the
// first 64, as bits): whether ranks must share cores decides how they wait. And what is written
// once: the rank in the group that all began in, for error texts; where in this rank's own memory
// which number lies, by which who may read it knows its process (peer_memory.h); the cores that it
// could use when it entered (usable_cores.h).
struct alignas(kLine) WatchLine {
  std::atomic<std::uint32_t> watchers;
  std::atomic<std::uint32_t> fenced;  // 1: all_cores_fence() reaches this rank
  std::atomic<std::uint64_t> cores;
  std::atomic<std::int32_t> world;
  std::atomic<std::uint64_t> mark_at, mark;
  std::atomic<std::uint64_t> entered_with;
};

// What one call was, for the text of an error and for mismatches found late. word[0] is the call's
// sequence number + 1, or 0 while the record is being written.
struct alignas(kLine) CallRecord {
  std::atomic<std::uint64_t> word[8];
};

// What few calls say besides, in the words of their callers: an operation's name, say. Belongs to
// the record of the same place, and is written before its number.
inline constexpr int kDetailWords = 24;
struct alignas(kLine) DetailRecord {
  std::atomic<std::uint64_t> word[kDetailWords];
};

enum class Presence : std::uint32_t { absent = 0, here = 1, closed = 2 };

// Life and death of a rank. The kernel marks the robust mutex when its owner dies (or says that it
// does not: liveness.cc).
struct alignas(kLine) LifeLine {
  std::atomic<std::uint32_t> presence;
  std::atomic<std::int32_t> pid;
  pthread_mutex_t alive;
  std::atomic<std::uint64_t> born;  // start time of the process, and a mark: liveness.cc
};
static_assert(sizeof(LifeLine) == kLine);  // full on Arm: its mutex has 48 bytes

// When this rank entered and left its last calls, in nanoseconds of a clock that all ranks have;
// of call number i, at i mod 8, while rank 0 wants to know (communicator/call_times.h).
inline constexpr int kTimedCalls = 8;
struct alignas(kLine) TimesRing {
  struct alignas(kLine / 2) Times {
    std::atomic<std::uint64_t> call, entered, left;
  } of_call[kTimedCalls];
};
static_assert(kTimedCalls > kFingerprints);

// An even number of lines, so that each rank's first ones are a pair as all prefetchers see it.
struct alignas(kLine) RankControl {
  ProgressLine progress;
  DoneLine done;
  WatchLine watch;
  LifeLine life;
  TimesRing times;
  CallRecord records[kRecords];
  DetailRecord details[kRecords];
};
static_assert(sizeof(RankControl) % (2 * kLine) == 0);

// Messages between two ranks (mailbox/). How a rank that sleeps is woken, whoever has something for
// it; what it waits for is for the text of an error.
struct alignas(kLine) MailLine {
  std::atomic<std::uint32_t> bell;      // counted up by who wakes this rank
  std::atomic<std::uint32_t> sleepers;  // 1: it sleeps on the bell, or is about to
  std::atomic<std::uint64_t> waits;     // mailbox/waits.h; 0: for nothing
  std::atomic<std::uint64_t> shrinks;   // 1: it wants one of those that live; 2: it is in it
  std::atomic<std::uint64_t> place;     // its rank there and 1; 0: none
};

// How far one rank has filled the ring to another, and how far that one has emptied it, in bytes
// since the beginning. Each is written by one rank and has a line of its own; on that of the sender
// it answers the other one, where that waits for it (mailbox/waits.h).
struct MailCursor {
  alignas(kLine) std::atomic<std::uint64_t> filled;
  std::atomic<std::uint64_t> answer;
  alignas(kLine) std::atomic<std::uint64_t> emptied;
};
static_assert(sizeof(MailCursor) == 2 * kLine);

inline constexpr std::size_t kCauseText = 608;

// The first cause of the end of this communicator. state: 0 none, 1 being written, 2 there.
struct alignas(kLine) FailureBlock {
  std::atomic<std::uint32_t> state;
  std::int32_t status;    // a coll_status
  std::int32_t culprit;   // rank at fault, -1 none
  std::int32_t reporter;  // rank that noticed
  char text[kCauseText];
};

struct SegmentShape {
  std::uint32_t ranks = 1;
  std::uint32_t depth = 4;                // slots of a rank's ring for large messages
  std::uint32_t inline_depth = 8;         // of that for small ones: so far a root runs ahead
  std::uint64_t inline_bytes = 16 << 10;  // one slot of the ring for small messages
  std::uint64_t slot_bytes = 512 << 10;   // one slot of the ring for large ones
  std::uint64_t mail_bytes = 256 << 10;   // ring of one ordered pair; of many ranks: less
  bool operator==(const SegmentShape&) const = default;
  constexpr int slots(bool inlined) const noexcept {
    return static_cast<int>(inlined ? inline_depth : depth);
  }
};

// In every large call rank 0 says here which plan runs: that for near cores or that for far ones,
// whether what lies within reach is staged all the same, and whether the kernel reads what does
// not. Of call number i, at i mod 8: where it only sends, rank 0 may speak of the next call before
// all have read of this one, but never so many calls ahead.
struct alignas(kLine) PlansSaid {
  std::atomic<std::uint64_t> of_call[8];
  std::atomic<std::uint64_t>& at(std::uint64_t call) noexcept {
    return of_call[call % std::size(of_call)];
  }
};
static_assert(std::extent_v<decltype(PlansSaid::of_call)> > kFingerprints);

// Of shorter calls it says so before them (communicator/placement_ahead.h), one bit for each class
// of them: whether they run as for far cores, and whether all ranks tell their times. `from` is
// twice the call from which on told[from & 1] holds, and `from & 1`; before that the other does.
struct alignas(kLine) AheadLine {
  std::atomic<std::uint64_t> from;
  struct Told {
    std::atomic<std::uint64_t> far, timed;
  } told[2];
};

// Choices that rank 0 has found while the ranks go on (communicator/announcement.h), as words, and
// the call from which on all ranks take them; 0: none so far.
inline constexpr int kMostAnnounced = 256, kAnnouncedWords = 4;
struct alignas(kLine) AnnouncementBlock {
  std::atomic<std::uint64_t> from;
  std::atomic<std::uint64_t> base;
  std::atomic<std::uint64_t> lines;
  std::atomic<std::uint64_t> timed;  // 1: all ranks tell the times of their calls from then on
  std::atomic<std::uint64_t> word[kMostAnnounced][kAnnouncedWords];
};

struct alignas(kLine) SegmentHeader {
  std::atomic<std::uint64_t> magic;  // written last by the creator
  std::uint64_t version;
  std::uint64_t group;  // identity of this group, part of every fingerprint
  SegmentShape shape;
  std::atomic<std::uint32_t> attached;  // ranks that have mapped it
  // From this call on the ranks tell each other which buffers are within reach; 0: never so far.
  std::atomic<std::uint64_t> reach_from;
  std::atomic<std::uint64_t> successor;  // the group of those that live; 0: there is none
  std::uint64_t core_cache;  // bytes of the cache behind a core's first one, on the creator's core
  PlansSaid plans;
  AheadLine ahead;
  AnnouncementBlock announced;
};

inline constexpr std::uint64_t kSegmentMagic = 0x31636F6C6C656374ULL;
inline constexpr std::uint64_t kSegmentVersion = 12;

// A view of the shared memory. A value: it owns nothing (Memory does).
class Segment {
 public:
  Segment() = default;

  // 0 for a shape that cannot be: no ranks or slots, slots not of whole lines, sizes that overflow.
  static std::size_t bytes(const SegmentShape& shape) noexcept;
  // The same; throws Error (invalid_argument) where that is none.
  static std::size_t checked_bytes(const SegmentShape& shape);
  // What lies before the rings: all that create() and attach() touch.
  static std::size_t control_bytes(const SegmentShape& shape) noexcept;
  // Lays out fresh zeroed memory; the creator calls it once.
  static Segment create(void* base, const SegmentShape& shape, std::uint64_t group);
  // Checks magic, version and size of memory that another rank laid out. Throws Error.
  static Segment attach(void* base, std::size_t bytes);

  const SegmentShape& shape() const noexcept { return header().shape; }
  std::uint64_t group() const noexcept { return header().group; }
  SegmentHeader& header() const noexcept { return *reinterpret_cast<SegmentHeader*>(base_); }
  FailureBlock& failure() const noexcept {
    return *reinterpret_cast<FailureBlock*>(base_ + failure_);
  }
  RankControl& rank(int r) const noexcept {
    return *reinterpret_cast<RankControl*>(base_ + control_ +
                                           static_cast<std::size_t>(r) * sizeof(RankControl));
  }
  // First byte of rank r's ring of small (inline) or large slots.
  std::byte* inline_ring(int r) const noexcept {
    return base_ + inline_ + static_cast<std::size_t>(r) * inline_stride_;
  }
  std::byte* slot_ring(int r) const noexcept {
    return base_ + slots_ + static_cast<std::size_t>(r) * slot_stride_;
  }

  // What others write to reach rank r: its line, then a cursor for each sender. Rank r backs it by
  // memory before anybody sends.
  MailLine& mail(int r) const noexcept {
    return *reinterpret_cast<MailLine*>(base_ + mail_ + static_cast<std::size_t>(r) * mail_stride_);
  }
  MailCursor& mail_cursor(int from, int to) const noexcept {
    return reinterpret_cast<MailCursor*>(&mail(to) + 1)[from];
  }
  std::size_t mail_control_bytes() const noexcept { return mail_stride_; }
  // The ring of an ordered pair: mail_bytes() bytes, a power of two, at least a page. Who fills it
  // backs it by memory first.
  std::byte* mail_ring(int from, int to) const noexcept {
    const std::size_t pair =
        static_cast<std::size_t>(to) * shape().ranks + static_cast<std::size_t>(from);
    return base_ + mail_rings_ + pair * mail_bytes_;
  }
  std::size_t mail_bytes() const noexcept { return mail_bytes_; }

 private:
  Segment(void* base, const SegmentShape& shape) noexcept;

  std::byte* base_ = nullptr;
  std::size_t failure_ = 0, control_ = 0, inline_ = 0, slots_ = 0;
  std::size_t inline_stride_ = 0, slot_stride_ = 0;
  std::size_t mail_ = 0, mail_stride_ = 0, mail_rings_ = 0, mail_bytes_ = 0;
};

}  // namespace coll
