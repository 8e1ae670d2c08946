// SPDX-License-Identifier: Apache-2.0
// How a communicator gets its connections: through memory where all ranks are on one machine, else
// over TCP, with memory among those of a machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nccl/communicator.h"
#include "nccl/unique_id.h"

namespace coll::nccl {

// Throws Refusal where there is no such rank.
void check_rank(int rank, int ranks);

// Meets the other ranks at the place of the id, and joins them. Throws Error, Refusal.
void join(ncclComm& comm, const MeetingPlace& place);

// The name of ranks that share a secret, which others cannot guess.
std::string job_of(const Secret& secret);
// Of ranks of those that are called `parent`; `which` tells them from others of these. As long, of
// whatever they are a part.
std::string job_of(const std::string& parent, const std::string& which);

// Asked now and then while a rank waits for others: throws Error or Refusal where they do not come.
using Look = std::function<void()>;

// Ranks of one machine that know by what name to meet. Throws Refusal.
void join_memory(ncclComm& comm, const std::string& job, const Look& look);

// The address of this machine from which a way leads to that one. Throws Refusal.
std::string own_address(const std::string& towards);

// What connects a rank to those of other machines, before it is connected.
class Door {
 public:
  // Listens at an address of this machine. Throws Refusal.
  explicit Door(const std::string& address);
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door();

  const std::string& text() const noexcept { return text_; }
  // Takes the listener. `doors`, `hosts`: of all ranks. Throws Refusal.
  void join(ncclComm& comm, const std::string& job, const Secret& secret,
            const std::vector<std::string>& doors);

 private:
  coll_listener* listener_ = nullptr;
  std::string text_;
};

}  // namespace coll::nccl
