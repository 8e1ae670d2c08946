// SPDX-License-Identifier: Apache-2.0
// The persistent calls of a communicator between machines.
#include <algorithm>

#include "communicator/note.h"
#include "communicator/wire_communicator.h"
#include "communicator/wire_guard.h"

namespace coll {

WirePersistent& WireCommunicator::prepare(const Call& call) {
  const Entered entered(*this);
  check_failed();
  validate(call, rank_, ranks_);
  auto made = std::make_unique<WirePersistent>();
  const Call kept = settled(call, plans_.given());
  resolve(kept, made->ready);
  made->binding = std::make_unique<WireBinding>(*made->ready.plan);
  made->ready.binding = made->binding.get();
  bind(kept, made->ready, made->scratch);
  persistent_.push_back(std::move(made));
  return *persistent_.back();
}

void WireCommunicator::forget(WirePersistent& persistent) {
  const Entered entered(*this);
  const bool last = now_ == &persistent.ready;
  if (last && active_) {
    throw Error(Status::invalid_argument, "this persistent call is in progress: finish it first");
  }
  if (last) now_ = &last_;
  std::erase_if(persistent_, [&](const auto& known) { return known.get() == &persistent; });
}

void WireCommunicator::start(WirePersistent& persistent) {
  const Entered entered(*this);
  enter();
  begin(persistent.ready);
  persistent.state = WirePersistent::State::started;
  // What can be done without waiting is done: it may be all that the peers need.
  bool done = go();
  if (!done && links_.turn()) done = go();
  if (done) persistent.state = WirePersistent::State::done;
}

Status WireCommunicator::finish(WirePersistent& persistent) {
  const Entered entered(*this);
  if (persistent.state != WirePersistent::State::done) check_failed();
  if (persistent.state == WirePersistent::State::idle) {
    throw Error(Status::invalid_argument, "this persistent call was not started");
  }
  if (persistent.state == WirePersistent::State::started) {
    patience_.resume();
    const Status status = drive();
    if (status != Status::ok) return status;
  }
  persistent.state = WirePersistent::State::idle;
  return Status::ok;
}

Status WireCommunicator::run(WirePersistent& persistent) {
  const Entered entered(*this);
  enter();
  begin(persistent.ready);
  return drive();
}

}  // namespace coll
