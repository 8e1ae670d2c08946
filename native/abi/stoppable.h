// SPDX-License-Identifier: Apache-2.0
// Work of no communicator that may take long: it asks whom its thread was told to ask.
#pragma once

#include <functional>

#include "abi/guarded.h"
#include "base/looks.h"

namespace coll {

// Throws Stopped where the thread's function wants work to end; see coll_work_stop_by().
std::function<void()> asker_of_thread();

template <class F>
coll_status stoppable(F&& f) noexcept {
  return guarded([&] {
    const Looks looks(asker_of_thread());
    return f();
  });
}

}  // namespace coll
