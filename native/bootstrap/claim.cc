// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/claim.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <string>

#include "base/system_error.h"
#include "bootstrap/channel.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

// The claims of this process. A socket that listens under the rank's name is the claim; nobody
// accepts there, but the kernel tells whoever connects which process it is.
class OwnClaims {
 public:
  static OwnClaims& of_this_process() {
    static OwnClaims* const claims = new OwnClaims;  // outlives every static that holds a claim
    return *claims;
  }

  Claim take(const Identity& identity) {
    const std::string name = claim_name(::geteuid(), identity);
    const std::lock_guard lock(mutex_);
    if (Claim mine = held_[name].lock()) return mine;
    Opened opened = listen_at(name, kBacklog);
    if (opened.error == EADDRINUSE) throw taken(name, identity);
    if (opened.error != 0) {
      throw system_error(
          "claiming rank " + std::to_string(identity.rank) + " of " + job_in_words(identity),
          opened.error);
    }
    auto claim = std::make_shared<Descriptor>(std::move(opened.fd));
    std::erase_if(held_, [](const auto& entry) { return entry.second.expired(); });
    held_[name] = claim;
    return claim;
  }

 private:
  static constexpr int kBacklog = 16;

  OwnClaims() {
    pthread_atfork([] { of_this_process().mutex_.lock(); },
                   [] { of_this_process().mutex_.unlock(); },
                   [] { of_this_process().drop_in_child(); });
  }

  // A child that outlives its parent would keep the rank from being started again.
  void drop_in_child() {
    for (auto& [name, held] : held_) {
      if (const Claim claim = held.lock()) claim->reset();
    }
    held_.clear();
    mutex_.unlock();
  }

  static Error taken(const std::string& name, const Identity& identity) {
    std::string by = "another process";
    if (const Opened opened = connect_to(name); opened.error == 0) {
      by = process_in_words(peer_of(opened.fd).pid);
    }
    return Error(Status::bootstrap,
                 "rank " + std::to_string(identity.rank) + " of " + job_in_words(identity) +
                     " is claimed by " + by + " and by " + process_in_words(::getpid()) +
                     ": give each rank its own COLLECTIVES_RANK, and each of two jobs that run at "
                     "one time its own COLLECTIVES_JOB",
                 identity.rank);
  }

  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Descriptor>> held_;
};

// Ranks of our job may be meeting with the other claimant at this moment: they hear of it.
void warn_rank0(const Identity& identity, const Error& error) {
  const Opened door = connect_to(socket_name(::geteuid(), identity));
  if (door.error != 0) return;
  const Notice notice =
      make_notice(NoticeKind::failed, identity.attempt, error.status, error.rank, error.what());
  send_packet(door.fd, &notice, sizeof notice);
}

}  // namespace

Claim claim_rank(const Identity& identity) {
  try {
    return OwnClaims::of_this_process().take(identity);
  } catch (const Error& error) {
    if (error.status == Status::bootstrap) warn_rank0(identity, error);
    throw;
  }
}

}  // namespace coll
