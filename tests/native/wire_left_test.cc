// SPDX-License-Identifier: Apache-2.0
// A peer that has sent its last message and closed, before the rank that needs it has read it: the
// message counts. One thread drives all ranks, so what happens between which turns is no chance.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "check.h"
#include "collectives_algorithms.h"
#include "transport/faults.h"
#include "wired_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;
using std::chrono::milliseconds;

// Longer than a rank gives the news of a peer, and than nothing moves until ranks have doubts.
constexpr milliseconds kLong{400}, kEver{10'000};

coll_call call_of(coll_kind kind, int root, const std::vector<float>& in, std::vector<float>& out,
                  const char* algorithm) {
  coll_call call{};
  call.size = sizeof call;
  call.kind = kind;
  call.dtype = COLL_FLOAT32;
  call.op = COLL_SUM;
  call.root = root;
  call.input = in.data();
  call.output = out.data();
  call.count = in.size();
  call.algorithm = coll_algorithm_find(kind, algorithm);
  call.mode = COLL_MODE_AUTO;
  return call;
}

// A rank whose calls come up for air, so that others of this thread have their turns.
class Rank {
 public:
  explicit Rank(WiredJob& job, int rank) : comm_(job.join(rank)) {}
  ~Rank() { close(); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void begin(const coll_call& call) { status_ = coll_run(comm_, &call); }
  coll_status turn() {
    if (status_ == COLL_IN_PROGRESS) status_ = coll_resume(comm_);
    return status_;
  }
  bool done() {
    if (turn() != COLL_OK && status_ != COLL_IN_PROGRESS) check::fail(coll_last_error());
    return status_ == COLL_OK;
  }
  void close() {
    if (comm_ != nullptr) coll_close(comm_);
    comm_ = nullptr;
  }

 private:
  coll_comm* comm_;
  coll_status status_ = COLL_OK;
};

// Turns of both until the first is done, or time is up.
bool until_done(Rank& rank, Rank& other) {
  for (const auto end = std::chrono::steady_clock::now() + kEver; !rank.done(); other.done()) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

// How the call of a rank ends within this time.
coll_status end_of(Rank& rank, milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  coll_status status = rank.turn();
  while (status == COLL_IN_PROGRESS && std::chrono::steady_clock::now() < end) status = rank.turn();
  return status;
}

void stays_in_call(Rank& rank, milliseconds time) {
  for (const auto end = std::chrono::steady_clock::now() + time;
       std::chrono::steady_clock::now() < end;) {
    CHECK(!rank.done());
  }
}

const WiredOptions kInterruptible{.timeout = 30, .interruptible = true};

// What a rank of two has waited for so long that it tells its peer of its doubts, comes with the
// peer's end just after it has looked for it (the kernel says that there is nothing). In telling,
// it finds that the peer has closed.
TEST(a_last_message_that_comes_with_the_end_counts) {
  for (int time = 0; time < 3; ++time) {  // now and then a turn begins with the end itself
    WiredJob job(2, kInterruptible);
    Rank root(job, 0), leaf(job, 1);
    std::vector<float> x{1}, y{0};
    const coll_call call = call_of(COLL_BROADCAST, 0, x, x, "binomial");
    const coll_call mine = call_of(COLL_BROADCAST, 0, y, y, "binomial");
    root.begin(call);
    leaf.begin(mine);
    CHECK(until_done(leaf, root) && end_of(root, kEver) == COLL_OK);
    leaf.begin(mine);
    ::usleep(350'000);
    x[0] = 2;
    root.begin(call);
    CHECK(end_of(root, kEver) == COLL_OK);
    root.close();
    faults::arm({SystemCall::recvmsg, 1, EAGAIN});
    if (end_of(leaf, kEver) != COLL_OK) check::fail(coll_last_error());
    faults::clear();
    CHECK(y[0] == 2);
  }
}

// Rank 0 has given its part of a gather and gone when rank 2 comes, without which the root has not
// begun.
TEST(a_message_counts_that_came_before_the_call_could_begin) {
  WiredJob job(3, kInterruptible);
  Rank early(job, 0), root(job, 1);
  std::vector<float> a{1}, b{2}, c{3}, all(3), none;
  root.begin(call_of(COLL_GATHER, 1, b, all, "linear"));
  early.begin(call_of(COLL_GATHER, 1, a, none, "linear"));
  CHECK(until_done(early, root));
  early.close();
  stays_in_call(root, kLong);
  Rank late(job, 2);
  late.begin(call_of(COLL_GATHER, 1, c, none, "linear"));
  CHECK(until_done(root, late) && end_of(late, kEver) == COLL_OK);
  CHECK(all == std::vector<float>({1, 2, 3}));
}

// The same, but that rank 0 has made another call: its message never has a place.
TEST(a_peer_that_made_another_call_and_left_is_told_of_before_the_call_can_begin) {
  WiredJob job(3, kInterruptible);
  Rank early(job, 0), root(job, 1);
  std::vector<float> two{1, 1}, one{2}, all(3), none;
  root.begin(call_of(COLL_GATHER, 1, one, all, "linear"));
  early.begin(call_of(COLL_GATHER, 1, two, none, "linear"));
  CHECK(until_done(early, root));
  early.close();
  CHECK(end_of(root, kEver) == COLL_MISMATCH);
  const std::string told = coll_last_error();
  if (told.find("rank 0 calls gather of 2 float32") == std::string::npos) check::fail(told);
}

// A machine that has stopped answering is the first cause there is: a rank that waited for better
// news would leave others to guess, who see only that it has broken a connection.
TEST(a_peer_whose_machine_is_silent_is_told_of_at_once) {
  WiredJob job(2, kInterruptible);
  Rank root(job, 0), leaf(job, 1);
  std::vector<float> x{1}, y{0};
  const coll_call mine = call_of(COLL_BROADCAST, 0, y, y, "binomial");
  root.begin(call_of(COLL_BROADCAST, 0, x, x, "binomial"));
  leaf.begin(mine);
  CHECK(until_done(leaf, root) && end_of(root, kEver) == COLL_OK);
  leaf.begin(mine);
  faults::arm({SystemCall::recvmsg, 1, ETIMEDOUT, true});
  coll_status status = COLL_IN_PROGRESS;
  for (int turn = 0; turn < 3 && status == COLL_IN_PROGRESS; ++turn) status = leaf.turn();
  faults::clear();
  CHECK(status == COLL_PEER_LOST);
  const std::string told = coll_last_error();
  if (told.find("rank 0 on host0 and rank 1 on host1 lost each other") == std::string::npos) {
    check::fail(told);
  }
}

}  // namespace
