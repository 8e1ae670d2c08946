// SPDX-License-Identifier: Apache-2.0
#include "transport/striped_stream.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace coll {
namespace {

// The flags of a part: that it is one, and how many of them are shorter by a byte.
constexpr std::uint8_t kPart = 0x80, kShorter = 0x0F;
static_assert(StripedStream::kMostLanes - 1 <= kShorter);

}  // namespace

// One connection, and what it receives for.
class StripedStream::Lane final : public TcpReceiver {
 public:
  Lane(StripedStream& owner, std::size_t number, Connection connection, const TcpLimits& limits)
      : stream(std::move(connection.fd), connection.peer, *this, limits),
        owner_(owner),
        number_(number),
        messages_(std::make_unique<std::uint64_t[]>(limits.queue)),
        mask_(limits.queue - 1) {}

  Landing land(const TcpHeader& header) noexcept override { return owner_.land(number_, header); }
  void landed(const TcpHeader&) noexcept override { owner_.landed(); }
  // Whether this lane is to be read in every turn.
  bool waits() const noexcept override {
    return owner_.is_due(number_) && (owner_.missing_ > 0 || owner_.receiver_.waits());
  }

  bool post(const TcpHeader& header, const std::byte* payload, std::uint64_t message) noexcept {
    messages_[stream.posted() & mask_] = message;
    return stream.post(header, payload);
  }
  // The first message of which something here is not with the kernel, or `none`.
  std::uint64_t unsent(std::uint64_t none) const noexcept {
    return stream.sent() == stream.posted() ? none : messages_[stream.sent() & mask_];
  }
  // The end of it is the end of all.
  bool is_fault() const noexcept {
    return stream.state() != StreamState::open &&
           (!stream.ended_cleanly() || owner_.is_due(number_));
  }
  std::size_t number() const noexcept { return number_; }

  TcpStream stream;
  bool has_part = false;  // of the message that has begun: it came here, or is coming

 private:
  StripedStream& owner_;
  const std::size_t number_;
  std::unique_ptr<std::uint64_t[]> messages_;  // of what is queued here
  std::uint64_t mask_;
};

StripedStream::StripedStream(std::vector<Connection> lanes, TcpReceiver& receiver,
                             const TcpLimits& limits)
    : receiver_(receiver),
      longest_(limits.payload),
      queue_(std::bit_ceil(std::max<std::size_t>(limits.queue, 1))) {
  TcpLimits each = limits;
  each.queue = queue_;
  for (Connection& lane : lanes) {
    lanes_.push_back(std::make_unique<Lane>(*this, lanes_.size(), std::move(lane), each));
  }
}

StripedStream::~StripedStream() = default;

TcpStream& StripedStream::lane(std::size_t i) noexcept { return lanes_[i]->stream; }

// ---- sending -----------------------------------------------------------------------------------

// No lane has more in its queue than there are messages that are not sent.
bool StripedStream::post(TcpHeader header, const void* payload) noexcept {
  const auto open = [](const auto& lane) { return lane->stream.state() == StreamState::open; };
  if (header.length > longest_ || posted_ - sent() >= queue_) return false;
  if (!std::ranges::all_of(lanes_, open)) return false;
  const auto* bytes = static_cast<const std::byte*>(payload);
  const bool done = lanes_.size() > 1 && header.length > kWhole
                        ? post_parts(header, bytes)
                        : post_on(posted_ % lanes_.size(), header, bytes);
  if (done) ++posted_;
  return done;
}

bool StripedStream::post_on(std::size_t lane, const TcpHeader& header,
                            const std::byte* payload) noexcept {
  return lanes_[lane]->post(header, payload, posted_);
}

bool StripedStream::post_parts(const TcpHeader& header, const std::byte* payload) noexcept {
  const std::uint64_t n = lanes_.size();
  const std::uint64_t most = (header.length + n - 1) / n;
  const Cut cut{most, static_cast<std::size_t>(n * most - header.length)};
  bool done = true;
  for (std::size_t lane = 0; lane < n; ++lane) {
    TcpHeader part = header;
    part.flags = static_cast<std::uint8_t>(kPart | cut.shorter);
    part.length = part_of(cut, lane);
    done = post_on(lane, part, payload + begin_of(cut, lane)) && done;
  }
  return done;
}

std::uint64_t StripedStream::part_of(const Cut& cut, std::size_t lane) const noexcept {
  return cut.most - (lane + cut.shorter >= lanes_.size() ? 1 : 0);
}

std::uint64_t StripedStream::begin_of(const Cut& cut, std::size_t lane) const noexcept {
  const std::size_t longer = lanes_.size() - cut.shorter;
  return lane * cut.most - (lane > longer ? lane - longer : 0);
}

