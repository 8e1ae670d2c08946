// SPDX-License-Identifier: Apache-2.0
// How the executor moves the pieces of an op whose operands are found at the call: where they lie,
// whether they count, and around which caches results are written.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "engine/executor.h"
#include "kernels/copy.h"

namespace coll {

std::byte* Executor::address(const BoundOperand& o, std::size_t tile_offset,
                             std::size_t stage_offset) noexcept {
  if (o.home == Home::stage) return o.base + stage_offset;
  if (o.home == Home::local) return tile_offset == 0 ? o.base : o.base + tile_offset;
  const std::uint64_t name = name_of(o.rank, o.place);
  if (reads_) {  // in the peer's process
    return reinterpret_cast<std::byte*>(PeerMemory::address_of(name)) +
           reinterpret_cast<std::uintptr_t>(o.base) + tile_offset;
  }
  std::byte* buffer = heap_ ? heap_->reach(name) : reinterpret_cast<std::byte*>(name);
  unmapped_ = unmapped_ || buffer == nullptr;
  return buffer + reinterpret_cast<std::uintptr_t>(o.base) + tile_offset;
}

bool Executor::counts(const BoundOperand& o) const noexcept {
  if (o.when == When::always) return true;
  const bool within = name_of(o.when_rank, o.when_place) != 0;
  return within == (o.when == When::within);
}

// Whose stores are worth a choice in an op, as it runs in this call: in a mixed plan a slot is for
// those who cannot be reached. Of cores that are not far only what overflows the caches.
Executor::Around Executor::choice_of(const BoundOp& op) const noexcept {
  if (op.pieces == op.pieces_end || !stores_around_ || !(streams_ || binding_->bulky())) {
    return Around::nothing;
  }
  const BoundOperand* first = binding_->operands() + binding_->pieces()[op.pieces].operands + op.k;
  const auto writes = [&](Home home) {
    return std::any_of(first, first + op.m,
                       [&](const BoundOperand& o) { return o.home == home && counts(o); });
  };
  if (op.stages && writes(Home::stage)) return streams_ ? Around::stages : Around::nothing;
  if (binding_->bulky()) return Around::results;
  return streams_ && writes(Home::remote) ? Around::pushed : Around::nothing;
}

// A sum takes longer than a copy whatever its stores, so the times of one say nothing of the other.
std::vector<Trial>& Executor::stores_of(const BoundOp& op, Around choice) noexcept {
  if (choice == Around::pushed) return pushed_stores_;
  return op.k > 1 ? sum_stores_ : stage_stores_;
}

// Where the stores of an op into slots, or arrays of peers, are chosen; null where that is not
// worth it. Of far cores: a line that the other has read is fetched back from it before it is
// written, at 2 GB/s on an EPYC whose cores share no cache, where stores around the caches go at
// 34; on a Xeon, whose cores share one, it comes at 30, and stores around it go at 8.
Trial* Executor::trial_of(const BoundOp& op, Around choice) noexcept {
  if (choice == Around::nothing || choice == Around::results) return nullptr;
  const std::size_t bytes = binding_->pieces()[op.pieces].elements * binding_->element_bytes();
  if (bytes < kernels::kStreamingPays) return nullptr;
  const auto size = static_cast<std::size_t>(std::bit_width(bytes));
  std::vector<Trial>& stores = stores_of(op, choice);
  return &stores[std::min(size, stores.size() - 1)];
}

// Whether all that an op waits for has happened.
bool Executor::is_there(const BoundOp& op, int tile) const noexcept {
  return std::all_of(waits_ + op.waits, waits_ + op.waits_end, [&](const BoundWait& w) {
    if (w.back > tile) return true;
    const std::uint64_t ticks = w.entry ? 0 : tile_ticks(tile - w.back);
    return w.tick->load(std::memory_order_relaxed) >= clock_->base + w.when + ticks;
  });
}

// Finds what this rank reads next from peers' stages, behind an op that stages: if it is there, its
// lines can come while that op's stores drain.
void Executor::look_ahead(const BoundOp& op, int tile) noexcept {
  for (const BoundOp* next = &op + 1; next < ops_ + exit_ && soon_.empty(); ++next) {
    const int of = tile + op.lag - next->lag;
    if (of < 0 || of >= tiles_ || next->pieces == next->pieces_end) continue;
    if (!is_there(*next, of)) return;
    const Piece& piece = binding_->pieces()[next->pieces];
    const BoundOperand* source = binding_->operands() + piece.operands;
    for (std::size_t k = 0; k < next->k; ++k) {
      const BoundOperand& o = source[k];
      if (o.home != Home::stage || o.rank == rank_ || !counts(o)) continue;
      soon_.push_back(address(o, 0, stage_of(of)));
    }
    const auto skip = static_cast<std::size_t>(of) * binding_->tile_elements();
    soon_bytes_ = tile_elements(*next, tiles_ == 1 ? 0 : skip) * binding_->element_bytes();
  }
}

void Executor::end_streaming() noexcept {
  kernels::end_streaming();
  unfenced_ = false;
}

void Executor::move_pieces(const BoundOp& op, int tile) noexcept {
  // How long that takes says nothing of stores.
  const Around choice = reads_peers(op) ? Around::nothing : choice_of(op);
  Trial* trial = trial_of(op, choice);
  if (trial == nullptr) {
    const bool around = choice == Around::results && result_stores(op).around(binding_->bytes());
    unfenced_ = unfenced_ || around;
    run_pieces(op, tile, around ? choice : Around::nothing);
    return;
  }
  const bool streamed = trial->second();
  unfenced_ = unfenced_ || streamed;
  if (streamed && choice == Around::stages) look_ahead(op, tile);
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t bytes = run_pieces(op, tile, streamed ? choice : Around::nothing);
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  soon_.clear();  // ops that do not stage have no use for it
  // Fewer bytes say nothing of their stores.
  if (bytes >= kernels::kStreamingPays) trial->note(streamed, bytes, spent.count());
}

// All of a fold but its operands and their length.
Fold Executor::empty_fold(const BoundOp& op) noexcept {
  return {.sources = sources_.data(),
          .destinations = destinations_.data(),
          .n = 0,
          .k = 0,
          .m = 0,
          .balanced = op.balanced,
          .streaming = 0,
          .divisor = op.complete ? binding_->divisor() : 1.0,
          .user = binding_->user_op(),
          .dtype = binding_->dtype(),
          .failed = &user_failed_};
}

// Whether what lies there is written around the caches.
bool Executor::goes(Home home, Around around) noexcept {
  if (home == Home::stage) return around == Around::stages;
  return around == Around::results || (around == Around::pushed && home == Home::remote);
}

// The operands of a piece that count, where they lie for a tile. Of stages that several receivers
// ask for each is written once.
Fold Executor::gather_operands(const BoundOp& op, const BoundOperand* operand,
                               std::size_t tile_offset, std::size_t stage_offset,
                               Around around) noexcept {
  Fold fold = empty_fold(op);
  for (std::size_t i = 0; i < op.k; ++i) {
    if (counts(operand[i])) sources_[fold.k++] = address(operand[i], tile_offset, stage_offset);
  }
  for (std::size_t i = op.k; i < static_cast<std::size_t>(op.k + op.m); ++i) {
    if (!counts(operand[i])) continue;
    std::byte* at = address(operand[i], tile_offset, stage_offset);
    const auto known = destinations_.begin() + fold.m;
    if (std::find(destinations_.begin(), known, at) != known) continue;
    if (goes(operand[i].home, around) && fold.m < 32) fold.streaming |= 1U << fold.m;
    destinations_[fold.m++] = at;
  }
  return fold;
}

// Returns how many bytes each operand had.
std::size_t Executor::run_pieces(const BoundOp& op, int tile, Around around) noexcept {
  const std::size_t size = binding_->element_bytes(), most = binding_->tile_elements();
  const std::size_t skip = tiles_ == 1 ? 0 : static_cast<std::size_t>(tile) * most;
  const std::size_t start = stage_of(tile);
  const bool packed = binding_->payload() != nullptr;
  const bool by_kernel = reads_peers(op);
  if (packed) unpack_messages(op, tile);
  std::size_t done = 0, moved = 0;
  for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
    const Piece& piece = binding_->pieces()[i];
    if (piece.elements <= skip) continue;
    const std::size_t n = tiles_ == 1 ? piece.elements : std::min(most, piece.elements - skip);
    const BoundOperand* operand = binding_->operands() + piece.operands;
    Fold fold = packed ? unpacked_operands(op, operand, skip * size, done)
                       : gather_operands(op, operand, skip * size, start + done, around);
    fold.soon = soon().behind(done);
    done += n * size;
    if (unmapped_) return moved;
    if (fold.m == 0) continue;
    fold.n = n;
    if (by_kernel) [[unlikely]]
      read_piece(op, operand, skip * size, fold);
    else
      kernel_(fold);
    moved += n * size;
  }
  if (packed) pack_messages(op, tile);
  return moved;
}

