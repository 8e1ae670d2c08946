// SPDX-License-Identifier: Apache-2.0
#include "nccl/connect.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <set>
#include <string_view>
#include <thread>

#include "base/deadline.h"
#include "nccl/driver.h"
#include "nccl/meeting.h"
#include "topology/host.h"

namespace coll::nccl {
namespace {

// What a rank says at the meeting, a line each.
struct Words {
  std::string host, door, apart, algorithms;
};

constexpr std::size_t kRoom = 512;  // for the text of a door

constexpr char kApart[] = "apart", kStaged[] = "staged", kNear[] = "near";

Words own_words(const std::string& door) {
  const char* apart = without_shared_memory() ? kApart : without_peer_access() ? kStaged : kNear;
  return {text_of(this_host()), door, apart, wished_algorithms()};
}

std::string text_of(const Words& words) {
  return words.host + '\n' + words.door + '\n' + words.apart + '\n' + words.algorithms;
}

Words words_of(std::string_view text) {
  const auto line = [&text] {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string own(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return own;
  };
  Words words;
  words.host = line();
  words.door = line();
  words.apart = line();
  words.algorithms = line();
  return words;
}

void check_alike(const std::vector<Words>& all) {
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r].algorithms == all[0].algorithms) continue;
    throw Refusal(ncclInvalidUsage, "NCCL_ALGO is '" + all[0].algorithms + "' on rank 0 and '" +
                                        all[r].algorithms + "' on rank " + std::to_string(r) +
                                        ": set it to one value for all ranks");
  }
}

// On several machines nobody is reached at a loopback.
void check_reachable(const std::vector<Words>& all) {
  std::set<std::string> hosts;
  for (const Words& words : all) hosts.insert(words.host);
  if (hosts.size() == 1) return;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (!all[r].door.starts_with("127.") && !all[r].door.starts_with("[::1]")) continue;
    throw Refusal(ncclInvalidUsage,
                  "the ranks are on several hosts, and rank " + std::to_string(r) +
                      " listens at the loopback of " + all[r].host +
                      ": set NCCL_SOCKET_IFNAME to an interface in the network of all hosts");
  }
}

bool any_says(const std::vector<Words>& all, std::string_view what) {
  return std::any_of(all.begin(), all.end(),
                     [what](const Words& words) { return words.apart == what; });
}

void tell(const ncclComm& comm) {
  if (debug_level() < Debug::info) return;
  std::fprintf(stderr, "collectives: NCCL INFO rank %d of %d: %s%s%s\n", comm.rank, comm.ranks,
               coll_transport(comm.engine.load()), comm.config.name.empty() ? "" : ", ",
               comm.config.name.c_str());
}

// A rank that waits for others, and why it gives up.
struct Waiting {
  const ncclComm* comm;
  const Look* look;
  Outcome why = {};
};

// A coll_stop_function.
int32_t is_over(void* context) {
  auto& waiting = *static_cast<Waiting*>(context);
  if (waiting.comm->stopping.load()) return 1;
  if (waiting.why.result == ncclSuccess) waiting.why = outcome_of(*waiting.look);
  return waiting.why.result == ncclSuccess ? 0 : 1;
}

// Of ranks that wait for each other one gives up first, and the rest because of it: this is what
// each may see, too, a moment later.
void look_for_first(Waiting& waiting) {
  constexpr double kNews = 1;  // seconds
  const Deadline news(kNews);
  while (is_over(&waiting) == 0 && !news.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (waiting.why.result != ncclSuccess) throw Refusal(waiting.why.result, waiting.why.text);
}

std::string name_of_job(const std::string& hex) {
  constexpr std::size_t kDigits = 32;
  return "nccl-" + hex.substr(0, kDigits);
}

// By the words of all, through memory or over TCP.
void join_all(ncclComm& comm, const MeetingPlace& place, Door& door, Met& met) {
  std::vector<Words> all;
  for (const std::string& of_rank : met.words()) all.push_back(words_of(of_rank));
  check_alike(all);
  comm.algorithms = algorithms_for(all[0].algorithms, comm.ranks);
  const bool apart = any_says(all, kApart);
  if (any_says(all, kStaged)) comm.mode = COLL_MODE_STAGED;
  const std::string job = job_of(place.secret);
  const bool one_host = std::all_of(
      all.begin(), all.end(), [&](const Words& words) { return words.host == all.front().host; });
  if (one_host && !apart) return join_memory(comm, job, [&met] { met.look(); });
  check_reachable(all);
  std::vector<std::string> doors;
  for (std::size_t r = 0; r < all.size(); ++r) {
    doors.push_back(all[r].door);
    comm.hosts.push_back(all[r].host + (apart ? " #" + std::to_string(r) : ""));
  }
  door.join(comm, job, place.secret, doors);
}

}  // namespace

