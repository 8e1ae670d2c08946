// SPDX-License-Identifier: Apache-2.0
// What a kind of collective is called: "reduce_scatter".
#pragma once

#include <array>
#include <cstddef>

#include "schedule/schedule.h"

namespace coll {

inline const char* name_of(Kind kind) noexcept {
  static constexpr std::array names = {"allreduce", "reduce_scatter", "allgather", "broadcast",
                                       "reduce",    "barrier",        "gather",    "scatter",
                                       "alltoall",  "scan",           "exscan"};
  const auto i = static_cast<std::size_t>(kind);
  return i < names.size() ? names[i] : "collective";
}

}  // namespace coll
