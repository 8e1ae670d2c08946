// SPDX-License-Identifier: Apache-2.0
// How ranks of one machine that know each other, by connections that were proved, come to share
// memory: each opens a door under a name that nobody can guess, and tells the others what it is;
// one of them leaves the descriptor of the memory at each door; and they take it from there.
// Between these steps the ranks tell each other that they have done them, so that none of them
// waits: what is not there will never come.
//
// The kernel says who is at the other end. Of another user, or of another PID namespace, in which
// the death of a process could not be seen, nothing is taken, and nothing is left with them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "bootstrap/handshake.h"
#include "transport/descriptor.h"

namespace coll {

class HandoverDoor {
 public:
  // A door of this rank. Throws Error.
  explicit HandoverDoor(const Identity& identity);

  // What the others are told: this process and the door.
  std::string text() const;
  // What `from` has left here, the memory of this group. Throws Error where it has not.
  Descriptor take(pid_t from, std::uint64_t group) const;

 private:
  std::string name_;
  Descriptor listener_;
};

// Leaves the memory of a group at a door that another rank has told of. Throws Error.
void hand_over(std::string_view door, int memfd, std::uint64_t group);

}  // namespace coll
