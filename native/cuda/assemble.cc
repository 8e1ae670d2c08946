// SPDX-License-Identifier: Apache-2.0
#include "cuda/assemble.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "base/error.h"
#include "cuda/operands.h"
#include "cuda/packet_fold.h"

namespace coll::cuda {
namespace {

std::size_t whole(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

// What the cells of a message take in a slot, where each has so many elements of a tile.
std::size_t cell_bytes_of(const Plan& plan, std::size_t elements, std::size_t element_bytes) {
  const std::size_t data = whole(elements * element_bytes, kVectorBytes);
  return plan.inlined() ? data / kWordBytes * sizeof(Packet) : data;
}

std::size_t most_stage_cells(const Plan& plan) {
  int most = 0;
  for (const RankPlan& rank : plan.ranks) most = std::max(most, rank.stage_cells);
  return static_cast<std::size_t>(most);
}

// When an op of a rank ends its tile 0, in ticks after the base of the call.
std::uint32_t when(const Plan& plan, int rank, int op) {
  if (op == 0) return 1;
  const PlanOp& o = plan.ranks[static_cast<std::size_t>(rank)].ops[static_cast<std::size_t>(op)];
  return static_cast<std::uint32_t>(2 + o.lag * plan.stride + op - 1);
}

struct Cell {
  Place place;
  int number;
};

class Assembler {
 public:
  Assembler(const Plan& plan, int rank, const Partition& partition, std::size_t element_bytes,
            const Cut& cut)
      : plan_(plan),
        rank_(rank),
        mine_(plan.ranks[static_cast<std::size_t>(rank)]),
        partition_(partition),
        element_bytes_(element_bytes),
        cut_(cut),
        awaited_(awaited_within(plan, rank)) {}

  std::vector<std::uint64_t> run() {
    for (std::size_t i = 0; i < mine_.ops.size(); ++i) add(static_cast<int>(i));
    const std::size_t bytes = sizeof(Code) + bytes_of(instructions_) + bytes_of(awaits_) +
                              bytes_of(pieces_) + bytes_of(addresses_);
    const Code code{.bytes = number(bytes),
                    .instructions = number(instructions_.size()),
                    .awaits = number(awaits_.size()),
                    .pieces = number(pieces_.size()),
                    .addresses = number(addresses_.size()),
                    .stride = number(static_cast<std::size_t>(plan_.stride)),
                    .max_lag = number(static_cast<std::size_t>(plan_.max_lag)),
                    .depth = static_cast<std::uint16_t>(plan_.depth),
                    .packets = static_cast<std::uint8_t>(plan_.inlined() ? 1 : 0),
                    .awaited = *std::max_element(awaited_.begin(), awaited_.end())};
    std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t));
    auto* at = as<std::byte>(words.data());
    const auto put = [&at](const void* part, std::size_t n) {
      if (n > 0) std::memcpy(at, part, n);
      at += n;
    };
    put(&code, sizeof(code));
    put(instructions_.data(), bytes_of(instructions_));
    put(awaits_.data(), bytes_of(awaits_));
    put(pieces_.data(), bytes_of(pieces_));
    put(addresses_.data(), bytes_of(addresses_));
    return words;
  }

 private:
  template <class T>
  static std::size_t bytes_of(const std::vector<T>& list) {
    return list.size() * sizeof(T);
  }
  static std::uint32_t number(std::size_t n) { return static_cast<std::uint32_t>(n); }

  // By op: 1 where some rank waits for it before its exit from the call.
  static std::vector<std::uint8_t> awaited_within(const Plan& plan, int rank) {
    std::vector<std::uint8_t> found(plan.ranks[static_cast<std::size_t>(rank)].ops.size(), 0);
    for (const RankPlan& other : plan.ranks) {
      for (std::size_t i = 0; i + 1 < other.ops.size(); ++i) {
        for (const Wait& wait : other.waits(other.ops[i])) {
          if (wait.peer == rank) found[static_cast<std::size_t>(wait.op)] = 1;
        }
      }
    }
    return found;
  }

