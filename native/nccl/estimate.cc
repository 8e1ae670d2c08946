// SPDX-License-Identifier: Apache-2.0
#include "nccl/estimate.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "collectives_algorithms.h"
#include "collectives_prediction.h"
#include "collectives_tuning.h"
#include "nccl/fusion.h"

namespace coll::nccl {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

coll_machine usual_machine() {
  coll_machine machine{};
  machine.size = sizeof machine;
  expect(coll_usual_machine(&machine));
  return machine;
}

double simulated(const coll_prediction& given) {
  coll_prediction task = given;
  task.size = sizeof task;
  task.alone = 1;
  const coll_machine machine = usual_machine();
  double seconds = 0;
  expect(coll_predict(&machine, &task, &seconds));
  return seconds;
}

// Bytes of a rank's longest buffer, on whatever rank.
std::size_t vector_bytes(const Operation& operation, const ncclComm& comm) {
  const bool has_parts = operation.kind == COLL_REDUCE_SCATTER || operation.kind == COLL_ALLTOALL ||
                         operation.kind == COLL_ALLGATHER || operation.kind == COLL_GATHER ||
                         operation.kind == COLL_SCATTER;
  return operation.count * element_bytes(operation) *
         (has_parts ? static_cast<std::size_t>(comm.ranks) : 1);
}

double of_collectives(const ncclComm& comm, const std::vector<const Operation*>& together) {
  const Operation& first = *together.front();
  std::size_t bytes = 0;
  for (const Operation* operation : together) bytes += vector_bytes(*operation, comm);
  coll_choice chosen{};
  chosen.size = sizeof chosen;
  std::int32_t tuned = 0;
  expect(coll_chosen(comm.engine.load(), first.kind, bytes, 0, &chosen, &tuned));
  coll_prediction task{};
  task.algorithm = chosen.algorithm;
  task.p = comm.ranks;
  task.root = first.root;
  task.mode = chosen.mode;
  task.lag = chosen.lag;
  task.bytes = static_cast<double>(bytes);
  task.tile_bytes = static_cast<double>(chosen.tile_bytes);
  return simulated(task);
}

// A message does what a broadcast between two does.
double of_message(const ncclComm& comm, const Operation& message) {
  coll_prediction task{};
  task.algorithm = coll_algorithm_find(COLL_BROADCAST, "linear");
  task.p = std::min(comm.ranks, 2);
  task.mode = COLL_MODE_STAGED;
  task.lag = 1;
  task.bytes = static_cast<double>(message.count * element_bytes(message));
  return simulated(task);
}

}  // namespace

double predicted_seconds(const ncclComm& comm, std::span<const Operation> operations) {
  const bool is_known =
      std::string(coll_transport(comm.engine.load())) == "memory" &&
      std::none_of(operations.begin(), operations.end(),
                   [](const Operation& operation) { return is_on_gpu(operation); });
  if (!is_known) return kUnknown;
  std::vector<Operation> collectives;
  double seconds = 0;
  for (const Operation& operation : operations) {
    if (operation.form == Form::collective) {
      collectives.push_back(operation);
    } else {
      seconds += of_message(comm, operation);
    }
  }
  for (const auto& together : joined(collectives, comm)) seconds += of_collectives(comm, together);
  return seconds;
}

}  // namespace coll::nccl
