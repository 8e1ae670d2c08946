// SPDX-License-Identifier: Apache-2.0
// A key-value store without a launcher: rank 0 listens at an address that all know, the others
// connect, each proves that it knows the secret, and at a fence everybody gets the values of all.
// Who waits is told for which ranks, and who gives up tells rank 0, so that all name the same
// cause. For the meeting only: what is exchanged is neither sealed nor secret.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop.h"
#include "bootstrap/directory.h"
#include "bootstrap/letters.h"
#include "bootstrap/mesh_door.h"

namespace coll {

class MeshDirectory final : public Directory {
 public:
  // Returns when all ranks are connected with rank 0, which listens at `at` only as long as that
  // takes. Throws Error: system where rank 0 cannot listen there, timeout naming who is missing,
  // bootstrap and mismatch where a rank is refused or has ended. `trouble`: why this rank cannot
  // take part, which the others are told where it gives up before they hear it by what it puts.
  // `silence_s`: a machine that leaves something unanswered for so long is taken for dead.
  MeshDirectory(const Identity& self, const Secret& secret, const Endpoint& at, double seconds,
                Stop stop, std::string trouble = {}, double silence_s = TcpOptions{}.silence_s);
  MeshDirectory(const MeshDirectory&) = delete;
  MeshDirectory& operator=(const MeshDirectory&) = delete;

  void put(std::string_view key, std::string_view value, const Deadline& deadline) override;
  std::string get(std::string_view key, const Deadline& deadline) override;
  void fence(const Deadline& deadline) override;
  void close() noexcept override;

 private:
  struct Line {
    int rank;
    Letters letters;
    std::optional<std::string> values = {};  // rank 0: what has come of them for this fence
    std::string news = {};                   // rank 0: whom it awaits, as this rank was told last
  };
  using Finished = std::function<bool(Line&)>;
  using Late = std::function<std::string(const std::vector<int>&)>;

  Letters letters_of(Connection connection, std::size_t longest) const;
  void let_all_in(const Endpoint& at, double seconds);
  void connect(const Endpoint& at, double seconds);
  void expect_alive();
  bool hear(Line& line);
  bool hear_rank_0(Line& line, std::string& answer);
  std::string awaited() const;
  void tell_now_and_then();
  void tell(const std::string& news);
  void turns(const Deadline& deadline, const Finished& finished, const Late& late);
  void lead(const Deadline& deadline);
  void hand_out(const Deadline& deadline);
  void follow(const Deadline& deadline);
  void read(std::string_view values, int from);
  std::string farewell_for(const Error& error) const;
  [[noreturn]] void fail(const Error& error);

  MeshTerms terms_;
  Stop stop_;
  std::string trouble_;
  MeshLimits limits_;
  std::vector<Line> lines_;       // rank 0: to all others; else: to rank 0
  std::optional<MeshDoor> door_;  // rank 0, until all have come
  Deadline next_news_{0};         // rank 0
  std::string awaited_;           // else: for whom rank 0 waits, as far as it has said so
  std::string put_;               // since the last fence
  std::map<std::string, std::string, std::less<>> values_;
  std::string failure_;  // the first one: the ranks are no longer at the same fence
};

}  // namespace coll
