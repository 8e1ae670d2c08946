// SPDX-License-Identifier: Apache-2.0
// Messages of one rank to and from ranks of other machines, with the rules of mailbox/inbox.h: a
// message that no receive asks for stays in its connection, and holds up its sender, until
// a receive asks for what may lie behind it; then it is set aside, in memory of this rank.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/one_way.h"
#include "communicator/wire_place.h"
#include "mailbox/inbox.h"
#include "mailbox/request.h"
#include "transport/tcp_set.h"
#include "transport/tcp_stream.h"

namespace coll {

class WireMailbox {
 public:
  // The streams join `set`, which must stay.
  WireMailbox(WirePlace& place, TcpSet& set);
  ~WireMailbox();
  WireMailbox(const WireMailbox&) = delete;
  WireMailbox& operator=(const WireMailbox&) = delete;

  // Posts a message; its bytes are read until the request is done. One to this rank is done at
  // once. Throws bad_alloc; then nothing was posted.
  void send(Request& request);
  void receive(Request& request) noexcept;
  // One turn of all streams of the set; what there is room for is handed to them before. Returns
  // whether that was anything.
  bool progress() noexcept;
  // Makes connections and lets them in.
  void serve_doors();
  void watch(std::vector<pollfd>& out) const;

  // Nothing was posted that is not done.
  bool idle() const noexcept { return sending_ == 0 && waiting_ == 0; }
  // A connection that a message needs is being made.
  bool connecting() const noexcept { return ways_ && ways_->dialling(); }
  const Fault& fault() const noexcept { return fault_; }

  // Between the two, messages that fit are brought up for find().
  void look_for(const Pattern& pattern) noexcept { sought_ = pattern; }
  void look_no_more() noexcept { sought_.reset(); }
  // The first message that fits and that no receive has got.
  std::optional<Found> find(const Pattern& pattern) const noexcept;

  // Why nothing more can go to a rank, or come from one; "" it may.
  std::string fault_to(int peer) const;
  std::string fault_from(int peer) const;
  bool silent(int peer) const noexcept;  // its machine does not answer on one of these
  // Whether a connection from that rank is there.
  bool hears(int peer) const noexcept;
  // Bytes that have gone to a rank, or come from it.
  std::uint64_t moved(int peer) const noexcept;
  // How far the connection to a rank is; "" it is there.
  std::string standing(int peer) const;

  // After a failure: no stream touches the caller's arrays any more, nobody is let in.
  void give_up() noexcept;

 private:
  struct Aside;
  class Out;
  class In;

  std::size_t at(int rank) const noexcept { return static_cast<std::size_t>(rank); }
  Landing land(In& in, const TcpHeader& header) noexcept;
  void landed(In& in) noexcept;
  bool opens(In& in, const TcpHeader& header) noexcept;
  bool stays(const In& in) const noexcept;
  Landing place_of(In& in) noexcept;
  bool meet(Request& request, int from, const Envelope& envelope) noexcept;
  void end(Request& request) noexcept;
  void take_from(In& in, Request& request) noexcept;
  Request* posted_for(In& in) noexcept;
  void send_to_self(Request& request);
  bool hand_over() noexcept;
  void raise(const Fault& fault) noexcept;
  In& in(int rank);
  TcpLimits limits() const noexcept;

  int rank_, ranks_;
  double silence_s_;
  TcpSet& set_;
  std::optional<OneWay> ways_;
  std::vector<std::unique_ptr<Out>> outs_;  // by peer; null: never asked for
  std::vector<std::unique_ptr<In>> ins_;    // by peer; null: nothing was heard
  RequestQueue posted_;                     // receives that have met no message
  std::vector<int> posted_from_;            // how many of them for that rank alone
  int posted_any_ = 0, waiting_ = 0, sending_ = 0;
  std::optional<Pattern> sought_;
  std::uint64_t order_ = 0;
  Fault fault_;
};

}  // namespace coll
