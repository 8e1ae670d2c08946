// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/mesh_version.h"

#include <algorithm>

#include "base/hmac.h"
#include "base/little_endian.h"

namespace coll {
namespace {

constexpr std::uint64_t kVersionMagic = 0x737265766C6C6F63ULL;  // "collvers"

// As in the challenge: little-endian, zero where nothing is said, the seal at the end.
constexpr std::size_t kVersionMagicAt = 0, kWireAt = 8, kSpeakerAt = 12, kLibraryAt = 16,
                      kLibraryRoom = 24, kMoreAt = 40, kLaneAt = 44, kSealAt = 48;
static_assert(kSealAt + sizeof(Digest) == kChallengeBytes);
static_assert(sizeof kLibraryVersion <= kLibraryRoom);

// The magic keeps it apart from whatever else this key may seal.
Digest seal_of(Bytes message, const Secret& session) noexcept {
  return hmac_sha256(session.bytes(), message.first(kSealAt));
}

std::string library_in(Bytes message) {
  std::string text;
  for (const std::uint8_t byte : message.subspan(kLibraryAt, kLibraryRoom)) {
    if (byte == 0) break;
    text += byte > ' ' && byte < 0x7f ? static_cast<char>(byte) : '?';
  }
  return text;
}

std::string version_in_words(const std::string& library, std::uint32_t wire) {
  return "version " + library + " of this library (wire version " + std::to_string(wire) + ")";
}

std::string streams_in_words(Bytes message, const RunningVersion& own) {
  const std::uint64_t its = 1ULL + little_endian_at<std::uint32_t>(message, kMoreAt);
  if (its != static_cast<std::uint64_t>(own.streams)) {
    return "it has " + std::to_string(its) + " streams for a pair of ranks, this process " +
           std::to_string(own.streams) + ": set COLLECTIVES_STREAMS to one number for all ranks";
  }
  return "it says that this is connection " + std::to_string(own.lane) + ", counted from 0, of " +
         std::to_string(own.streams) + " for data: start all ranks anew";
}

}  // namespace

int lane_in(Bytes message) noexcept {
  return static_cast<int>(little_endian_at<std::uint32_t>(message, kLaneAt));
}

ChallengeMessage version_message(const Secret& session, Role from, const RunningVersion& own) {
  ChallengeMessage message{};
  put_little_endian(message, kVersionMagicAt, kVersionMagic);
  put_little_endian(message, kWireAt, own.wire);
  put_little_endian(message, kSpeakerAt, static_cast<std::uint32_t>(from));
  put_little_endian(message, kMoreAt, static_cast<std::uint32_t>(own.streams - 1));
  put_little_endian(message, kLaneAt, static_cast<std::uint32_t>(own.lane));
  std::copy_n(own.library.begin(), std::min(own.library.size(), kLibraryRoom),
              message.begin() + kLibraryAt);
  const Digest seal = seal_of(message, session);
  std::copy(seal.begin(), seal.end(), message.begin() + kSealAt);
  return message;
}

std::string fault_in_version(Bytes message, const Secret& session, Role from,
                             const RunningVersion& own) {
  RunningVersion same = own;
  same.lane = from == Role::connector && message.size() == kChallengeBytes ? lane_in(message) : 0;
  const ChallengeMessage due = version_message(session, from, same);
  const bool is_lane = same.lane >= 0 && same.lane < own.streams;
  if (is_lane && equal_in_constant_time(message, due)) return "";
  const bool ours =
      message.size() == kChallengeBytes &&
      equal_in_constant_time(seal_of(message, session), message.subspan(kSealAt)) &&
      std::equal(due.begin(), due.begin() + kWireAt, message.begin()) &&
      little_endian_at<std::uint32_t>(message, kSpeakerAt) == static_cast<std::uint32_t>(from);
  if (!ours) {
    return "what it said of its version was changed on the way: somebody between the hosts "
           "interferes; use a network that you trust";
  }
  if (std::equal(due.begin(), due.begin() + kMoreAt, message.begin())) {
    return streams_in_words(message, same);
  }
  return "it runs " +
         version_in_words(library_in(message), little_endian_at<std::uint32_t>(message, kWireAt)) +
         ", this process " + version_in_words(own.library, own.wire) +
         ": install the same version for all ranks";
}

}  // namespace coll
