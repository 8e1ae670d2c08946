// SPDX-License-Identifier: Apache-2.0
// From the structures of the C interface to the library's own.
#pragma once

#include "collectives.h"
#include "communicator/call.h"

namespace coll {

// Throws Error(invalid_argument) where there is none, or one of another version.
Call to_call(const coll_call* given);

}  // namespace coll
