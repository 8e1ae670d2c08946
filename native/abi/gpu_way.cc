// SPDX-License-Identifier: Apache-2.0
// Which way a call of arrays on a GPU goes, and what is told of it then.
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "abi/gpu.h"
#include "communicator/gpu_joint_call.h"
#include "communicator/gpu_owner.h"

namespace coll {
namespace {

constexpr std::chrono::microseconds kWaitNap(50);
constexpr int kNapsUntilLook = 400;  // 20 ms: who has done its part may go

std::shared_ptr<GpuStaging> staging_of(coll_comm& comm, std::int32_t device) {
  const auto known = comm.stagings.find(device);
  if (known != comm.stagings.end()) return known->second;
  return comm.stagings.emplace(device, std::make_shared<GpuStaging>(device)).first->second;
}

void refuse_captured(std::int32_t device, void* stream) {
  if (!captured(device, stream)) return;
  throw Error(Status::unsupported,
              "the stream is being captured into a graph, of which a collective of several "
              "processes is no part, as it goes through memory of the host: make it before or "
              "after");
}

template <class C>
void tell_staged(coll_comm& comm, const C& communicator, const GpuStaged& done,
                 const std::string& reason) {
  const GpuStagedTook& took = done.took();
  comm.gpu_taken = {.way = GpuWay::host,
                    .last = {event_of(done.call(), communicator.ranks(), took.algorithm, took.mode,
                                      communicator.calls()),
                             took.seconds, took.waiting},
                    .blocks = took.blocks,
                    .reason = reason};
}

void tell_launched(coll_comm& comm, const Communicator& its, const Call& call, const Choice& ran) {
  comm.gpu_taken = {
      .way = GpuWay::launch,
      .last = {event_of(call, its.ranks(), ran.algorithm, static_cast<int>(ran.mode), its.calls())},
      .blocks = 1};
}

// Among machines.
Status run_staged(coll_comm& comm, std::int32_t device, const GpuPart& part) {
  refuse_captured(device, part.stream);
  WireCommunicator& its = *comm.wire;
  auto steps = std::make_unique<StepsOn<GpuStaged, WireCommunicator>>(its, staging_of(comm, device),
                                                                      part.call, part.stream);
  const GpuStaged* const own = steps.get();
  return take_steps(comm, std::move(steps), [&comm, &its, own] {
    tell_staged(comm, its, *own, "the ranks are on several machines");
  });
}

WindowUsers users_of(const Communicator& its) {
  const Membership& membership = its.membership();
  return {membership.memory, membership.segment, its.rank(), its.ranks()};
}

using Joints = std::vector<std::shared_ptr<GpuJoint>>;

// Until this rank's launches are over. Throws Error where one of them gave up, or will come to
// nothing.
void finish_launches(Communicator& its, const Joints& joints) {
  for (const auto& joint : joints) {
    for (int naps = 1; !joint->done(); ++naps) {
      std::this_thread::sleep_for(kWaitNap);
      its.check_failed();
      if (naps % kNapsUntilLook == 0) its.check_alive();
    }
    joint->check_failed();
  }
}

// Whether it is of ranks of one machine, and this is no forked child, which has none of their
// memory.
bool is_here(const coll_comm& comm) noexcept {
  return comm.communicator && comm.communicator->membership().memory->is_here();
}

void end_launches(const Joints& joints) noexcept {
  for (const auto& joint : joints) joint->abort();
}

// Among processes of one machine.
Status run_joint(coll_comm& comm, std::int32_t device, const GpuPart& part) {
  Communicator& its = communicator(&comm);
  auto steps = std::make_unique<StepsOn<GpuJointCall, Communicator>>(
      its, users_of(its), comm.meetings, staging_of(comm, device), part.call, part.stream);
  const GpuJointCall* const own = steps.get();
  return take_steps(comm, std::move(steps), [&comm, &its, own] {
    if (own->plan()) {
      tell_launched(comm, its, own->call(), own->plan()->choice);
    } else {
      tell_staged(comm, its, *own, own->reason());
    }
  });
}

Status run_team(coll_comm& comm, const std::shared_ptr<GpuTeam>& team, const GpuPart& part) {
  Communicator& its = communicator(&comm);
  auto steps = std::make_unique<StepsOn<GpuCall, Communicator>>(its, team, part, GpuWork::launch);
  return take_steps(comm, std::move(steps), [&comm, &its, team, call = part.call] {
    tell_launched(comm, its, call, team->ran());
  });
}

}  // namespace

const cuda::Library& kernels_for(std::int32_t device) {
  const cuda::Library& library = cuda::library();
  const cuda::Devices found = cuda::devices();
  if (device >= 0 && device < found.count) return library;
  throw Error(
      found.count == 0 ? Status::unsupported : Status::invalid_argument,
      "there is no GPU " + std::to_string(device) +
          (found.count == 0 ? ": " + found.why : ", but 0 ... " + std::to_string(found.count - 1)));
}

bool are_of_one_process(const coll_comm& comm) noexcept {
  return comm.wire == nullptr && comm.communicator && comm.communicator->within_process();
}

bool captured(std::int32_t device, void* stream) {
  std::uint64_t capture = 0;
  cuda::Sentence why{};
  cuda::check(kernels_for(device).capture(device, stream, &capture, &why), why);
  return capture != 0;
}

std::shared_ptr<GpuTeam> gpu_team_of(coll_comm& comm, std::int32_t device) {
  kernels_for(device);
  if (!are_of_one_process(comm)) return nullptr;
  const auto known = comm.gpus.find(device);
  if (known != comm.gpus.end()) return known->second;
  const Communicator& its = communicator(&comm);
  return comm.gpus.emplace(device, GpuTeam::of(its.group(), its.ranks(), device)).first->second;
}

Status run_on_gpu(coll_comm& comm, std::int32_t device, const std::shared_ptr<GpuTeam>& team,
                  const GpuPart& part) {
  if (team != nullptr) return run_team(comm, team, part);
  return comm.wire != nullptr ? run_staged(comm, device, part) : run_joint(comm, device, part);
}

void wait_on_gpu(coll_comm& comm, std::int32_t device, void* stream) {
  if (const auto team = gpu_team_of(comm, device)) {
    team->wait(stream);
    return;
  }
  const Joints joints = comm.meetings->joints();
  try {
    if (comm.communicator) finish_launches(*comm.communicator, joints);
  } catch (const Error&) {
    end_launches(joints);
    throw;
  }
  cuda::Sentence why{};
  cuda::check(kernels_for(device).synchronize(device, stream, &why), why);
}

void end_hopeless_launches(coll_comm& comm) noexcept {
  if (!is_here(comm) || !comm.communicator->has_failed()) return;
  end_launches(comm.meetings->joints());
}

void leave_gpus(coll_comm& comm) noexcept {
  if (!is_here(comm)) return;
  {
    const Joints joints = comm.meetings->joints();
    try {
      finish_launches(*comm.communicator, joints);
    } catch (const Error&) {  // the call that did not follow would have told it
      end_launches(joints);
    }
  }
  comm.steps.reset();
  comm.meetings->leave();
}

}  // namespace coll
