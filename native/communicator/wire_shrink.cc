// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_shrink.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/index.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

// Seconds in which a machine that is up answers, also where it has to be asked twice.
constexpr double kAnswer = 1.4;
constexpr double kSilence = 1.0;
constexpr double kRefusals = 0.4;      // seconds of refusals that make a rank lost
constexpr double kFarewell = 5.0;      // seconds for telling all that live what was decided
constexpr std::uint8_t kView = 48;     // TcpHeader::kind
constexpr std::size_t kSurvivors = 3;  // the door

MeshLimits shrink_limits() {
  MeshLimits limits;
  limits.unreachable_s = limits.refused_s = kRefusals;
  limits.first_pause_s = 0.01;
  limits.longest_pause_s = 0.1;
  limits.tcp.silence_s = kSilence;
  return limits;
}

Identity for_survivors(Identity self) {
  self.job += ".survivors";
  return self;
}

bool passed(std::chrono::steady_clock::time_point since, double seconds) {
  return std::chrono::steady_clock::now() - since >= std::chrono::duration<double>(seconds);
}

}  // namespace

// One other rank: the ways to and from it, and what it has told.
class WireShrink::Peer final : public TcpReceiver {
 public:
  Landing land(const TcpHeader& header) noexcept override {
    if (header.kind != kView || header.length != sizeof incoming_) {
      return {Landing::Verdict::refuse, {}};
    }
    return {Landing::Verdict::take, std::as_writable_bytes(std::span(&incoming_, 1))};
  }
  void landed(const TcpHeader&) noexcept override {
    incoming_.where.back() = '\0';
    if (incoming_.decided != 0 && !decision) decision = incoming_;
    // No more than two rounds are ever of interest: the sender waits for us after each.
    (incoming_.round % 2 == 0 ? even : odd) = incoming_;
    where = incoming_.where.data();
  }
  const View* of(std::uint32_t round) const noexcept {
    const auto& view = round % 2 == 0 ? even : odd;
    return view && view->round == round ? &*view : nullptr;
  }
  bool flushed() const noexcept {
    return out != nullptr && (out->state() != StreamState::open || out->sent() == out->posted());
  }
  // Nothing more comes of it. Where it is only our way to it that has ended, it may have gone after
  // a decision that is still to be read.
  bool ended(Clock::time_point now) noexcept {
    const auto over = [](const auto& s) { return s != nullptr && s->state() != StreamState::open; };
    if (over(in)) return true;
    return over(out) && ended_.lasts(now);
  }
  // It is said to be no more: for so long that who came, and went after a decision, is connected.
  bool stays_away(Clock::time_point now) noexcept { return away_.lasts(now); }

 private:
  // Of what is seen before something that is still on its way.
  struct Grace {
    std::optional<Clock::time_point> since;
    bool lasts(Clock::time_point now) noexcept {
      if (!since) since = now;
      return now - *since >= std::chrono::duration<double>(kAnswer / 2);
    }
  };
  View incoming_;
  Grace ended_, away_;

 public:
  std::unique_ptr<TcpStream> in, out;
  std::uint32_t told = 0;  // views of ours that were posted to it
  std::optional<View> even, odd, decision;
  std::string where;
};

WireShrink::WireShrink(WireCommunicator& parent, double timeout)
    : Shrinking(parent.rank(), timeout > 0 ? timeout : parent.timeout(), parent.interruptible()),
      parent_(parent),
      place_(std::as_const(parent).place()),
      ways_(for_survivors(place_.self), place_.secret, parent.survivors_door(),
            place_.survivor_doors, shrink_limits()),
      set_(std::chrono::microseconds(0)),
      doors_(open_doors(place_.data_doors[index(place_.self.rank)])),
      lives_(index(place_.self.ranks), true) {
  parent.revoke();
  // Also of the rank that the parent was told is lost: who fails shuts its doors but this one, and
  // to who comes later that looks like death.
  for (int peer = 0; peer < ranks(); ++peer) {
    peers_.push_back(std::make_unique<Peer>());
    if (peer != rank()) ways_.want(peer);
  }
}

WireShrink::~WireShrink() = default;

std::vector<int> WireShrink::missing() const {
  std::vector<int> late;
  if (decision_) return unheard_;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank() || !lives_[index(peer)]) continue;
    const Peer& it = *peers_[index(peer)];
    if (said_.empty() ? it.out == nullptr : it.of(round_) == nullptr) late.push_back(peer);
  }
  return late;
}

void WireShrink::say(std::uint32_t decided) {
  View view{.round = round_, .decided = decided};
  for (int peer = 0; peer < ranks(); ++peer) view.lives[index(peer)] = lives_[index(peer)] ? 1 : 0;
  if (decided != 0) view.lives = decision_->lives;
  const std::string where = text_of(doors_);
  std::memcpy(view.where.data(), where.data(), std::min(where.size(), kWhere - 1));
  said_.push_back(view);
}

bool WireShrink::step() {
  take_connections();
  if (set_.wait(Deadline(0.002)) > 0) take_connections();
  if (decision_) return farewell();
  look_for_lost();
  // Only now is it known that each whom this rank takes for living can hear it, and be heard.
  if (said_.empty() && missing().empty()) say(0);
  return conclude() && farewell();
}

