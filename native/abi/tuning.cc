// SPDX-License-Identifier: Apache-2.0
// Measured choices, behind the C interface.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "abi/guarded.h"
#include "abi/handle.h"
#include "abi/machine.h"
#include "base/error.h"
#include "select/forced.h"
#include "select/tuned.h"

namespace coll {
namespace {

constexpr int32_t kNoMode = -1;

void check_size(const coll_choice& c) {
  if (c.size < sizeof(coll_choice)) {
    throw Error(Status::invalid_argument, "set size of each choice to sizeof(coll_choice)");
  }
}

TunedLine line_of(const coll_choice& c) {
  check_size(c);
  return {.kind = static_cast<Kind>(c.kind),
          .placement = c.far != 0 ? Placement::far : Placement::near,
          .from = c.from,
          .algorithm = c.algorithm,
          .mode = c.mode == kNoMode ? Mode::staged : static_cast<Mode>(c.mode),
          .lag = c.lag,
          .tile_bytes = c.tile_bytes};
}

void fill_choice(Communicator& comm, Kind kind, std::size_t bytes, bool far, coll_choice& out,
                 int32_t& tuned) {
  const Choices found = comm.choices(kind, bytes, {});
  const Choice& choice = far ? found.far : found.near;
  out.algorithm = choice.algorithm;
  out.mode = static_cast<int32_t>(choice.mode);
  out.lag = choice.lag;
  out.tile_bytes = choice.tile_bytes;
  tuned = found.table != 0 ? 1 : 0;
}

void fill_choice(WireCommunicator& comm, Kind kind, std::size_t bytes, bool, coll_choice& out,
                 int32_t& tuned) {
  const WireChoice choice = comm.choice(kind, bytes, {});
  out.algorithm = choice.algorithm;
  out.mode = kNoMode;
  out.lag = choice.lag;
  out.tile_bytes = choice.tile_bytes;
  tuned = choice.table != 0 ? 1 : 0;
}

std::vector<TunedLine> lines_of(const coll_choice* lines, std::size_t count) {
  std::vector<TunedLine> made;
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back(line_of((&required(lines, "no lines are given"))[i]));
  }
  return made;
}

// What only ranks that share memory can do while they go on.
Communicator& sharing(coll_comm* comm, const char* what) {
  if (comm != nullptr && comm->wire != nullptr) {
    throw Error(Status::unsupported, std::string(what) +
                                         ": only among ranks that share memory; between machines "
                                         "tune, or take a table");
  }
  return communicator(comm);
}

double checked_budget(double seconds) {
  if (!(seconds >= 0 && seconds <= 1e6)) {
    throw Error(Status::invalid_argument, "refine: the budget is seconds, from 0 to a million");
  }
  return seconds;
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::required;
using coll::Status;

extern "C" {

coll_status coll_tune(coll_comm* comm, const coll_choice* lines, size_t count) {
  return guarded([&] {
    std::vector<coll::TunedLine> made = coll::lines_of(lines, count);
    coll::on_either(comm, [&](auto& c) { c.tune(std::move(made)); });
    return Status::ok;
  });
}

coll_status coll_announce(coll_comm* comm, const coll_choice* lines, size_t count, int32_t cores) {
  return guarded([&] {
    coll::Communicator& communicator = coll::sharing(comm, "announce");
    communicator.announce(coll::lines_of(lines, count), cores);
    return Status::ok;
  });
}

coll_status coll_shared_cores(coll_comm* comm, int32_t* cores) {
  return guarded([&] {
    required(cores, "no place for the cores") = coll::sharing(comm, "shared_cores").shared_cores();
    return Status::ok;
  });
}

coll_status coll_refine(coll_comm* comm, double budget, const coll_machine* machine) {
  return guarded([&] {
    coll::Communicator& communicator = coll::sharing(comm, "refine");
    std::optional<coll::MachineCosts> costs;
    if (machine != nullptr) costs = coll::costs_in(*machine);
    communicator.refine(coll::checked_budget(budget), costs);
    return Status::ok;
  });
}

coll_status coll_check_wishes(const char* words, int32_t ranks) {
  return guarded([&] {
    coll::check_forced(&required(words, "no words are given"), ranks);
    return Status::ok;
  });
}

coll_status coll_chosen(coll_comm* comm, int32_t kind, size_t bytes, int32_t far, coll_choice* out,
                        int32_t* tuned) {
  return guarded([&] {
    coll_choice& choice = required(out, "no place for the choice");
    int32_t& measured = required(tuned, "no place for whether it was measured");
    coll::check_size(choice);
    if (kind < 0 || kind >= coll::kKinds) {
      throw coll::Error(Status::invalid_argument, "unknown collective " + std::to_string(kind));
    }
    choice.kind = kind;
    choice.far = far != 0 ? 1 : 0;
    choice.from = bytes;
    coll::on_either(comm, [&](auto& c) {
      coll::fill_choice(c, static_cast<coll::Kind>(kind), bytes, far != 0, choice, measured);
    });
    return Status::ok;
  });
}

}  // extern "C"
