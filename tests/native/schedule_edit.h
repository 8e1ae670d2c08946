// SPDX-License-Identifier: Apache-2.0
// What the mutators of schedules are made of: places, messages, lists of chunks.
#pragma once

#include <string>
#include <vector>

#include "mutants.h"

namespace mutants {

using Ranges = std::vector<coll::CellRange>;

struct Place {
  int rank = -1;
  std::size_t step = 0;
};

struct Message {
  Place from, to;
};

inline std::vector<loose::Step>& steps(loose::Schedule& s, int rank) {
  return s.ranks[static_cast<std::size_t>(rank)];
}
inline loose::Step& at(loose::Schedule& s, const Place& p) { return steps(s, p.rank)[p.step]; }

std::string name(const Place& p);
std::string name(const Message& m);

bool any_step(loose::Schedule& s, Random& random, Place& place, bool (*wanted)(const loose::Step&));
bool any_message(loose::Schedule& s, Random& random, Message& m);

// A list of cells, one by one, and back.
std::vector<std::pair<coll::Buffer, int>> cells_of(const Ranges& ranges);
Ranges ranges_of(const std::vector<std::pair<coll::Buffer, int>>& cells);

std::vector<int> chunks_of(const loose::Schedule& s, int rank, const Ranges& ranges);
// The same buffers, and `chunks` in place of the chunks; false where a buffer lacks a chunk.
bool give_chunks(const loose::Schedule& s, int rank, Ranges& ranges,
                 const std::vector<int>& chunks);

// Steps may stand in any round now: list them by it again.
void sort_rounds(loose::Schedule& s);

}  // namespace mutants
