// SPDX-License-Identifier: Apache-2.0
#include "algorithms/negabinary.h"

namespace coll {
namespace {

// (1 - (-2)^(s+1)) / 3: 1, -1, 3, -5, 11, ...
int distance(int s) { return (1 + (s % 2 == 0 ? 2 : -2) * (1 << s)) / 3; }

// Two members in one round of the allgather.
struct Meeting {
  int partner;
  std::vector<int> given, taken;  // whose blocks
};

// What a round of the allgather adds to the blocks that a member has, in places counted from it:
// the same for all, as even ones count upwards and odd ones downwards.
std::vector<int> added(std::vector<int>& held, std::vector<char>& has, int apart) {
  const int n = static_cast<int>(has.size());
  std::vector<int> places;
  for (const int place : held) {
    const int theirs = (((apart - place) % n) + n) % n;  // the partner's `place`, seen from here
    if (has[static_cast<std::size_t>(theirs)] == 0) places.push_back(theirs);
  }
  for (const int place : places) has[static_cast<std::size_t>(place)] = 1;
  held.insert(held.end(), places.begin(), places.end());
  return places;
}

// Those of member `me` of an even number, in the order of the allgather's rounds.
std::vector<Meeting> meetings(int n, int me, Begin begin) {
  const int rounds = ceil_log2(n), way = me % 2 == 0 ? 1 : -1;
  const auto member = [&](int place) { return (((me + way * place) % n) + n) % n; };
  std::vector<Meeting> list;
  std::vector<int> held = {0};
  std::vector<char> has(static_cast<std::size_t>(n));
  has[0] = 1;
  for (int round = 0; round < rounds; ++round) {
    const int apart = distance(begin == Begin::near ? round : rounds - 1 - round);
    Meeting meeting{.partner = member(apart), .given = {}, .taken = {}};
    for (const int place : added(held, has, apart)) {
      meeting.taken.push_back(member(place));
      meeting.given.push_back(member(apart - place));
    }
    list.push_back(std::move(meeting));
  }
  return list;
}

// The last of an odd number of members meets the others directly, in round t of the allgather those
// from first(t) to first(t + 1): twice as many in each round.
class Single {
 public:
  explicit Single(int n) : others_(n - n % 2), rounds_(ceil_log2(others_)), here_(n % 2 != 0) {}

  int others() const { return others_; }
  int rounds() const { return rounds_; }
  int first(int round) const { return round == 0 ? 0 : others_ >> (rounds_ - round); }
  bool meets(int member, int round) const {
    return here_ && member >= first(round) && member < first(round + 1);
  }

