// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a new communicator meet: a thread of the process that made the unique id
// listens, each rank proves that it knows the id's secret and says a few words, and when all have
// come each gets the words of all. The process need not be a rank.
#pragma once

#include <string>
#include <vector>

#include "base/stop.h"
#include "nccl/unique_id.h"

namespace coll::nccl {

// Listens at an address of this machine that others reach, and serves one meeting there, in a
// thread of its own that ends with it. Throws Error, Refusal.
MeetingPlace open_meeting();

// What all ranks have said, by rank. Throws Error: timeout, aborted where `stop` says so, bootstrap
// where the meeting failed: a rank has ended, or they disagree on how many they are.
std::vector<std::string> meet(const MeetingPlace& place, int rank, int ranks,
                              const std::string& words, double seconds, const Stop& stop);

}  // namespace coll::nccl
