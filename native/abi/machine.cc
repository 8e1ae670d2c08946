// SPDX-License-Identifier: Apache-2.0
#include "abi/machine.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "abi/guarded.h"
#include "abi/handle.h"
#include "base/error.h"
#include "kernels/kernels.h"
#include "probe/machine_probe.h"

namespace coll {
namespace {

CostCurve curve_in(const coll_curve& c) {
  CostCurve curve;
  std::ranges::copy(c.bytes, curve.bytes.begin());
  std::ranges::copy(c.seconds_per_byte, curve.seconds_per_byte.begin());
  return curve;
}

coll_curve curve_of(const CostCurve& curve) {
  coll_curve c;
  std::ranges::copy(curve.bytes, c.bytes);
  std::ranges::copy(curve.seconds_per_byte, c.seconds_per_byte);
  return c;
}

CoreCosts between_in(const coll_core_costs& c) {
  return {.flag = c.flag,
          .read = curve_in(c.read),
          .write = curve_in(c.write),
          .streamed_read = curve_in(c.streamed_read),
          .streamed_write = curve_in(c.streamed_write)};
}

coll_core_costs between_of(const CoreCosts& costs, bool measured) {
  return {.flag = costs.flag,
          .read = curve_of(costs.read),
          .write = curve_of(costs.write),
          .streamed_read = curve_of(costs.streamed_read),
          .streamed_write = curve_of(costs.streamed_write),
          .measured = measured ? 1 : 0};
}

void copy_for_probe(void* to, const void* from, std::size_t bytes, bool around) noexcept {
  copy_bytes(to, from, bytes, around);
}

void add_for_probe(void* to, const void* a, const void* b, std::size_t bytes) noexcept {
  static const FoldKernel kernel = fold_kernel(Dtype::float32, Reduction::sum);
  const void* sources[] = {a, b};
  kernel({.sources = sources,
          .destinations = &to,
          .n = bytes / sizeof(float),
          .k = 2,
          .m = 1,
          .balanced = false,
          .streaming = 0,
          .divisor = 1.0});
}

// Never the same twice in a group, as a barrier goes before: it counts as a call.
std::uint64_t token_of(const Communicator& comm) {
  constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;
  const std::uint64_t mixed = (comm.membership().segment.group() ^ (comm.calls() << 24)) * kSpread;
  return mixed ^ (mixed >> 31);
}

Probed probed(coll_comm* comm, double seconds) {
  constexpr double kLeast = 0.001, kMost = 60, kPatience = 10;
  if (!(seconds >= kLeast && seconds <= kMost)) {
    throw Error(
        Status::invalid_argument,
        "a machine is measured for 0.001 to 60 seconds, not for " + std::to_string(seconds));
  }
  if (comm != nullptr && comm->wire != nullptr) {
    throw Error(Status::unsupported,
                "the ranks are on several machines: measure their links with topology(), and each "
                "machine among the ranks that it has");
  }
  Communicator& group = communicator(comm);
  if (!group.membership().memory->is_here()) {
    throw Error(Status::unsupported, "this process was forked from a rank, and is none");
  }
  return probe_machine(group.membership().segment, group.rank(),
                       {.copy = copy_for_probe, .add = add_for_probe},
                       {.seconds = seconds, .timeout = kPatience, .token = token_of(group)});
}

}  // namespace

MachineCosts costs_in(const coll_machine& m) {
  if (m.size < sizeof(coll_machine)) {
    throw Error(Status::invalid_argument, "set size of the machine to sizeof(coll_machine)");
  }
  MachineCosts costs;
  costs.cores = m.cores;
  costs.private_cache = m.private_cache;
  costs.shared_cache = m.shared_cache;
  costs.op = m.op;
  costs.call = m.call;
  costs.turn = m.turn;
  costs.fold = m.fold;
  costs.read = curve_in(m.read);
  costs.write = curve_in(m.write);
  costs.stream = curve_in(m.stream);
  costs.between = {between_in(m.near), between_in(m.far)};
  costs.measured = {m.near.measured != 0, m.far.measured != 0};
  check_costs(costs);
  return costs;
}

coll_machine machine_of(const MachineCosts& costs) {
  return {.size = sizeof(coll_machine),
          .cores = costs.cores,
          .private_cache = costs.private_cache,
          .shared_cache = costs.shared_cache,
          .op = costs.op,
          .call = costs.call,
          .turn = costs.turn,
          .fold = costs.fold,
          .read = curve_of(costs.read),
          .write = curve_of(costs.write),
          .stream = curve_of(costs.stream),
          .near = between_of(costs.at(Placement::near), costs.measured[0]),
          .far = between_of(costs.at(Placement::far), costs.measured[1])};
}

}  // namespace coll

using coll::guarded;
using coll::required;
using coll::Status;

extern "C" {

coll_status coll_usual_machine(coll_machine* out) {
  return guarded([&] {
    required(out, "no place for the costs of a machine") = coll::machine_of(coll::usual_costs());
    return Status::ok;
  });
}

coll_status coll_measure_machine(coll_comm* comm, double seconds, coll_machine* out,
                                 double* flags) {
  return guarded([&] {
    coll_machine& machine = required(out, "no place for the costs of a machine");
    const coll::Probed found = coll::probed(comm, seconds);
    machine = coll::machine_of(found.costs);
    if (flags != nullptr) std::ranges::copy(found.flags, flags);
    return Status::ok;
  });
}

}  // extern "C"
