// SPDX-License-Identifier: Apache-2.0
#include "engine/watch.h"

#include "base/error.h"

namespace coll {

void Watch::tell_times(Of which) {
  const std::lock_guard lock(changing_);
  times_asked_ = which;
  changed_ = true;
  wanted_ = true;
}

void Watch::record(std::size_t most_events) {
  auto made = std::make_shared<Recording>(most_events);
  const std::lock_guard lock(changing_);
  if (asked_) {
    throw Error(Status::invalid_argument,
                "the calls of this communicator are recorded: end that first");
  }
  asked_ = kept_ = std::move(made);
  changed_ = true;
  wanted_ = true;
}

void Watch::stop_recording() {
  const std::lock_guard lock(changing_);
  asked_.reset();
  changed_ = true;
  wanted_ = true;
}

std::shared_ptr<const Recording> Watch::recording() const {
  const std::lock_guard lock(changing_);
  return kept_;
}

void Watch::take_up() noexcept {
  const std::lock_guard lock(changing_);
  changed_ = false;
  into_ = asked_;
  times_ = times_asked_;
  wanted_ = into_ != nullptr || times_ != Of::none;
}

void Watch::begin(const Event& operation) noexcept {
  active_ = true;
  waiting_ = wait_since_ = step_since_ = 0;
  operation_ = operation;
  operation_.begin = arrived_;
  if (operation.what == Event::What::message) operation_.call = ++messages_;
  told_ = into_ ? into_->add(operation_) : nullptr;
}

void Watch::runs(int algorithm, int mode) noexcept {
  if (told_ == nullptr) return;
  told_->algorithm = algorithm;
  told_->mode = mode;
}

void Watch::end(bool failed) noexcept {
  wait_ends();
  active_ = false;
  const std::int64_t ended = now();
  if (into_) {
    if (told_ != nullptr) {
      told_->end = ended;
      told_->failed = failed;
    }
    into_->publish();
  }
  if (failed || operation_.what != Event::What::operation) return;
  last_ = {operation_.call, ended - arrived_, waiting_};
}

void Watch::wait_begins(int peer) noexcept {
  if (wait_since_ != 0) {
    if (waits_for_ == peer) return;
    wait_ends();
  }
  waits_for_ = peer;
  wait_since_ = latest_ = now();
}

void Watch::wait_ends() noexcept {
  if (wait_since_ == 0) return;
  latest_ = now();
  waiting_ += latest_ - wait_since_;
  add({.what = Event::What::wait,
       .begin = wait_since_,
       .end = latest_,
       .peer = waits_for_,
       .peers = waits_for_ < 0 ? 0 : 1});
  wait_since_ = 0;
}

void Watch::step_begins() noexcept {
  if (step_since_ != 0) return;
  step_since_ = latest_;
  waited_before_ = waiting_;
}

void Watch::step_ends(Event step) noexcept {
  latest_ = now();
  step.begin = step_since_;
  step.end = latest_;
  add(step);
  step_since_ = 0;
}

void Watch::step_ends_if_it_waited(Event step) noexcept {
  if (waiting_ != waited_before_) step_ends(step);
  step_since_ = 0;
}

void Watch::add(const Event& step) noexcept {
  if (!into_) return;
  Event* kept = into_->add(step);
  if (kept != nullptr) kept->call = operation_.call;
}

}  // namespace coll
