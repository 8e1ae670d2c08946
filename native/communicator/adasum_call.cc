// SPDX-License-Identifier: Apache-2.0
#include "communicator/adasum_call.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/looks.h"
#include "kernels/widening.h"

namespace coll {
namespace {

[[noreturn]] void refuse_adasum(const std::string& why) {
  throw Error(Status::invalid_argument, "adasum: " + why);
}

}  // namespace

AdasumCall::AdasumCall(int rank, int ranks, double timeout, const AdasumWish& wish)
    : MessageSteps(rank, ranks, wish.timeout > 0 ? wish.timeout : timeout, Purpose::adasum),
      wish_(wish),
      wide_(wish.dtype == Dtype::float64 ? Dtype::float64 : Dtype::float32),
      size_(size_of(wide_)),
      heard_(static_cast<std::size_t>(ranks)) {
  if (!exists(wish.dtype) || family_of(wish.dtype) != Family::floating) {
    refuse_adasum("it is made of products of gradients: pass floating-point numbers");
  }
  if (wish.count > 0 && (wish.input == nullptr || wish.output == nullptr)) {
    refuse_adasum("a null pointer");
  }
  const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  levels_ = std::bit_width(static_cast<unsigned>(power)) - 1;
  spare_ = ranks - power;
  // Of the first pairs the even rank takes part; behind them all do.
  if (rank >= 2 * spare_) {
    place_ = rank - spare_;
  } else if (rank % 2 == 0) {
    place_ = rank / 2;
  }
  words_ = std::to_string(wish.count) + " " + name_of(wish.dtype);
  shares_.push_back({0, wish.count});
}

int AdasumCall::rank_at(int place) const noexcept {
  return place < spare_ ? 2 * place : place + spare_;
}

void AdasumCall::load() {
  vector_ = Bytes(wish_.count * size_);
  if (wide_ == wish_.dtype) {
    copy_in_blocks(vector_.data(), wish_.input, vector_.size());
    return;
  }
  const auto* from = static_cast<const std::byte*>(wish_.input);
  const std::size_t narrow = size_of(wish_.dtype);
  in_blocks(wish_.count, [&](std::size_t first, std::size_t n) {
    widen_array(wide_, values(first), wish_.dtype, from + first * narrow, n);
  });
}

void AdasumCall::store() {
  if (wide_ == wish_.dtype) {
    copy_in_blocks(wish_.output, vector_.data(), vector_.size());
    return;
  }
  auto* to = static_cast<std::byte*>(wish_.output);
  const std::size_t narrow = size_of(wish_.dtype);
  in_blocks(wish_.count, [&](std::size_t first, std::size_t n) {
    round_array(wish_.dtype, to + first * narrow, wide_, values(first), n);
  });
}

Status AdasumCall::begin() {
  prepared([this] { load(); });
  return agree(&said_, heard_.data(), sizeof said_, words_);
}

bool AdasumCall::step(Status&) {
  return guarded([this] {
    finish(stage_);
    stage_ = after(stage_);
    if (stage_ == Stage::done) {
      store();
      return false;
    }
    begin(stage_);
    return true;
  });
}

// A spare rank joins before the first level, and gets the result after the last one.
AdasumCall::Stage AdasumCall::after(Stage stage) const {
  const bool paired = rank() < 2 * spare_;
  switch (stage) {
    case Stage::agreeing:
      if (paired) return Stage::joining;
      [[fallthrough]];
    case Stage::joining:
      if (!takes_part()) return Stage::parting;
      return levels_ > 0 ? Stage::halving : Stage::done;
    case Stage::halving:
      return Stage::adding;
    case Stage::adding:
      if (turn_ > 0) return Stage::adding;
      return level_ < levels_ ? Stage::halving : Stage::gathering;
    case Stage::gathering:
      if (level_ > 0) return Stage::gathering;
      return paired ? Stage::parting : Stage::done;
    default:
      return Stage::done;
  }
}

void AdasumCall::begin(Stage stage) {
  const std::size_t all = vector_.size();
  if (stage == Stage::joining) {
    takes_part() ? take(rank() + 1, all) : give(rank() - 1, vector_.data(), all);
  } else if (stage == Stage::parting) {
    takes_part() ? give(rank() + 1, vector_.data(), all) : take(rank() - 1, all);
  } else if (stage == Stage::halving) {
    halve();
  } else if (stage == Stage::adding) {
    // Shares of one vector lie with ranks that differ in the bits up to this level.
    const int peer = rank_at(place_ ^ (1 << turn_));
    give(peer, reinterpret_cast<const std::byte*>(&products_), sizeof products_);
    take(peer, sizeof products_);
  } else {
    --level_;
    const Share whole = shares_[static_cast<std::size_t>(level_)];
    const Share own = shares_.back();
    give(partner(), values(own.first), own.count * size_);
    take(partner(), (whole.count - own.count) * size_);
  }
}

void AdasumCall::finish(Stage stage) {
  const std::size_t all = vector_.size();
  if (stage == Stage::joining && takes_part()) {
    const std::byte* other = arrived(all).data();
    combine(vector_.data(), other, wish_.count, products(vector_.data(), other, wish_.count));
  } else if (stage == Stage::parting && !takes_part()) {
    copy_in_blocks(vector_.data(), arrived(all).data(), all);
  } else if (stage == Stage::halving) {
    take_half();
  } else if (stage == Stage::adding) {
    add_products();
  } else if (stage == Stage::gathering) {
    const Share own = shares_.back();
    shares_.pop_back();
    const Share whole = shares_.back();
    const std::size_t first = own.first == whole.first ? own.first + own.count : whole.first;
    const std::size_t bytes = (whole.count - own.count) * size_;
    const std::span<const std::byte> theirs = arrived(bytes);
    copy_in_blocks(values(first), theirs.data(), bytes);
  }
}

// Keeps one half of the share and hands the other one over.
void AdasumCall::halve() {
  const Share share = shares_.back();
  const std::size_t half = share.count / 2;
  const bool low = (place_ >> level_ & 1) == 0;
  const Share own = low ? Share{share.first, half} : Share{share.first + half, share.count - half};
  const Share other =
      low ? Share{share.first + half, share.count - half} : Share{share.first, half};
  give(partner(), values(other.first), other.count * size_);
  take(partner(), own.count * size_);
  shares_.push_back(own);
}

void AdasumCall::take_half() {
  const Share own = shares_.back();
  const std::span<const std::byte> theirs = arrived(own.count * size_);
  const bool low = (place_ >> level_ & 1) == 0;
  // The lower group's vector is the first one, on both sides.
  products_ = low ? products(values(own.first), theirs.data(), own.count)
                  : products(theirs.data(), values(own.first), own.count);
  other_ = Bytes(theirs.size());
  copy_in_blocks(other_.data(), theirs.data(), theirs.size());
}

// Both sides add the same two numbers, so all ranks of a group have the same bits.
void AdasumCall::add_products() {
  Products theirs;
  std::memcpy(&theirs, arrived(sizeof theirs).data(), sizeof theirs);
  products_ = sum(products_, theirs);
  if (turn_ < level_) {
    ++turn_;
    return;
  }
  turn_ = 0;
  const Share own = shares_.back();
  const bool low = (place_ >> level_ & 1) == 0;
  combine(values(own.first), other_.data(), own.count, low ? products_ : products_.swapped());
  ++level_;
}

Products AdasumCall::products(const std::byte* a, const std::byte* b, std::size_t n) const {
  Products all;
  in_blocks(n, [&](std::size_t first, std::size_t count) {
    const std::byte *x = a + first * size_, *y = b + first * size_;
    const Products some = wide_ == Dtype::float64
                              ? products_of(reinterpret_cast<const double*>(x),
                                            reinterpret_cast<const double*>(y), count)
                              : products_of(reinterpret_cast<const float*>(x),
                                            reinterpret_cast<const float*>(y), count);
    all = first == 0 ? some : sum(all, some);
  });
  return all;
}

void AdasumCall::combine(std::byte* a, const std::byte* b, std::size_t n, const Products& by) {
  in_blocks(n, [&](std::size_t first, std::size_t count) {
    std::byte* x = a + first * size_;
    const std::byte* y = b + first * size_;
    if (wide_ == Dtype::float64) {
      coll::combine(reinterpret_cast<double*>(x), reinterpret_cast<const double*>(y), count, by);
    } else {
      coll::combine(reinterpret_cast<float*>(x), reinterpret_cast<const float*>(y), count, by);
    }
  });
}

// The name of the call goes in front of every message.
void AdasumCall::give(int peer, const std::byte* values, std::size_t bytes) {
  const std::uint64_t word = name();
  outgoing_ = Bytes(sizeof word + bytes);
  std::memcpy(outgoing_.data(), &word, sizeof word);
  copy_in_blocks(outgoing_.data() + sizeof word, values, bytes);
  send(peer, outgoing_.data(), outgoing_.size());
}

void AdasumCall::take(int peer, std::size_t bytes) {
  from_ = peer;
  expect(peer, parcel_, sizeof(std::uint64_t) + bytes);
}

std::span<const std::byte> AdasumCall::arrived(std::size_t bytes) {
  const std::span<const std::byte> message = parcel_.bytes();
  std::uint64_t word = 0;
  if (message.size() >= sizeof word) std::memcpy(&word, message.data(), sizeof word);
  if (word != name() || message.size() != sizeof word + bytes) {
    throw Error(Status::internal,
                "rank " + std::to_string(from_) + " sent a message of another call", from_);
  }
  return message.subspan(sizeof word);
}

}  // namespace coll
