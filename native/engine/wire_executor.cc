// SPDX-License-Identifier: Apache-2.0
#include "engine/wire_executor.h"

#include <algorithm>
#include <cstring>

#include "base/index.h"

namespace coll {
// One peer: its stream, and where this call is in the lanes to and from it.
class WireExecutor::Link final : public TcpReceiver {
 public:
  Link(WireExecutor& owner, int peer) : owner_(owner), peer(peer) {}

  Landing land(const TcpHeader& header) noexcept override { return owner_.land(*this, header); }
  void landed(const TcpHeader&) noexcept override { owner_.landed(*this); }
  bool waits() const noexcept override { return owner_.active() && !receiving.at_end(); }

 private:
  WireExecutor& owner_;

 public:
  const int peer;
  std::unique_ptr<Stream> stream;
  Cursor posting, sending, receiving;  // what to post next; what is with the kernel next
  std::uint64_t settled = 0;           // messages of the stream that are known to be sent
  std::int64_t sending_since = 0, receiving_since = 0;  // where steps are told: of the next
};

void WireExecutor::Cursor::reset(const WireLane& lane, const WireBinding& binding) noexcept {
  ops_ = lane.ops.data();
  count_ = lane.ops.size();
  bound_ = binding.ops().data();
  iterations_ = count_ == 0 ? 0 : binding.iterations();
  tiles_ = binding.tiles();
  iteration_ = 0;
  at_ = 0;
  settle();
}

void WireExecutor::Cursor::next() noexcept {
  ++at_;
  settle();
}

// Goes on to the next op that has a tile in its iteration.
void WireExecutor::Cursor::settle() noexcept {
  for (; iteration_ < iterations_; ++iteration_, at_ = 0) {
    for (; at_ < count_; ++at_) {
      op_ = ops_[at_];
      tile_ = iteration_ - bound_[op_].lag;
      if (tile_ >= 0 && tile_ < tiles_) return;
    }
  }
}

WireExecutor::WireExecutor(int ranks) : links_(index(ranks)) {}

WireExecutor::~WireExecutor() = default;

TcpReceiver& WireExecutor::receiver(int peer) {
  auto& link = links_[index(peer)];
  if (link == nullptr) link = std::make_unique<Link>(*this, peer);
  return *link;
}

void WireExecutor::attach(int peer, std::unique_ptr<Stream> stream) {
  receiver(peer);
  links_[index(peer)]->stream = std::move(stream);
}

Stream* WireExecutor::stream(int peer) const noexcept {
  const auto& link = links_[index(peer)];
  return link == nullptr ? nullptr : link->stream.get();
}

void WireExecutor::begin(WireBinding& binding, const WireCall& call) {
  done_.assign(binding.ops().size(), 0);
  now_.clear();
  for (std::size_t i = 0; i < binding.plan().peers.size(); ++i) {
    Link& link = *links_[index(binding.plan().peers[i])];
    link.posting.reset(binding.sends()[i], binding);
    link.sending = link.posting;
    link.receiving.reset(binding.receives()[i], binding);
    link.settled = link.stream->posted();
    if (watch_ != nullptr) link.receiving_since = Watch::now();
    now_.push_back(&link);
  }
  folds_.reset(binding.folds(), binding);
  user_failed_ = false;
  call_ = call;
  binding_ = &binding;
}

bool WireExecutor::ready(const BoundWireOp& op, int tile) const noexcept {
  const After* after = binding_->after();
  for (std::uint32_t i = op.after; i < op.after_end; ++i) {
    if (done_[index(after[i].op)] <= tile - after[i].back) return false;
  }
  return true;
}

bool WireExecutor::advance() noexcept {
  for (bool moved = true; moved;) {
    moved = false;
    for (Link* link : now_) {
      moved |= settle_sent(*link);
      moved |= post_to(*link);
    }
    while (fold_next()) moved = true;
  }
  for (const Link* link : now_) {
    if (!link->sending.at_end() || !link->receiving.at_end()) return false;
  }
  if (!folds_.at_end()) return false;
  binding_ = nullptr;
  return true;
}

void WireExecutor::abandon() noexcept {
  binding_ = nullptr;
  for (const auto& link : links_) {
    if (link != nullptr && link->stream != nullptr) link->stream->abandon();
  }
}

// What the kernel has taken since: its cells may be written again.
bool WireExecutor::settle_sent(Link& link) noexcept {
  const std::uint64_t sent = link.stream->sent();
  if (link.settled >= sent) return false;
  for (; link.settled < sent; ++link.settled, link.sending.next()) {
    if (watch_ != nullptr) tell(Event::Act::send, link.sending, link.peer, link.sending_since);
    ++done_[index(link.sending.op())];
  }
  return true;
}

bool WireExecutor::post_to(Link& link) noexcept {
  bool any = false;
  for (; !link.posting.at_end(); link.posting.next(), any = true) {
    const BoundWireOp& op = binding_->ops()[index(link.posting.op())];
    const int tile = link.posting.tile();
    if (!ready(op, tile)) break;
    const auto size = binding_->size(op, tile);
    const std::byte* payload = packed(op, tile, size);
    const bool idle = link.stream->posted() == link.settled;
    if (watch_ != nullptr && idle) link.sending_since = Watch::now();
    if (!link.stream->post(header_of(op, tile, size.bytes), payload)) break;
  }
  return any;
}

// A step is over that was the next of its lane; the one behind it has begun at the earliest now.
void WireExecutor::tell(Event::Act act, const Cursor& at, int peer, std::int64_t& since) noexcept {
  watch_->wait_ends();
  const BoundWireOp& op = binding_->ops()[index(at.op())];
  const std::int64_t end = Watch::now();
  watch_->add({.act = act,
               .begin = since,
               .end = end,
               .bytes = binding_->size(op, at.tile()).bytes,
               .peer = peer,
               .peers = peer < 0 ? 0 : 1,
               .round = binding_->plan().ops[index(at.op())].round,
               .tile = at.tile()});
  since = end;
}

TcpHeader WireExecutor::header_of(const BoundWireOp& op, int tile,
                                  std::size_t bytes) const noexcept {
  return {.kind = kData,
          .round = op.number,
          .group = call_.fingerprint,
          .sequence = static_cast<std::uint32_t>(call_.number),
          .tile = static_cast<std::uint32_t>(tile),
          .length = bytes};
}

// The one piece of an operand that is not empty in this tile.
std::byte* WireExecutor::only_piece(const BoundWireOp& op, std::size_t operand, int tile) noexcept {
  for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
    const WirePiece& piece = binding_->pieces()[i];
    if (binding_->elements(piece, tile) > 0) return binding_->address(piece, operand, tile, 0);
  }
  return nullptr;
}

