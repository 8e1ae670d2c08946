// SPDX-License-Identifier: Apache-2.0
// A collective on a GPU that ranks of one process share, in two steps that are collectives of the
// host: all have handed in their parts, and rank 0 has done the work for all. So ranks that call
// differently, do not come, die or abort are told of as everywhere else.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "communicator/gpu_team.h"
#include "communicator/gpu_words.h"
#include "communicator/message_steps.h"

namespace coll {

class GpuCall : public MessageSteps {
 protected:
  // What the call points to must live as long. Throws Error for what this rank can tell by itself.
  GpuCall(int rank, int ranks, double timeout, std::shared_ptr<GpuTeam> team, const GpuPart& part,
          GpuWork work);

 private:
  enum class Stage : std::uint8_t { handing_in, working, done };

  Status begin() override;
  bool step(Status& status) override;

  std::shared_ptr<GpuTeam> team_;
  GpuWork work_;
  std::string words_;
  Stage stage_ = Stage::handing_in;
  std::uint8_t here_ = 1;
  std::vector<std::uint8_t> heard_;
};

}  // namespace coll