 private:
  int others_, rounds_;
  bool here_;
};

const Chunks& block(const Blocks& blocks, int member) {
  return blocks[static_cast<std::size_t>(member)];
}

// Those of all these members but one, in the order of the vector: so neighbours make one range.
Chunks of(const Blocks& blocks, std::vector<int> members, int but = kNobody) {
  const auto place = [&](int m) {
    const auto& ranges = block(blocks, m).ranges();
    return ranges.empty() ? 0 : ranges.front().first;
  };
  std::sort(members.begin(), members.end(), [&](int a, int b) { return place(a) < place(b); });
  Chunks chunks;
  for (const int m : members) {
    if (m != but) chunks.add(block(blocks, m));
  }
  return chunks;
}

// Folds operands in the order of the ranks.
void fold(Builder& b, int round, std::vector<int> peers, const Chunks& chunks) {
  peers.push_back(b.rank());
  std::sort(peers.begin(), peers.end());
  std::replace(peers.begin(), peers.end(), b.rank(), kSelf);
  b.recv_reduce(round, peers, chunks);
}

// A round of the single member.
void gather_alone(Builder& b, int round, const Team& team, const Blocks& blocks, int from, int to) {
  std::vector<int> peers;
  for (int m = from; m < to; ++m) peers.push_back(team.at(m));
  b.send(round, peers, block(blocks, team.me));
  for (int m = from; m < to; ++m) b.recv(round, team.at(m), block(blocks, m));
}

void scatter_alone(Builder& b, int round, const Team& team, const Blocks& blocks, int from,
                   int to) {
  std::vector<int> peers;
  for (int m = from; m < to; ++m) {
    b.send(round, team.at(m), block(blocks, m));
    peers.push_back(team.at(m));
  }
  fold(b, round, peers, block(blocks, team.me));
}

// A round in which the member that is met has two operands for its own block, the partner's and the
// single member's: so the partner sends it apart.
void scatter_pair(Builder& b, int round, const Team& team, const Blocks& blocks,
                  const Meeting& meeting, const Single& single, int t) {
  const int partner = meeting.partner, last = single.others();
  const auto apart = [&](const std::vector<int>& members, int owner) {
    return single.meets(owner, t) && std::count(members.begin(), members.end(), owner) > 0;
  };
  const bool theirs = apart(meeting.taken, partner), mine = apart(meeting.given, team.me);
  b.send(round, team.at(partner), of(blocks, meeting.taken, theirs ? partner : kNobody));
  if (theirs) b.send(round, team.at(partner), block(blocks, partner));
  if (single.meets(team.me, t)) b.send(round, team.at(last), block(blocks, last));
  fold(b, round, {team.at(partner)}, of(blocks, meeting.given, mine ? team.me : kNobody));
  if (!single.meets(team.me, t)) return;
  std::vector<int> peers = {team.at(last)};
  if (mine) peers.push_back(team.at(partner));
  fold(b, round, peers, block(blocks, team.me));
}

}  // namespace

int allgather_negabinary_phase(Builder& b, int round, const Team& team, const Blocks& blocks,
                               Begin begin) {
  const Single single(team.size());
  const int last = single.others();
  std::vector<Meeting> list;
  if (team.me < last) list = meetings(last, team.me, begin);
  for (int t = 0; t < single.rounds(); ++t, ++round) {
    if (team.me == last) {
      gather_alone(b, round, team, blocks, single.first(t), single.first(t + 1));
      continue;
    }
    const Meeting& meeting = list[static_cast<std::size_t>(t)];
    const bool meets = single.meets(team.me, t);
    b.send(round, team.at(meeting.partner), of(blocks, meeting.given));
    if (meets) b.send(round, team.at(last), block(blocks, team.me));
    b.recv(round, team.at(meeting.partner), of(blocks, meeting.taken));
    if (meets) b.recv(round, team.at(last), block(blocks, last));
  }
  return round;
}

int reduce_scatter_negabinary_phase(Builder& b, int round, const Team& team, const Blocks& blocks,
                                    Begin begin) {
  const Single single(team.size());
  std::vector<Meeting> list;
  if (team.me < single.others()) list = meetings(single.others(), team.me, begin);
  for (int t = single.rounds() - 1; t >= 0; --t, ++round) {
    if (team.me == single.others()) {
      scatter_alone(b, round, team, blocks, single.first(t), single.first(t + 1));
    } else {
      scatter_pair(b, round, team, blocks, list[static_cast<std::size_t>(t)], single, t);
    }
  }
  return round;
}

Blocks negabinary_blocks(const Chunks& chunks, int members) {
  const int others = members - members % 2, rounds = ceil_log2(others);
  std::vector<int> order = {0};
  std::vector<char> has(static_cast<std::size_t>(std::max(others, 1)));
  has[0] = 1;
  for (int s = rounds - 1; s >= 0; --s) added(order, has, distance(s));
  if (others > 0 && others < members) order.push_back(others);
  Blocks blocks(static_cast<std::size_t>(members));
  int part = 0;
  for (const int member : order) {
    blocks[static_cast<std::size_t>(member)] = chunks.part(part++, members);
  }
  return blocks;
}

}  // namespace coll