// The cells of a message side by side: where they lie, or in their area.
const std::byte* WireExecutor::packed(const BoundWireOp& op, int tile,
                                      const WireBinding::Size& size) noexcept {
  if (size.pieces <= 1) return only_piece(op, 0, tile);
  std::byte* area = binding_->area(op.area, tile);
  std::byte* to = area;
  for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
    const WirePiece& piece = binding_->pieces()[i];
    const std::size_t bytes = binding_->elements(piece, tile) * binding_->element_bytes();
    if (bytes > 0) std::memcpy(to, binding_->address(piece, 0, tile, 0), bytes);
    to += bytes;
  }
  return area;
}

void WireExecutor::unpack(const BoundWireOp& op, int tile) noexcept {
  const std::byte* from = binding_->area(op.area, tile);
  for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
    const WirePiece& piece = binding_->pieces()[i];
    const std::size_t bytes = binding_->elements(piece, tile) * binding_->element_bytes();
    if (bytes > 0) std::memcpy(binding_->address(piece, op.k, tile, 0), from, bytes);
    from += bytes;
  }
}

bool WireExecutor::fold_next() noexcept {
  if (folds_.at_end()) return false;
  const BoundWireOp& op = binding_->ops()[index(folds_.op())];
  if (!ready(op, folds_.tile())) return false;
  std::int64_t since = watch_ != nullptr ? Watch::now() : 0;
  fold(op, folds_.tile());
  if (watch_ != nullptr) tell(op.k > 1 ? Event::Act::fold : Event::Act::copy, folds_, -1, since);
  ++done_[index(folds_.op())];
  folds_.next();
  return true;
}

