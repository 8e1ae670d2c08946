// SPDX-License-Identifier: Apache-2.0
// Where a message of a collective by messages does not come, the error says of which call it is,
// and how many seconds were asked for.
#include "communicator/message_steps.h"

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "abi/handle.h"
#include "check.h"
#include "communicator/adasum_call.h"

using namespace coll;

namespace {

// Rank 0 waits for a message that rank 1 never sends.
class Forgetful : public MessageSteps {
 protected:
  Forgetful(int rank, int ranks, double timeout, double of)
      : MessageSteps(rank, ranks, rank == 0 ? 0.1 : timeout, Purpose::adasum, of) {}

 private:
  Status begin() override { return agree(&said_, heard_.data(), sizeof said_, "some"); }
  bool step(Status&) override {
    if (rank() != 0 || asked_) return false;
    asked_ = true;
    expect(1, parcel_, kAnyLength);
    return true;
  }

  std::uint64_t said_ = 0;
  std::array<std::uint64_t, 2> heard_{};
  Parcel parcel_;
  bool asked_ = false;
};

constexpr int kLooks = 10'000;

void check_told(double of, const std::string& seconds) {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = 2;
  options.timeout = 20;
  std::array<coll_comm*, 2> comms{};
  CHECK(coll_local(&options, comms.data()) == COLL_OK);
  run_ranks(2, [&](int rank) {
    coll_comm* comm = comms[static_cast<std::size_t>(rank)];
    CHECK(coll_barrier(comm) == COLL_OK);
    Communicator& own = communicator(comm);
    StepsOn<Forgetful, Communicator> steps(own, of);
    const auto said = thrown<Error>([&] {
      CHECK(steps.start() == Status::ok);
      for (int look = 0; look < kLooks; ++look) {  // in no call: who is in one is told sooner
        own.check_failed();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    CHECK(said.status == Status::timeout);
    const std::string text = said.what();
    CHECK(text.starts_with("adasum #2: recv from rank 1"));
    CHECK(text.find("rank 0 gave up after " + seconds + ": rank 1") != std::string::npos);
  });
  for (coll_comm* comm : comms) coll_close(comm);
}

TEST(a_late_message_is_told_with_its_call) { check_told(0, "0.1 s"); }
TEST(a_late_message_is_told_with_the_seconds_of_all) { check_told(2.5, "2.5 s"); }

}  // namespace