void check_rank(int rank, int ranks) {
  if (ranks >= 1 && rank >= 0 && rank < ranks) return;
  throw Refusal(ncclInvalidArgument,
                "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                    ": there is at least one rank, and they are counted from 0");
}

std::string job_of(const Secret& secret) { return name_of_job(secret.derived("nccl job").hex()); }

std::string job_of(const std::string& parent, const std::string& which) {
  return name_of_job(Secret(sha256(bytes_in(parent + '/' + which))).hex());
}

void join_memory(ncclComm& comm, const std::string& job, const Look& look) {
  Waiting waiting{&comm, &look};
  coll_options options{};
  options.size = sizeof options;
  options.rank = comm.rank;
  options.ranks = comm.ranks;
  options.job = job.c_str();
  options.timeout = call_seconds();
  options.stop = is_over;  // nothing else ends the wait: the time-out is that of calls
  options.stop_context = &waiting;
  coll_comm* made = nullptr;
  const coll_status status = coll_init(&options, &made);
  if (result_of(status) == ncclRemoteError) look_for_first(waiting);
  expect(status);
  comm.job = job;
  comm.engine = made;
}

std::string own_address(const std::string& towards) {
  std::array<char, kRoom> text{};
  expect(coll_own_address(interfaces().c_str(), towards.c_str(), text.data(), text.size()));
  return text.data();
}

Door::Door(const std::string& address) {
  expect(coll_listener_open(address.c_str(), &listener_));
  std::array<char, kRoom> text{};
  if (coll_listener_text(listener_, text.data(), text.size()) >= text.size()) {
    throw Refusal(ncclInternalError, "the text of a listener is long");
  }
  text_ = text.data();
}

Door::~Door() { coll_listener_close(listener_); }

void Door::join(ncclComm& comm, const std::string& job, const Secret& secret,
                const std::vector<std::string>& doors) {
  std::vector<const char*> all_doors, all_hosts;
  for (const std::string& door : doors) all_doors.push_back(door.c_str());
  for (const std::string& host : comm.hosts) all_hosts.push_back(host.c_str());
  coll_wire_options options{};
  options.size = sizeof options;
  options.rank = comm.rank;
  options.ranks = comm.ranks;
  options.job = job.c_str();
  options.timeout = call_seconds();
  const Secret own = secret.derived("nccl wire");
  options.secret = own.bytes().data();
  options.doors = all_doors.data();
  options.hosts = all_hosts.data();
  options.spin = -1;
  coll_comm* made = nullptr;
  coll_listener* const listener = listener_;
  listener_ = nullptr;  // taken, whatever comes of it
  expect(coll_init_wire(&options, listener, &made));
  comm.job = job;
  comm.secret = secret;
  comm.engine = made;
}

void join(ncclComm& comm, const MeetingPlace& place) {
  look_for_driver();
  comm.device = current_device();
  comm.address = own_address(place.at.text());
  Door door(comm.address);
  Met met = meet(place, comm.rank, comm.ranks, text_of(own_words(door.text())), meeting_seconds(),
                 [&comm] { return comm.stopping.load(); });
  const Outcome outcome = outcome_of([&] { join_all(comm, place, door, met); });
  if (outcome.result == ncclSuccess) {
    met.joined();
    return tell(comm);
  }
  met.give_up(outcome.text);
  throw Refusal(outcome.result, outcome.text);
}

}  // namespace coll::nccl
