// SPDX-License-Identifier: Apache-2.0
#include "nccl/mover.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "nccl/communicator.h"

namespace coll::nccl {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// While another rank takes what comes, for a while; returns whether anything is left. A thread of
// the program that wants to enter waits for it.
bool move_on(ncclComm& comm) {
  constexpr auto kTurn = microseconds(50);
  Holder seen = Holder::nobody;
  if (!comm.holder.compare_exchange_strong(seen, Holder::mover, std::memory_order_acquire)) {
    return true;  // that call moves it on
  }
  const auto end = Clock::now() + kTurn;
  bool left = true;
  while (left && Clock::now() < end) {
    left = settled(comm, forget_done(comm)) == ncclSuccess && !comm.one_sided.under_way.empty();
  }
  comm.one_sided.moving = left;
  comm.holder.store(Holder::nobody, std::memory_order_release);
  return left;
}

void move_all(ncclComm& comm) {
  constexpr auto kShortest = microseconds(100), kLongest = microseconds(2000);
  for (auto pause = kShortest; !comm.standing_still.load() && move_on(comm);) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 5 / 4, kLongest);
  }
}

}  // namespace

void keep_moving(ncclComm& comm) {
  if (comm.one_sided.moving || comm.one_sided.under_way.empty()) return;
  comm.one_sided.moving = true;
  comm.mover.post([&comm] { move_all(comm); });
}

void stand_still(ncclComm& comm) {
  comm.standing_still = true;
  comm.mover.wait();
  comm.standing_still = false;
  comm.one_sided.moving = false;
}

void farewell(ncclComm& comm) {
  constexpr auto kMost = std::chrono::seconds(5);
  const auto end = Clock::now() + kMost;
  while (!comm.mover.idle() && Clock::now() < end) {
    std::this_thread::sleep_for(microseconds(100));
  }
}

}  // namespace coll::nccl
