// SPDX-License-Identifier: Apache-2.0
// Ranks of one process that share a GPU, for sums of their sparse vectors there: as gpu_team.h,
// what each hands in, and the launches that one of them makes for all. A sparse sum stays here
// until the next one, for all ranks to take.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "cuda/device_memory.h"
#include "cuda/merge.h"
#include "cuda/sparse_library.h"
#include "kernels/dtype.h"

namespace coll {

// A rank's part of a call.
struct GpuSparsePart {
  Dtype dtype = Dtype::float32;
  Reduction op = Reduction::sum;
  std::uint32_t index_bytes = 4;
  std::size_t entries = 0, length = 0;
  const void* indices = nullptr;
  const void* values = nullptr;
  void* output = nullptr;  // null: a sparse sum
  void* stream = nullptr;
  std::optional<cuda::SelectionCall> selection = std::nullopt;  // where the entries come from
};

class GpuSparseTeam {
 public:
  // As GpuTeam::of().
  static std::shared_ptr<GpuSparseTeam> of(const void* group, int ranks, int device);

  GpuSparseTeam(int ranks, int device);

  int device() const noexcept { return device_; }

  // Throws Error for what can be told without the others.
  void hand_in(int rank, const GpuSparsePart& part);
  // Enqueues a rank's selection. Throws Error.
  void select(int rank) const;
  // Once all have. What goes wrong is the outcome.
  void launch();
  const std::optional<Error>& outcome() const noexcept { return outcome_; }

  // Waits for the stream. Elements of the sum that are not zero; of a dense outcome 0. Throws
  // Error(invalid_argument): a rank's indices were wrong.
  std::size_t entries(void* stream) const;
  // Enqueues the copy of a sparse sum.
  void take(int rank, void* stream, std::uint32_t index_bytes, void* indices, void* values);

 private:
  void launch_all();
  cuda::Merge merge_of(const cuda::MergeRoom& room) const;
  void follow(void* stream, void* other) const;

  int ranks_, device_;
  cuda::DeviceMemory room_;
  std::vector<GpuSparsePart> parts_;
  std::vector<std::optional<void*>> taken_on_;  // streams that may still read the last sum
  cuda::Merge last_{};
  std::optional<Error> outcome_;
};

}  // namespace coll
