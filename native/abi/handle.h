// SPDX-License-Identifier: Apache-2.0
// What a coll_comm is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "abi/guarded.h"
#include "communicator/communicator.h"
#include "communicator/gpu_joint.h"
#include "communicator/gpu_sparse_team.h"
#include "communicator/gpu_staged.h"
#include "communicator/gpu_taken.h"
#include "communicator/gpu_team.h"
#include "communicator/steps.h"
#include "communicator/wire_communicator.h"
#include "sparse/openings.h"

struct coll_comm {
  // One of the two: of ranks that share memory, or of ranks on several machines.
  std::optional<coll::Communicator> communicator = std::nullopt;
  std::unique_ptr<coll::WireCommunicator> wire = nullptr;
  // What goes on, where COLL_IN_PROGRESS was returned, and how that is handed out which comes of
  // it.
  std::unique_ptr<coll::Steps> steps = nullptr;
  std::function<void()> deliver = nullptr;
  // Whether the program wants work to end that this rank does alone.
  std::function<bool()> stop = nullptr;
  // Whom it shares GPUs with, by GPU.
  std::map<int, std::shared_ptr<coll::GpuTeam>> gpus = {};
  std::map<int, std::shared_ptr<coll::GpuSparseTeam>> sparse_gpus = {};
  // How long vectors may be that go with the first step of sparse collectives.
  coll::OpeningRooms opening_rooms = {};
  // What processes have found about each other's GPUs.
  std::shared_ptr<coll::GpuMeetings> meetings = std::make_shared<coll::GpuMeetings>();
  // What calls through memory of the host keep, by GPU; and what the last call on a GPU took.
  std::map<int, std::shared_ptr<coll::GpuStaging>> stagings = {};
  coll::GpuTaken gpu_taken = {};
};

namespace coll {

// Of ranks of one machine.
inline Communicator& communicator(coll_comm* comm) {
  if (comm == nullptr) throw Error(Status::closed, "the communicator is closed");
  return *comm->communicator;
}

// What ranks of one machine and of several do alike.
template <class F>
auto on_either(coll_comm* comm, F&& f) {
  if (comm != nullptr && comm->wire != nullptr) return f(*comm->wire);
  return f(communicator(comm));
}

// To construct a value in place from what a function returns.
template <class F>
struct InPlace {
  F make;
  operator decltype(make())() { return make(); }
};
template <class F>
InPlace(F) -> InPlace<F>;

// A handle for a communicator of either kind; of one machine, what makes it.
template <class F>
std::unique_ptr<coll_comm> handle_of(F make) {
  auto made = std::make_unique<coll_comm>();
  made->communicator.emplace(InPlace{make});
  return made;
}
inline std::unique_ptr<coll_comm> handle_of(std::unique_ptr<WireCommunicator> wire) {
  auto made = std::make_unique<coll_comm>();
  made->wire = std::move(wire);
  return made;
}

// Takes steps to their end, and calls deliver() then.
Status take_steps(coll_comm& comm, std::unique_ptr<Steps> steps, std::function<void()> deliver);
// Goes on with them.
Status resume_steps(coll_comm& comm);
// Forms a communicator to its end, and hands out what take() gives then.
Status form(coll_comm& comm, std::unique_ptr<Forming> forming,
            std::function<std::unique_ptr<coll_comm>()> take, coll_comm** made);

}  // namespace coll
