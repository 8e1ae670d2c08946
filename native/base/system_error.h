// SPDX-License-Identifier: Apache-2.0
// A failed system call as a sentence, and the names of the errno values.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace coll {

// "ENOMEM" for ENOMEM; "errno 123" for a value without an entry here.
std::string errno_name(int error);

// The inverse; 0 for a name it does not know.
int errno_from_name(std::string_view name) noexcept;

// Whether it says that there are no more descriptors, or no memory, for another connection.
bool out_of_means(int error) noexcept;

// "<what> failed: Cannot allocate memory (ENOMEM)", with what to do where that is known.
Error system_error(const std::string& what, int error);

}  // namespace coll