std::uint64_t StripedStream::sent() const noexcept {
  std::uint64_t all = posted_;
  for (const auto& lane : lanes_) all = std::min(all, lane->unsent(posted_));
  return all;
}

// ---- receiving ---------------------------------------------------------------------------------

// The next message begins on one lane; if it is cut, its other parts are the next on the others.
Landing StripedStream::land(std::size_t lane, const TcpHeader& header) noexcept {
  constexpr Landing kLater{Landing::Verdict::later, {}};
  if (missing_ == 0) return lane == complete_ % lanes_.size() ? open(lane, header) : kLater;
  if (!is_due(lane)) return kLater;
  TcpHeader due = header_;
  due.flags = static_cast<std::uint8_t>(kPart | cut_.shorter);
  due.length = part_of(cut_, lane);
  if (header != due) return {Landing::Verdict::refuse, {}};
  lanes_[lane]->has_part = true;
  return {Landing::Verdict::take,
          {place_ + begin_of(cut_, lane), static_cast<std::size_t>(due.length)}};
}

Landing StripedStream::open(std::size_t lane, const TcpHeader& header) noexcept {
  constexpr Landing kRefused{Landing::Verdict::refuse, {}};
  const bool is_cut = header.flags != 0;
  Cut cut{.most = header.length};
  TcpHeader whole = header;
  whole.flags = 0;
  if (is_cut) {
    cut.shorter = header.flags & kShorter;
    if ((header.flags & ~kShorter) != kPart || cut.shorter >= lanes_.size()) return kRefused;
    cut.most = header.length + (lane + cut.shorter >= lanes_.size() ? 1 : 0);
    if (cut.most == 0 || cut.most > longest_ / lanes_.size() + 1) return kRefused;
    whole.length = cut.most * lanes_.size() - cut.shorter;
  }
  const Landing landing = receiver_.land(whole);
  if (landing.verdict != Landing::Verdict::take) return landing;
  if (landing.place.size() != whole.length) return kRefused;
  header_ = whole;
  place_ = landing.place.data();
  cut_ = cut;
  missing_ = is_cut ? lanes_.size() : 1;
  for (const auto& one : lanes_) one->has_part = !is_cut;
  lanes_[lane]->has_part = true;
  if (!is_cut) return landing;
  return {Landing::Verdict::take,
          {place_ + begin_of(cut, lane), static_cast<std::size_t>(header.length)}};
}

void StripedStream::landed() noexcept {
  if (--missing_ > 0) return;
  ++complete_;
  receiver_.landed(header_);
}

// Whether nothing more is complete before something comes on that lane.
bool StripedStream::is_due(std::size_t lane) const noexcept {
  return missing_ > 0 ? !lanes_[lane]->has_part : lane == complete_ % lanes_.size();
}

// ---- turns, ends -------------------------------------------------------------------------------

std::size_t StripedStream::progress(std::size_t budget) noexcept {
  const std::size_t each = std::max<std::size_t>(1, budget / lanes_.size());
  std::size_t moved = 0;
  for (const auto& lane : lanes_) moved += lane->stream.progress(each);
  return moved;
}

void StripedStream::abandon() noexcept {
  for (const auto& lane : lanes_) lane->stream.abandon();
}

// The first lane by whose end the stream has ended.
const StripedStream::Lane* StripedStream::faulty() const noexcept {
  const auto it = std::ranges::find_if(lanes_, [](const auto& lane) { return lane->is_fault(); });
  return it == lanes_.end() ? nullptr : it->get();
}

StreamState StripedStream::state() const noexcept {
  const Lane* lane = faulty();
  return lane == nullptr ? StreamState::open : lane->stream.state();
}

std::uint64_t StripedStream::moved() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& lane : lanes_) bytes += lane->stream.moved();
  return bytes;
}

bool StripedStream::held_back() const noexcept {
  return std::ranges::any_of(lanes_, [](const auto& lane) { return lane->stream.held_back(); });
}

std::string StripedStream::why() const {
  const Lane* fault = faulty();
  const Lane& lane = fault == nullptr ? *lanes_.front() : *fault;
  return lane.stream.why() + " (connection " + std::to_string(lane.number() + 1) + " of " +
         std::to_string(lanes_.size()) + " for data)";
}

std::unique_ptr<Stream> stream_over(std::vector<Connection> lanes, TcpReceiver& receiver,
                                    const TcpLimits& limits, TcpSet& set) {
  if (lanes.size() == 1) {
    Connection& only = lanes.front();
    auto stream = std::make_unique<TcpStream>(std::move(only.fd), only.peer, receiver, limits);
    set.add(*stream);
    return stream;
  }
  auto stream = std::make_unique<StripedStream>(std::move(lanes), receiver, limits);
  for (std::size_t i = 0; i < stream->lanes(); ++i) set.add(stream->lane(i));
  return stream;
}

}  // namespace coll
