// SPDX-License-Identifier: Apache-2.0
// One UCX worker, and what has come to it by peer. All streams of a communicator share it: whoever
// has its turn makes progress for all.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "ucx/library.h"
#include "ucx/peer.h"
#include "ucx/ucx.h"

namespace coll {

class UcxCore {
 public:
  // Of messages: with a payload, and without, only to say what has been taken.
  enum Kind : unsigned { kFrame = 1, kCredit = 2 };

  // Throws Error.
  UcxCore(const UcxSettings& settings, int rank, int ranks);
  ~UcxCore();
  UcxCore(const UcxCore&) = delete;
  UcxCore& operator=(const UcxCore&) = delete;

  const UcxLibrary& library() const noexcept { return library_; }
  ucp_worker_h worker() const noexcept { return worker_; }
  int rank() const noexcept { return rank_; }
  int fd() const noexcept { return fd_; }
  // Where this rank is to UCX: what a peer connects to.
  const std::vector<std::byte>& address() const noexcept { return address_; }
  // From now on what this peer sends is kept. Once for each. Throws Error.
  UcxPeer& expect(int peer);
  // Whether anything has happened.
  bool progress() noexcept;
  // A process that was forked off must not touch what it shares with its parent.
  bool forked() const noexcept;
  // Until when leaving may take: one moment for all streams.
  const Deadline& parting();

 private:
  static ucs_status_t frame(void* core, const void* header, std::size_t header_length, void* data,
                            std::size_t length, const ucp_am_recv_param_t* param) noexcept;
  static ucs_status_t credit(void* core, const void* header, std::size_t header_length, void* data,
                             std::size_t length, const ucp_am_recv_param_t* param) noexcept;
  UcxPeer* sender_of(const void* header, std::size_t length, UcxHeader& read) noexcept;
  void open_context(const std::string& devices, int ranks);
  void open_worker();
  void handle(Kind kind, ucp_am_recv_callback_t callback);
  void check(ucs_status_t status, const char* what) const;
  void close() noexcept;

  const UcxLibrary& library_;
  const int rank_;
  const pid_t owner_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int fd_ = -1;
  std::vector<std::byte> address_;
  std::vector<std::unique_ptr<UcxPeer>> peers_;  // by rank
  std::unique_ptr<Deadline> parting_;
};

}  // namespace coll
