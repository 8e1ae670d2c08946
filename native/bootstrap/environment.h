// SPDX-License-Identifier: Apache-2.0
// Every environment variable that the native layer reads.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/placement.h"
#include "bootstrap/handshake.h"

namespace coll {

struct Variable {
  const char* name;
  const char* type;
  const char* fallback;  // its value where it is not set, as text
  const char* sentence;
};

std::span<const Variable> environment_variables() noexcept;

struct Environment {
  Identity identity;
  double timeout_s = 0;
};

// Who this process is, as its launcher says. Without COLLECTIVES_RANK and COLLECTIVES_SIZE: rank 0
// of 1. Throws Error(invalid_argument) that names the variable and its value where one is
// malformed.
Environment read_environment();

// What COLLECTIVES_PLACEMENT says; nothing where it leaves it to measurement.
std::optional<Placement> assumed_placement();

// What COLLECTIVES_ALGORITHM says (select/forced.h).
std::string forced_algorithms();

// Bytes that the kernel may hold of what was sent to another machine on one connection for data, as
// COLLECTIVES_SEND_BUFFER says; 0: as many as it likes. Throws Error(invalid_argument).
int send_buffer_bytes();

// How many connections for data two ranks of different machines have, as COLLECTIVES_STREAMS says.
// Throws Error(invalid_argument).
int streams_of_pair();

// Arms what COLLECTIVES_FAULT says, once in the life of the process.
void arm_faults_from_environment();

}  // namespace coll