void WireExecutor::fold(const BoundWireOp& op, int tile) noexcept {
  std::size_t before = 0;
  for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
    const WirePiece& piece = binding_->pieces()[i];
    const std::size_t n = binding_->elements(piece, tile);
    if (n == 0) continue;
    sources_.clear();
    for (std::size_t k = 0; k < op.k; ++k) {
      sources_.push_back(binding_->address(piece, k, tile, before));
    }
    void* destination = binding_->address(piece, op.k, tile, before);
    before += n * binding_->element_bytes();
    if (op.k == 1 && !op.complete && sources_.front() == destination) continue;
    bool failed = false;
    binding_->kernel()({.sources = sources_.data(),
                        .destinations = &destination,
                        .n = n,
                        .k = op.k,
                        .m = 1,
                        .balanced = op.balanced,
                        .streaming = 0,
                        .divisor = op.complete ? binding_->divisor() : 1.0,
                        .user = binding_->user_op(),
                        .dtype = binding_->call().dtype,
                        .failed = &failed});
    user_failed_ = user_failed_ || failed;
  }
}

// A message of this call has its place once the cells are free. Those of later calls wait; what is
// neither comes from a rank that calls something else.
Landing WireExecutor::land(Link& link, const TcpHeader& header) noexcept {
  constexpr Landing kLater{Landing::Verdict::later, {}};
  const auto ahead =
      static_cast<std::int32_t>(header.sequence - static_cast<std::uint32_t>(call_.number));
  if (ahead > 0) return kLater;
  const bool due = active() && ahead == 0 && !link.receiving.at_end() && link.peer >= 0;
  if (!due || header.kind != kData || header.group != call_.fingerprint) {
    if (stranger_.peer < 0) stranger_ = {link.peer, header};
    return kLater;
  }
  const BoundWireOp& op = binding_->ops()[index(link.receiving.op())];
  const int tile = link.receiving.tile();
  const auto size = binding_->size(op, tile);
  if (header != header_of(op, tile, size.bytes)) {
    if (stranger_.peer < 0) stranger_ = {link.peer, header};
    return kLater;
  }
  if (!ready(op, tile)) return kLater;
  const bool apart = op.staged || size.pieces > 1;
  std::byte* place = apart ? binding_->area(op.area, tile) : only_piece(op, op.k, tile);
  return {Landing::Verdict::take, {place, size.bytes}};
}

void WireExecutor::landed(Link& link) noexcept {
  const BoundWireOp& op = binding_->ops()[index(link.receiving.op())];
  const int tile = link.receiving.tile();
  if (!op.staged && binding_->size(op, tile).pieces > 1) unpack(op, tile);
  if (watch_ != nullptr) tell(Event::Act::receive, link.receiving, link.peer, link.receiving_since);
  ++done_[index(link.receiving.op())];
  link.receiving.next();
}

bool WireExecutor::owes(int peer) const noexcept {
  const auto on = [peer](const Link* link) {
    return link->peer == peer && (!link->sending.at_end() || !link->receiving.at_end());
  };
  return active() && std::ranges::any_of(now_, on);
}

std::vector<int> WireExecutor::awaited() const {
  std::vector<int> peers;
  if (!active()) return peers;
  for (const Link* link : now_) {
    if (link->receiving.at_end()) continue;
    const BoundWireOp& op = binding_->ops()[index(link->receiving.op())];
    if (ready(op, link->receiving.tile())) peers.push_back(link->peer);
  }
  if (!peers.empty()) return peers;
  for (const Link* link : now_) {
    if (!link->sending.at_end()) peers.push_back(link->peer);
  }
  return peers;
}

}  // namespace coll
