// SPDX-License-Identifier: Apache-2.0
// Descriptors that a forked child does not keep.
#pragma once

#include <memory>

#include "transport/descriptor.h"

namespace coll {

// Closed in every child that is forked from now on: one that outlives its parent would hold the
// memory behind it for as long as it lives.
std::shared_ptr<Descriptor> closed_in_forks(Descriptor fd);

}  // namespace coll
