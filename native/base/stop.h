// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace coll {

// Asked at least every 50 ms and after every signal while a wait lasts; true gives up.
using Stop = std::function<bool()>;

}  // namespace coll