// Messages that are packed have been, or will be, unpacked beside the stage.
Fold Executor::unpacked_operands(const BoundOp& op, const BoundOperand* operand,
                                 std::size_t tile_offset, std::size_t done) noexcept {
  const auto place = [&](std::size_t i) {
    const BoundOperand& o = operand[i];
    return o.home == Home::stage ? binding_->unpacked(i) + done : address(o, tile_offset, 0);
  };
  for (std::size_t k = 0; k < op.k; ++k) sources_[k] = place(k);
  for (std::size_t m = 0; m < op.m; ++m) destinations_[m] = place(op.k + m);
  Fold fold = empty_fold(op);
  fold.k = op.k;
  fold.m = op.m;
  return fold;
}

std::size_t Executor::tile_elements(const BoundOp& op, std::size_t skip) const noexcept {
  std::size_t n = 0;
  for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
    const std::size_t elements = binding_->pieces()[i].elements;
    if (elements <= skip) continue;
    n += tiles_ == 1 ? elements : std::min(binding_->tile_elements(), elements - skip);
  }
  return n;
}

void Executor::unpack_messages(const BoundOp& op, int tile) noexcept {
  if (op.pieces == op.pieces_end) return;
  const std::size_t skip =
      tiles_ == 1 ? 0 : static_cast<std::size_t>(tile) * binding_->tile_elements();
  const std::size_t n = tile_elements(op, skip);
  const BoundOperand* operand = binding_->operands() + binding_->pieces()[op.pieces].operands;
  for (std::size_t k = 0; k < op.k; ++k) {
    if (operand[k].home != Home::stage) continue;
    const std::byte* message = operand[k].base + stage_of(tile);
    MessageHeader header{};
    std::memcpy(&header, message, sizeof(header));
    binding_->payload()->unpack(binding_->unpacked(k), n, message + sizeof(header), header.bytes,
                                binding_->dtype());
  }
}

void Executor::pack_messages(const BoundOp& op, int tile) noexcept {
  if (op.pieces == op.pieces_end) return;
  const std::size_t skip =
      tiles_ == 1 ? 0 : static_cast<std::size_t>(tile) * binding_->tile_elements();
  const std::size_t n = tile_elements(op, skip);
  const BoundOperand* operand = binding_->operands() + binding_->pieces()[op.pieces].operands;
  for (std::size_t m = op.k; m < static_cast<std::size_t>(op.k + op.m); ++m) {
    if (operand[m].home != Home::stage) continue;
    std::byte* message = operand[m].base + stage_of(tile);
    MessageHeader header{};
    header.bytes = binding_->payload()->pack(message + sizeof(header), binding_->unpacked(m), n,
                                             binding_->dtype());
    std::memcpy(message, &header, sizeof(header));
  }
}

}  // namespace coll
