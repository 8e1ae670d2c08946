// SPDX-License-Identifier: Apache-2.0
// What ranks of one machine say to each other before they share memory: fixed-size messages in
// native byte order, one per packet. Nothing of a message is used before it has been checked.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace coll {

// Who a rank says it is. Equal on all ranks but for `rank`.
struct Identity {
  int rank = 0;
  int ranks = 1;
  std::string job = "default";
  int attempt = 0;  // a restart of a job counts up
};

// What a rank brings to the meeting besides.
struct Terms {
  std::string trusted;  // the networks that it trusts, as text, to be equal on all ranks
  std::string refusal;  // why it cannot take part and comes to say so; empty: it can
};

inline constexpr std::uint64_t kWireMagic = 0x314F4C4C45484C43ULL;
inline constexpr std::uint32_t kWireVersion = 1;

// The first sixteen bytes of every message, in every version to come.
struct Preamble {
  std::uint64_t magic = kWireMagic;
  std::uint32_t wire = kWireVersion;
  std::uint32_t bytes = 0;  // of the whole message
};

// A rank introduces itself to rank 0.
struct Hello {
  Preamble preamble;
  char library[24] = {};  // kLibraryVersion
  std::uint64_t job = 0;  // hash of the name
  std::int32_t attempt = 0;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::int32_t pid = 0;  // as its own PID namespace numbers it
};
static_assert(sizeof(Hello) == 64);

enum class NoticeKind : std::uint32_t {
  welcome = 1,   // rank 0 → rank: you are in; the memfd comes along, `text` is Terms::trusted
  refused = 2,   // rank 0 → stranger: `text` says why
  attached = 3,  // rank → rank 0: I have mapped it
  failed = 4     // either way: the group will not come to be, `text` says why
};

struct Notice {
  Preamble preamble;
  NoticeKind kind = NoticeKind::failed;
  Status status = Status::internal;
  std::int32_t rank = -1;    // at fault
  std::int32_t attempt = 0;  // of the sender
  char text[480] = {};
};
static_assert(sizeof(Notice) == 512);

std::uint64_t job_hash(std::string_view job) noexcept;

Hello make_hello(const Identity& identity);
Notice make_notice(NoticeKind kind, int attempt, Status status, int rank, std::string_view text);

// Reads a packet of n bytes as a notice. Throws Error(bootstrap) where it is none.
Notice read_notice(const void* packet, std::size_t n);

// The packet as a notice that the meeting of this job and attempt must end, where it is one.
std::optional<Notice> warning_of(const void* packet, std::size_t n, const Identity& host);

// The error that a notice of kind refused or failed carries.
Error error_of(const Notice& notice);

// What all ranks throw where one refuses.
Error cannot_take_part(int rank, const std::string& why);

// The verdict of rank 0 of `host` on a packet of n bytes from the process `peer`: a sentence that
// refuses it, or empty, and then `hello` is filled.
std::string refusal(const void* packet, std::size_t n, const Identity& host, const ucred& peer,
                    Hello& hello);

// Abstract socket names: without a file, so nothing can be left behind.
std::string socket_name(unsigned uid, const Identity& identity);
// A second door of the same rank 0 that does not depend on the attempt, where ranks of an earlier
// attempt learn that they are late.
std::string any_attempt_name(unsigned uid, const Identity& identity);
// Where the one process that is this rank of this job shows that it is (bootstrap/claim.h).
std::string claim_name(unsigned uid, const Identity& identity);
// Where a rank takes the memory of a group (bootstrap/handover.h); `fresh`: what nobody can guess.
std::string handover_name(unsigned uid, const Identity& identity, const std::string& fresh);

}  // namespace coll
