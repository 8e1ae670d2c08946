// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/mesh_door.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/system_error.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

// Out of descriptors or memory, a listener stays readable though nothing can be accepted.
constexpr std::chrono::milliseconds kRest{20};

// What was lacking is there again when nobody was kept out for so long.
constexpr std::chrono::milliseconds kOver{400};

}  // namespace

MeshDoor::MeshDoor(TcpListener&& listener, const MeshTerms& terms, const MeshLimits& limits,
                   Room room, LetIn let_in)
    : listener_(std::move(listener)),
      terms_(&terms),
      limits_(&limits),
      room_(std::move(room)),
      let_in_(std::move(let_in)) {}

void MeshDoor::step() {
  // Who has come in time is heard before anybody is late, however long this rank was away.
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) serve(visitor++);
  drop_the_late();
  if (!resting()) admit();
}

void MeshDoor::watch(std::vector<pollfd>& out) const {
  if (!resting()) out.push_back({listener_.fd(), POLLIN, 0});
  for (const Visitor& visitor : visitors_) out.push_back(visitor.talk.watched());
}

std::string MeshDoor::troubles() const {
  std::string text;
  if (refused_ == 1) text += "; 1 connection was refused, from " + refusal_;
  if (refused_ > 1) {
    text += "; " + std::to_string(refused_) + " connections were refused, " +
            (another_came_later_ ? "one" : "the last") + " of them from " + refusal_;
  }
  if (accept_error_ != 0) {
    text += "; " + std::string(system_error("accepting a connection", accept_error_).what());
  }
  return text;
}

void MeshDoor::Lack::note() noexcept {
  const Deadline::Clock::time_point now = Deadline::Clock::now();
  if (!since || now - last > kOver) since = now;
  last = now;
}

// Where others had to go, one of them may have been a stranger, and a rank may still come in.
int MeshDoor::starved() const noexcept {
  constexpr double kWithOthers = 4;
  const Deadline::Clock::time_point now = Deadline::Clock::now();
  if (!lack_.since || now - lack_.last > kOver) return 0;
  const std::chrono::duration<double> lasts = now - *lack_.since;
  const double most = limits_->starved_s * (lack_.costs_others ? kWithOthers : 1);
  return lasts.count() < most ? 0 : accept_error_;
}

void MeshDoor::admit() {
  // Half of the places: who has said hello in one turn can prove itself in the next, also where
  // many strangers knock.
  const std::size_t most = std::max<std::size_t>(1, limits_->strangers / 2);
  for (std::size_t i = 0; i < most; ++i) {
    Connection connection = listener_.accept();
    if (connection.error == EAGAIN) return;
    if (connection.error != 0) accept_error_ = connection.error;
    if (out_of_means(connection.error)) {
      lack_.note();
      if (drop_one_stranger("this process has no room for it")) {
        lack_.costs_others = true;
        continue;
      }
      rests_until_ = Deadline::Clock::now() + kRest;
      return;
    }
    if (connection.error != 0) continue;  // that connection's own fault
    if (strangers() >= limits_->strangers) drop_one_stranger("too many others have come after it");
    visitors_.push_back({MeshHandshake(std::move(connection), *terms_, Role::acceptor, kAnyRank,
                                       [this](int rank) { return is_taken(rank); }),
                         Deadline(limits_->stranger_s)});
    serve(std::prev(visitors_.end()));
  }
}

void MeshDoor::serve(Visitors::iterator visitor) {
  MeshHandshake& talk = visitor->talk;
  const MeshHandshake::State state = talk.step();
  if (state == MeshHandshake::State::talking) return;
  if (state == MeshHandshake::State::done) {
    const int rank = talk.peer(), lane = talk.lane();
    Connection connection = talk.take();
    visitors_.erase(visitor);
    lack_ = {};
    return let_in_(rank, lane, std::move(connection));
  }
  if (!talk.welcomed()) return drop(visitor, talk.sentence(), talk.telling());
  const Error error = talk.error(talk.peer());
  visitors_.erase(visitor);
  throw Error(error);
}

void MeshDoor::drop(Visitors::iterator visitor, const std::string& why, Telling telling) {
  ++refused_;
  another_came_later_ = telling < telling_;
  if (!another_came_later_) {
    refusal_ = visitor->talk.endpoint().text() + " (" + why + ")";
    telling_ = telling;
  }
  visitors_.erase(visitor);
}

// The oldest that has not even greeted, or else the oldest. Whether there was one.
bool MeshDoor::drop_one_stranger(const std::string& why) {
  const auto silent = std::find_if(visitors_.begin(), visitors_.end(),
                                   [](const Visitor& visitor) { return !visitor.talk.greeted(); });
  const auto stranger =
      silent != visitors_.end()
          ? silent
          : std::find_if(visitors_.begin(), visitors_.end(),
                         [](const Visitor& visitor) { return !visitor.talk.welcomed(); });
  if (stranger == visitors_.end()) return false;
  drop(stranger, why);
  return true;
}

void MeshDoor::drop_the_late() {
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    const auto late = visitor++;
    if (late->talk.welcomed() || !late->patience.passed()) continue;
    drop(late, "it has not proved within " + seconds_in_words(limits_->stranger_s) +
                   " that it belongs to this job");
  }
}

bool MeshDoor::is_taken(int rank) const {
  const auto is_it = [rank](const Visitor& visitor) {
    return visitor.talk.welcomed() && visitor.talk.peer() == rank;
  };
  return std::count_if(visitors_.begin(), visitors_.end(), is_it) >= room_(rank);
}

std::size_t MeshDoor::strangers() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(visitors_.begin(), visitors_.end(),
                    [](const Visitor& visitor) { return !visitor.talk.welcomed(); }));
}

}  // namespace coll
