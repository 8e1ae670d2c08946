// SPDX-License-Identifier: Apache-2.0
#include "hand.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "probe.h"
#include "vectors.h"

namespace limits {
namespace {

constexpr std::size_t kProgressBytes = 2 * kMostWays * sizeof(Progress);
constexpr std::size_t kBytes = kProgressBytes + 2 * kRingBytes;

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Spins; yields in the end, because a core that was taken away must not stop the other for long.
template <class Condition>
inline void spin_until(Condition condition) {
  constexpr double kPatience = 20e9;  // ns
  double end = 0;
  for (int spins = 0; !condition(); ++spins) {
    if (spins < 20'000) {
      pause();
      continue;
    }
    if (end == 0) end = now_ns() + kPatience;
    if (now_ns() > end) throw std::runtime_error("the other rank has not come for 20 s");
    sched_yield();
  }
}

std::size_t whole_words(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

}  // namespace

void await(const std::atomic<std::uint64_t>& word, std::uint64_t least) {
  spin_until([&] { return word.load(std::memory_order_acquire) >= least; });
}

HandSegment::HandSegment() {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap of the floors' segment failed");
  base_ = static_cast<std::byte*>(memory);
}

HandSegment::~HandSegment() { munmap(base_, kBytes); }

void HandSegment::touch(int rank) const noexcept {
  for (std::size_t i = 0; i < kRingBytes; i += 4096) {
    static_cast<void>(*static_cast<volatile std::byte*>(ring(1 - rank) + i));
    *static_cast<volatile std::byte*>(ring(rank) + i) = std::byte{0};
  }
}

Progress& HandSegment::progress(int rank, std::size_t way) const noexcept {
  return reinterpret_cast<Progress*>(base_)[static_cast<std::size_t>(rank) * kMostWays + way];
}

std::byte* HandSegment::ring(int rank) const noexcept {
  return base_ + kProgressBytes + static_cast<std::size_t>(rank) * kRingBytes;
}

Hand::Hand(const HandSegment& segment, int rank, std::size_t number, const Way& way) noexcept
    : way_(way),
      rank_(rank),
      mark_((number + 1) << 48),
      mine_(&segment.progress(rank, number)),
      theirs_(&segment.progress(1 - rank, number)),
      rings_{segment.ring(0), segment.ring(1)} {}

std::byte* Hand::slot(int rank, std::uint64_t chunk) const noexcept {
  // A line more for the flag; of two shots a slot holds what is sent and what was reduced.
  const std::size_t bytes = way_.form == Form::in_line
                                ? (whole_words(way_.chunk) + 8 + 63) / 64 * 64
                                : way_.chunk * (way_.form == Form::two_shot ? 2 : 1);
  return rings_[rank] + chunk % way_.slots * bytes;
}

void Hand::await_slot(std::uint64_t chunk) {
  if (chunk < way_.slots + emptied_) return;
  const std::uint64_t least = chunk + 1 - way_.slots;
  await(theirs_->emptied, least);
  emptied_ = theirs_->emptied.load(std::memory_order_acquire);
}

void Hand::run(const Job& job) {
  way_.form == Form::in_line ? run_in_line(job) : run_pipeline(job);
}

void Hand::take(const Job& job, std::size_t begin, std::size_t n,
                const float* theirs) const noexcept {
  if (job.own == nullptr) {
    copy(job.out + begin, theirs, n, way_.stream_out);
  } else {
    add(job.out + begin, job.own + begin, theirs, n, way_.stream_out);
  }
}

void Hand::run_in_line(const Job& job) {
  using Flag = std::atomic<std::uint64_t>;
  if (job.sent > 0) {
    await_slot(done_);
    const std::size_t bytes = job.sent * sizeof(float);
    std::byte* to = slot(rank_, done_);
    std::memcpy(to, job.send, bytes);
    const std::uint64_t flag = mark_ + ++done_;
    reinterpret_cast<Flag*>(to + whole_words(bytes))->store(flag, std::memory_order_release);
  }
  if (job.kept > 0) std::memcpy(job.kept_at, job.keep, job.kept * sizeof(float));
  if (job.received == 0) return;
  const std::byte* from = slot(1 - rank_, got_);
  const auto* flag = reinterpret_cast<const Flag*>(from + whole_words(job.received * 4));
  const std::uint64_t awaited = mark_ + ++got_;
  spin_until([&] { return flag->load(std::memory_order_acquire) == awaited; });
  take(job, 0, job.received, floats(from));
  mine_->emptied.store(got_, std::memory_order_release);
}

void Hand::run_pipeline(const Job& job) {
  const std::size_t chunk = way_.chunk / sizeof(float);
  const std::size_t most = std::max({job.sent, job.received, job.kept});
  const std::size_t chunks = (most + chunk - 1) / chunk;
  for (std::size_t i = 0; i < chunks + 1; ++i) {
    const std::size_t at = i * chunk;
    if (at < job.sent) {
      await_slot(done_);
      copy(floats(slot(rank_, done_)), job.send + at, std::min(chunk, job.sent - at),
           way_.stream_stage);
      if (way_.stream_stage) streamed_are_there();
      mine_->filled.store(++done_, std::memory_order_release);
    }
    if (at < job.kept) {
      copy(job.kept_at + at, job.keep + at, std::min(chunk, job.kept - at), way_.stream_out);
    }
    // One chunk behind: what the peer fills meanwhile is there when it is wanted.
    if (i == 0 || at - chunk >= job.received) continue;
    await(theirs_->filled, got_ + 1);
    take(job, at - chunk, std::min(chunk, job.received - (at - chunk)),
         floats(slot(1 - rank_, got_)));
    mine_->emptied.store(++got_, std::memory_order_release);
  }
  if (way_.stream_out) streamed_are_there();
}

void Hand::allreduce_halves(float* x, std::size_t n) {
  const std::size_t chunk = way_.chunk / sizeof(float), half = n / 2;
  const std::size_t chunks = (half + chunk - 1) / chunk;
  float* mine = x + (rank_ == 0 ? 0 : half);
  float* theirs = x + (rank_ == 0 ? half : 0);
  const auto size = [&](std::size_t i) { return std::min(chunk, half - i * chunk); };
  const std::uint64_t first = done_;
  for (std::size_t i = 0; i < chunks + 2; ++i) {
    if (i < chunks) {
      await_slot(first + i);
      copy(floats(slot(rank_, first + i)), theirs + i * chunk, size(i), way_.stream_stage);
      if (way_.stream_stage) streamed_are_there();
      mine_->filled.store(first + i + 1, std::memory_order_release);
    }
    if (i >= 1 && i - 1 < chunks) {
      const std::size_t t = i - 1;
      await(theirs_->filled, first + t + 1);
      float* own = mine + t * chunk;
      add_twice(own, way_.stream_out, floats(slot(rank_, first + t) + way_.chunk),
                way_.stream_stage, own, floats(slot(1 - rank_, first + t)), size(t));
      if (way_.stream_stage) streamed_are_there();
      mine_->reduced.store(first + t + 1, std::memory_order_release);
    }
    if (i >= 2) {
      const std::size_t t = i - 2;
      await(theirs_->reduced, first + t + 1);
      copy(theirs + t * chunk, floats(slot(1 - rank_, first + t) + way_.chunk), size(t),
           way_.stream_out);
      mine_->emptied.store(first + t + 1, std::memory_order_release);
    }
  }
  if (way_.stream_out) streamed_are_there();
  done_ = got_ = first + chunks;
}

}  // namespace limits