  void add(int index) {
    const PlanOp& op = mine_.ops[static_cast<std::size_t>(index)];
    Instruction in{};
    in.when = when(plan_, rank_, index);
    in.lag = op.lag;
    in.k = static_cast<std::uint16_t>(op.sources.count);
    in.m = static_cast<std::uint16_t>(op.destinations.count);
    in.balanced = op.shape == Shape::balanced ? 1 : 0;
    in.complete = op.complete ? 1 : 0;
    in.post = op.post ? 1 : 0;
    in.within = awaited_[static_cast<std::size_t>(index)];
    in.awaits = number(awaits_.size());
    for (const Wait& w : mine_.waits(op)) {
      awaits_.push_back({.when = when(plan_, w.peer, w.op),
                         .back = w.back,
                         .peer = static_cast<std::uint16_t>(w.peer),
                         .op = static_cast<std::uint16_t>(w.op),
                         .entry = w.op == 0 ? 1U : 0U});
    }
    in.awaits_end = number(awaits_.size());
    in.pieces = number(pieces_.size());
    add_pieces(op);
    in.pieces_end = number(pieces_.size());
    instructions_.push_back(in);
  }

  // One for each cell: tiles are parts of cells.
  void add_pieces(const PlanOp& op) {
    std::vector<Operand> all(mine_.sources(op).begin(), mine_.sources(op).end());
    all.insert(all.end(), mine_.destinations(op).begin(), mine_.destinations(op).end());
    std::vector<std::vector<Cell>> cells;
    for (const Operand& o : all) cells.push_back(cells_of_operand(o));
    for (std::size_t c = 0; !cells.empty() && c < cells.front().size(); ++c) {
      pieces_.push_back({elements(all, cells, c), number(addresses_.size())});
      for (std::size_t o = 0; o < all.size(); ++o) {
        addresses_.push_back(address(all[o], cells[o][c]));
      }
    }
  }

  std::vector<Cell> cells_of_operand(const Operand& o) const {
    std::vector<Cell> cells;
    for (const PlaceRange& r : mine_.ranges(o)) {
      for (int c = r.first; c < r.first + r.cells; ++c) cells.push_back({r.place, c});
    }
    return cells;
  }

  // As a user's buffer tells; alltoall's scratch has room for the longest chunk, and does not.
  std::uint64_t elements(const std::vector<Operand>& all,
                         const std::vector<std::vector<Cell>>& cells, std::size_t c) const {
    std::uint64_t found = 0;
    for (std::size_t o = 0; o < all.size(); ++o) {
      const Cell& cell = cells[o][c];
      if (cell.place == Place::stage) continue;
      found = partition_.elements(all[o].rank, static_cast<Buffer>(cell.place), cell.number, 1);
      if (cell.place != Place::scratch) break;
    }
    return found;
  }

  Address address(const Operand& o, const Cell& cell) const {
    Address at{};
    at.rank = static_cast<std::uint16_t>(o.rank);
    at.place = static_cast<std::uint8_t>(cell.place);
    if (cell.place == Place::stage) {
      const RankPlan& owner = plan_.ranks[static_cast<std::size_t>(o.rank)];
      at.offset = static_cast<std::size_t>(cell.number) * cut_.cell_bytes;
      at.when = when(plan_, o.rank, owner.areas[static_cast<std::size_t>(o.area)].writer);
    } else {
      at.offset =
          partition_.offset(o.rank, static_cast<Buffer>(cell.place), cell.number) * element_bytes_;
    }
    return at;
  }

  const Plan& plan_;
  int rank_;
  const RankPlan& mine_;
  const Partition& partition_;
  std::size_t element_bytes_;
  const Cut& cut_;
  std::vector<std::uint8_t> awaited_;
  std::vector<Instruction> instructions_;
  std::vector<Await> awaits_;
  std::vector<Piece> pieces_;
  std::vector<Address> addresses_;
};

void check(const Plan& plan, std::size_t element_bytes) {
  const auto refuse = [](const std::string& why) { throw Error(Status::unsupported, why); };
  if (plan.layout.p > kMostRanks) {
    refuse("a launch has " + std::to_string(kMostRanks) + " ranks at most, not " +
           std::to_string(plan.layout.p));
  }
  if (plan.mixed) refuse("a plan whose buffers may be out of reach does not run on a GPU");
  if (plan.inlined() && element_bytes > kWordBytes) {
    refuse("packets carry elements of up to 8 bytes");
  }
  for (const RankPlan& rank : plan.ranks) {
    // A packet says that it has come, not what its sender did before: nothing may follow from it.
    for (const Wait& wait : rank.wait_pool) {
      if (plan.inlined() && wait.back == 0) refuse("packets cannot stand for the plan's waits");
    }
    for (const PlanOp& op : rank.ops) {
      if (op.sources.count <= static_cast<std::uint32_t>(kMostSources)) continue;
      refuse("a fold of " + std::to_string(op.sources.count) + " sources is too long for a GPU");
    }
  }
}

}  // namespace

