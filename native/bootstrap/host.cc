// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/host.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/system_error.h"
#include "bootstrap/words.h"
#include "transport/process.h"

namespace coll {
namespace {

constexpr int kStrangers = 64;  // connections without a greeting, above one per rank
constexpr int kAcceptsPerStep = 64;
constexpr double kFarewell = 1;  // seconds in which others still hear why nobody meets
constexpr std::size_t kRefusalsKept = 4;
constexpr int kBacklog = 4096;  // the kernel takes net.core.somaxconn where that is less

// Longer than any message, so that one that is too long is seen to be.
using Packet = char[sizeof(Notice) + 64];

}  // namespace

Host::Host(const Identity& identity, double timeout_s, const Stop& stop, Terms terms,
           double patience_s)
    : identity_(identity),
      timeout_s_(timeout_s),
      patience_s_(patience_s),
      deadline_(timeout_s),
      stop_(stop),
      terms_(std::move(terms)),
      uid_(::geteuid()),
      pid_of_(static_cast<std::size_t>(identity.ranks), 0),
      farewell_(timeout_s) {
  pid_of_[0] = ::getpid();
}

Membership Host::run(const SegmentShape& shape) {
  membership_ = found_group(shape, 0);
  try {
    open_doors();
    if (!terms_.refusal.empty()) break_off(cannot_take_part(0, terms_.refusal), timeout_s_);
    while (!complete()) step();
  } catch (const Error& error) {
    tell_members(error);
    throw;
  }
  // The doors first: a rank that hurries on to its next rendezvous must not find these. Then the
  // end of its connection tells each rank that all are there.
  door_.reset();
  any_attempt_door_.reset();
  visitors_.clear();
  return std::move(membership_);
}

void Host::open_doors() {
  const std::string name = socket_name(uid_, identity_);
  for (;;) {
    Opened opened = listen_at(name, kBacklog);
    if (opened.error == 0) {
      door_ = std::move(opened.fd);
      break;
    }
    if (opened.error != EADDRINUSE) {
      throw system_error("opening the rendezvous of " + job_in_words(identity_), opened.error);
    }
    check_occupant(name);
    if (deadline_.passed()) {
      throw Error(Status::timeout, "the rendezvous of " + job_in_words(identity_) +
                                       " was still held by a dying process after " +
                                       seconds_in_words(timeout_s_));
    }
    wait_a_moment(nullptr, 0, Deadline(0.01), stop_);
  }
  // Taken where another attempt is starting too; then late ranks just find no door.
  any_attempt_door_ = listen_at(any_attempt_name(uid_, identity_), kBacklog).fd;
}

// Somebody has our name. Returns where that is about to change.
void Host::check_occupant(const std::string& name) const {
  const Opened opened = connect_to(name);
  if (opened.error != 0) return;
  const ucred peer = peer_of(opened.fd);
  if (peer.uid != uid_) {
    throw Error(Status::bootstrap, "the rendezvous of " + job_in_words(identity_) +
                                       " is occupied by " + process_in_words(peer.pid) +
                                       " of user " + std::to_string(peer.uid) +
                                       ": choose another COLLECTIVES_JOB");
  }
  if (peer.pid != 0 && process_gone(peer.pid, 0)) return;
  // It must hear of us: our other ranks may be knocking at its door.
  const Hello hello = make_hello(identity_);
  send_packet(opened.fd, &hello, sizeof hello);
  throw Error(Status::bootstrap,
              "there is a rank 0 of " + job_in_words(identity_) + " already, " +
                  process_in_words(peer.pid) +
                  ": give each rank its own COLLECTIVES_RANK, each job its own COLLECTIVES_JOB",
              0);
}

void Host::step() {
  std::vector<pollfd> fds;
  for (const Visitor& visitor : visitors_) fds.push_back({visitor.socket.get(), POLLIN, 0});
  fds.push_back({door_.get(), POLLIN, 0});
  fds.push_back({any_attempt_door_.get(), POLLIN, 0});  // poll() skips -1
  wait_a_moment(fds.data(), fds.size(), deadline_, stop_);

  const std::size_t known = visitors_.size();
  for (std::size_t i = 0; i < known; ++i) {
    if (fds[i].revents != 0) serve(visitors_[i]);
  }
  if (fds[known].revents != 0) admit(door_);
  if (fds[known + 1].revents != 0) admit(any_attempt_door_);
  for (Visitor& visitor : visitors_) {
    if (visitor.rank < 0 && !visitor.gone && visitor.patience.passed()) {
      refuse(visitor, -1, "it said nothing for " + seconds_in_words(patience_s_));
    }
  }
  std::erase_if(visitors_, [](const Visitor& visitor) { return visitor.gone; });
  if (end_ && (all_came() || farewell_.passed())) throw Error(*end_);
  if (deadline_.passed() && !complete()) throw end_ ? *end_ : timed_out();
}

void Host::admit(const Descriptor& door) {
  for (int i = 0; i < kAcceptsPerStep; ++i) {
    Opened opened = accept_from(door);
    if (opened.error == ECONNABORTED) continue;
    if (opened.error == EAGAIN) return;
    if (opened.error != 0) throw system_error("accepting a rank", opened.error);
    Visitor visitor{std::move(opened.fd), {}, Deadline(patience_s_)};
    visitor.peer = peer_of(visitor.socket);
    if (visitor.peer.uid != uid_) {
      refuse(visitor, -1,
             "it belongs to user " + std::to_string(visitor.peer.uid) + ", rank 0 to user " +
                 std::to_string(uid_));
      continue;
    }
    visitors_.push_back(std::move(visitor));
    drop_oldest_stranger();
  }
}

// A rank greets at once, so of too many that have not, the oldest is the least likely to be one.
void Host::drop_oldest_stranger() {
  const auto stranger = [](const Visitor& visitor) { return visitor.rank < 0 && !visitor.gone; };
  const auto count = std::count_if(visitors_.begin(), visitors_.end(), stranger);
  if (count <= identity_.ranks + kStrangers) return;
  // Its socket only: the element goes at the end of the step.
  Visitor& oldest = *std::find_if(visitors_.begin(), visitors_.end(), stranger);
  oldest.socket.reset();
  oldest.gone = true;
}

void Host::serve(Visitor& visitor) {
  if (visitor.gone) return;
  Packet packet;
  const ssize_t n = receive_packet(visitor.socket, packet, sizeof packet);
  if (n == -EAGAIN) return;
  if (n <= 0) {
    if (visitor.rank >= 0) throw lost(visitor);
    visitor.gone = true;
    return;
  }
  if (visitor.rank < 0) {
    greet(visitor, packet, static_cast<std::size_t>(n));
  } else {
    hear(visitor, packet, static_cast<std::size_t>(n));
  }
}

void Host::greet(Visitor& visitor, const void* packet, std::size_t n) {
  // Not one of us, but of our job: two processes claim one rank (bootstrap/claim.h).
  if (const std::optional<Notice> warning = warning_of(packet, n, identity_)) {
    throw error_of(*warning);
  }
  Hello hello;
  const std::string why = refusal(packet, n, identity_, visitor.peer, hello);
  if (!why.empty()) return refuse(visitor, -1, why);
  int& pid = pid_of_[static_cast<std::size_t>(hello.rank)];
  if (pid != 0) {
    // Two jobs of one name, perhaps: whoever is in already may belong to the other. So nobody
    // meets.
    const std::string text = "rank " + std::to_string(hello.rank) + " is claimed by " +
                             process_in_words(pid) + " and by " +
                             process_in_words(visitor.peer.pid) +
                             ": give each rank its own COLLECTIVES_RANK, each job its own "
                             "COLLECTIVES_JOB";
    refuse(visitor, hello.rank, text);
    throw Error(Status::bootstrap, text, hello.rank);
  }
  if (end_) {
    pid = visitor.peer.pid;
    tell(visitor, *end_);
    visitor.gone = true;
    return;
  }
  const Notice welcome =
      make_notice(NoticeKind::welcome, identity_.attempt, Status::ok, -1, terms_.trusted);
  // A rank that the welcome does not reach knocks again.
  if (send_packet(visitor.socket, &welcome, sizeof welcome, membership_.memory->fd()) != 0) {
    visitor.gone = true;
    return;
  }
  visitor.rank = hello.rank;
  pid = visitor.peer.pid;
}

void Host::hear(Visitor& member, const void* packet, std::size_t n) {
  const Notice notice = read_notice(packet, n);
  if (notice.kind == NoticeKind::failed) {
    const Error cause = error_of(notice);
    const int culprit = cause.rank >= 0 ? cause.rank : member.rank;
    return break_off(Error(cause.status, cause.what(), culprit), kFarewell);
  }
  if (notice.kind == NoticeKind::attached) member.attached = true;
}

void Host::refuse(Visitor& visitor, int rank, const std::string& why) {
  const std::string text = "rank 0 of " + job_in_words(identity_) + " refused " +
                           process_in_words(visitor.peer.pid) + ": " + why;
  const Notice notice =
      make_notice(NoticeKind::refused, identity_.attempt, Status::bootstrap, rank, text);
  send_packet(visitor.socket, &notice, sizeof notice);
  visitor.socket.reset();
  visitor.gone = true;
  const std::string refused = process_in_words(visitor.peer.pid) + ": " + why;
  if (!refusals_.empty() && refusals_.back() == refused) return;
  if (refusals_.size() == kRefusalsKept) refusals_.erase(refusals_.begin());
  refusals_.push_back(refused);
}

// All who are here are told at once. Who comes a little later would find no door and wait in vain.
void Host::break_off(const Error& error, double patience_s) {
  if (end_) return;
  end_ = error;
  farewell_ = Deadline(patience_s);
  tell_members(error);
  for (Visitor& visitor : visitors_) visitor.gone = visitor.gone || visitor.rank >= 0;
}

void Host::tell(const Visitor& member, const Error& error) noexcept {
  const Notice notice =
      make_notice(NoticeKind::failed, identity_.attempt, error.status, error.rank, error.what());
  send_packet(member.socket, &notice, sizeof notice);
}

void Host::tell_members(const Error& error) noexcept {
  for (const Visitor& visitor : visitors_) {
    if (visitor.rank >= 0 && !visitor.gone) tell(visitor, error);
  }
}

bool Host::all_came() const noexcept {
  return std::find(pid_of_.begin(), pid_of_.end(), 0) == pid_of_.end();
}

bool Host::complete() const noexcept {
  const auto attached = std::count_if(visitors_.begin(), visitors_.end(),
                                      [](const Visitor& visitor) { return visitor.attached; });
  return !end_ && attached == identity_.ranks - 1;
}

Error Host::timed_out() const {
  std::vector<int> missing, slow;
  for (int r = 0; r < identity_.ranks; ++r) {
    if (pid_of_[static_cast<std::size_t>(r)] == 0) missing.push_back(r);
  }
  for (const Visitor& visitor : visitors_) {
    if (visitor.rank >= 0 && !visitor.attached) slow.push_back(visitor.rank);
  }
  std::sort(slow.begin(), slow.end());
  std::string text = job_in_words(identity_) + ": after " + seconds_in_words(timeout_s_) + " " +
                     ranks_in_words(missing.empty() ? slow : missing) + " of " +
                     std::to_string(identity_.ranks) +
                     (missing.empty() ? " had come, but not mapped the shared memory"
                                      : " had not come: start it on this machine, as this user, "
                                        "with the same COLLECTIVES_JOB and COLLECTIVES_ATTEMPT");
  for (const std::string& refused : refusals_) text += "; refused " + refused;
  return Error(Status::timeout, text, missing.empty() ? slow.front() : missing.front());
}

Error Host::lost(const Visitor& member) const {
  return Error(Status::peer_lost,
               job_in_words(identity_) + ": rank " + std::to_string(member.rank) + ", " +
                   process_in_words(member.peer.pid) + ", ended while the group was forming",
               member.rank);
}

}  // namespace coll
