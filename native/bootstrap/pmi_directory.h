// SPDX-License-Identifier: Apache-2.0
// The key-value store of a process manager as a directory: any bytes of any length, by pieces.
#pragma once

#include <sys/types.h>

#include <memory>

#include "bootstrap/directory.h"
#include "bootstrap/pmi.h"

namespace coll {

// What the process manager says of this process.
struct PmiPlace {
  int fd = -1;
  int rank = 0;
  int ranks = 1;
};

// From PMI_FD, PMI_RANK and PMI_SIZE. Throws Error(invalid_argument) where one is missing or wrong.
PmiPlace pmi_place();

class PmiDirectory final : public Directory {
 public:
  // `version` is 1 or 2. The descriptor is this object's from now on.
  PmiDirectory(const PmiPlace& place, int version, const Deadline& deadline, const Stop& stop);
  ~PmiDirectory() override { close(); }
  PmiDirectory(const PmiDirectory&) = delete;
  PmiDirectory& operator=(const PmiDirectory&) = delete;

  void put(std::string_view key, std::string_view value, const Deadline& deadline) override;
  std::string get(std::string_view key, const Deadline& deadline) override;
  void fence(const Deadline& deadline) override;
  void close() noexcept override;

 private:
  template <class F>
  auto asked(F&& f);

  std::unique_ptr<Pmi> pmi_;
  std::string failure_;  // the first one; half an answer may be on its way since
  pid_t owner_;          // a forked child must not speak on its parent's socket
};

}  // namespace coll