namespace {

std::size_t most_sources(const Plan& plan) {
  std::uint32_t most = 1;
  for (const RankPlan& rank : plan.ranks) {
    for (const PlanOp& op : rank.ops) most = std::max(most, op.sources.count);
  }
  return most;
}

// What a tile may have of a chunk: what a slot takes, where there are slots.
std::size_t most_of_a_tile(const Plan& plan, std::size_t element_bytes, const Room& room,
                           std::size_t slot) {
  const std::size_t vector = std::max<std::size_t>(kVectorBytes / element_bytes, 1);
  const std::size_t stage_cells = most_stage_cells(plan);
  if (stage_cells == 0) {
    const std::size_t sources = most_sources(plan);
    return whole(std::max(room.tile_bytes / sources / element_bytes, vector), vector);
  }
  const std::size_t cell = slot / stage_cells;
  const std::size_t data = plan.inlined() ? cell / sizeof(Packet) * kWordBytes : cell;
  const std::size_t most = data / kVectorBytes * kVectorBytes / element_bytes / vector * vector;
  if (most > 0) return most;
  throw Error(Status::unsupported, "a slot of " + std::to_string(slot) +
                                       " bytes is too small for the messages of a rank");
}

}  // namespace

std::uint32_t threads_for(std::size_t bytes) {
  constexpr std::size_t kWarp = 32;
  const std::size_t wanted = whole((bytes + kVectorBytes - 1) / kVectorBytes, kWarp);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(wanted, kLeastThreads, kMostThreads));
}

// Each channel has the same number of tiles, if it can be.
Cut cut_for(const Plan& plan, const Partition& partition, std::size_t element_bytes,
            const Room& room) {
  const std::size_t vector = std::max<std::size_t>(kVectorBytes / element_bytes, 1);
  const std::size_t longest = std::max<std::size_t>(partition.longest(), 1);
  const auto channels = static_cast<std::size_t>(std::clamp(room.channels, 1, kMostChannels));
  const std::size_t least = std::max<std::size_t>(room.least_bytes / element_bytes, 1);
  const std::size_t ring = plan.inlined() ? room.packet_ring_bytes : room.ring_bytes;
  const std::size_t slot =
      ring / static_cast<std::size_t>(plan.depth) / kVectorBytes * kVectorBytes;
  const std::size_t most = most_of_a_tile(plan, element_bytes, room, slot);
  const std::size_t each = std::max((longest + channels - 1) / channels, least);
  const std::size_t tiles = (each + most - 1) / most;
  const std::size_t elements = std::min(whole((each + tiles - 1) / tiles, vector), most);
  Cut cut;
  cut.tile_elements = elements;
  cut.tiles = static_cast<std::uint32_t>((longest + elements - 1) / elements);
  cut.tiles_at_once = most_stage_cells(plan) > 0 ? 1 : cut.tiles;
  cut.channels = static_cast<int>(std::min<std::size_t>(channels, cut.tiles));
  cut.threads = threads_for(elements * element_bytes);
  // For the same reason no slot is used twice.
  const std::size_t slots = static_cast<std::size_t>(cut.channels * plan.depth);
  if (plan.inlined() && cut.tiles > slots) {
    throw Error(Status::unsupported, "the vector is too long for packets");
  }
  cut.cell_bytes = cell_bytes_of(plan, elements, element_bytes);
  cut.slot_bytes = slot;
  return cut;
}

std::vector<std::uint64_t> assemble(const Plan& plan, int rank, const Partition& partition,
                                    std::size_t element_bytes, const Cut& cut, const Room& room) {
  check(plan, element_bytes);
  auto words = Assembler(plan, rank, partition, element_bytes, cut).run();
  const std::size_t shared = shared_bytes(*as<const Code>(words.data()));
  if (shared > room.shared_bytes) {
    throw Error(Status::unsupported, "the plan takes " + std::to_string(shared) +
                                         " bytes of a block, which has " +
                                         std::to_string(room.shared_bytes));
  }
  return words;
}

std::size_t shared_bytes(const Code& code) noexcept {
  return code.bytes + code.addresses * sizeof(BoundOperand);
}

}  // namespace coll::cuda
