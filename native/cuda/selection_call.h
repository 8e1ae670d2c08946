// SPDX-License-Identifier: Apache-2.0
// From a call of the library of kernels to its launches, whoever launches them.
#pragma once

#include "cuda/magnitudes.h"
#include "cuda/selection.h"
#include "cuda/sparse_library.h"
#include "cuda/sparse_values.h"

namespace coll::cuda {

// Calls `use` with the Kind of a selection; false: there is none.
template <class Use>
bool use_selection(const SelectionCall& call, Use&& use) {
  if (call.n > kMostSparse || call.k > call.n || !exists(static_cast<Dtype>(call.dtype))) {
    return false;
  }
  return use_values(static_cast<Dtype>(call.dtype), [&]<class Element>() {
    if (call.residual != nullptr) {
      use.template operator()<Fed<Element>>();
    } else {
      use.template operator()<Given<Element>>();
    }
  });
}

template <class Kind>
SelectionRoom room_for(Selection& s, const SelectionCall& call, std::uint32_t threads) noexcept {
  s.n = static_cast<std::uint32_t>(call.n);
  s.k = static_cast<std::uint32_t>(call.k);
  size_selection(s, threads, sizeof(typename Kind::Word), {});
  return room_of(s, Kind::Magnitude::kBits, sizeof(typename Kind::Word));
}

template <class Kind>
Selection selection_of(const SelectionCall& call, std::uint32_t threads,
                       std::size_t& zeros) noexcept {
  Selection s{};
  const SelectionRoom room = room_for<Kind>(s, call, threads);
  zeros = room.zeros;
  place_selection(s, room, static_cast<std::byte*>(call.room));
  s.x = static_cast<const std::byte*>(call.x);
  s.residual = static_cast<std::byte*>(call.residual);
  s.index_bytes = call.index_bytes;
  s.runs = call.runs;
  s.out_places = static_cast<std::byte*>(call.places);
  s.out_values = static_cast<std::byte*>(call.values);
  return s;
}

inline std::size_t bytes_of_room(const SelectionCall& call, std::uint32_t threads) noexcept {
  std::size_t bytes = 0;
  use_selection(call, [&]<class Kind>() {
    Selection s{};
    bytes = room_for<Kind>(s, call, threads).bytes;
  });
  return bytes;
}

}  // namespace coll::cuda
