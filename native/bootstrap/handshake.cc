// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/handshake.h"

#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/version.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

// The byte after the leading NUL of an abstract name up to the end of sun_path.
constexpr std::size_t kNameRoom = sizeof(sockaddr_un::sun_path) - 1;

void copy_into(char* to, std::size_t room, std::string_view text) noexcept {
  const std::size_t n = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), n);
  std::memset(to + n, 0, room - n);
}

std::string quoted(const char* text, std::size_t room) {
  return "'" + std::string(text, strnlen(text, room)) + "'";
}

std::string name_with(unsigned uid, const std::string& job, const std::string& last) {
  const std::string head = "collectives/" + std::to_string(uid) + "/";
  std::string name = head + job + "/" + last;
  if (name.size() <= kNameRoom) return name;
  char hash[24];
  std::snprintf(hash, sizeof hash, "#%016llx", static_cast<unsigned long long>(job_hash(job)));
  return head + hash + "/" + last;
}

std::optional<Notice> notice_in(const void* packet, std::size_t n) {
  Notice notice;
  if (n != sizeof notice) return std::nullopt;
  std::memcpy(&notice, packet, n);
  const bool known = notice.preamble.magic == kWireMagic && notice.preamble.wire == kWireVersion &&
                     notice.kind >= NoticeKind::welcome && notice.kind <= NoticeKind::failed;
  if (!known) return std::nullopt;
  notice.text[sizeof notice.text - 1] = '\0';
  return notice;
}

std::string other_version(const Hello& hello) {
  return "it runs version " + quoted(hello.library, sizeof hello.library) +
         " of the library (wire version " + std::to_string(hello.preamble.wire) + "), rank 0 '" +
         kLibraryVersion + "' (wire version " + std::to_string(kWireVersion) +
         "): install the same version for all ranks";
}

// What is wrong with a well-formed hello.
std::string mismatch(const Hello& hello, const Identity& host, const ucred& peer) {
  if (hello.job != job_hash(host.job)) {
    return "it belongs to another job than " + job_in_words(host) +
           ": set COLLECTIVES_JOB to one name for all ranks";
  }
  if (hello.attempt != host.attempt) {
    return "rank 0 is at attempt " + std::to_string(host.attempt) + " of job '" + host.job +
           "', it is at attempt " + std::to_string(hello.attempt) +
           ": a rank left over from another start of the job must end";
  }
  if (hello.ranks != host.ranks) {
    return "it was started for " + std::to_string(hello.ranks) + " ranks, rank 0 for " +
           std::to_string(host.ranks) +
           ": give all ranks one number (COLLECTIVES_SIZE, WORLD_SIZE)";
  }
  if (hello.rank < 0 || hello.rank >= host.ranks) {
    return "there is no rank " + std::to_string(hello.rank) + " among " +
           std::to_string(host.ranks) + ": ranks are 0 to " + std::to_string(host.ranks - 1);
  }
  // The kernel translates the pid into our PID namespace; 0 where it has no number there.
  if (hello.pid != peer.pid) {
    return "it runs in another PID namespace (container), where its death could not be seen: "
           "start all ranks in one";
  }
  return "";
}

}  // namespace

std::uint64_t job_hash(std::string_view job) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

Hello make_hello(const Identity& identity) {
  Hello hello;
  hello.preamble.bytes = sizeof hello;
  copy_into(hello.library, sizeof hello.library, kLibraryVersion);
  hello.job = job_hash(identity.job);
  hello.attempt = identity.attempt;
  hello.rank = identity.rank;
  hello.ranks = identity.ranks;
  hello.pid = ::getpid();
  return hello;
}

Notice make_notice(NoticeKind kind, int attempt, Status status, int rank, std::string_view text) {
  Notice notice;
  notice.preamble.bytes = sizeof notice;
  notice.kind = kind;
  notice.status = status;
  notice.rank = rank;
  notice.attempt = attempt;
  copy_into(notice.text, sizeof notice.text, text);
  return notice;
}

Notice read_notice(const void* packet, std::size_t n) {
  const std::optional<Notice> notice = notice_in(packet, n);
  if (notice) return *notice;
  throw Error(Status::bootstrap, "a packet of " + std::to_string(n) +
                                     " bytes arrived that no rank of this version sends");
}

std::optional<Notice> warning_of(const void* packet, std::size_t n, const Identity& host) {
  const std::optional<Notice> notice = notice_in(packet, n);
  const bool ours = notice && notice->kind == NoticeKind::failed && notice->attempt == host.attempt;
  return ours ? notice : std::nullopt;
}

Error error_of(const Notice& notice) {
  const bool known = notice.status > Status::ok && notice.status <= Status::internal;
  return Error(known ? notice.status : Status::bootstrap, notice.text, std::max(notice.rank, -1));
}

Error cannot_take_part(int rank, const std::string& why) {
  return Error(Status::invalid_argument,
               "rank " + std::to_string(rank) + " cannot take part: " + why, rank);
}

std::string refusal(const void* packet, std::size_t n, const Identity& host, const ucred& peer,
                    Hello& hello) {
  std::memset(static_cast<void*>(&hello), 0, sizeof hello);
  std::memcpy(static_cast<void*>(&hello), packet, std::min(n, sizeof hello));
  if (n < sizeof(Preamble) || hello.preamble.magic != kWireMagic) {
    return "its " + std::to_string(n) + " bytes are not the greeting of a rank";
  }
  if (hello.preamble.wire != kWireVersion) return other_version(hello);
  if (n != sizeof hello || hello.preamble.bytes != sizeof hello) {
    return "its greeting has " + std::to_string(n) + " bytes instead of " +
           std::to_string(sizeof hello);
  }
  if (std::strncmp(hello.library, kLibraryVersion, sizeof hello.library) != 0) {
    return other_version(hello);
  }
  return mismatch(hello, host, peer);
}

std::string socket_name(unsigned uid, const Identity& identity) {
  return name_with(uid, identity.job, std::to_string(identity.attempt));
}

std::string any_attempt_name(unsigned uid, const Identity& identity) {
  return name_with(uid, identity.job, "any");
}

std::string claim_name(unsigned uid, const Identity& identity) {
  return name_with(uid, identity.job,
                   std::to_string(identity.attempt) + "/rank " + std::to_string(identity.rank));
}

std::string handover_name(unsigned uid, const Identity& identity, const std::string& fresh) {
  return name_with(uid, identity.job, std::to_string(identity.attempt) + "/" + fresh);
}

}  // namespace coll
