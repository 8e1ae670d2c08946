// SPDX-License-Identifier: Apache-2.0
// Life of a communicator, and collectives, behind the C interface.
#include <algorithm>
#include <memory>
#include <string>

#include "abi/convert.h"
#include "abi/gpu.h"
#include "abi/guarded.h"
#include "abi/handle.h"
#include "bootstrap/environment.h"
#include "bootstrap/rendezvous.h"
#include "schedule/encode.h"
#include "select/forced.h"

namespace coll {
namespace {

constexpr double kDefaultTimeout = 300;

[[noreturn]] void refuse(const char* why) { throw Error(Status::invalid_argument, why); }

// Fields that the caller's older struct does not have stay zero.
coll_options known_options(const coll_options* given) {
  coll_options options{};
  if (given == nullptr) refuse("options are missing");
  const auto* bytes = reinterpret_cast<const char*>(given);
  if (given->size < sizeof(std::size_t)) refuse("set options.size to sizeof(coll_options)");
  std::copy_n(bytes, std::min(given->size, sizeof(options)), reinterpret_cast<char*>(&options));
  if (!(options.timeout >= 0)) refuse("the time-out must be 0 seconds or more");
  if (options.timeout == 0) options.timeout = kDefaultTimeout;
  return options;
}

SegmentShape shape_of(const coll_options& options) {
  constexpr std::uint64_t least = 4096, most = 1ULL << 32;
  if (options.ranks < 1 || options.ranks > 1024) refuse("ranks must be 1 ... 1024 on one machine");
  SegmentShape shape{.ranks = static_cast<std::uint32_t>(options.ranks)};
  if (options.slot_bytes != 0) {
    if (options.slot_bytes < least || options.slot_bytes > most) {
      refuse("slot_bytes must lie between 4 KiB and 4 GiB");
    }
  }
  shape.slot_bytes = options.slot_bytes / kLine * kLine;  // 0: as long as fits
  return shape;
}

coll_comm* make(Membership&& membership, int rank, const coll_options& options, bool threads) {
  auto made = std::make_unique<coll_comm>();
  made->communicator.emplace(std::move(membership), rank, options.timeout,
                             options.interruptible != 0, threads);
  return made.release();
}

std::string text_or_nothing(const char* text) { return text != nullptr ? text : ""; }

coll_comm* join(const Identity& identity, const coll_options& options) {
  arm_faults_from_environment();
  if (options.refusal == nullptr) check_forced(forced_algorithms(), identity.ranks);
  Stop stop;
  if (options.stop != nullptr) {
    stop = [&options] { return options.stop(options.stop_context) != 0; };
  }
  const Terms terms{.trusted = text_or_nothing(options.trusted),
                    .refusal = text_or_nothing(options.refusal)};
  return make(rendezvous(identity, shape_of(options), options.timeout, stop, terms), identity.rank,
              options, false);
}

coll_status run(coll_comm* comm, const Call& call) noexcept {
  return guarded([&] {
    return on_either(comm, [&call](auto& communicator) { return communicator.run(call); });
  });
}

// A collective of one length.
coll_status run_equal(coll_comm* comm, Kind kind, const void* input, void* output, size_t count,
                      int32_t dtype, int32_t op, int32_t root) noexcept {
  return run(comm, {.kind = kind,
                    .dtype = static_cast<Dtype>(dtype),
                    .op = static_cast<Reduction>(op),
                    .root = root,
                    .input = input,
                    .output = output,
                    .count = count});
}

// A collective of parts whose lengths the caller gives.
coll_status run_parts(coll_comm* comm, Kind kind, const void* input, void* output,
                      const size_t* counts, int32_t dtype, int32_t op, int32_t root) {
  return guarded([&] {
    if (counts == nullptr) {
      throw Error(Status::invalid_argument,
                  std::string(name_of(kind)) + "v: the counts are a null pointer");
    }
    const Call call{.kind = kind,
                    .dtype = static_cast<Dtype>(dtype),
                    .op = static_cast<Reduction>(op),
                    .root = root,
                    .input = input,
                    .output = output,
                    .count = 0,
                    .counts = counts,
                    .algorithm = -1,
                    .mode = COLL_MODE_AUTO,
                    .timeout = 0};
    return on_either(comm, [&call](auto& communicator) { return communicator.run(call); });
  });
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Kind;
using coll::on_either;
using coll::run_equal;
using coll::run_parts;
using coll::Status;

extern "C" {

coll_status coll_init(const coll_options* given, coll_comm** comm) {
  return guarded([&] {
    if (comm == nullptr) coll::refuse("no place for the communicator");
    const coll_options options = coll::known_options(given);
    const coll::Identity identity{.rank = options.rank,
                                  .ranks = options.ranks,
                                  .job = options.job != nullptr ? options.job : "default",
                                  .attempt = options.attempt};
    *comm = coll::join(identity, options);
    return Status::ok;
  });
}

coll_status coll_init_from_environment(int32_t interruptible, coll_comm** comm) {
  return guarded([&] {
    if (comm == nullptr) coll::refuse("no place for the communicator");
    const coll::Environment environment = coll::read_environment();
    coll_options options{};
    options.ranks = environment.identity.ranks;
    options.timeout = environment.timeout_s > 0 ? environment.timeout_s : coll::kDefaultTimeout;
    options.interruptible = interruptible;
    *comm = coll::join(environment.identity, options);
    return Status::ok;
  });
}

coll_status coll_local(const coll_options* given, coll_comm** comms) {
  return guarded([&] {
    if (comms == nullptr) coll::refuse("no place for the communicators");
    const coll_options options = coll::known_options(given);
    coll::check_forced(coll::forced_algorithms(), options.ranks);
    std::vector<coll::Membership> members = coll::local_group(coll::shape_of(options));
    std::vector<std::unique_ptr<coll_comm>> made;
    for (int rank = 0; rank < options.ranks; ++rank) {
      made.emplace_back(
          coll::make(std::move(members[static_cast<std::size_t>(rank)]), rank, options, true));
    }
    for (std::size_t rank = 0; rank < made.size(); ++rank) comms[rank] = made[rank].release();
    return Status::ok;
  });
}

coll_status coll_close(coll_comm* comm) {
  const std::unique_ptr<coll_comm> owned(comm);
  return guarded([&] {
    if (comm != nullptr) coll::leave_gpus(*comm);
    on_either(comm, [](auto& communicator) { communicator.close(); });
    coll::free_left_windows();
    return Status::ok;
  });
}

coll_status coll_abort(coll_comm* comm, const char* reason) {
  return guarded([&] {
    on_either(comm, [reason](auto& communicator) {
      communicator.abort(reason != nullptr ? reason : "no reason given");
    });
    if (comm->communicator) {
      for (const auto& team : coll::GpuTeam::all_of(comm->communicator->group())) team->abort();
      for (const auto& joint : comm->meetings->joints()) joint->abort();
    }
    return Status::ok;
  });
}

coll_status coll_stop_by(coll_comm* comm, coll_stop_function stop, void* context) {
  return guarded([&] {
    if (comm == nullptr) throw coll::Error(coll::Status::closed, "the communicator is closed");
    comm->stop = nullptr;
    if (stop != nullptr) comm->stop = [stop, context] { return stop(context) != 0; };
    coll::on_either(comm, [&](auto& communicator) {
      communicator.look_by([asked = comm->stop] {
        if (asked && asked()) throw coll::Stopped();
      });
    });
    return Status::ok;
  });
}

int32_t coll_rank(const coll_comm* comm) {
  if (comm == nullptr) return -1;
  return comm->wire != nullptr ? comm->wire->rank() : comm->communicator->rank();
}

int32_t coll_ranks(const coll_comm* comm) {
  if (comm == nullptr) return 0;
  return comm->wire != nullptr ? comm->wire->ranks() : comm->communicator->ranks();
}

uint64_t coll_sequence(const coll_comm* comm) {
  if (comm == nullptr) return 0;
  return comm->wire != nullptr ? comm->wire->calls() : comm->communicator->calls();
}

double coll_timeout(const coll_comm* comm) {
  if (comm == nullptr) return 0;
  return comm->wire != nullptr ? comm->wire->timeout() : comm->communicator->timeout();
}

coll_status coll_run(coll_comm* comm, const coll_call* given) {
  return guarded([&] {
    return on_either(
        comm, [given](auto& communicator) { return communicator.run(coll::to_call(given)); });
  });
}

coll_status coll_validate(coll_comm* comm, const coll_call* given) {
  return guarded([&] {
    on_either(comm, [given](const auto& communicator) {
      coll::validate(coll::to_call(given), communicator.rank(), communicator.ranks());
    });
    return Status::ok;
  });
}

coll_status coll_add_schedule(coll_comm* comm, const int32_t* data, size_t length, const char* name,
                              int32_t* algorithm) {
  return guarded([&] {
    if (data == nullptr || algorithm == nullptr) coll::refuse("a null pointer");
    *algorithm = on_either(comm, [&](auto& communicator) {
      return communicator.add_schedule(coll::decode({data, length}), name != nullptr ? name : "");
    });
    return Status::ok;
  });
}

coll_status coll_resume(coll_comm* comm) {
  return guarded([&] {
    if (comm != nullptr && comm->steps) return coll::resume_steps(*comm);
    return on_either(comm, [](auto& communicator) { return communicator.resume(); });
  });
}

coll_status coll_collective(coll_comm* comm, int32_t kind, const void* input, void* output,
                            size_t count, int32_t dtype, int32_t op, int32_t root,
                            int32_t algorithm, int32_t mode, double timeout) {
  return coll::run(comm, {.kind = static_cast<Kind>(kind),
                          .dtype = static_cast<coll::Dtype>(dtype),
                          .op = static_cast<coll::Reduction>(op),
                          .root = root,
                          .input = input,
                          .output = output,
                          .count = count,
                          .algorithm = algorithm,
                          .mode = mode,
                          .timeout = timeout});
}

coll_status coll_allreduce(coll_comm* comm, const void* input, void* output, size_t count,
                           int32_t dtype, int32_t op) {
  return run_equal(comm, Kind::allreduce, input, output, count, dtype, op, 0);
}

coll_status coll_reduce_scatter(coll_comm* comm, const void* input, void* output, size_t count,
                                int32_t dtype, int32_t op) {
  return run_equal(comm, Kind::reduce_scatter, input, output, count, dtype, op, 0);
}

coll_status coll_reduce_scatterv(coll_comm* comm, const void* input, void* output,
                                 const size_t* counts, int32_t dtype, int32_t op) {
  return run_parts(comm, Kind::reduce_scatter, input, output, counts, dtype, op, 0);
}

coll_status coll_allgather(coll_comm* comm, const void* input, void* output, size_t count,
                           int32_t dtype) {
  return run_equal(comm, Kind::allgather, input, output, count, dtype, COLL_SUM, 0);
}

coll_status coll_allgatherv(coll_comm* comm, const void* input, void* output, const size_t* counts,
                            int32_t dtype) {
  return run_parts(comm, Kind::allgather, input, output, counts, dtype, COLL_SUM, 0);
}

coll_status coll_broadcast(coll_comm* comm, const void* input, void* output, size_t count,
                           int32_t dtype, int32_t root) {
  return run_equal(comm, Kind::broadcast, input, output, count, dtype, COLL_SUM, root);
}

coll_status coll_reduce(coll_comm* comm, const void* input, void* output, size_t count,
                        int32_t dtype, int32_t op, int32_t root) {
  return run_equal(comm, Kind::reduce, input, output, count, dtype, op, root);
}

coll_status coll_gather(coll_comm* comm, const void* input, void* output, size_t count,
                        int32_t dtype, int32_t root) {
  return run_equal(comm, Kind::gather, input, output, count, dtype, COLL_SUM, root);
}

coll_status coll_gatherv(coll_comm* comm, const void* input, void* output, const size_t* counts,
                         int32_t dtype, int32_t root) {
  return run_parts(comm, Kind::gather, input, output, counts, dtype, COLL_SUM, root);
}

coll_status coll_scatter(coll_comm* comm, const void* input, void* output, size_t count,
                         int32_t dtype, int32_t root) {
  return run_equal(comm, Kind::scatter, input, output, count, dtype, COLL_SUM, root);
}

coll_status coll_scatterv(coll_comm* comm, const void* input, void* output, const size_t* counts,
                          int32_t dtype, int32_t root) {
  return run_parts(comm, Kind::scatter, input, output, counts, dtype, COLL_SUM, root);
}

coll_status coll_alltoall(coll_comm* comm, const void* input, void* output, size_t count,
                          int32_t dtype) {
  return run_equal(comm, Kind::alltoall, input, output, count, dtype, COLL_SUM, 0);
}

coll_status coll_alltoallv(coll_comm* comm, const void* input, void* output, const size_t* counts,
                           int32_t dtype) {
  return run_parts(comm, Kind::alltoall, input, output, counts, dtype, COLL_SUM, 0);
}

coll_status coll_scan(coll_comm* comm, const void* input, void* output, size_t count, int32_t dtype,
                      int32_t op) {
  return run_equal(comm, Kind::scan, input, output, count, dtype, op, 0);
}

coll_status coll_exscan(coll_comm* comm, const void* input, void* output, size_t count,
                        int32_t dtype, int32_t op) {
  return run_equal(comm, Kind::exscan, input, output, count, dtype, op, 0);
}

coll_status coll_barrier(coll_comm* comm) {
  return run_equal(comm, Kind::barrier, nullptr, nullptr, 0, COLL_UINT8, COLL_SUM, 0);
}

}  // extern "C"
