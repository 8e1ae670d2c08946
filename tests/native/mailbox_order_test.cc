// SPDX-License-Identifier: Apache-2.0
// Random messages and receives among mailboxes that are moved on in random order: what met what is
// held against the rules of MPI.
#include <random>

#include "mailbox_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

// A message sent before another one of its sender is not overtaken where a receive is for both.
void check_order_of_messages(const Posts& sends, const Posts& receives) {
  std::vector<int> receive_of(sends.size(), 0);  // its number; 0 none
  for (const Post& receive : receives) {
    if (!receive.request.met) continue;
    const Post& send = message_of(sends, receive);
    receive_of[static_cast<std::size_t>(send.number) - 1] = receive.number;
  }
  for (const Post& receive : receives) {
    if (!receive.request.met) continue;
    const Post& got = message_of(sends, receive);
    for (const Post& earlier : sends) {
      if (earlier.number >= got.number) break;
      const bool rival =
          earlier.rank == got.rank && earlier.request.to == receive.rank &&
          receive.request.pattern.matches(earlier.rank, earlier.request.envelope.tag);
      const int taker = receive_of[static_cast<std::size_t>(earlier.number) - 1];
      if (rival) CHECK(taker != 0 && taker < receive.number);
    }
  }
}

// A receive posted before another one of its rank is not passed over where a message is for both.
void check_order_of_receives(const Posts& sends, const Posts& receives) {
  for (const Post& receive : receives) {
    if (!receive.request.met) continue;
    const int tag = message_of(sends, receive).request.envelope.tag;
    for (const Post& earlier : receives) {
      if (earlier.number >= receive.number) break;
      if (earlier.rank != receive.rank) continue;
      if (!earlier.request.pattern.matches(receive.request.source, tag)) continue;
      CHECK(earlier.request.met && earlier.met_at <= receive.met_at);
    }
  }
}

// What is left over on both sides could not have met.
void check_nothing_is_forgotten(const Posts& sends, const Posts& receives) {
  std::vector<bool> met(sends.size(), false);
  for (const Post& receive : receives) {
    if (receive.request.met) {
      const std::size_t i = static_cast<std::size_t>(message_of(sends, receive).number) - 1;
      CHECK(!met[i]);
      met[i] = true;
    }
  }
  for (const Post& receive : receives) {
    if (receive.request.met) continue;
    for (const Post& send : sends) {
      if (met[static_cast<std::size_t>(send.number) - 1]) continue;
      CHECK(send.request.to != receive.rank ||
            !receive.request.pattern.matches(send.rank, send.request.envelope.tag));
    }
  }
}

void play(unsigned seed) {
  std::mt19937 rng(seed);
  const auto below = [&](std::size_t n) { return static_cast<int>(rng() % n); };
  const int p = 1 + below(4);
  const std::size_t longest = below(2) == 0 ? 200 : 3 * kRing;
  Group group(static_cast<std::uint32_t>(p));
  Posts sends, receives;
  const auto note = [&](int step) {
    for (Post& receive : receives) {
      if (receive.request.met && receive.met_at < 0) receive.met_at = step;
    }
  };
  for (int step = 0; step < 150; ++step) {
    const int rank = below(static_cast<std::size_t>(p));
    const int peer = below(static_cast<std::size_t>(p)), tag = below(3);
    switch (below(4)) {
      case 0:
        post_send(group, sends, rank, peer, tag, rng() % longest);
        break;
      case 1:
        post_receive(group, receives, rank, below(3) == 0 ? kAny : peer, below(3) == 0 ? kAny : tag,
                     longest);
        break;
      default:
        group.box[static_cast<std::size_t>(rank)]->progress();
    }
    note(step);
  }
  group.settle();
  note(150);
  for (const Post& receive : receives) {
    CHECK(receive.request.done == receive.request.met);
    if (receive.request.met) CHECK(has_bytes_of(receive, message_of(sends, receive)));
  }
  check_order_of_messages(sends, receives);
  check_order_of_receives(sends, receives);
  check_nothing_is_forgotten(sends, receives);
}

TEST(random_messages_meet_as_in_mpi) {
  for (unsigned seed = 1; seed <= 1500; ++seed) play(seed);
}

}  // namespace
