// SPDX-License-Identifier: Apache-2.0
// Communicators of threads, and the shortest form of a message call.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "check.h"
#include "collectives.h"
#include "wired_of_test.h"

namespace coll::testing {

enum class Where { one_machine, several };
inline constexpr Where kWheres[] = {Where::one_machine, Where::several};

class Comms {
 public:
  explicit Comms(int p, bool interruptible = false, Where where = Where::one_machine)
      : comms_(static_cast<std::size_t>(p)) {
    if (where == Where::several) {
      comms_ = wired(p, {.interruptible = interruptible});
      return;
    }
    coll_options options{};
    options.size = sizeof(options);
    options.ranks = p;
    options.timeout = 30;
    options.interruptible = interruptible ? 1 : 0;
    CHECK(coll_local(&options, comms_.data()) == COLL_OK);
  }
  ~Comms() {
    for (coll_comm* comm : comms_) {
      if (comm != nullptr) coll_close(comm);
    }
  }
  Comms(const Comms&) = delete;
  Comms& operator=(const Comms&) = delete;

  coll_comm* operator[](int rank) const { return comms_[static_cast<std::size_t>(rank)]; }
  void close(int rank) {
    coll_close(comms_[static_cast<std::size_t>(rank)]);
    comms_[static_cast<std::size_t>(rank)] = nullptr;
  }

 private:
  std::vector<coll_comm*> comms_;
};

// Whether the last error of this thread has these words.
inline bool says(const std::string& words) {
  return std::string(coll_last_error()).find(words) != std::string::npos;
}

inline void expect_ok(coll_status status) {
  if (status != COLL_OK) check::fail(coll_last_error());
}

inline std::vector<std::int32_t> filled(std::size_t n, int seed) {
  std::vector<std::int32_t> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = seed * 1000003 + static_cast<std::int32_t>(i);
  return x;
}

inline void send(coll_comm* comm, const std::vector<std::int32_t>& x, int to, int tag) {
  expect_ok(coll_send(comm, x.data(), x.size(), COLL_INT32, to, tag, 0));
}

inline std::vector<std::int32_t> receive(coll_comm* comm, std::size_t room, int source, int tag,
                                         coll_message* message = nullptr) {
  std::vector<std::int32_t> x(room, -1);
  coll_message got{};
  expect_ok(coll_recv(comm, x.data(), room, COLL_INT32, source, tag, &got, 0));
  x.resize(got.count);
  if (message != nullptr) *message = got;
  return x;
}

}  // namespace coll::testing