// What was said before a connection came to be is said on it.
void WireShrink::take_connections() {
  ways_.step();
  const TcpLimits limits{.queue = 64, .payload = sizeof(View), .silence_s = kSilence};
  while (auto made = ways_.next_out()) {
    Peer& peer = *peers_[index(made->first)];
    Connection& end = made->second.front();
    peer.out = std::make_unique<TcpStream>(std::move(end.fd), end.peer, peer, limits);
    set_.add(*peer.out);
  }
  while (auto came = ways_.next_in()) {
    Peer& peer = *peers_[index(came->first)];
    Connection& end = came->second.front();
    peer.in = std::make_unique<TcpStream>(std::move(end.fd), end.peer, peer, limits);
    set_.add(*peer.in);
    ways_.want(came->first);  // also where it is taken for lost: it is to know
  }
  for (const auto& peer : peers_) {
    if (peer->out == nullptr) continue;
    auto view = said_.begin();
    std::advance(view, peer->told);
    for (; view != said_.end(); ++view, ++peer->told) {
      TcpHeader header;
      header.kind = kView;
      header.length = sizeof(View);
      if (!peer->out->post(header, &*view)) break;
    }
    for (const TcpStream* stream : {peer->in.get(), peer->out.get()}) {
      if (stream != nullptr && stream->state() != StreamState::open) set_.remove(*stream);
    }
  }
  set_.progress();
}

bool WireShrink::gone(int peer) {
  Peer& it = *peers_[index(peer)];
  const bool silent = it.in == nullptr && ways_.silence(peer) >= kAnswer;
  return silent || !ways_.trouble(peer).empty() || it.ended(Clock::now()) || stays_away(peer);
}

bool WireShrink::stays_away(int peer) {
  if (peers_[index(peer)]->in != nullptr) return false;
  const auto misses_it = [&](const auto& other) {
    const View* view = other->of(round_);
    return view != nullptr && view->lives[index(peer)] == 0;
  };
  if (!parent_.has_parted(peer) && std::ranges::none_of(peers_, misses_it)) return false;
  return peers_[index(peer)]->stays_away(Clock::now());
}

void WireShrink::look_for_lost() {
  parent_.hear_partings();
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank() || !lives_[index(peer)]) continue;
    if (!peers_[index(peer)]->decision && gone(peer)) lives_[index(peer)] = false;
  }
}

bool WireShrink::all_have_told() const { return !said_.empty() && missing().empty(); }

// Of a rank and one that it takes for lost the second goes; where each takes the other for it, as
// where one direction between them is dead, the higher one.
std::array<std::uint8_t, WireShrink::kMostRanks> WireShrink::common() const {
  View mine = said_.back();
  for (int peer = 0; peer < ranks(); ++peer) {
    if (!lives_[index(peer)]) mine.lives[index(peer)] = 0;
  }
  const auto view_of = [&](int peer) -> const View& {
    const View* told = peer == rank() ? nullptr : peers_[index(peer)]->of(round_);
    return told == nullptr ? mine : *told;  // of all others that live it is there
  };
  auto lives = mine.lives;
  for (int one = 0; one < ranks(); ++one) {
    for (int other = 0; other < ranks() && mine.lives[index(one)] != 0; ++other) {
      if (mine.lives[index(other)] == 0 || view_of(one).lives[index(other)] != 0) continue;
      const bool mutual = view_of(other).lives[index(one)] == 0;
      lives[index(mutual ? std::max(one, other) : other)] = 0;
    }
  }
  return lives;
}

void WireShrink::check_own_place(const View& view) const {
  if (view.lives[index(rank())] != 0) return;
  throw Error(Status::peer_lost,
              "shrink: the other ranks took rank " + std::to_string(rank()) +
                  " for lost and go on without it: end this process, or begin a job of its own",
              rank());
}

// Whether there is a decision.
bool WireShrink::conclude() {
  for (const auto& peer : peers_) {
    if (!peer->decision) continue;
    check_own_place(*peer->decision);
    decision_ = peer->decision;
    say(1);
    return true;
  }
  if (!all_have_told()) return false;
  const View& own = said_.back();
  bool alike = true;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank() || !lives_[index(peer)]) continue;
    const View& view = *peers_[index(peer)]->of(round_);
    check_own_place(view);
    alike = alike && view.lives == own.lives;
  }
  const auto lives = common();
  if (alike && lives == own.lives) {
    decision_ = own;
    say(1);
    return true;
  }
  for (int peer = 0; peer < ranks(); ++peer) lives_[index(peer)] = lives[index(peer)] != 0;
  ++round_;
  say(0);
  return false;
}

// Until all members have been told, and have told where they are, or are gone.
bool WireShrink::farewell() {
  if (!decided_at_) decided_at_ = Clock::now();
  take_connections();
  unheard_.clear();
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank() || decision_->lives[index(peer)] == 0) continue;
    const Peer& it = *peers_[index(peer)];
    // Where it can be met may still be on its way, though others have told what was decided.
    const bool done = it.flushed() && it.told == said_.size() && !it.where.empty();
    if (!done && !gone(peer)) unheard_.push_back(peer);
  }
  if (!unheard_.empty() && !passed(*decided_at_, kFarewell)) return false;
  found(*decision_);
  return true;
}

void WireShrink::found(const View& decision) {
  std::vector<int> members;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (decision.lives[index(peer)] != 0) members.push_back(peer);
  }
  const int own = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  WirePlace place = place_.among(members, own, "survivors " + ranks_in_words(members));
  for (const int member : members) {
    std::string where = member == rank() ? text_of(doors_) : peers_[index(member)]->where;
    if (where.empty()) {  // it has died since: its door refuses, and the first call says so
      const std::string door = place_.survivor_doors[index(member)].text();
      for (int i = 0; i < kWireDoors; ++i) where += (i > 0 ? " " : "") + door;
    }
    place.add_doors(where);
  }
  place.doors = std::move(doors_);
  made_ = parent_.branch(std::move(place));
}

}  // namespace coll
