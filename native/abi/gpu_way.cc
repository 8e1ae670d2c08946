// SPDX-License-Identifier: Apache-2.0
// Which way a call of arrays on a GPU goes, and what is told of it then.
#include <string>
#include <type_traits>
#include <utility>

#include "abi/gpu.h"
#include "communicator/gpu_owner.h"

namespace coll {
namespace {

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
void tell_staged(coll_comm& comm, const C& communicator, const GpuStaged& done) {
  const GpuStagedTook& took = done.took();
  comm.gpu_taken = {.way = GpuWay::host,
                    .last = {event_of(done.call(), communicator.ranks(), took.algorithm, took.mode,
                                      communicator.calls()),
                             took.seconds, took.waiting},
                    .blocks = took.blocks};
}

template <class C>
Status run_staged(coll_comm& comm, C& communicator, std::int32_t device, const GpuPart& part) {
  refuse_captured(device, part.stream);
  auto steps = std::make_unique<StepsOn<GpuStaged, C>>(communicator, staging_of(comm, device),
                                                       part.call, part.stream);
  const GpuStaged* const own = steps.get();
  return take_steps(comm, std::move(steps),
                    [&comm, &communicator, own] { tell_staged(comm, communicator, *own); });
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
  if (team == nullptr) {
    return on_either(&comm, [&](auto& c) { return run_staged(comm, c, device, part); });
  }
  Communicator& its = communicator(&comm);
  const Call call = part.call;
  auto steps = std::make_unique<StepsOn<GpuCall, Communicator>>(its, team, part, GpuWork::launch);
  return take_steps(comm, std::move(steps), [&comm, &its, team, call] {
    const Choice& ran = team->ran();
    comm.gpu_taken = {.way = GpuWay::launch,
                      .last = {event_of(call, its.ranks(), ran.algorithm,
                                        static_cast<int>(ran.mode), its.calls())},
                      .blocks = 1};
  });
}

}  // namespace coll
