// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_mailbox.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "kernels/dtype.h"
#include "transport/striped_stream.h"

namespace coll {
namespace {

constexpr std::uint8_t kMail = 32;  // TcpHeader::kind

// The header of a message: its tag, dtype and number stand where a collective's rounds do.
TcpHeader header_of(const Envelope& envelope) noexcept {
  TcpHeader header;
  header.kind = kMail;
  header.round = static_cast<std::uint32_t>(envelope.tag);
  header.tile = static_cast<std::uint32_t>(envelope.dtype);
  header.group = envelope.number;
  header.length = envelope.bytes;
  return header;
}

std::string fault_of(const std::unique_ptr<Stream>& stream) {
  return stream == nullptr || stream->state() == StreamState::open ? "" : stream->why();
}

}  // namespace

// A message that came before it was asked for, or while nobody has asked for the end of it.
struct WireMailbox::Aside {
  Envelope envelope;
  std::uint64_t order = 0;  // of arrival, over all senders
  std::unique_ptr<std::byte[]> bytes;
  bool whole = false;
  Request* claimed = nullptr;  // gets it when it is whole
};

// The way to one rank, which says nothing on it.
class WireMailbox::Out final : public TcpReceiver {
 public:
  Landing land(const TcpHeader&) noexcept override { return {Landing::Verdict::refuse, {}}; }
  void landed(const TcpHeader&) noexcept override {}
  bool waits() const noexcept override { return false; }

  std::unique_ptr<Stream> stream;
  RequestQueue queued, posted;  // for the stream to take; with the stream
  std::uint64_t messages = 0, settled = 0;
};

// The way from one rank.
class WireMailbox::In final : public TcpReceiver {
 public:
  In(WireMailbox& owner, int from) : owner_(owner), from(from) {}

  Landing land(const TcpHeader& header) noexcept override { return owner_.land(*this, header); }
  void landed(const TcpHeader&) noexcept override { owner_.landed(*this); }
  // The head of the stream is a message about which nothing was done yet.
  bool announced() const noexcept { return open && into == nullptr && aside == nullptr; }

 private:
  WireMailbox& owner_;

