// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/challenge.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/hmac.h"
#include "base/little_endian.h"
#include "base/wipe.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

constexpr std::uint64_t kChallengeMagic = 0x687475616C6C6F63ULL;  // "collauth"

// Where the fields of a message lie, little-endian on every host. Magic and version stay there in
// every version to come; the rest is zero where a message does not need it.
constexpr std::size_t kMagicAt = 0, kVersionAt = 8, kKindAt = 12, kRoleAt = 16, kVerdictAt = 20,
                      kAttemptAt = 24, kRankAt = 28, kRanksAt = 32, kWantedAt = 36, kJobAt = 40,
                      kValueAt = 48;  // a hello's nonce, a proof's HMAC
static_assert(kValueAt + sizeof(Digest) == kChallengeBytes);

// A key for one purpose, so that what one use shows says nothing about another.
Secret key_for(std::string_view purpose, Bytes salt, const Secret& secret) {
  const Secret even(hkdf_extract(salt, secret.bytes()));
  Digest key{};
  hkdf_expand(even.bytes(), bytes_in(purpose), key);
  const Secret made(key);
  wipe(key.data(), key.size());
  return made;
}

// What a rank of any version begins with.
bool has_our_preamble(Bytes message) noexcept {
  return message.size() >= kKindAt &&
         little_endian_at<std::uint64_t>(message, kMagicAt) == kChallengeMagic;
}

std::string each_its_own_rank(int ranks) {
  return ": give each process its own COLLECTIVES_RANK, 0 to " + std::to_string(ranks - 1) +
         " (RANK, where a script sets that)";
}

// Why a rank comes twice.
std::string one_process_each(int ranks) {
  return each_its_own_rank(ranks) +
         "; two jobs that meet at one port need two names (COLLECTIVES_JOB)";
}

}  // namespace

// What a process says about itself.
struct Challenge::Said {
  explicit Said(Bytes message) noexcept
      : verdict(static_cast<Verdict>(little_endian_at<std::uint32_t>(message, kVerdictAt))),
        attempt(little_endian_at<std::uint32_t>(message, kAttemptAt)),
        rank(little_endian_at<std::uint32_t>(message, kRankAt)),
        ranks(little_endian_at<std::uint32_t>(message, kRanksAt)),
        wanted(little_endian_at<std::uint32_t>(message, kWantedAt)),
        job(little_endian_at<std::uint64_t>(message, kJobAt)) {}

  Verdict verdict;
  std::uint32_t attempt, rank, ranks, wanted;
  std::uint64_t job;
};

Challenge::Challenge(const Secret& secret, const Identity& self, Role role, int expected,
                     std::function<bool(int)> is_taken, const Nonce& nonce)
    : secret_(secret),
      proof_key_(key_for("collectives proof", {}, secret)),
      self_(self),
      role_(role),
      expected_(expected),
      is_taken_(std::move(is_taken)),
      nonce_(nonce) {
  if (role_ == Role::connector) say(Kind::hello);
}

ChallengeMessage Challenge::hello() const {
  if (role_ != Role::connector) {
    throw Error(Status::internal, "an acceptor speaks second, so it has no first message");
  }
  ChallengeMessage first;
  std::copy_n(transcript_.begin(), first.size(), first.begin());
  return first;
}

ChallengeStep Challenge::take(Bytes message) {
  if (const std::string fault = fault_in(message); !fault.empty()) {
    // Not to what is no rank: it would not understand, and need not know what is here.
    const bool whole = message.size() == kChallengeBytes && has_our_preamble(message);
    const bool tell = role_ == Role::acceptor && next_ && whole;
    return refuse(fault, tell ? std::optional(say(Kind::refusal)) : std::nullopt);
  }
  if (next_ == Kind::hello) return answer_hello(message);
  return role_ == Role::acceptor ? judge_connector(message) : judge_acceptor(message);
}

Secret Challenge::session_key() const {
  if (!done_) throw Error(Status::internal, "there is no session key before both have proved");
  return key_for("collectives session", sha256(transcript_), secret_);
}

