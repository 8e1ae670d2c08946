// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/guest.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

constexpr double kFirstNap = 0.001, kLongestNap = 0.010;  // seconds between two knocks
constexpr int kSecondDoor = 16;  // of so many knocks one is at the door for any attempt

bool all_attached(const Segment& segment) noexcept {
  return segment.header().attached.load(std::memory_order_acquire) >= segment.shape().ranks;
}

}  // namespace

Guest::Guest(const Identity& identity, double timeout_s, const Stop& stop, const Terms& terms)
    : identity_(identity),
      timeout_s_(timeout_s),
      deadline_(timeout_s),
      stop_(stop),
      terms_(terms),
      uid_(::geteuid()) {}

Membership Guest::run(const SegmentShape& shape) {
  const std::string door = socket_name(uid_, identity_);
  const std::string second_door = any_attempt_name(uid_, identity_);
  double nap = kFirstNap;
  for (int knocks = 1;; ++knocks) {
    const Descriptor rank0 = knock(knocks % kSecondDoor == 0 ? second_door : door);
    std::optional<Descriptor> memfd = rank0 ? introduce(rank0) : std::nullopt;
    if (memfd) return settle(rank0, std::move(*memfd), shape);
    if (deadline_.passed()) throw nobody_answers();
    wait_a_moment(nullptr, 0, Deadline(nap), stop_);
    nap = std::min(2 * nap, kLongestNap);
  }
}

// A connection to rank 0; none where nobody is there yet.
Descriptor Guest::knock(const std::string& name) {
  Opened opened = connect_to(name);
  // EAGAIN: there is a queue at the door.
  if (opened.error == ECONNREFUSED || opened.error == EAGAIN) return {};
  if (opened.error != 0) throw system_error(me() + ": connecting to rank 0", opened.error);
  const ucred peer = peer_of(opened.fd);
  if (peer.uid != uid_) {
    throw Error(Status::bootstrap, me() + ": the rendezvous belongs to process " +
                                       std::to_string(peer.pid) + " of user " +
                                       std::to_string(peer.uid) + ", this rank to user " +
                                       std::to_string(uid_) + ": start all ranks as one user");
  }
  rank0_pid_ = peer.pid;
  return std::move(opened.fd);
}

// The memory, once rank 0 has let this rank in; none where it is worth to knock again.
std::optional<Descriptor> Guest::introduce(const Descriptor& rank0) {
  const Hello hello = make_hello(identity_);
  // Where this fails rank 0 may still have said why.
  const int error = send_packet(rank0, &hello, sizeof hello);
  if (error != 0 && error != EPIPE && error != ECONNRESET) return std::nullopt;
  Descriptor memfd;
  const std::optional<Notice> notice = next_notice(rank0, &memfd);
  if (!notice) {
    if (deadline_.passed()) throw nobody_answers();
    return std::nullopt;
  }
  if (notice->kind == NoticeKind::refused && notice->attempt < identity_.attempt) {
    older_attempt_ = notice->attempt;  // it will go, ours will come
    return std::nullopt;
  }
  if (notice->kind != NoticeKind::welcome) throw error_of(*notice);
  if (const std::optional<Error> objects = objection(*notice)) {
    tell_rank0(rank0, *objects);
    throw Error(*objects);
  }
  if (!memfd) {
    const Error lost(Status::system,
                     me() +
                         ": the descriptor of the shared memory did not arrive: this process is at "
                         "its limit of open files; raise `ulimit -n`",
                     identity_.rank);
    tell_rank0(rank0, lost);
    throw lost;
  }
  return memfd;
}

// Why this rank does not come in, though it is let in.
std::optional<Error> Guest::objection(const Notice& welcome) const {
  if (!terms_.refusal.empty()) return cannot_take_part(identity_.rank, terms_.refusal);
  if (terms_.trusted == welcome.text) return std::nullopt;
  const auto in_words = [](const std::string& trusted) {
    return trusted.empty() ? "no networks, as none are said" : trusted;
  };
  return Error(Status::invalid_argument,
               "rank 0 has trusted " + in_words(welcome.text) + " and " + me() + " has " +
                   in_words(terms_.trusted) +
                   ": give all ranks the same, by init(trusted=...) or COLLECTIVES_TRUSTED",
               identity_.rank);
}

