// SPDX-License-Identifier: Apache-2.0
// Selections of a GPU that is not there: their stages, one after another, as threads; and what the
// CPU selects of the same vector.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "check.h"
#include "cuda/block_emulation.h"
#include "cuda/selector.h"
#include "kernels/top_k.h"

namespace coll::testing {

struct Grid {
  std::uint32_t blocks = 3;
  int threads = 1;
  cuda::Sampling sampling = {64, 32};
};

// Memory that begins at sixteen bytes.
class Lines {
 public:
  explicit Lines(std::size_t bytes) : memory_(std::make_unique<Line[]>(bytes / sizeof(Line) + 1)) {}
  std::byte* get() const { return reinterpret_cast<std::byte*>(memory_.get()); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(memory_.get());
  }

 private:
  using Line = cuda::Vector<cuda::kVectorBytes>;
  std::unique_ptr<Line[]> memory_;
};

// Runs all stages. `s` has n, k, x, and where the outcome goes. Which stages there were, and what
// they came to, stays in `state`.
template <class Kind, class Ways = cuda::AsItIs>
void select(cuda::Selection s, const Grid& grid, cuda::SelectionState* state = nullptr) {
  using Word = typename Kind::Word;
  constexpr int kBits = Kind::Magnitude::kBits;
  cuda::size_selection(s, static_cast<std::uint32_t>(grid.threads), sizeof(Word), grid.sampling);
  const cuda::SelectionRoom room = cuda::room_of(s, kBits, sizeof(Word));
  const Lines memory(room.bytes);
  cuda::place_selection(s, room, memory.get());
  cuda::in_stages(s, kBits, Kind::kFed, [&](const cuda::Selection& told, cuda::Stage stage) {
    cuda::emulate_blocks(
        grid.blocks, grid.threads, sizeof(cuda::SelectionShared),
        [&](cuda::BlockThread& group, std::uint32_t block) {
          cuda::Selector<Kind, Ways, cuda::BlockThread>(group, told, block, grid.blocks).run(stage);
        });
    return true;
  });
  if (state != nullptr) *state = *s.state;
}

// Pairs, and the runs of tiles.
template <class Stored>
struct Chosen {
  std::vector<std::uint32_t> indices;
  std::vector<Stored> values;
  std::vector<cuda::Run> runs;

  bool operator==(const Chosen& other) const {
    return indices == other.indices && values == other.values;
  }
};

template <class Stored>
Chosen<Stored> chosen_by_cpu(Dtype dtype, const void* x, std::size_t n, std::size_t k) {
  Chosen<Stored> found{std::vector<std::uint32_t>(k), std::vector<Stored>(k), {}};
  top_k(InstructionSet::baseline, dtype, x, n, k, sizeof(std::uint32_t),
        {found.indices.data(), found.values.data()});
  return found;
}

template <class Kind, class Ways = cuda::AsItIs>
auto chosen(const std::byte* x, std::byte* residual, std::size_t n, std::size_t k,
            const Grid& grid = {}, cuda::SelectionState* state = nullptr) {
  using Stored = typename Kind::Stored;
  Chosen<Stored> found{std::vector<std::uint32_t>(k), std::vector<Stored>(k),
                       std::vector<cuda::Run>(cuda::tiles_in(n))};
  cuda::Selection s{};
  s.x = x;
  s.residual = residual;
  s.n = static_cast<std::uint32_t>(n);
  s.k = static_cast<std::uint32_t>(k);
  s.index_bytes = sizeof(std::uint32_t);
  s.runs = found.runs.data();
  s.out_places = reinterpret_cast<std::byte*>(found.indices.data());
  s.out_values = reinterpret_cast<std::byte*>(found.values.data());
  select<Kind, Ways>(s, grid, state);
  return found;
}

}  // namespace coll::testing
