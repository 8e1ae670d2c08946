// SPDX-License-Identifier: Apache-2.0
#include "abi/stoppable.h"

namespace coll {
namespace {

struct Asked {
  coll_stop_function stop = nullptr;
  void* context = nullptr;
};

constinit thread_local Asked asked_by_thread;

}  // namespace

std::function<void()> asker_of_thread() {
  return [asked = asked_by_thread] {
    if (asked.stop != nullptr && asked.stop(asked.context) != 0) throw Stopped();
  };
}

}  // namespace coll

extern "C" {

void coll_work_stop_by(coll_stop_function stop, void* context) {
  coll::asked_by_thread = {stop, context};
}

}  // extern "C"