// Makes the next message of this side, and remembers it but for a refusal, which ends everything.
ChallengeMessage Challenge::say(Kind kind, Verdict verdict) {
  ChallengeMessage message{};
  put_little_endian(message, kMagicAt, kChallengeMagic);
  put_little_endian(message, kVersionAt, kChallengeVersion);
  put_little_endian(message, kKindAt, static_cast<std::uint32_t>(kind));
  put_little_endian(message, kRoleAt, static_cast<std::uint32_t>(role_));
  if (kind == Kind::refusal) return message;
  if (kind == Kind::proof) {
    put_little_endian(message, kVerdictAt, static_cast<std::uint32_t>(verdict));
    put_little_endian(message, kAttemptAt, static_cast<std::uint32_t>(self_.attempt));
    put_little_endian(message, kRankAt, static_cast<std::uint32_t>(self_.rank));
    put_little_endian(message, kRanksAt, static_cast<std::uint32_t>(self_.ranks));
    put_little_endian(message, kWantedAt, static_cast<std::uint32_t>(expected_));
    put_little_endian(message, kJobAt, job_hash(self_.job));
  }
  const Digest value = kind == Kind::hello ? nonce_ : proof_after(Bytes(message).first(kValueAt));
  std::copy(value.begin(), value.end(), message.begin() + kValueAt);
  remember(message);
  return message;
}

void Challenge::remember(Bytes message) noexcept {
  std::copy(message.begin(), message.end(), transcript_.begin() + said_);
  said_ += message.size();
}

// The role is part of `head`.
Digest Challenge::proof_after(Bytes head) const noexcept {
  HmacSha256 mac(proof_key_.bytes());
  mac.update(Bytes(transcript_).first(said_));
  mac.update(head);
  return mac.finish();
}

// What can be told without the secret: a sentence, or nothing.
std::string Challenge::fault_in(Bytes message) const {
  if (!next_) return "it sent a message after the last one: end this connection";
  const bool ours = has_our_preamble(message);
  // First, because messages of another version may be longer or shorter.
  if (ours && little_endian_at<std::uint32_t>(message, kVersionAt) != kChallengeVersion) {
    return "it speaks version " +
           std::to_string(little_endian_at<std::uint32_t>(message, kVersionAt)) +
           " of the handshake between hosts, this process version " +
           std::to_string(kChallengeVersion) + ": install the same version for all ranks";
  }
  if (message.size() != kChallengeBytes) {
    return "it sent " + std::to_string(message.size()) + " bytes instead of " +
           std::to_string(kChallengeBytes) +
           ": it is no rank, or has ended; look at the errors of the other ranks";
  }
  if (!ours) {
    return "what it sent is not the greeting of a rank: something else than a rank uses this "
           "address and port";
  }
  if (little_endian_at<std::uint32_t>(message, kRoleAt) == static_cast<std::uint32_t>(role_)) {
    return "it plays the same part as this process: what was said came back, or both have "
           "connected where one should listen; end this connection";
  }
  const auto kind = static_cast<Kind>(little_endian_at<std::uint32_t>(message, kKindAt));
  if (kind == Kind::refusal && role_ == Role::connector) return refused_by_peer();
  if (kind != *next_) {
    return "it sent a message out of turn: it is no rank of this version; end this connection";
  }
  return "";
}

std::string Challenge::refused_by_peer() const {
  return next_ == Kind::hello
             ? "it refused this process without a reason, and has proved nothing itself: look "
               "there for the reason, and whether it is a rank of this job"
             : "it refused the proof of this process, and gave none itself: its secret is another "
               "one, or what was said was changed on the way; give all ranks the same secret "
               "(COLLECTIVES_SECRET_FILE)";
}

