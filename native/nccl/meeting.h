// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a new communicator meet: a thread of the process that made the unique id
// listens, each rank proves that it knows the id's secret and says a few words, and when all have
// come each gets the words of all. Its line to the meeting stays until all have joined: so nobody
// waits for a rank that is lost by then. The process need not be a rank.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "base/stop.h"
#include "bootstrap/letters.h"
#include "nccl/unique_id.h"

namespace coll::nccl {

// Listens at an address of this machine that others reach, and serves one meeting there, in a
// thread of its own that ends with it. Throws Error, Refusal.
MeetingPlace open_meeting();

// A rank that has met the others and is to join them. Where it goes without a word, the others are
// told that it is lost.
class Met {
 public:
  Met(Letters letters, std::vector<std::string> words, const Deadline& deadline, Stop stop)
      : letters_(std::move(letters)),
        words_(std::move(words)),
        deadline_(deadline),
        stop_(std::move(stop)) {}

  // What all ranks have said, by rank.
  const std::vector<std::string>& words() const noexcept { return words_; }
  // Throws Error where not all will join: peer_lost where a rank, or the process that made the id,
  // is lost or cannot; timeout. Never waits.
  void look();
  // Returns when all have joined, as this rank has. Throws as look() does, and aborted where `stop`
  // says so.
  void joined();
  // This rank cannot join, and tells the others why; or they know that of another.
  void give_up(const std::string& why) noexcept;

 private:
  std::optional<Error> told();

  Letters letters_;
  std::vector<std::string> words_;
  Deadline deadline_;
  Stop stop_;
  bool joined_ = false, ended_ = false;
  std::optional<Error> failure_ = {};
};

// Returns when all ranks have said their words. Throws Error: timeout, aborted where `stop` says
// so, bootstrap where the meeting failed: a rank has ended, two have come as one, or they disagree
// on how many they are. `seconds`: for that, and once more until all have joined.
Met meet(const MeetingPlace& place, int rank, int ranks, const std::string& words, double seconds,
         const Stop& stop);

}  // namespace coll::nccl
