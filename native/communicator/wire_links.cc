// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_links.h"

#include <algorithm>
#include <exception>
#include <ranges>
#include <utility>

#include "base/system_error.h"
#include "bootstrap/environment.h"
#include "bootstrap/words.h"
#include "transport/striped_stream.h"
#include "transport/system_calls.h"

namespace coll {
namespace {

constexpr std::uint64_t kLongestData = std::uint64_t{1} << 40U;
constexpr double kFlush = 0.2;      // seconds that a parting word may take
constexpr double kLastWords = 0.5;  // and that a rank which knocks may take to prove itself

Identity for_control(Identity self) {
  self.job += ".control";
  return self;
}

TcpLimits limits_of(const WirePlace& place, std::uint64_t payload) {
  return {.queue = 64, .payload = payload, .silence_s = place.silence_s};
}

MeshLimits mesh_limits(const WirePlace& place) {
  MeshLimits limits;
  limits.tcp.silence_s = place.silence_s;
  limits.absent_s = 2 * place.silence_s;  // what has become of the peer is told before that
  return limits;
}

}  // namespace

WireLinks::WireLinks(WirePlace&& place)
    : place_(std::move(place)),
      data_(std::in_place, place_.self, place_.secret, std::move(place_.doors.at(0)),
            place_.data_doors, mesh_limits(place_), place_.ucx ? MeshLanes{} : place_.lanes()),
      control_(std::in_place, for_control(place_.self), place_.secret,
               std::move(place_.doors.at(1)), place_.control_doors, mesh_limits(place_)),
      executor_(place_.self.ranks),
      controls_(index_of(place_.self.ranks)),
      set_(place_.spin),
      send_buffer_(send_buffer_bytes()) {
  if (place_.ucx) ucx_.emplace(place_.ucx_settings, place_.self.rank, place_.self.ranks);
}

bool WireLinks::connected(int peer) const noexcept {
  return executor_.stream(peer) != nullptr && control(peer) != nullptr;
}

bool WireLinks::connect(const std::vector<int>& peers) {
  connecting_ = false;
  for (const int peer : peers) {
    if (connected(peer)) continue;
    data_->want(peer);
    control_->want(peer);
    connecting_ = true;
  }
  if (!connecting_) return true;
  serve_doors();
  connecting_ = false;
  for (const int peer : peers) {
    if (connected(peer)) continue;
    expect_means(peer);
    probe(peer);
    connecting_ = true;
  }
  return !connecting_;
}

// A peer that is to connect may have been knocking for long.
void WireLinks::expect_means(int peer) const {
  if (peer < place_.self.rank) return;
  const int lack = data_->starved() != 0 ? data_->starved() : control_->starved();
  if (lack == 0) return;
  const std::string self = "rank " + std::to_string(place_.self.rank);
  const Error error = system_error(self + " waits for " + name_of(peer) + ": letting it in", lack);
  throw Error(error.status, error.what(), place_.self.rank);
}

void WireLinks::probe(int peer) {
  const Endpoint& door = place_.data_doors[index_of(peer)];
  const auto it = probes_.try_emplace(peer, door, mesh_limits(place_).tcp).first;
  it->second.step(WireProbe::Clock::now());
}

// Also of ranks that this one does not need now: they are to be told where something goes wrong.
void WireLinks::take_ready() {
  for (int peer = 0; peer < place_.self.ranks; ++peer) {
    if (peer == place_.self.rank || connected(peer)) continue;
    if (!data_->connected(peer) || !control_->connected(peer)) continue;
    if (control(peer) == nullptr) take_control(peer);
    if (ucx_) {
      Connection data = data_->take(peer);
      attach(peer, ucx_->connect(peer, std::move(data.fd), data.peer, executor_.receiver(peer),
                                 shares_host(peer)));
    } else if (!shares_host(peer)) {
      attach(peer, data_->take_all(peer));
    } else if (meet_in_memory(peer)) {
      PipeMeeting& meeting = meetings_.at(peer);
      attach(peer, meeting.take_connection(), meeting.take_pipe());
      meetings_.erase(peer);
    }
  }
}

void WireLinks::take_control(int peer) {
  Connection connection = control_->take(peer);
  auto link = std::make_unique<WireControl>();
  link->attach(std::make_unique<TcpStream>(std::move(connection.fd), connection.peer, *link,
                                           limits_of(place_, WireControl::kLongest)));
  set_.add(*link->stream());
  controls_[index_of(peer)] = std::move(link);
  known_.insert(std::ranges::lower_bound(known_, peer), peer);
}

bool WireLinks::shares_host(int peer) const noexcept {
  return !place_.hosts.empty() &&
         place_.hosts[index_of(peer)] == place_.hosts[index_of(place_.self.rank)];
}

// Whether it is settled how the bytes go.
bool WireLinks::meet_in_memory(int peer) {
  auto it = meetings_.find(peer);
  if (it == meetings_.end()) {
    it = meetings_.try_emplace(peer, data_->take(peer), place_.self.rank < peer).first;
  }
  return it->second.step();
}

void WireLinks::attach(int peer, Connection data, std::unique_ptr<LocalPipe> pipe) {
  if (pipe == nullptr) bound(data);
  attach(peer, std::make_unique<TcpStream>(std::move(data.fd), data.peer, executor_.receiver(peer),
                                           limits_of(place_, kLongestData), std::move(pipe)));
}

void WireLinks::attach(int peer, std::vector<Connection> lanes) {
  for (const Connection& lane : lanes) bound(lane);
  executor_.attach(peer, stream_over(std::move(lanes), executor_.receiver(peer),
                                     limits_of(place_, kLongestData), set_));
  probes_.erase(peer);
}

// Where both ends have one address, there is no queue on the way.
void WireLinks::bound(const Connection& data) const {
  if (local_endpoint(data.fd).with_port(0) != data.peer.with_port(0)) {
    tcp_bound_sending(data.fd, send_buffer_);
  }
}

void WireLinks::attach(int peer, std::unique_ptr<PolledStream> stream) {
  set_.add(*stream);
  executor_.attach(peer, std::move(stream));
  probes_.erase(peer);
}

void WireLinks::serve_doors() {
  if (!data_) return;
  data_->step();
  control_->step();
  take_ready();
  set_.remove_ended();
}

bool WireLinks::knocked() const {
  const auto half = [this](int peer) {
    return peer != place_.self.rank && data_->connected(peer) != control_->connected(peer);
  };
  if (data_->half_open() + control_->half_open() > 0) return true;
  return std::ranges::any_of(std::views::iota(0, place_.self.ranks), half);
}

void WireLinks::serve_last() noexcept {
  constexpr int kNap = 5;  // milliseconds
  const Deadline end(kLastWords);
  try {
    serve_doors();
    while (data_ && knocked() && !end.passed()) {
      std::vector<pollfd> doors;
      data_->watch(doors);
      control_->watch(doors);
      sys::poll(doors.data(), doors.size(), end.milliseconds(kNap));
      serve_doors();
    }
  } catch (const std::exception&) {
    return;
  }
}

void WireLinks::give_up() noexcept {
  executor_.abandon();
  meetings_.clear();
  connecting_ = false;
  data_.reset();
  control_.reset();
}

bool WireLinks::wait(int milliseconds, std::vector<pollfd>& others) {
  constexpr int kConnecting = 10;  // who was refused tries again soon
  if (connecting_) {
    data_->watch(others);
    control_->watch(others);
    for (const auto& [peer, meeting] : meetings_) others.push_back(meeting.watched());
    milliseconds = std::min(milliseconds, kConnecting);
  }
  set_.watch_also(others);
  return set_.wait(Deadline(milliseconds * 1e-3)) > 0;
}

std::string WireLinks::standing(int peer) const {
  return data_->connected(peer) ? control_->standing(peer) : data_->standing(peer);
}

std::string WireLinks::name_of(int peer) const {
  std::string name = "rank " + std::to_string(peer);
  if (index_of(peer) < place_.hosts.size()) name += " on " + place_.hosts[index_of(peer)];
  const int world = place_.world_of(peer);
  return world == peer ? name : name + " (rank " + std::to_string(world) + " of the world)";
}

std::string WireLinks::fault_of_data(int peer) const {
  const Stream* stream = executor_.stream(peer);
  return stream == nullptr || stream->state() == StreamState::open ? "" : stream->why();
}

bool WireLinks::fails_here(int peer) const noexcept {
  const Stream* stream = executor_.stream(peer);
  return stream != nullptr && stream->state() == StreamState::failed;
}

bool WireLinks::silent(int peer) const noexcept {
  const Stream* data = executor_.stream(peer);
  const TcpStream* words = control(peer) == nullptr ? nullptr : control(peer)->stream();
  return (data != nullptr && data->state() == StreamState::silent) ||
         (words != nullptr && words->state() == StreamState::silent);
}

std::string WireLinks::loss_of(int peer, bool silent) const {
  if (!silent) return name_of(peer) + " is lost";
  const auto [low, high] = std::minmax(peer, place_.self.rank);
  return name_of(low) + " and " + name_of(high) + " lost each other";
}

std::string WireLinks::fault_of_control(int peer) const {
  const TcpStream* stream = control(peer) == nullptr ? nullptr : control(peer)->stream();
  return stream == nullptr || stream->state() == StreamState::open ? "" : stream->why();
}

bool WireLinks::holds_back(int peer) const noexcept {
  const Stream* stream = executor_.stream(peer);
  return stream != nullptr && stream->held_back();
}

bool WireLinks::has_parted(int peer) const noexcept {
  const WireControl* words = control(peer);
  if (words == nullptr) return false;
  return words->left() || words->stream()->state() == StreamState::ended;
}

std::string WireLinks::gone(int peer) const {
  const auto it = probes_.find(peer);
  if (it == probes_.end()) return "";
  const std::string door = place_.data_doors[index_of(peer)].text();
  if (it->second.refused()) {
    return "it does not listen any more at " + door +
           ", so it has ended, closed its communicator or given up";
  }
  if (it->second.silence(WireProbe::Clock::now()) < place_.silence_s) return "";
  return "rank " + std::to_string(place_.self.rank) + " has had no answer from " + door + " for " +
         seconds_in_words(place_.silence_s) +
         " (COLLECTIVES_SILENCE): is that host up, and does the network let packets through both "
         "ways?";
}

void WireLinks::close() noexcept {
  for (const int peer : known_) control(peer)->say_leave();
  const Deadline end(kFlush);
  const auto pending = [this](int peer) {
    const TcpStream& stream = *control(peer)->stream();
    return stream.state() == StreamState::open && stream.sent() < stream.posted();
  };
  while (std::ranges::any_of(known_, pending) && !end.passed()) set_.wait(end);
}

}  // namespace coll
