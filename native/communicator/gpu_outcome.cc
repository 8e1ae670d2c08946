// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_outcome.h"

#include <string>

#include "base/error.h"
#include "cuda/signals.h"

namespace coll {
namespace {

using KernelWords = cuda::Signals<cuda::ReleaseAcquire>;

Error gave_up(const cuda::Record& record) {
  const std::string waited =
      record.packet != 0 ? "a packet" : "rank " + std::to_string(record.peer);
  return {Status::timeout,
          "on the GPU rank " + std::to_string(record.rank) + " gave up: channel " +
              std::to_string(record.channel) + ", step " + std::to_string(record.op) + ", tile " +
              std::to_string(record.tile) + " waited for " + waited + " to reach " +
              std::to_string(record.expected) + " and saw " + std::to_string(record.seen),
          record.peer};
}

}  // namespace

void check_outcome(const cuda::Control& control, int device) {
  if (KernelWords::acquire(&control.recorded) != 0) throw gave_up(control.record);
  const std::uint64_t word = KernelWords::acquire(&control.abort);
  if (word == 0) return;
  const std::string ended = "the collectives on GPU " + std::to_string(device) + " were ended: ";
  if (word >= cuda::kStoppedByRank) {
    const auto rank = static_cast<int>(word - cuda::kStoppedByRank);
    throw Error(Status::timeout, ended + "rank " + std::to_string(rank) + " gave up on its own",
                rank);
  }
  throw Error(Status::aborted, ended + "a rank aborted this communicator");
}

void abort_launches(cuda::Control& control) noexcept {
  KernelWords::set_first(&control.abort, cuda::kAbortedByHost);
}

}  // namespace coll
