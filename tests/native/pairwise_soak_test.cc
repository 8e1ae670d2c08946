// SPDX-License-Identifier: Apache-2.0
// The random bed of message calls: ranks as threads, messages of random lengths and tags in every
// form of call, with collectives in between, and every message held against what was sent. Runs
// under ThreadSanitizer as well.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

#include "instrumented.h"
#include "pairwise_of_test.h"

namespace {

using namespace coll::testing;

constexpr int kTags = 3;

// A message tells the how manieth it is of its sender, receiver and tag.
std::vector<std::int32_t> letter(int source, int destination, int tag, int number) {
  std::mt19937 rng(
      static_cast<unsigned>(source * 131 + destination * 17 + tag * 5 + number * 7919));
  const std::size_t n = rng() % 8 == 0 ? 20000 + rng() % 60000 : 1 + rng() % 300;
  std::vector<std::int32_t> x = filled(n, source * 7 + tag * 3 + number);
  x[0] = number;
  return x;
}

constexpr std::size_t kLongest = 80000;

class Rank {
 public:
  Rank(coll_comm* comm, unsigned seed)
      : comm_(comm), rank_(coll_rank(comm)), p_(coll_ranks(comm)), rng_(seed) {
    const auto pairs = static_cast<std::size_t>(p_) * kTags;
    sent_.assign(pairs, 0);
    got_.assign(pairs, 0);
  }

  // Every rank sends `each` messages to every rank, itself too, and receives as many.
  void round(int each) {
    std::vector<int> to_send(static_cast<std::size_t>(p_), each);
    int missing = each * p_;
    for (int left = missing; left > 0;) {
      if (missing > 0 && rng_() % 2 == 0) {
        missing -= receive_at_once(missing);
      } else {
        begin_send(pick(to_send));
        --left;
      }
      if (rng_() % 4 == 0) look_after_sends();
    }
    // All ranks come here, so what is missing will come: now calls may block.
    while (missing > 0) {
      receive_blocking();
      --missing;
    }
    meet();  // moves on what is on its way
    for (const auto& out : outgoing_) expect_ok(coll_wait(comm_, out->request, nullptr, 0));
    outgoing_.clear();
    check_incoming();
    meet();  // nobody gets a message of the next round instead of one of this
  }

 private:
  void meet() {
    std::int64_t x = rank_;
    expect_ok(coll_allreduce(comm_, &x, &x, 1, COLL_INT64, COLL_SUM));
    CHECK(x == p_ * (p_ - 1) / 2);
  }

  struct Letter {
    std::vector<std::int32_t> x;
    coll_request request = 0;
    coll_message got{};
  };

  std::size_t pair(int peer, int tag) const { return static_cast<std::size_t>(peer * kTags + tag); }
  int random_tag() { return static_cast<int>(rng_() % kTags); }

  int pick(std::vector<int>& to_send) {
    int to = static_cast<int>(rng_() % static_cast<unsigned>(p_));
    while (to_send[static_cast<std::size_t>(to)] == 0) to = (to + 1) % p_;
    --to_send[static_cast<std::size_t>(to)];
    return to;
  }

  void begin_send(int to) {
    const int tag = random_tag();
    auto made = std::make_unique<Letter>();
    made->x = letter(rank_, to, tag, sent_[pair(to, tag)]++);
    expect_ok(
        coll_isend(comm_, made->x.data(), made->x.size(), COLL_INT32, to, tag, &made->request));
    outgoing_.push_back(std::move(made));
  }

  void look_after_sends() {
    std::erase_if(outgoing_, [&](const std::unique_ptr<Letter>& out) {
      std::int32_t done = 0;
      expect_ok(coll_test(comm_, out->request, &done, nullptr));
      return done == 1;
    });
  }