Membership Guest::settle(const Descriptor& rank0, Descriptor memfd, const SegmentShape& shape) {
  try {
    Membership membership = join_group(std::move(memfd), shape, identity_.rank, identity_.rank);
    if (static_cast<int>(membership.segment.shape().ranks) != identity_.ranks) {
      throw Error(Status::internal, me() + ": the segment was made for another number of ranks");
    }
    const Notice attached =
        make_notice(NoticeKind::attached, identity_.attempt, Status::ok, -1, "attached");
    const int error = send_packet(rank0, &attached, sizeof attached);
    // Where rank 0 has gone, await_all() finds out how.
    if (error != 0 && error != EPIPE && error != ECONNRESET) {
      throw system_error(me() + ": telling rank 0 that the memory is mapped", error);
    }
    await_all(rank0, membership.segment);
    return membership;
  } catch (const Error& error) {
    // Rank 0 tells why before it gives up the memory: that is the cause of what was found here.
    if (const std::optional<Notice> told = notice_there(rank0)) throw error_of(*told);
    tell_rank0(rank0, error);
    throw;
  }
}

// What rank 0 has said already and was not heard yet.
std::optional<Notice> Guest::notice_there(const Descriptor& rank0) {
  for (int tries = 0; tries < 2; ++tries) {
    char packet[sizeof(Notice) + 64];
    const ssize_t n = receive_packet(rank0, packet, sizeof packet, nullptr);
    if (n > 0) return read_notice(packet, static_cast<std::size_t>(n));
    if (n != -ECONNRESET) return std::nullopt;
  }
  return std::nullopt;
}

// Rank 0 closes the connection when all are there; where it has ended, not all are.
void Guest::await_all(const Descriptor& rank0, const Segment& segment) {
  const std::optional<Notice> notice = next_notice(rank0, nullptr);
  if (notice) throw error_of(*notice);
  if (all_attached(segment)) return;
  if (deadline_.passed()) throw incomplete(segment);
  throw Error(Status::peer_lost,
              me() + ": rank 0, process " + std::to_string(rank0_pid_) +
                  ", ended while the group was forming",
              0);
}

// The next word of rank 0; none at the end of the connection and at the deadline.
std::optional<Notice> Guest::next_notice(const Descriptor& rank0, Descriptor* passed) {
  bool reset = false;
  while (true) {
    char packet[sizeof(Notice) + 64];
    const ssize_t n = receive_packet(rank0, packet, sizeof packet, passed);
    if (n > 0) return read_notice(packet, static_cast<std::size_t>(n));
    if (n == -ECONNRESET && !reset) {
      // Rank 0 closed without reading our last word; its own may be in the queue behind the error.
      reset = true;
      continue;
    }
    if (n != -EAGAIN || deadline_.passed()) return std::nullopt;
    pollfd fd{rank0.get(), POLLIN, 0};
    wait_a_moment(&fd, 1, deadline_, stop_);
  }
}

void Guest::tell_rank0(const Descriptor& rank0, const Error& error) noexcept {
  const int culprit = error.rank >= 0 ? error.rank : identity_.rank;
  const Notice notice =
      make_notice(NoticeKind::failed, identity_.attempt, error.status, culprit, error.what());
  send_packet(rank0, &notice, sizeof notice);
}

Error Guest::nobody_answers() const {
  if (rank0_pid_ != 0 && !older_attempt_) {
    return Error(Status::timeout,
                 me() + ": rank 0, process " + std::to_string(rank0_pid_) +
                     ", is there but did not answer within " + seconds_in_words(timeout_s_),
                 0);
  }
  std::string text =
      me() + ": rank 0 has not opened the rendezvous within " + seconds_in_words(timeout_s_) +
      ": check that it was started, on this machine and "
      "in this network namespace, as user " +
      std::to_string(uid_) + ", with the same COLLECTIVES_JOB and COLLECTIVES_ATTEMPT";
  if (older_attempt_) {
    text += "; only a rank 0 of attempt " + std::to_string(*older_attempt_) + " was there";
  }
  return Error(Status::timeout, text, 0);
}

Error Guest::incomplete(const Segment& segment) const {
  std::vector<int> missing;
  for (int r = 0; r < identity_.ranks; ++r) {
    if (life_of(segment, r) == Life::absent) missing.push_back(r);
  }
  // All may have come this very moment, too late for this rank.
  const std::string who = missing.empty() ? "the others" : ranks_in_words(missing);
  return Error(Status::timeout,
               me() + ": after " + seconds_in_words(timeout_s_) + " " + who + " of " +
                   std::to_string(identity_.ranks) + " had not come",
               missing.empty() ? -1 : missing.front());
}

std::string Guest::me() const {
  return "rank " + std::to_string(identity_.rank) + " of " + job_in_words(identity_);
}

}  // namespace coll
