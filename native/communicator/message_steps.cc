// SPDX-License-Identifier: Apache-2.0
#include "communicator/message_steps.h"

#include <algorithm>

#include "communicator/fingerprint.h"

namespace coll {

double MessageSteps::left() const {
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - began_;
  return std::max(limit_ - gone.count(), 1e-3);
}

std::uint64_t MessageSteps::name() const { return chain(words_, calls()); }

Status MessageSteps::agree(const void* mine, void* all, std::size_t bytes, std::string_view words) {
  words_ = hash_words(words);
  return run(Call{.kind = Kind::allgather,
                  .dtype = Dtype::uint8,
                  .input = mine,
                  .output = all,
                  .count = bytes,
                  .timeout = left(),
                  .of_timeout = limit_,
                  .words = words,
                  .purpose = purpose_});
}

void MessageSteps::send(int to, const std::byte* message, std::size_t bytes) {
  sends_.push_back(post({.kind = PairKind::send,
                         .data = message,
                         .count = bytes,
                         .dtype = Dtype::uint8,
                         .to = to,
                         .tag = kStepsTag,
                         .steps = true}));
}

void MessageSteps::expect(int from, Parcel& into, std::size_t most) {
  receives_.push_back(post({.kind = PairKind::recv,
                            .parcel = &into,
                            .room = most,
                            .into_dtype = Dtype::uint8,
                            .from = {from, kStepsTag},
                            .steps = true}));
}

Status MessageSteps::advance(Status status) {
  while (status == Status::ok) {
    if (!sends_.empty() || !receives_.empty()) {
      status = wait();
    } else if (!step(status)) {
      return Status::ok;
    }
  }
  return status;
}

// For one of the messages, all of which go on meanwhile.
Status MessageSteps::wait() {
  std::vector<coll_request>& requests = receives_.empty() ? sends_ : receives_;
  const coll_request request = requests.back();
  requests.pop_back();
  return run(PairCall{.kind = PairKind::wait,
                      .request = request,
                      .timeout = left(),
                      .of_timeout = limit_,
                      .steps = true});
}

void MessageSteps::fail_here(const Error& error) {
  fail({error.status, error.rank < 0 ? rank_ : error.rank,
        std::string(name_of(purpose_)) + " #" + std::to_string(calls()) + ": " + error.what()});
  throw error;  // which fail() has done; compilers do not know
}

}  // namespace coll
