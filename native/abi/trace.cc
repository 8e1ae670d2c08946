// SPDX-License-Identifier: Apache-2.0
// What a rank did when, behind the C interface.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "abi/guarded.h"
#include "abi/handle.h"

namespace coll {
namespace {

constexpr std::size_t kMostEvents = std::size_t{1} << 24;

static_assert(static_cast<int>(Event::What::wait) == COLL_TRACE_WAIT);
static_assert(static_cast<int>(Event::Act::copy) == COLL_ACT_COPY);
static_assert(static_cast<int>(Event::Act::leave) == COLL_ACT_LEAVE);
static_assert(static_cast<int>(PairKind::wait) == COLL_TRACE_WAITED);
static_assert(static_cast<int>(Purpose::sparse_allreduce) == COLL_TRACE_SPARSE_ALLREDUCE);
static_assert(static_cast<int>(Purpose::sparse_broadcast) == COLL_TRACE_SPARSE_BROADCAST);
static_assert(static_cast<int>(Purpose::sparse_plan_reduce) == COLL_TRACE_SPARSE_PLAN_REDUCE);
static_assert(static_cast<int>(Purpose::adasum) == COLL_TRACE_ADASUM);

// Between machines there is no mode.
int told_mode(int mode) noexcept { return mode == kByMessages ? COLL_MODE_AUTO : mode; }

coll_trace_event in_c(const Event& event) noexcept {
  return {.begin = event.begin,
          .end = event.end,
          .call = event.call,
          .bytes = event.bytes,
          .what = static_cast<std::int32_t>(event.what),
          .act = static_cast<std::int32_t>(event.act),
          .kind = event.kind,
          .parts = event.parts ? 1 : 0,
          .dtype = event.dtype,
          .op = event.op,
          .algorithm = event.algorithm,
          .mode = told_mode(event.mode),
          .purpose = event.purpose,
          .failed = event.failed ? 1 : 0,
          .peer = event.peer,
          .peers = event.peers,
          .round = event.round,
          .tile = event.tile};
}

// Puts steps in words, of a plan in memory each once.
class Described {
 public:
  explicit Described(int rank) : rank_(rank) {}

  Event of(const Event& event) {
    if (event.plan == nullptr) return event;
    const auto [at, is_new] = known_.try_emplace({event.plan, event.number}, event);
    if (is_new) describe(at->second, rank_);
    Event step = event;
    step.act = at->second.act;
    step.round = at->second.round;
    step.peer = at->second.peer;
    step.peers = at->second.peers;
    return step;
  }

 private:
  int rank_;
  std::map<std::pair<const Plan*, std::uint32_t>, Event> known_;
};

void fill_last(coll_last_call& out, const LastCall& last) noexcept {
  const Event& call = last.call;
  out.kind = call.kind;
  out.parts = call.parts ? 1 : 0;
  out.dtype = call.dtype;
  out.algorithm = call.algorithm;
  out.mode = told_mode(call.mode);
  out.number = call.call;
  out.bytes = call.bytes;
  out.seconds = last.seconds;
  out.waiting = last.waiting;
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::on_either;
using coll::required;
using coll::Status;
using coll::Watch;

extern "C" {

coll_status coll_tell_times(coll_comm* comm, int32_t which) {
  return guarded([&] {
    if (which < COLL_TIMES_OF_NONE || which > COLL_TIMES_OF_ALL) {
      throw coll::Error(
          Status::invalid_argument,
          "the times of no, large or all calls may be told: there is no " + std::to_string(which));
    }
    on_either(comm, [which](auto& c) { c.watch().tell_times(static_cast<Watch::Of>(which)); });
    return Status::ok;
  });
}

coll_status coll_last(coll_comm* comm, coll_last_call* given) {
  return guarded([&] {
    const std::uint32_t size = required(given, "no place for the last call").size;
    if (size < offsetof(coll_last_call, way)) {
      throw coll::Error(Status::invalid_argument, "set out.size to sizeof(coll_last_call)");
    }
    coll_last_call out{};
    out.kind = -1;
    const auto last = on_either(comm, [](auto& c) { return c.last(); });
    if (last) coll::fill_last(out, *last);
    const coll::GpuTaken& taken = comm->gpu_taken;
    if (last && taken.way != coll::GpuWay::none && taken.last.call.call == last->call.call) {
      coll::fill_last(out, taken.last);
      out.way = static_cast<int32_t>(taken.way);
      out.blocks = static_cast<uint32_t>(taken.blocks);
      taken.reason.copy(out.reason, sizeof(out.reason) - 1);
    }
    // Fields that the caller's older struct does not have stay away.
    out.size = size;
    std::memcpy(given, &out, std::min<std::size_t>(size, sizeof(out)));
    return Status::ok;
  });
}

coll_status coll_trace_begin(coll_comm* comm, size_t most) {
  return guarded([&] {
    if (most < 1 || most > coll::kMostEvents) {
      throw coll::Error(Status::invalid_argument, "trace: room for " + std::to_string(most) +
                                                      " events was asked for: choose 1 to " +
                                                      std::to_string(coll::kMostEvents));
    }
    on_either(comm, [most](auto& c) { c.watch().record(most); });
    return Status::ok;
  });
}

coll_status coll_trace_end(coll_comm* comm) {
  return guarded([&] {
    on_either(comm, [](auto& c) { c.watch().stop_recording(); });
    return Status::ok;
  });
}

coll_status coll_trace_read(coll_comm* comm, coll_trace_event* events, size_t room, size_t* count,
                            uint64_t* dropped) {
  return guarded([&] {
    std::size_t& found = required(count, "no place for the number of events");
    std::uint64_t& lost = required(dropped, "no place for the number of events that were dropped");
    found = lost = 0;
    const auto recording = on_either(comm, [](auto& c) { return c.watch().recording(); });
    if (!recording) return Status::ok;
    const auto kept = recording->events();
    lost = recording->dropped();
    found = kept.size();
    if (room > 0) required(events, "no place for the events");
    coll::Described described(on_either(comm, [](auto& c) { return c.rank(); }));
    for (std::size_t i = 0; i < std::min(room, kept.size()); ++i) {
      events[i] = coll::in_c(described.of(kept[i]));
    }
    return Status::ok;
  });
}

}  // extern "C"
