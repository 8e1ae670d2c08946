// SPDX-License-Identifier: Apache-2.0
// Sums of sparse vectors on a GPU that is not there, and the same sums one element after another.
#pragma once

#include <vector>

#include "cuda/merger.h"
#include "selection_job.h"

namespace coll::testing {

// A sparse vector as a rank gives it.
template <class Bits>
struct Sparse {
  std::vector<std::uint64_t> indices;
  std::vector<Bits> values;
};

// One as a GPU has it: by tiles where indices have two bytes.
template <class Bits>
class OnGpu {
 public:
  OnGpu(const Sparse<Bits>& x, std::size_t n, std::uint32_t index_bytes)
      : runs_(cuda::tiles_in(n)),
        places_(x.indices.size() * index_bytes),
        values_(x.values),
        index_bytes_(index_bytes) {
    for (std::size_t i = 0; i < x.indices.size(); ++i) {
      const auto tile = static_cast<std::size_t>(x.indices[i] / cuda::kSparseTile);
      if (index_bytes == 2) {
        if (runs_[tile].count++ == 0) runs_[tile].at = static_cast<std::uint32_t>(i);
        places_.as<std::uint16_t>()[i] =
            static_cast<std::uint16_t>(x.indices[i] % cuda::kSparseTile);
      } else if (index_bytes == 4) {
        places_.as<std::uint32_t>()[i] = static_cast<std::uint32_t>(x.indices[i]);
      } else {
        places_.as<std::uint64_t>()[i] = x.indices[i];
      }
    }
  }

  cuda::SparseVector view() {
    return {runs_.data(), places_.get(), reinterpret_cast<std::byte*>(values_.data()), index_bytes_,
            static_cast<std::uint32_t>(values_.size())};
  }

 private:
  std::vector<cuda::Run> runs_;
  Lines places_;
  std::vector<Bits> values_;
  std::uint32_t index_bytes_;
};

// Where sums of ranks' vectors go, dense and sparse, and the launches that bring them there.
template <class Element, class Ways = cuda::AsItIs>
class MergeJob {
 public:
  using Bits = typename cuda::MagnitudeOf<Element>::Word;

  MergeJob(std::size_t n, bool sparse, std::size_t entries, std::uint32_t outputs,
           std::size_t skip = 0)
      : room_(cuda::room_of_merge(n, 0, sparse, entries, sizeof(Bits))), memory_(room_.bytes) {
    m.n = static_cast<std::uint32_t>(n);
    m.divisor = 1;
    m.outputs = outputs;
    for (std::uint32_t i = 0; i < outputs; ++i) {
      outputs_.emplace_back((n + skip) * sizeof(Bits));
      m.dense[i] = outputs_.back().get() + skip * sizeof(Bits);
    }
    m.state = cuda::as<cuda::MergeState>(memory_.get() + room_.state.at);
    if (!sparse) return;
    m.sum = {cuda::as<cuda::Run>(memory_.get() + room_.runs.at), memory_.get() + room_.places.at,
             memory_.get() + room_.values.at, 2, 0};
    m.starts = cuda::as<std::uint32_t>(memory_.get() + room_.starts.at);
  }

  void add(const cuda::SparseVector& x) { m.sources[m.ranks++] = x; }
  void run(cuda::MergeStage stage) {
    cuda::emulate_blocks(
        grid.blocks, grid.threads, cuda::merge_shared_bytes<typename Element::Value>(),
        [&](cuda::BlockThread& group, std::uint32_t block) {
          cuda::Merger<Element, Ways, cuda::BlockThread>(group, m, block, grid.blocks).run(stage);
        });
  }
  void sum() {
    run(cuda::MergeStage::find);
    if (m.sum.runs != nullptr) run(cuda::MergeStage::place);
    run(cuda::MergeStage::merge);
  }
  std::uint32_t entries() const { return m.starts[cuda::tiles_in(m.n)]; }
  // The sparse sum, with indices of so many bytes.
  Sparse<Bits> packed(std::uint32_t index_bytes) {
    Sparse<Bits> found{std::vector<std::uint64_t>(entries()), std::vector<Bits>(entries())};
    const Lines indices(entries() * std::size_t{index_bytes});
    m.index_bytes = index_bytes;
    m.out_indices = indices.get();
    m.out_values = reinterpret_cast<std::byte*>(found.values.data());
    run(cuda::MergeStage::pack);
    for (std::size_t i = 0; i < entries(); ++i) {
      found.indices[i] =
          index_bytes == 4 ? indices.as<std::uint32_t>()[i] : indices.as<std::uint64_t>()[i];
    }
    return found;
  }

  cuda::Merge m{};
  Grid grid;

 private:
  cuda::MergeRoom room_;
  Lines memory_;
  std::vector<Lines> outputs_;
};

}  // namespace coll::testing
