// SPDX-License-Identifier: Apache-2.0
// A key-value store without a launcher: rank 0 listens at an address that all know, the others
// connect, each proves that it knows the secret, and at a fence everybody gets the values of all.
// For the meeting only: what is exchanged is neither sealed nor secret.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop.h"
#include "bootstrap/directory.h"
#include "bootstrap/letters.h"
#include "bootstrap/mesh_handshake.h"

namespace coll {

class MeshDirectory final : public Directory {
 public:
  // Returns when all ranks are connected with rank 0, which listens at `at` only as long as that
  // takes. Throws Error: system where rank 0 cannot listen there, timeout naming who is missing,
  // bootstrap and mismatch where a rank is refused or has ended.
  MeshDirectory(const Identity& self, const Secret& secret, const Endpoint& at, double seconds,
                Stop stop);
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
  };
  using Finished = std::function<bool(Line&)>;

  void let_all_in(const Endpoint& at, double seconds);
  void connect(const Endpoint& at, double seconds);
  void expect_alive();
  void turns(const Deadline& deadline, const Finished& finished, const std::string& late);
  void lead(const Deadline& deadline);
  void follow(const Deadline& deadline);
  void read(std::string_view values, int from);
  [[noreturn]] void fail(const Error& error);

  MeshTerms terms_;
  Stop stop_;
  std::vector<Line> lines_;  // rank 0: to all others; else: to rank 0
  std::string put_;          // since the last fence
  std::map<std::string, std::string, std::less<>> values_;
  std::string failure_;  // the first one: the ranks are no longer at the same fence
};

}  // namespace coll