// Why these two may not talk though both have the secret: a sentence, or nothing.
std::string Challenge::disagreement(const Said& peer) const {
  const auto own_rank = static_cast<std::uint32_t>(self_.rank);
  const std::string its_rank = "rank " + std::to_string(peer.rank);
  const std::string this_rank = "rank " + std::to_string(self_.rank);
  if (peer.job != job_hash(self_.job)) {
    return "it belongs to another job than " + job_in_words(self_) +
           ": set COLLECTIVES_JOB to one name for all ranks";
  }
  if (peer.attempt != static_cast<std::uint32_t>(self_.attempt)) {
    return "it is at attempt " + std::to_string(peer.attempt) + " of the job, this process at " +
           std::to_string(self_.attempt) +
           ": a rank left over from another start of the job must end";
  }
  if (peer.ranks != static_cast<std::uint32_t>(self_.ranks)) {
    return "it was started for " + std::to_string(peer.ranks) + " ranks, this process for " +
           std::to_string(self_.ranks) +
           ": give all ranks one number (COLLECTIVES_SIZE, WORLD_SIZE)";
  }
  if (peer.rank >= peer.ranks) {
    return "it says that it is " + its_rank + " of " + std::to_string(peer.ranks) +
           each_its_own_rank(self_.ranks);
  }
  if (peer.rank == own_rank) {
    return "it says that it is " + its_rank + ", which this process is" +
           each_its_own_rank(self_.ranks);
  }
  if (expected_ != kAnyRank && peer.rank != static_cast<std::uint32_t>(expected_)) {
    return "it is " + its_rank + ", not rank " + std::to_string(expected_) +
           " as expected: the address of another rank was used; start all ranks anew";
  }
  if (peer.wanted != static_cast<std::uint32_t>(kAnyRank) && peer.wanted != own_rank) {
    return "it wanted rank " + std::to_string(peer.wanted) + ", and this process is " + this_rank +
           ": the address of another rank was used; start all ranks anew";
  }
  return "";
}

ChallengeStep Challenge::answer_hello(Bytes message) {
  remember(message);
  next_ = Kind::proof;
  const Kind answer = role_ == Role::acceptor ? Kind::hello : Kind::proof;
  return {.reply = say(answer), .sentence = ""};
}

ChallengeStep Challenge::judge_connector(Bytes message) {
  if (!equal_in_constant_time(proof_after(message.first(kValueAt)), message.subspan(kValueAt))) {
    return refuse(
        "it has not proved that it knows the secret of this job: it is a stranger, or its "
        "secret is another one; give all ranks the same secret (COLLECTIVES_SECRET_FILE)",
        say(Kind::refusal));
  }
  remember(message);
  const Said peer(message);
  if (std::string reason = disagreement(peer); !reason.empty()) {
    return refuse_member(std::move(reason), say(Kind::proof, Verdict::disagrees));
  }
  if (is_taken_ && is_taken_(static_cast<int>(peer.rank))) {
    return refuse_member("rank " + std::to_string(peer.rank) +
                             " is connected already, and it says that it is that rank" +
                             one_process_each(self_.ranks),
                         say(Kind::proof, Verdict::taken));
  }
  return finish(peer, say(Kind::proof, Verdict::welcome));
}

ChallengeStep Challenge::judge_acceptor(Bytes message) {
  if (!equal_in_constant_time(proof_after(message.first(kValueAt)), message.subspan(kValueAt))) {
    return refuse(
        "it has not proved that it knows the secret of this job: it is a stranger that "
        "listens where a rank should; see who uses this address and port");
  }
  remember(message);
  const Said peer(message);
  if (std::string reason = disagreement(peer); !reason.empty())
    return refuse_member(std::move(reason));
  const std::string own_rank = "rank " + std::to_string(self_.rank);
  switch (peer.verdict) {
    case Verdict::welcome:
      return finish(peer);
    case Verdict::taken:
      return refuse_member("it is connected to another process that is " + own_rank +
                           ", as this one says to be" + one_process_each(self_.ranks));
    default:
      return refuse_member("it refuses " + own_rank + " of " + std::to_string(self_.ranks) +
                           each_its_own_rank(self_.ranks));
  }
}

ChallengeStep Challenge::refuse(std::string sentence, std::optional<ChallengeMessage> reply) {
  next_.reset();
  done_ = false;
  return {.state = ChallengeStep::State::refused, .reply = reply, .sentence = std::move(sentence)};
}

ChallengeStep Challenge::refuse_member(std::string sentence,
                                       std::optional<ChallengeMessage> reply) {
  ChallengeStep step = refuse(std::move(sentence), reply);
  step.proved = true;
  return step;
}

ChallengeStep Challenge::finish(const Said& peer, std::optional<ChallengeMessage> reply) {
  next_.reset();
  done_ = true;
  return {.state = ChallengeStep::State::done,
          .reply = reply,
          .peer = static_cast<int>(peer.rank),
          .proved = true,
          .sentence = ""};
}

}  // namespace coll
