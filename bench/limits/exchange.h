// SPDX-License-Identifier: Apache-2.0
// The collectives of two ranks that are measured beside their floors: buffers that are rewritten
// before and read after each call, the library's call, and the job of a loop written by hand.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives.h"
#include "hand.h"

namespace limits {

enum class Collective { allreduce, reduce_scatter, allgather, broadcast, alltoall };

inline constexpr Collective kCollectives[] = {Collective::allreduce, Collective::reduce_scatter,
                                              Collective::allgather, Collective::broadcast,
                                              Collective::alltoall};

const char* name_of(Collective collective) noexcept;

// One rank's buffers. `bytes`: of the vector (allreduce, broadcast from rank 0, both in place), of
// the whole input (reduce_scatter, alltoall) or the whole output (allgather); floats.
class Exchange {
 public:
  Exchange(Collective collective, std::size_t bytes, int rank);

  void rewrite(int call) noexcept;
  // Throws std::runtime_error unless every element is what it must be.
  void check(int call) const;

  void by_library(coll_comm* comm);
  void by_hand(Hand& hand, Form form);

 private:
  float expected(std::size_t i) const noexcept;

  Collective collective_;
  int rank_;
  std::size_t n_, half_;
  std::vector<float> in_, out_;
};

}  // namespace limits
