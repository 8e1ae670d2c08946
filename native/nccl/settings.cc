// SPDX-License-Identifier: Apache-2.0
#include "nccl/settings.h"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/quoted.h"
#include "nccl/result.h"
#include "transport/tcp_endpoint.h"

extern char** environ;

namespace coll::nccl {
namespace {

constexpr double kMeetingS = 1800;              // ranks load models before their first call
constexpr double kForEver = 365.0 * 24 * 3600;  // NCCL waits until the program gives up

constexpr std::array<std::string_view, 5> kKnown = {"NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "NCCL_ALGO",
                                                    "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"};

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_on(const char* name) {
  const std::string value = value_of(name);
  return !value.empty() && value != "0";
}

std::vector<std::string> parts_of(std::string_view text, char between) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(between), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool equal_but_for_case(const std::string& a, const char* b) {
  return ::strcasecmp(a.c_str(), b) == 0;
}

std::string unused_variables() {
  std::string names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("NCCL_")) continue;
    if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

Debug read_debug_level() {
  const std::string value = value_of("NCCL_DEBUG");
  if (value.empty()) return Debug::none;
  const Debug level = equal_but_for_case(value, "VERSION") ? Debug::version
                      : equal_but_for_case(value, "WARN")  ? Debug::warn
                                                           : Debug::info;
  std::fprintf(stderr, "collectives: NCCL version %d.%d.%d, by pycollectives %s\n", NCCL_MAJOR,
               NCCL_MINOR, NCCL_PATCH, coll_version());
  const std::string unused = unused_variables();
  if (level >= Debug::warn && !unused.empty()) {
    std::fprintf(stderr, "collectives: NCCL WARN without meaning here: %s\n", unused.c_str());
  }
  return level;
}

// "=eth0": that one; "eth": all that begin so.
bool fits(const std::string& name, const std::string& wish, bool exact) {
  return exact ? name == wish : name.starts_with(wish);
}

// The names of interfaces that NCCL_SOCKET_IFNAME speaks of, with commas between.
std::string named(std::string_view wish, bool exact) {
  std::string names;
  const std::vector<NetworkInterface> all = network_interfaces();
  for (const std::string& part : parts_of(wish, ',')) {
    for (const NetworkInterface& interface : all) {
      if (fits(interface.name, part, exact)) names += (names.empty() ? "" : ",") + interface.name;
    }
  }
  return names;
}

double seconds_or(double fallback) {
  const std::string value = value_of("COLLECTIVES_TIMEOUT");
  if (value.empty()) return fallback;
  double seconds = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error != std::errc() || end != value.data() + value.size() || !(seconds > 0)) {
    throw Refusal(ncclInvalidArgument, "COLLECTIVES_TIMEOUT is " + quoted_value(value) +
                                           "; it must be a number of seconds above 0");
  }
  return std::min(seconds, kForEver);
}

struct KnownAlgorithm {
  const char* nccl;
  const char* ours;  // null: what it needs is not here
};
constexpr std::array<KnownAlgorithm, 7> kAlgorithms = {{{"ring", "ring"},
                                                        {"tree", "double_tree"},
                                                        {"collnetdirect", nullptr},
                                                        {"collnetchain", nullptr},
                                                        {"nvls", nullptr},
                                                        {"nvlstree", nullptr},
                                                        {"pat", "pat"}}};

struct NamedKind {
  const char* nccl;
  coll_kind kind;
};
constexpr std::array<NamedKind, 5> kKinds = {{{"allreduce", COLL_ALLREDUCE},
                                              {"reduce", COLL_REDUCE},
                                              {"broadcast", COLL_BROADCAST},
                                              {"allgather", COLL_ALLGATHER},
                                              {"reducescatter", COLL_REDUCE_SCATTER}}};

const KnownAlgorithm& known_algorithm(const std::string& name, const std::string& wished) {
  for (const KnownAlgorithm& known : kAlgorithms) {
    if (equal_but_for_case(name, known.nccl)) return known;
  }
  throw Refusal(ncclInvalidUsage, "NCCL_ALGO is " + quoted_value(wished) + ": " +
                                      quoted_value(name) + " is none of NCCL's algorithms");
}

// The first of the names that is here for this kind and number of ranks; -1: none.
std::int32_t first_here(coll_kind kind, const std::string& names, const std::string& wished,
                        int ranks) {
  for (const std::string& name : parts_of(names, ',')) {
    const KnownAlgorithm& known = known_algorithm(name, wished);
    const std::int32_t found = known.ours != nullptr ? coll_algorithm_find(kind, known.ours) : -1;
    if (found >= 0 && coll_algorithm_fits(found, ranks) != 0) return found;
  }
  return -1;
}

// With ^ before them: what may not run. The choice stays ours then, and the names must be known.
void take(Algorithms& algorithms, const NamedKind& named, const std::string& names,
          const std::string& wished, int ranks) {
  const bool none_of = names.starts_with('^');
  const std::int32_t found =
      first_here(named.kind, none_of ? names.substr(1) : names, wished, ranks);
  algorithms[static_cast<std::size_t>(named.kind)] = none_of ? -1 : found;
}

}  // namespace

Debug debug_level() noexcept {
  static const Debug level = [] {
    Debug read = Debug::none;
    outcome_of([&] { read = read_debug_level(); });  // without memory for a list: none
    return read;
  }();
  return level;
}

std::string interfaces() {
  const std::string wish = value_of("NCCL_SOCKET_IFNAME");
  if (wish.empty()) {
    const std::string own = value_of("COLLECTIVES_INTERFACE");
    return own.empty() ? "^docker0,virbr0" : own;
  }
  const bool none_of = wish.front() == '^';
  const std::string_view rest = std::string_view(wish).substr(none_of ? 1 : 0);
  const bool exact = rest.starts_with('=');
  std::string names = named(exact ? rest.substr(1) : rest, exact);
  if (none_of) return names.empty() ? "^docker0,virbr0" : "^" + names;
  if (!names.empty()) return names;
  throw Refusal(ncclInvalidUsage, "NCCL_SOCKET_IFNAME is " + quoted_value(wish) +
                                      ", and no interface that is up and has an address is called "
                                      "so");
}

bool without_shared_memory() noexcept { return is_on("NCCL_SHM_DISABLE"); }
bool without_peer_access() noexcept { return is_on("NCCL_P2P_DISABLE"); }

std::string wished_algorithms() { return value_of("NCCL_ALGO"); }

Algorithms algorithms_for(const std::string& wished, int ranks) {
  Algorithms algorithms;
  algorithms.fill(-1);
  for (const std::string& part : parts_of(wished, ';')) {
    const std::size_t colon = part.find(':');
    for (const NamedKind& named : kKinds) {
      if (colon != std::string::npos && !equal_but_for_case(part.substr(0, colon), named.nccl)) {
        continue;
      }
      take(algorithms, named, colon == std::string::npos ? part : part.substr(colon + 1), wished,
           ranks);
    }
  }
  return algorithms;
}

double meeting_seconds() { return seconds_or(kMeetingS); }
double call_seconds() { return seconds_or(kForEver); }

}  // namespace coll::nccl
