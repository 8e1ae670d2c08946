// SPDX-License-Identifier: Apache-2.0
// Damage to one step of one rank.
#include <algorithm>
#include <array>
#include <utility>

#include "schedule_edit.h"

namespace mutants {
namespace {

using coll::Buffer;
using coll::CellRange;
using coll::kSelf;
using coll::Op;
using loose::Schedule;
using loose::Step;

bool any(const Step&) { return true; }
bool talks(const Step& step) { return !step.peers.empty(); }
bool folds_locally(const Step& step) { return step.op == Op::reduce; }
bool reduces(const Step& step) { return step.op == Op::recv_reduce; }

bool drop_step(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, any)) return false;
  change = name(place);
  steps(s, place.rank).erase(steps(s, place.rank).begin() + static_cast<int>(place.step));
  return true;
}

bool duplicate_step(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, any)) return false;
  change = name(place);
  const Step copy = at(s, place);
  steps(s, place.rank).insert(steps(s, place.rank).begin() + static_cast<int>(place.step), copy);
  return true;
}

bool swap_rounds_of_steps(Schedule& s, Random& random, std::string& change) {
  Place one, other;
  if (!any_step(s, random, one, any) || !any_step(s, random, other, any)) return false;
  other.rank = one.rank;
  if (other.step >= steps(s, one.rank).size()) return false;
  std::swap(at(s, one).round, at(s, other).round);
  change = name(one) + " and step " + std::to_string(other.step);
  sort_rounds(s);
  return true;
}

bool shift_round(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, any)) return false;
  at(s, place).round += random.sign();
  change = name(place) + " to round " + std::to_string(at(s, place).round);
  sort_rounds(s);
  return true;
}

bool redirect_one_end(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, talks)) return false;
  int& peer = random.pick(at(s, place).peers);
  const int was = peer;
  peer = random.below(s.p);
  change = name(place) + ": peer " + std::to_string(was) + " to " + std::to_string(peer);
  return true;
}

bool change_op(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, any)) return false;
  Step& step = at(s, place);
  change = name(place);
  if (step.op == Op::recv) {
    // What came is added to what lay there.
    step.op = Op::recv_reduce;
    step.peers.insert(step.peers.begin(), kSelf);
    step.source = step.target;
  } else if (step.op == Op::recv_reduce && step.peers.size() == 2) {
    step.op = Op::recv;
    std::erase(step.peers, kSelf);
    step.source.clear();
  } else {
    step.op = static_cast<Op>(random.below(5));
  }
  return true;
}

bool change_order(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, reduces)) return false;
  auto& peers = at(s, place).peers;
  std::swap(random.pick(peers), random.pick(peers));
  change = name(place);
  return true;
}

bool change_shape(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, reduces)) return false;
  coll::Shape& shape = at(s, place).shape;
  shape = shape == coll::Shape::left ? coll::Shape::balanced : coll::Shape::left;
  change = name(place);
  return true;
}

bool shift_range_of_one_end(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, any)) return false;
  Step& step = at(s, place);
  Ranges& ranges = step.source.empty() || (!step.target.empty() && random.below(2) == 0)
                       ? step.target
                       : step.source;
  random.pick(ranges).first += random.sign();
  change = name(place);
  return true;
}

bool resize_range_of_one_end(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, any)) return false;
  Step& step = at(s, place);
  const int by = random.sign();
  if (!step.source.empty()) step.source.back().cells += by;
  if (!step.target.empty()) step.target.back().cells += by;
  change = name(place) + " by " + std::to_string(by);
  return true;
}

bool change_buffer(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, any)) return false;
  Step& step = at(s, place);
  const bool source = step.target.empty() || (!step.source.empty() && random.below(2) == 0);
  Ranges& ranges = source ? step.source : step.target;
  const auto chunks = chunks_of(s, place.rank, ranges);
  for (CellRange& r : ranges) {
    r.buffer = static_cast<Buffer>((static_cast<int>(r.buffer) + 1 + random.below(2)) % 3);
  }
  change = name(place) + (source ? " source" : " target");
  return give_chunks(s, place.rank, ranges, chunks);
}

bool drop_self(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, reduces)) return false;
  Step& step = at(s, place);
  std::erase(step.peers, kSelf);
  step.source.clear();
  change = name(place);
  return true;
}

// What is folded lies in another cell than it should.
bool shift_own_operand(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (s.chunks < 2 || !any_step(s, random, place, reduces)) return false;
  Ranges& source = at(s, place).source;
  auto chunks = chunks_of(s, place.rank, source);
  for (int& c : chunks) c = (c + 1) % s.chunks;
  change = name(place);
  return give_chunks(s, place.rank, source, chunks);
}

bool drop_local_fold(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, folds_locally)) return false;
  change = name(place);
  steps(s, place.rank).erase(steps(s, place.rank).begin() + static_cast<int>(place.step));
  return true;
}

// Its first operand is lost.
bool drop_local_source(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, folds_locally)) return false;
  at(s, place).op = Op::copy;
  change = name(place) + " is a copy";
  return true;
}

// The order turns round, and the result lies where the source lay.
bool swap_local_fold(Schedule& s, Random& random, std::string& change) {
  Place place;
  if (!any_step(s, random, place, folds_locally)) return false;
  std::swap(at(s, place).source, at(s, place).target);
  change = name(place);
  return true;
}

}  // namespace

std::span<const Mutator<Schedule>> of_steps() {
  static constexpr auto all = std::to_array<Mutator<Schedule>>({
      {"drop a step", 3, drop_step},
      {"duplicate a step", 3, duplicate_step},
      {"swap the rounds of two steps", 3, swap_rounds_of_steps},
      {"shift the round of a step", 3, shift_round},
      {"redirect one end", 3, redirect_one_end},
      {"change the op", 5, change_op},
      {"change the order of a fold", 1, change_order},
      {"change the shape of a fold", 5, change_shape},
      {"shift a range of one end", 5, shift_range_of_one_end},
      {"resize a range of one end", 3, resize_range_of_one_end},
      {"change a buffer", 10, change_buffer},
      {"drop self", 10, drop_self},
      {"shift the own operand", 10, shift_own_operand},
      {"drop a local fold", 20, drop_local_fold},
      {"drop a local source", 20, drop_local_source},
      {"swap a local fold", 20, swap_local_fold},
  });
  return all;
}

}  // namespace mutants
