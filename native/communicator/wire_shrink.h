// SPDX-License-Identifier: Apache-2.0
// The ranks of several machines that live form a communicator, whatever has become of the others.
//
// In rounds: each tells all that it takes for living, once it has reached them all, whom it takes
// for living, and waits until each of them has told the same round, or is lost. A round in which
// all say the same is the decision; else the next one begins with those whom nobody misses. Who has
// decided tells all before it goes, and who hears a decision takes it over.
//
// Lost is whose door refuses for 0.4 s, whose machine does not answer a connection for 1.4 s, or
// whose connections end. A rank whose machine answers is waited for, unless it has closed the
// parent, or its process has ended, or another rank takes it for lost: its port may be another
// program's by now. What else has ended the parent is no evidence: a rank may be taken for lost
// that has only failed, and keeps this door open.
#pragma once

#include <array>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/one_way.h"
#include "communicator/shrinking.h"
#include "communicator/wire_communicator.h"
#include "transport/tcp_set.h"

namespace coll {

class WireShrink final : public Shrinking {
 public:
  WireShrink(WireCommunicator& parent, double timeout);
  ~WireShrink() override;

  // Once, after ok: the new communicator.
  std::unique_ptr<WireCommunicator> take() { return std::move(made_); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kMostRanks = 1024;
  static constexpr std::size_t kWhere = 256;
  // What travels.
  struct View {
    std::uint32_t round = 0, decided = 0;
    std::array<std::uint8_t, kMostRanks> lives{};
    std::array<char, kWhere> where{};  // the sender's doors in the new communicator
  };
  class Peer;

  bool step() override;
  std::vector<int> missing() const override;
  void take_connections();
  bool gone(int peer);
  bool stays_away(int peer);
  void look_for_lost();
  void say(std::uint32_t decided);
  bool all_have_told() const;
  std::array<std::uint8_t, kMostRanks> common() const;
  bool conclude();
  bool farewell();
  void check_own_place(const View& view) const;
  void found(const View& decision);
  int rank() const noexcept { return place_.self.rank; }
  int ranks() const noexcept { return place_.self.ranks; }

  WireCommunicator& parent_;
  const WirePlace& place_;
  OneWay ways_;
  TcpSet set_;
  std::vector<TcpListener> doors_;  // of the new communicator
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<bool> lives_;
  std::list<View> said_;  // which streams may still read
  std::uint32_t round_ = 0;
  std::optional<View> decision_;
  std::optional<Clock::time_point> decided_at_;
  std::vector<int> unheard_;  // members that are not ready for what was decided
  std::unique_ptr<WireCommunicator> made_;
};

}  // namespace coll
