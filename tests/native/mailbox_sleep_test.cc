// SPDX-License-Identifier: Apache-2.0
// Ranks that sleep until another one has something for them: they are woken, and never sleep
// through what comes while they go to sleep.
#include <cerrno>
#include <chrono>

#include "child.h"
#include "mailbox_of_test.h"
#include "transport/faults.h"
#include "transport/system_calls.h"

namespace {

using namespace coll;
using namespace coll::testing;

constexpr int kLongSleep = 20'000'000;  // microseconds
using Clock = std::chrono::steady_clock;

// Whether the mailbox sleeps until the request is done, not until its time is up.
bool sleeps_soundly(Mailbox& box, const Request& until) {
  const auto begin = Clock::now();
  while (!until.done && Clock::now() - begin < std::chrono::seconds(30)) {
    if (!box.progress()) box.sleep(kLongSleep);
  }
  return Clock::now() - begin < std::chrono::seconds(10);
}

void let_all_fence(const Group& group) {
  if (!all_cores_fence_register()) return;  // then nobody sleeps for long
  for (const int rank : {0, 1}) group.segment.rank(rank).watch.fenced.store(1);
}

TEST(a_message_wakes_its_receiver) {
  Group group(2);
  let_all_fence(group);
  Posts sends, receives;
  const Post& receive = post_receive(group, receives, 1, 0, 5, 100);
  run_ranks(2, [&](int rank) {
    if (rank == 1) {
      CHECK(sleeps_soundly(*group.box[1], receive.request));
      return;
    }
    check::nap(20);
    post_send(group, sends, 0, 1, 5, 100);
    CHECK(group.box[0]->progress());
  });
  CHECK(has_bytes_of(receive, sends[0]));
}

TEST(room_wakes_the_sender) {
  Group group(2);
  let_all_fence(group);
  Posts sends, receives;
  const Post& send = post_send(group, sends, 0, 1, 5, kRing + 100);
  group.settle();
  run_ranks(2, [&](int rank) {
    if (rank == 0) {
      CHECK(sleeps_soundly(*group.box[0], send.request));
      return;
    }
    check::nap(20);
    post_receive(group, receives, 1, 0, 5, kRing + 100);
    CHECK(group.box[1]->progress());
  });
  group.settle();
  CHECK(send.request.done && has_bytes_of(receives[0], send));
}

// Each waits asleep for the other's message, at every distance between looking and sleeping.
TEST(no_message_is_slept_through) {
  Group group(2);
  let_all_fence(group);
  run_ranks(2, [&](int rank) {
    Mailbox& box = *group.box[static_cast<std::size_t>(rank)];
    std::byte byte{};
    for (int round = 0; round < 2000; ++round) {
      Request send, receive;
      send.from = receive.into = &byte;
      send.to = 1 - rank;
      send.envelope.bytes = receive.room = 1;
      for (int half = 0; half < 2; ++half) {
        if (half == rank) {
          box.send(send);
          box.progress();
        } else {
          box.receive(receive);
          CHECK(sleeps_soundly(box, receive));
        }
      }
    }
  });
}

TEST(without_a_fence_nobody_sleeps_for_long) {
  Group group(2);
  const auto begin = Clock::now();
  CHECK(!group.box[0]->sleep(kLongSleep));
  let_all_fence(group);
  faults::arm({SystemCall::membarrier, 1, ENOSYS, true});
  CHECK(!group.box[1]->sleep(kLongSleep));
  faults::clear();
  CHECK(Clock::now() - begin < std::chrono::seconds(10));
}

}  // namespace
