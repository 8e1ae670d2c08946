// SPDX-License-Identifier: Apache-2.0
// A sum of sparse vectors on a GPU that ranks of one process share, in the two steps of gpu_call.h;
// what is handed in may be selected in between.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "communicator/gpu_sparse_team.h"
#include "communicator/message_steps.h"

namespace coll {

class GpuSparseCall : public MessageSteps {
 protected:
  // Throws Error for what this rank can tell by itself. `agreed`: what all ranks must say besides.
  GpuSparseCall(int rank, int ranks, double timeout, std::shared_ptr<GpuSparseTeam> team,
                const GpuSparsePart& part, double limit, const std::string& agreed);

 private:
  enum class Stage : std::uint8_t { handing_in, selecting, launching, done };

  Status begin() override;
  bool step(Status& status) override;

  void select() noexcept;
  void launch();

  std::shared_ptr<GpuSparseTeam> team_;
  bool selects_;
  std::string words_;
  Stage stage_ = Stage::handing_in;
  std::uint8_t here_ = 1;
  std::vector<std::uint8_t> heard_;
};

}  // namespace coll
