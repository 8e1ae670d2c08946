// SPDX-License-Identifier: Apache-2.0
// What the host is told of launches that ended before their time, and how it ends them.
#pragma once

#include "cuda/launch.h"

namespace coll {

// Throws Error where a launch gave up, or was ended.
void check_outcome(const cuda::Control& control, int device);

// Ends launches that wait. All later ones end at once.
void abort_launches(cuda::Control& control) noexcept;

}  // namespace coll
