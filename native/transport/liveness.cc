// SPDX-License-Identifier: Apache-2.0
#include "transport/liveness.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "transport/process.h"
#include "transport/system_calls.h"

namespace coll {
namespace {

Presence presence_of(const LifeLine& line) noexcept {
  return static_cast<Presence>(line.presence.load(std::memory_order_acquire));
}

void set_presence(LifeLine& line, Presence presence) noexcept {
  line.presence.store(static_cast<std::uint32_t>(presence), std::memory_order_release);
}

// The mutexes that this thread holds. The C library and the kernel keep them in a list that runs
// through the mutexes themselves, so none may be unmapped while it is held: `keep` sees to that.
struct Held {
  Segment segment;
  int rank;
  pid_t pid;
  std::shared_ptr<const Memory> keep;

  void let_go() const noexcept {
    // In a forked child the list is empty and the memory is not there.
    if (::getpid() == pid) pthread_mutex_unlock(&segment.rank(rank).life.alive);
  }
};

// Outlives the list below: leave() may run in a destructor later than the list's own.
thread_local bool list_is_gone = false;

class HeldList {
 public:
  ~HeldList() {
    for (const Held& held : list_) held.let_go();
    list_is_gone = true;
  }

  // Room first, so that add() after the lock cannot fail.
  void make_room() { list_.reserve(list_.size() + 1); }
  void add(Held held) noexcept { list_.push_back(std::move(held)); }

  // Lets go of what `chosen` says.
  template <class Chosen>
  void drop(Chosen chosen) noexcept {
    std::erase_if(list_, [&](const Held& held) {
      if (!chosen(held)) return false;
      held.let_go();
      return true;
    });
  }

 private:
  std::vector<Held> list_;
};

thread_local HeldList held_list;

// Set in LifeLine::born by whoever sees first that the holder of the mutex is gone, or by the
// holder itself where the kernel would not mark it. From then on nobody touches the mutex, and
// every observer asks about the process.
constexpr std::uint64_t kHolderGone = std::uint64_t{1} << 63;

bool holder_is_there(LifeLine& line) noexcept {
  if ((line.born.load(std::memory_order_relaxed) & kHolderGone) != 0) return false;
  const int error = pthread_mutex_trylock(&line.alive);
  if (error == EBUSY) return true;
  line.born.fetch_or(kHolderGone, std::memory_order_relaxed);
  // Not left inconsistent: after that, trylock() of the GNU C library would lock it for good.
  if (error == EOWNERDEAD) pthread_mutex_consistent(&line.alive);
  if (error == 0 || error == EOWNERDEAD) pthread_mutex_unlock(&line.alive);
  return false;
}

}  // namespace

Liveness::Liveness(Liveness&& other) noexcept
    : segment_(other.segment_), rank_(std::exchange(other.rank_, -1)), pid_(other.pid_) {}

Liveness& Liveness::operator=(Liveness&& other) noexcept {
  if (this != &other) {
    leave();
    segment_ = other.segment_;
    rank_ = std::exchange(other.rank_, -1);
    pid_ = other.pid_;
  }
  return *this;
}

void Liveness::enter(const Segment& segment, int rank, std::shared_ptr<const Memory> keep) {
  leave();
  const pid_t pid = ::getpid();
  // What other threads have left on behalf of this one; in a forked child, what is not its own.
  held_list.drop([pid](const Held& held) {
    return held.pid != pid || presence_of(held.segment.rank(held.rank).life) == Presence::closed;
  });
  held_list.make_room();
  LifeLine& line = segment.rank(rank).life;
  const bool taken = presence_of(line) != Presence::absent;
  if (taken || pthread_mutex_trylock(&line.alive) != 0) {
    throw Error(Status::internal, "rank " + std::to_string(rank) + " entered its group twice",
                rank);
  }
  held_list.add({segment, rank, pid, std::move(keep)});
  line.pid.store(pid, std::memory_order_relaxed);
  const std::uint64_t mark = robust_lists_are_kept() ? 0 : kHolderGone;
  line.born.store(start_time_of(pid) | mark, std::memory_order_relaxed);
  set_presence(line, Presence::here);
  segment_ = segment;
  rank_ = rank;
  pid_ = pid;
}

void Liveness::leave() noexcept {
  const int rank = std::exchange(rank_, -1);
  if (rank < 0 || ::getpid() != pid_) return;
  LifeLine& line = segment_.rank(rank).life;
  set_presence(line, Presence::closed);
  if (list_is_gone) return;
  held_list.drop([&line](const Held& held) { return &held.segment.rank(held.rank).life == &line; });
}

Life life_of(const Segment& segment, int rank) noexcept {
  LifeLine& line = segment.rank(rank).life;
  const Presence presence = presence_of(line);
  if (presence == Presence::absent) return Life::absent;
  if (presence == Presence::closed) return Life::closed;
  if (holder_is_there(line)) return Life::here;
  // The rank may have left in between.
  if (presence_of(line) == Presence::closed) return Life::closed;
  const pid_t pid = line.pid.load(std::memory_order_relaxed);
  if (pid == ::getpid()) return Life::here;
  const std::uint64_t born = line.born.load(std::memory_order_relaxed) & ~kHolderGone;
  return process_gone(pid, born) ? Life::dead : Life::here;
}

}  // namespace coll