  // Receives what is there, or begins to receive what will come; returns how many messages.
  int receive_at_once(int missing) {
    if (rng_() % 2 == 0) {
      std::int32_t there = 0;
      coll_message found{};
      expect_ok(coll_iprobe(comm_, COLL_ANY_SOURCE, random_tag(), &there, &found));
      if (there == 1) receive_found(found);
      return there;
    }
    const int n = std::min(missing, 1 + static_cast<int>(rng_() % 3));
    for (int i = 0; i < n; ++i) {
      Letter& made = *incoming_.emplace_back(std::make_unique<Letter>());
      made.x.resize(kLongest);
      expect_ok(coll_irecv(comm_, made.x.data(), kLongest, COLL_INT32, COLL_ANY_SOURCE,
                           COLL_ANY_TAG, &made.request));
    }
    return n;
  }

  void receive_blocking() {
    coll_message found{COLL_ANY_SOURCE, COLL_ANY_TAG, COLL_INT32, kLongest};
    if (rng_() % 2 == 0) {
      expect_ok(coll_probe(comm_, COLL_ANY_SOURCE, COLL_ANY_TAG, &found, 0));
    }
    receive_found(found);
  }

  void receive_found(const coll_message& found) {
    Letter& made = *incoming_.emplace_back(std::make_unique<Letter>());
    made.x = receive(comm_, found.count, found.source, found.tag, &made.got);
    if (found.source != COLL_ANY_SOURCE) CHECK(made.got.count == found.count);
  }

  // Every receive was for any message, or for one that no receive had got: so in the order of their
  // posting they have the messages of each sender and tag in the order of their sending.
  void check_incoming() {
    for (const auto& in : incoming_) {
      if (in->request != 0) expect_ok(coll_wait(comm_, in->request, &in->got, 0));
      in->x.resize(in->got.count);
      const int number = got_[pair(in->got.source, in->got.tag)]++;
      CHECK(in->got.dtype == COLL_INT32);
      CHECK(in->x == letter(in->got.source, rank_, in->got.tag, number));
    }
    incoming_.clear();
  }

  coll_comm* comm_;
  int rank_, p_;
  std::mt19937 rng_;
  std::vector<int> sent_, got_;                               // by peer and tag
  std::vector<std::unique_ptr<Letter>> outgoing_, incoming_;  // in the order of their posting
};

int rounds() {
  constexpr int kUsual = check::kInstrumented ? 3 : 12;
  const char* wish = std::getenv("PAIRWISE_SOAK_ROUNDS");
  return wish != nullptr ? static_cast<int>(std::strtol(wish, nullptr, 10)) : kUsual;
}

TEST(random_messages_among_threads) {
  for (int p = 1; p <= 5; ++p) {
    const Comms comms(p);
    run_ranks(p, [&](int rank) {
      Rank state(comms[rank], static_cast<unsigned>(rank * 1000 + p));
      for (int i = 0; i < rounds(); ++i) state.round(10);
    });
  }
}

TEST(random_messages_between_machines) {
  constexpr int kRanks = 3;
  const Comms comms(kRanks, false, Where::several);
  run_ranks(kRanks, [&](int rank) {
    Rank state(comms[rank], static_cast<unsigned>(rank * 1000 + kRanks));
    for (int i = 0; i < rounds(); ++i) state.round(10);
  });
}

// No more messages than receives on the way: pairs in a random pattern that all ranks know, with
// calls that block only.
TEST(random_pairs_of_blocking_calls) {
  constexpr int kRanks = 4;
  const Comms comms(kRanks);
  run_ranks(kRanks, [&](int rank) {
    std::mt19937 rng(77);  // the same on all ranks
    for (int i = 0; i < 60 * rounds(); ++i) {
      const int from = static_cast<int>(rng() % kRanks), to = static_cast<int>(rng() % kRanks);
      const int tag = static_cast<int>(rng() % 1000);
      const std::size_t n = rng() % 10 == 0 ? rng() % 70000 : rng() % 100;
      if (rank == from) send(comms[rank], filled(n, i), to, tag);
      if (rank == to) CHECK(receive(comms[rank], n, from, tag) == filled(n, i));
      if (i % 16 == 0) CHECK(coll_barrier(comms[rank]) == COLL_OK);
    }
  });
}

}  // namespace
