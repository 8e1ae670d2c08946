// SPDX-License-Identifier: Apache-2.0
// The persistent calls of a communicator.
#include <algorithm>

#include "communicator/communicator.h"
#include "communicator/guard.h"
#include "communicator/note.h"

namespace coll {

Persistent& Communicator::prepare(const Call& call) {
  const Guard guard(*this);
  check_failed();
  validate(call, rank_, ranks_);
  auto made = std::make_unique<Persistent>();
  const Call kept = settled(call, plans_.given());
  Kept& own = made->kept;
  made->announcement = announced_.taken();
  resolve(kept, own.prepared);
  keep(kept, own);
  bind(kept, own.prepared, own.scratch);
  persistent_.push_back(std::move(made));
  return *persistent_.back();
}

void Communicator::forget(Persistent& persistent) {
  const Guard guard(*this);
  const bool last = now_ == &persistent.kept.prepared;
  if (last && active_ && !failed(segment_)) {
    throw Error(Status::invalid_argument, "this persistent call is in progress: finish it first");
  }
  const auto at = std::ranges::find_if(
      persistent_, [&](const auto& known) { return known.get() == &persistent; });
  if (at == persistent_.end()) return;
  if (last) forgotten_ = std::move(*at);
  persistent_.erase(at);
}

// Chooses anew what was prepared before an announcement: all ranks do so in the same call, wherever
// each has prepared it.
void Communicator::renew(Persistent& persistent) {
  Kept& own = persistent.kept;
  Prepared& prepared = own.prepared;
  const Call call = prepared.call;
  resolve(call, prepared);
  keep(call, own);
  bind(call, prepared, own.scratch);
  persistent.announcement = announced_.taken();
}

void Communicator::start(Persistent& persistent) {
  const Guard guard(*this);
  enter();
  if (persistent.announcement != announced_.taken()) [[unlikely]]
    renew(persistent);
  arrive(persistent.kept.prepared.call);
  begin(persistent.kept.prepared);
  times_.forget();
  persistent.state = Persistent::State::started;
  // What can be done without waiting is done: it may be all that the peers need.
  const Progress progress = executor_.advance(0);
  if (progress == Progress::done) {
    end();
    persistent.state = Persistent::State::done;
  } else if (progress != Progress::blocked) {
    fail_of(progress);
  }
}

Status Communicator::finish(Persistent& persistent) {
  const Guard guard(*this);
  if (persistent.state == Persistent::State::idle) {
    check_failed();
    throw Error(Status::invalid_argument, "this persistent call was not started");
  }
  if (persistent.state == Persistent::State::started) {
    if (!active_) report_failure();
    patience_.resume();
    const Status status = drive();
    if (status != Status::ok) return status;
  }
  persistent.state = Persistent::State::idle;
  return Status::ok;
}

Status Communicator::run(Persistent& persistent) {
  const Guard guard(*this);
  enter();
  if (persistent.announcement != announced_.taken()) [[unlikely]]
    renew(persistent);
  arrive(persistent.kept.prepared.call);
  begin(persistent.kept.prepared);
  return drive();
}

}  // namespace coll
