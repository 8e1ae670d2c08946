// SPDX-License-Identifier: Apache-2.0
#include "cuda/direct_code.h"

#include <algorithm>
#include <span>

namespace coll::cuda {
namespace {

// Between its entry into the call and its exit.
std::span<const Instruction> steps_of(const Code& code) {
  return std::span(code.instruction_list(), code.instructions).subspan(1, code.instructions - 2);
}

bool waits_for_entries_only(const Code& code, const Instruction& in) {
  const std::span all(code.await_list(), code.awaits);
  const auto own = all.subspan(in.awaits, in.awaits_end - in.awaits);
  return std::all_of(own.begin(), own.end(), [](const Await& wait) { return wait.entry != 0; });
}

bool lies_in_arrays(const Address& address) {
  const auto place = static_cast<Place>(address.place);
  return place == Place::input || place == Place::output;
}

class Straightener {
 public:
  // False: it cannot be.
  bool add(const Code& code) {
    const auto steps = steps_of(code);
    if (steps.size() > 1) return false;
    for (const Instruction& in : steps) {
      if (!waits_for_entries_only(code, in) || !add(code, in)) return false;
    }
    made_.direct.first_part[++ranks_] = static_cast<std::uint16_t>(parts_);
    return true;
  }
  DirectCode take() { return std::move(made_); }

 private:
  bool add(const Code& code, const Instruction& in) {
    const std::span pieces(code.piece_list(), code.pieces);
    for (const Piece& piece : pieces.subspan(in.pieces, in.pieces_end - in.pieces)) {
      const std::size_t first = made_.addresses.size(), count = std::size_t{in.k} + in.m;
      if (parts_ == kMostDirectParts || first + count > kMostDirectOperands) return false;
      const std::span own =
          std::span(code.address_list(), code.addresses).subspan(piece.operands, count);
      if (!std::all_of(own.begin(), own.end(), lies_in_arrays)) return false;
      made_.addresses.insert(made_.addresses.end(), own.begin(), own.end());
      made_.direct.parts[parts_++] = {piece.elements,
                                      static_cast<std::uint16_t>(first),
                                      in.k,
                                      in.m,
                                      in.balanced,
                                      in.complete,
                                      0};
    }
    return true;
  }

  DirectCode made_;
  std::size_t parts_ = 0, ranks_ = 0;
};

constexpr std::size_t kBlockBytes = kMostThreads * kVectorBytes;  // of a step of a block

// Each part begins with the block behind the one that the part before it has ended with.
void take_turns(Direct& direct, std::size_t element_bytes) {
  std::size_t steps = 0;
  for (std::size_t i = 0; i < direct.first_part[direct.ranks]; ++i) {
    DirectPart& part = direct.parts[i];
    part.turn = static_cast<std::uint32_t>(steps % direct.blocks);
    steps += (part.elements * element_bytes + kBlockBytes - 1) / kBlockBytes;
  }
}

// Blocks of a rank, of those that a device has: short parts are for half as many threads as others,
// as blocks begin at one time, and what all their threads do takes its time.
void share_blocks(Direct& direct, std::size_t element_bytes, std::uint32_t blocks) {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < direct.first_part[direct.ranks]; ++i) {
    longest = std::max<std::size_t>(longest, direct.parts[i].elements * element_bytes);
  }
  direct.in_turn = longest >= blocks * kBlockBytes / 2 ? 1 : 0;
  if (direct.in_turn != 0) {
    direct.blocks = blocks;
    direct.threads = kMostThreads;
    take_turns(direct, element_bytes);
    return;
  }
  const std::size_t most =
      std::max<std::size_t>(blocks / static_cast<std::size_t>(direct.ranks), 1);
  const std::size_t short_blocks = (longest + kBlockBytes / 2 - 1) / (kBlockBytes / 2);
  direct.blocks = static_cast<std::uint32_t>(std::clamp<std::size_t>(short_blocks, 1, most));
  direct.threads = threads_for(short_blocks <= most ? std::min(longest, kBlockBytes / 2) : longest);
}

}  // namespace

std::optional<DirectCode> directly(const std::vector<const Code*>& codes, std::size_t element_bytes,
                                   std::uint32_t blocks) {
  Straightener straightener;
  for (const Code* code : codes) {
    if (!straightener.add(*code)) return std::nullopt;
  }
  DirectCode made = straightener.take();
  made.direct.element_bytes = static_cast<std::uint32_t>(element_bytes);
  made.direct.ranks = static_cast<std::int32_t>(codes.size());
  share_blocks(made.direct, element_bytes, blocks);
  return made;
}

Direct bound(const DirectCode& code, const Buffers* buffers) {
  Direct direct = code.direct;
  for (std::size_t i = 0; i < code.addresses.size(); ++i) {
    const Address& address = code.addresses[i];
    direct.operands[i].at = buffers[address.rank].at[address.place] + address.offset;
  }
  return direct;
}

}  // namespace coll::cuda