 public:
  const int from;
  std::unique_ptr<Stream> stream;
  std::uint64_t messages = 0;  // begun so far
  bool open = false;
  Envelope envelope;
  std::uint64_t order = 0;
  Request* into = nullptr;  // that has met it
  Aside* aside = nullptr;   // the last of `asides`
  std::list<Aside> asides;
  std::unique_ptr<std::byte[]> sink;  // for what is too long
};

WireMailbox::WireMailbox(WirePlace& place, TcpSet& set)
    : rank_(place.self.rank),
      ranks_(place.self.ranks),
      silence_s_(place.silence_s),
      set_(set),
      outs_(at(ranks_)),
      ins_(at(ranks_)),
      posted_from_(at(ranks_)) {
  Identity self = place.self;
  self.job += ".messages";
  MeshLimits limits;
  limits.tcp.silence_s = silence_s_;
  constexpr std::size_t kDoor = 2;
  ways_.emplace(self, place.secret, std::move(place.doors.at(kDoor)), place.message_doors, limits,
                place.lanes());
}

WireMailbox::~WireMailbox() = default;

TcpLimits WireMailbox::limits() const noexcept {
  return {.queue = 16,
          .payload = std::numeric_limits<std::uint64_t>::max() >> 1U,
          .silence_s = silence_s_};
}

WireMailbox::In& WireMailbox::in(int rank) {
  auto& in = ins_[at(rank)];
  if (in == nullptr) in = std::make_unique<In>(*this, rank);
  return *in;
}

void WireMailbox::raise(const Fault& fault) noexcept {
  if (fault_.trouble == Trouble::none) fault_ = fault;
}

// ---- connections -----------------------------------------------------------------------------

void WireMailbox::serve_doors() {
  if (!ways_) return;
  ways_->step();
  while (auto made = ways_->next_out()) {
    Out& out = *outs_[at(made->first)];
    out.stream = stream_over(std::move(made->second), out, limits(), set_);
  }
  while (auto came = ways_->next_in()) {
    In& way = in(came->first);
    way.stream = stream_over(std::move(came->second), way, limits(), set_);
  }
  set_.remove_ended();
}

void WireMailbox::watch(std::vector<pollfd>& out) const {
  if (ways_) ways_->watch(out);
}

void WireMailbox::give_up() noexcept {
  for (const auto& out : outs_) {
    if (out != nullptr && out->stream != nullptr) out->stream->abandon();
  }
  for (const auto& in : ins_) {
    if (in != nullptr && in->stream != nullptr) in->stream->abandon();
  }
  ways_.reset();
}

std::string WireMailbox::fault_to(int peer) const {
  const auto& out = outs_[at(peer)];
  if (out == nullptr) return "";
  const std::string& trouble = ways_ ? ways_->trouble(peer) : std::string();
  return trouble.empty() ? fault_of(out->stream) : trouble;
}

std::string WireMailbox::fault_from(int peer) const {
  const auto& in = ins_[at(peer)];
  return in == nullptr ? "" : fault_of(in->stream);
}

bool WireMailbox::silent(int peer) const noexcept {
  const auto is = [](const auto& way) {
    return way != nullptr && way->stream && way->stream->state() == StreamState::silent;
  };
  return is(outs_[at(peer)]) || is(ins_[at(peer)]);
}

bool WireMailbox::hears(int peer) const noexcept {
  const auto& in = ins_[at(peer)];
  return in != nullptr && in->stream != nullptr;
}

std::uint64_t WireMailbox::moved(int peer) const noexcept {
  const auto of = [](const auto& way) {
    return way == nullptr || way->stream == nullptr ? 0 : way->stream->moved();
  };
  return of(outs_[at(peer)]) + of(ins_[at(peer)]);
}

std::string WireMailbox::standing(int peer) const {
  const auto& out = outs_[at(peer)];
  if (out == nullptr || out->stream != nullptr || !ways_) return "";
  return ways_->standing(peer);
}

// ---- what goes out ---------------------------------------------------------------------------

void WireMailbox::send(Request& request) {
  if (request.to == rank_) return send_to_self(request);
  auto& out = outs_[at(request.to)];
  if (out == nullptr) out = std::make_unique<Out>();
  ways_->want(request.to);
  request.envelope.number = ++out->messages;
  request.moved = 0;
  request.done = false;
  out->queued.push(request);
  ++sending_;
}

void WireMailbox::send_to_self(Request& request) {
  In& self = in(rank_);
  request.envelope.number = ++self.messages;
  self.envelope = request.envelope;
  if (Request* taker = posted_for(self)) {
    if (!meet(*taker, rank_, request.envelope)) return;
    if (!taker->too_long() && taker->envelope.bytes > 0) {
      std::memcpy(taker->into, request.from, static_cast<std::size_t>(taker->envelope.bytes));
    }
    end(*taker);
  } else {
    const auto bytes = static_cast<std::size_t>(request.envelope.bytes);
    Aside aside{.envelope = request.envelope,
                .order = ++order_,
                .bytes = std::make_unique_for_overwrite<std::byte[]>(bytes),
                .whole = true};
    if (bytes > 0) std::memcpy(aside.bytes.get(), request.from, bytes);
    self.asides.push_back(std::move(aside));
  }
  request.done = true;
}

bool WireMailbox::progress() noexcept {
  const bool handed = hand_over(), moved = set_.progress() > 0;
  return hand_over() || handed || moved;
}

// Gives the streams what they have room for, and sees what they have sent.
bool WireMailbox::hand_over() noexcept {
  if (sending_ == 0) return false;
  bool moved = false;
  for (const auto& out : outs_) {
    if (out == nullptr || out->stream == nullptr) continue;
    while (!out->queued.empty()) {
      Request& request = *out->queued.first();
      if (!out->stream->post(header_of(request.envelope), request.from)) break;
      out->queued.pop();
      out->posted.push(request);
      moved = true;
    }
    for (; out->settled < out->stream->sent(); ++out->settled, moved = true) {
      Request& request = *out->posted.first();
      out->posted.pop();
      request.done = true;
      --sending_;
    }
  }
  return moved;
}

// ---- receives --------------------------------------------------------------------------------

void WireMailbox::receive(Request& request) noexcept {
  request.met = request.done = false;
  request.source = kAny;
  ++waiting_;
  if (const auto found = find(request.pattern)) {
    take_from(*ins_[at(found->source)], request);
    return;
  }
  posted_.push(request);
  const int source = request.pattern.source;
  ++(source == kAny ? posted_any_ : posted_from_[at(source)]);
}

// The receive gets this message, unless it waits for another dtype or there is no memory.
bool WireMailbox::meet(Request& request, int from, const Envelope& envelope) noexcept {
  const Trouble trouble = request.meet(from, envelope);
  if (trouble != Trouble::none) raise({trouble, from, envelope, &request});
  return trouble == Trouble::none;
}

void WireMailbox::end(Request& request) noexcept {
  request.done = true;
  --waiting_;
}

// The first receive that was posted for the message at the head of a way.
Request* WireMailbox::posted_for(In& in) noexcept {
  Request* request =
      posted_.take([&](const Request& r) { return r.pattern.matches(in.from, in.envelope.tag); });
  if (request == nullptr) return nullptr;
  --(request->pattern.source == kAny ? posted_any_ : posted_from_[at(in.from)]);
  return request;
}

// Gives the receive the first message of this sender that it is for, and that is there.
void WireMailbox::take_from(In& in, Request& request) noexcept {
  for (auto aside = in.asides.begin(); aside != in.asides.end(); ++aside) {
    if (aside->claimed != nullptr) continue;
    if (!request.pattern.matches(in.from, aside->envelope.tag)) continue;
    if (!meet(request, in.from, aside->envelope)) return;
    if (!aside->whole) {
      aside->claimed = &request;
      return;
    }
    const auto bytes = static_cast<std::size_t>(aside->envelope.bytes);
    if (!request.too_long() && bytes > 0) std::memcpy(request.into, aside->bytes.get(), bytes);
    in.asides.erase(aside);
    return end(request);
  }
  if (meet(request, in.from, in.envelope)) in.into = &request;
}

std::optional<Found> WireMailbox::find(const Pattern& pattern) const noexcept {
  std::optional<Found> first;
  std::uint64_t order = ~std::uint64_t{0};
  for (const auto& in : ins_) {
    if (in == nullptr || !pattern.admits(in->from)) continue;
    const auto offer = [&](const Envelope& envelope, std::uint64_t its_order) {
      if (its_order >= order || !pattern.matches(in->from, envelope.tag)) return;
      order = its_order;
      first = Found{in->from, envelope};
    };
    for (const Aside& aside : in->asides) {
      if (aside.claimed == nullptr) offer(aside.envelope, aside.order);
    }
    if (in->announced()) offer(in->envelope, in->order);
  }
  return first;
}

// ---- what comes ------------------------------------------------------------------------------

Landing WireMailbox::land(In& in, const TcpHeader& header) noexcept {
  constexpr Landing kLater{Landing::Verdict::later, {}};
  if (fault_.trouble != Trouble::none) return kLater;
  if (!in.open && !opens(in, header)) return kLater;
  if (in.announced()) {
    if (stays(in)) return kLater;
    try {
      const auto bytes = static_cast<std::size_t>(in.envelope.bytes);
      in.asides.push_back({.envelope = in.envelope,
                           .order = in.order,
                           .bytes = std::make_unique_for_overwrite<std::byte[]>(bytes)});
      in.aside = &in.asides.back();
    } catch (const std::bad_alloc&) {
      raise({Trouble::no_memory, in.from, in.envelope});
      return kLater;
    }
  }
  return place_of(in);
}

// A message begins: the receive that was posted for it meets it.
bool WireMailbox::opens(In& in, const TcpHeader& header) noexcept {
  in.envelope = {.tag = static_cast<std::int32_t>(header.round),
                 .dtype = static_cast<std::int32_t>(header.tile),
                 .bytes = header.length,
                 .number = header.group};
  const bool sound = header.kind == kMail && in.envelope.number == in.messages + 1 &&
                     may_be_tag(in.envelope.tag) && in.envelope.dtype >= 0 &&
                     in.envelope.dtype < kDtypes;
  if (!sound) {
    raise({Trouble::no_envelope, in.from, in.envelope});
    return false;
  }
  ++in.messages;
  in.open = true;
  in.order = ++order_;
  in.aside = nullptr;
  in.into = posted_for(in);
  return in.into == nullptr || meet(*in.into, in.from, in.envelope);
}

// Nobody is held up by the message at the head of the stream.
bool WireMailbox::stays(const In& in) const noexcept {
  if (posted_from_[at(in.from)] > 0 || posted_any_ > 0) return false;
  return !sought_ || !sought_->admits(in.from) || sought_->matches(in.from, in.envelope.tag);
}

Landing WireMailbox::place_of(In& in) noexcept {
  const auto bytes = static_cast<std::size_t>(in.envelope.bytes);
  if (in.aside != nullptr) return {Landing::Verdict::take, {in.aside->bytes.get(), bytes}};
  if (!in.into->too_long()) return {Landing::Verdict::take, {in.into->into, bytes}};
  try {
    in.sink = std::make_unique_for_overwrite<std::byte[]>(bytes);
  } catch (const std::bad_alloc&) {
    raise({Trouble::no_memory, in.from, in.envelope});
    return {Landing::Verdict::later, {}};
  }
  return {Landing::Verdict::take, {in.sink.get(), bytes}};
}

void WireMailbox::landed(In& in) noexcept {
  in.open = false;
  in.sink.reset();
  if (in.into != nullptr) {
    end(*std::exchange(in.into, nullptr));
    return;
  }
  Aside& aside = *std::exchange(in.aside, nullptr);
  aside.whole = true;
  if (aside.claimed == nullptr) return;
  Request& request = *aside.claimed;
  const auto bytes = static_cast<std::size_t>(aside.envelope.bytes);
  if (!request.too_long() && bytes > 0) std::memcpy(request.into, aside.bytes.get(), bytes);
  std::erase_if(in.asides, [&aside](const Aside& one) { return &one == &aside; });
  end(request);
}

}  // namespace coll
