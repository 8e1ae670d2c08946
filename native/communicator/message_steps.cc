// SPDX-License-Identifier: Apache-2.0
#include "communicator/message_steps.h"

#include <algorithm>
#include <array>

#include "base/looks.h"
#include "communicator/fingerprint.h"
#include "communicator/patience.h"

namespace coll {

std::string in_bytes(std::uint64_t bytes) {
  constexpr std::array units = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 10240 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return std::to_string(bytes) + " " + units[unit];
}

Status MessageSteps::start() {
  const Looks looks([this] { look_up(); });
  label_ = std::string(name_of(purpose_)) + " #" + std::to_string(calls() + 1);
  return advance(begin());
}

Status MessageSteps::resume() {
  const Looks looks([this] { look_up(); });
  return advance(resumed());
}

// Between the blocks of what this rank does alone.
void MessageSteps::look_up() {
  if (stopped()) throw Stopped();
  check_failed();
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - began_;
  if (gone.count() < limit_) return;
  const std::string who = "rank " + std::to_string(rank_);
  throw Error(Status::timeout,
              who + " gave up after " + in_seconds(told_) + ": it was still at work on what it has",
              rank_);
}

double MessageSteps::left() const {
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - began_;
  return std::max(limit_ - gone.count(), 1e-3);
}

std::uint64_t MessageSteps::name() const { return chain(words_, calls()); }

Status MessageSteps::agree(const void* mine, void* all, std::size_t bytes, std::string_view words) {
  return tell(Kind::allgather, mine, all, bytes, words);
}

Status MessageSteps::agree_in_blocks(const void* mine, void* all, std::size_t block,
                                     std::string_view words) {
  return tell(Kind::alltoall, mine, all, block * static_cast<std::size_t>(ranks_), words);
}

Status MessageSteps::tell(Kind kind, const void* mine, void* all, std::size_t count,
                          std::string_view words) {
  words_ = hash_words(words);
  return run(Call{.kind = kind,
                  .dtype = Dtype::uint8,
                  .input = mine,
                  .output = all,
                  .count = count,
                  .timeout = left(),
                  .of_timeout = told_,
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
                         .step_of = label_}));
}

void MessageSteps::expect(int from, Parcel& into, std::size_t most) {
  receives_.push_back(post({.kind = PairKind::recv,
                            .parcel = &into,
                            .room = most,
                            .into_dtype = Dtype::uint8,
                            .from = {from, kStepsTag},
                            .step_of = label_}));
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
                      .of_timeout = told_,
                      .step_of = label_});
}

Error MessageSteps::labelled(const Error& error) const {
  return {error.status, label_ + ": " + error.what(), error.rank < 0 ? rank_ : error.rank};
}

Error MessageSteps::out_of_memory(const std::bad_alloc& why) const {
  std::string text = "rank " + std::to_string(rank_) + " is out of memory";
  if (const auto* room = dynamic_cast<const NoRoom*>(&why)) {
    text += ": it has no " + in_bytes(room->bytes) + " for its vector";
  }
  return {Status::out_of_memory, text, rank_};
}

void MessageSteps::fail_here(const Error& error) {
  const Error told = labelled(error);
  fail({told.status, told.rank, told.what()});
  throw error;  // which fail() has done; compilers do not know
}

}  // namespace coll
