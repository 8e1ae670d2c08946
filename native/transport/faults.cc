// SPDX-License-Identifier: Apache-2.0
#include "transport/faults.h"

#include <cerrno>
#include <charconv>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/quoted.h"
#include "base/system_error.h"

namespace coll {
namespace {

// In the order of SystemCall. poll and futex_wait hand EINTR on, because their callers must look at
// the signal; close() must not be called twice: Linux has closed the descriptor when it says EINTR.
constexpr CallTraits kTraits[] = {
    {"memfd_create", false, false},
    {"ftruncate", true, true},
    {"fallocate", true, true},
    {"fcntl", false, false},
    {"fstat", false, false},
    {"mmap", false, false},
    {"munmap", false, false},
    {"madvise", false, false},
    {"socket", false, false},
    {"bind", false, false},
    {"listen", false, false},
    {"accept4", true, true},
    {"connect", true, true},
    {"sendmsg", true, true},
    {"recvmsg", true, true},
    {"poll", true, false},
    {"getsockopt", false, false},
    {"setsockopt", false, false},
    {"getsockname", false, false},
    {"getpeername", false, false},
    {"shutdown", false, false},
    {"getifaddrs", false, false},
    {"getrandom", true, true},
    {"open", true, true},
    {"read", true, true},
    {"close", true, false},
    {"opendir", false, false},
    {"kill", false, false},
    {"futex_wait", true, false},
    {"futex_wake", false, false},
    {"membarrier", false, false},
    {"get_robust_list", false, false},
    {"process_vm_readv", false, false},
    {"any", false, false},
};
static_assert(std::size(kTraits) == static_cast<std::size_t>(SystemCall::any) + 1);

enum class Manner : std::uint8_t { one, interrupting, disturbing };

struct Plan {
  faults::Fault fault;
  Manner manner = Manner::one;
  std::uint64_t seed = 0;
  std::atomic<std::uint64_t> seen{0};
  std::atomic<std::uint64_t> fired{0};
};
Plan plan;

void start(const faults::Fault& fault, Manner manner, std::uint64_t seed) {
  faults::clear();
  plan.fault = fault;
  plan.manner = manner;
  plan.seed = seed;
  plan.seen.store(0, std::memory_order_relaxed);
  plan.fired.store(0, std::memory_order_relaxed);
  faults::armed.store(true, std::memory_order_release);
}

// splitmix64: a good hash of a counter.
std::uint64_t scramble(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

bool hits(const faults::Fault& fault, std::uint64_t count) noexcept {
  return fault.always ? count >= fault.nth : count == fault.nth;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Error malformed(std::string_view text, const std::string& why) {
  return Error(Status::invalid_argument,
               "COLLECTIVES_FAULT is " + quoted_value(text) + ": " + why +
                   "; expected <call>:<n>:<errno name>[:always], for instance mmap:2:ENOMEM");
}

// SystemCall::any + 1 entries; the index is the call, -1 an unknown name.
int find_call(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(kTraits); ++i) {
    if (kTraits[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

const CallTraits& traits_of(SystemCall call) noexcept {
  return kTraits[static_cast<std::size_t>(call)];
}

namespace faults {

std::atomic<bool> armed{false};

void arm(const Fault& fault) {
  if (fault.always && fault.error == EINTR) {
    throw Error(
        Status::invalid_argument,
        "a call that is interrupted for ever would be retried for ever; leave out 'always'");
  }
  start(fault, Manner::one, 0);
}

void interrupt_at_random(std::uint64_t seed) { start({}, Manner::interrupting, seed); }

void disturb_at_random(std::uint64_t seed) { start({}, Manner::disturbing, seed); }

void clear() noexcept { armed.store(false, std::memory_order_release); }

std::uint64_t fired() noexcept { return plan.fired.load(std::memory_order_relaxed); }

int planned(SystemCall call) noexcept {
  const bool random = plan.manner != Manner::one;
  const bool counts = random ? traits_of(call).interruptible
                             : plan.fault.call == SystemCall::any || plan.fault.call == call;
  if (!counts) return 0;
  const std::uint64_t count = plan.seen.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t dice = random ? scramble(plan.seed + count) % 4 : 0;
  const bool moves = call == SystemCall::sendmsg || call == SystemCall::recvmsg;
  const bool blocks = dice == 1 && moves && plan.manner == Manner::disturbing;
  if (random ? dice != 0 && !blocks : !hits(plan.fault, count)) return 0;
  plan.fired.fetch_add(1, std::memory_order_relaxed);
  return blocks ? EAGAIN : random ? EINTR : plan.fault.error;
}

std::size_t planned_bytes() noexcept {
  if (plan.manner != Manner::disturbing) return kAll;
  const std::uint64_t count = plan.seen.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t dice = scramble(plan.seed + count);
  if (dice % 2 == 0) return kAll;
  plan.fired.fetch_add(1, std::memory_order_relaxed);
  // Any order of magnitude is as likely as another: ends inside a header, inside a payload.
  const std::uint64_t magnitude = (dice >> 1) % 20;
  return 1 + ((dice >> 8) & ((std::uint64_t{1} << magnitude) - 1));
}

void arm_from(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 3 || parts.size() > 4) throw malformed(text, "it has not three or four parts");
  const int call = find_call(parts[0]);
  if (call < 0) throw malformed(text, "there is no call '" + std::string(parts[0]) + "'");
  Fault fault;
  fault.call = static_cast<SystemCall>(call);
  const char* end = parts[1].data() + parts[1].size();
  const auto [stop, error] = std::from_chars(parts[1].data(), end, fault.nth);
  if (error != std::errc{} || stop != end || fault.nth == 0) {
    throw malformed(text, "'" + std::string(parts[1]) + "' is not a positive number");
  }
  fault.error = errno_from_name(parts[2]);
  if (fault.error == 0) throw malformed(text, "no errno '" + std::string(parts[2]) + "'");
  fault.always = parts.size() == 4;
  if (fault.always && parts[3] != "always") {
    throw malformed(text, "the last part can only be 'always'");
  }
  if (fault.always && fault.error == EINTR) {
    throw malformed(text, "a call interrupted for ever would be retried for ever");
  }
  arm(fault);
}

}  // namespace faults
}  // namespace coll
