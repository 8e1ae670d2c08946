// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/environment.h"

#include <charconv>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/quoted.h"
#include "transport/faults.h"
#include "transport/striped_stream.h"

namespace coll {
namespace {

constexpr Variable kVariables[] = {
    {"COLLECTIVES_RANK", "integer", "0", "This process's rank, 0 to COLLECTIVES_SIZE - 1."},
    {"COLLECTIVES_SIZE", "integer", "1", "How many ranks the job has."},
    {"COLLECTIVES_JOB", "text", "default",
     "Name of the job, equal on all ranks; two jobs of one user at one time need two names."},
    {"COLLECTIVES_ATTEMPT", "integer", "0",
     "Counts the restarts of a job, so that ranks left over from an earlier one are refused."},
    {"COLLECTIVES_TIMEOUT", "seconds", "300",
     "How long to wait for the other ranks, at the start and in each call."},
    {"COLLECTIVES_INTERFACE", "names", "",
     "The interface at which other machines reach this rank, as eth0; of eth0,eth1 the first that "
     "is "
     "there; ^docker0: not that one. Without it the one that leads to MASTER_ADDR, or to the "
     "default "
     "route."},
    {"COLLECTIVES_PLACEMENT", "auto, near or far", "auto",
     "Whether to take cores to share a cache: large calls run by it. Rank 0's counts; auto: it "
     "tries what is faster."},
    {"COLLECTIVES_RENDEZVOUS", "path", "",
     "A folder that all ranks reach and only their user: they meet there, where the launcher has "
     "no key-value store."},
    {"COLLECTIVES_SECRET_FILE", "path", "",
     "A file with 64 hex digits that only this user can read, the same on all hosts: by it ranks "
     "prove that they belong together. A script without a launcher needs it between hosts."},
    {"COLLECTIVES_SILENCE", "seconds", "15",
     "After how long another machine that does not answer is taken for dead, 2 to 3600."},
    {"COLLECTIVES_SEND_BUFFER", "bytes", "524288",
     "How much the kernel may hold of what was sent to a rank of another machine by TCP; 0: as "
     "much "
     "as it likes, for networks whose bandwidth times delay is more."},
    {"COLLECTIVES_STREAMS", "integer", "1",
     "How many TCP connections carry collectives between two ranks of different machines, and "
     "messages each way, 1 to 16, the same on all ranks."},
    {"COLLECTIVES_MASTER", "address:port", "",
     "Where rank 0 meets the others: what `collrun --hosts` sets for its ranks."},
    {"COLLECTIVES_FAREWELL", "pipe", "",
     "Where a rank tells collrun that it failed because another had: what collrun sets."},
    {"COLLECTIVES_SSH", "command", "ssh",
     "What `collrun --hosts` reaches a host by; `HOST COMMAND` are appended."},
    {"COLLECTIVES_TRANSPORT", "auto or ucx", "auto",
     "How collectives go, on all ranks: by memory within a machine and by TCP between machines, or "
     "by UCX."},
    {"COLLECTIVES_TRUSTED", "networks", "",
     "Networks in which everybody is trusted, as 10.1.0.0/16, fd00::/8, on all ranks: ranks of "
     "several machines that meet in them take UCX where all have it; COLLECTIVES_TRANSPORT=ucx "
     "takes it nowhere else."},
    {"COLLECTIVES_ALGORITHM", "names", "",
     "What calls run that leave it open, on all ranks, as allreduce:ring,broadcast:chain: "
     "`collbench "
     "list` shows what there is. allreduce:nccl and the like are for arrays on GPUs only, and may "
     "stand beside another one."},
    {"COLLECTIVES_TUNE", "seconds, kept, model or refine", "",
     "How long init() may race the plans that calls could run, on all ranks, where no table of an "
     "earlier race is found for such a machine; kept: it only looks for one, as it does under "
     "collrun on one machine where one is kept for as many ranks; model: what the cost model "
     "predicts to be the fastest, after a probe; refine: the program's own calls take turns with "
     "other plans, until it is clear which are faster."},
    {"COLLECTIVES_CACHE", "path or off", "",
     "Where tables of races are kept, by rank 0; else collectives in XDG_CACHE_HOME or ~/.cache."},
    {"COLLECTIVES_UCX", "path", "",
     "Where libucp.so.0 is, or its folder; without it the PyPI package libucx-cu12 or libucx-cu13, "
     "or where the loader finds it."},
    {"COLLECTIVES_CUDA_LIBRARY", "path", "",
     "Where the library of kernels for GPUs is; without it libcollectives_cuda.so beside this "
     "one."},
    {"COLLECTIVES_NCCL", "path or off", "",
     "Where the libnccl.so.2 is that collectives.nccl opens, or its folder; without it one that is "
     "loaded already, the PyPI package nvidia-nccl-cu13 or the like, or where the loader finds "
     "it. off, on any rank: NCCL is no candidate for arrays on GPUs."},
    {"COLLECTIVES_FAULT", "<call>:<n>:<errno name>[:always]", "",
     "For tests: makes the n-th system call of that name (or 'any') fail, once or from then on."},
};
enum Index {
  kRank,
  kSize,
  kJob,
  kAttempt,
  kTimeout,
  kInterface,
  kPlacement,
  kRendezvous,
  kSecretFile,
  kSilence,
  kSendBuffer,
  kStreams,
  kMaster,
  kFarewellPipe,
  kSsh,
  kTransport,
  kTrusted,
  kAlgorithm,
  kTune,
  kCache,
  kUcx,
  kCudaLibrary,
  kNccl,
  kFault,
  kIndexEnd
};
static_assert(std::size(kVariables) == kIndexEnd);

// The value, or none where it is not set.
std::optional<std::string> value_of(Index index) {
  const char* value = std::getenv(kVariables[index].name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Error malformed(Index index, const std::string& value, const std::string& expected) {
  return Error(Status::invalid_argument, std::string(kVariables[index].name) + " is " +
                                             quoted_value(value) + "; it must be " + expected);
}

template <class Number>
std::optional<Number> parse(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end ? std::optional(number) : std::nullopt;
}

// The whole number of a variable, within bounds.
int number_of(Index index, const std::string& value, int least,
              int most = std::numeric_limits<int>::max()) {
  const std::optional<int> number = parse<int>(value);
  if (!number || *number < least || *number > most) {
    throw malformed(index, value,
                    "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return *number;
}

void read_place(Identity& identity) {
  const std::optional<std::string> rank = value_of(kRank), size = value_of(kSize);
  if (!rank && !size) return;
  if (!rank || !size) {
    const Index missing = rank ? kSize : kRank, present = rank ? kRank : kSize;
    throw Error(Status::invalid_argument, std::string(kVariables[present].name) + " is " +
                                              quoted_value(*(rank ? rank : size)) + ", but " +
                                              kVariables[missing].name +
                                              " is not set: set both or neither");
  }
  identity.ranks = number_of(kSize, *size, 1);
  identity.rank = number_of(kRank, *rank, 0);
  if (identity.rank >= identity.ranks) {
    throw malformed(kRank, *rank, "less than COLLECTIVES_SIZE, which is " + quoted_value(*size));
  }
}

}  // namespace

std::span<const Variable> environment_variables() noexcept { return kVariables; }

Environment read_environment() {
  arm_faults_from_environment();
  Environment environment;
  read_place(environment.identity);
  if (const auto job = value_of(kJob)) {
    if (job->empty()) throw malformed(kJob, *job, "a name, or not set");
    environment.identity.job = *job;
  }
  if (const auto attempt = value_of(kAttempt)) {
    environment.identity.attempt = number_of(kAttempt, *attempt, 0);
  }
  const std::string timeout = value_of(kTimeout).value_or(kVariables[kTimeout].fallback);
  const std::optional<double> seconds = parse<double>(timeout);
  if (!seconds || !(*seconds > 0) || *seconds > 1e9) {
    throw malformed(kTimeout, timeout, "seconds, more than 0 and at most 1e9");
  }
  environment.timeout_s = *seconds;
  // Of jobs on several machines; what makes no sense is refused in any.
  streams_of_pair();
  send_buffer_bytes();
  return environment;
}

std::optional<Placement> assumed_placement() {
  const std::string value = value_of(kPlacement).value_or("auto");
  if (value == "near") return Placement::near;
  if (value == "far") return Placement::far;
  if (value != "auto") throw malformed(kPlacement, value, "auto, near or far");
  return std::nullopt;
}

std::string forced_algorithms() { return value_of(kAlgorithm).value_or(""); }

int send_buffer_bytes() {
  const std::string value = value_of(kSendBuffer).value_or(kVariables[kSendBuffer].fallback);
  return number_of(kSendBuffer, value, 0);
}

int streams_of_pair() {
  const std::string value = value_of(kStreams).value_or(kVariables[kStreams].fallback);
  return number_of(kStreams, value, 1, static_cast<int>(StripedStream::kMostLanes));
}

void arm_faults_from_environment() {
  // Not std::call_once: a malformed value is to throw, and to throw again at the next caller.
  static std::mutex mutex;
  static bool done = false;
  const std::lock_guard lock(mutex);
  if (done) return;
  if (const auto fault = value_of(kFault)) faults::arm_from(*fault);
  done = true;
}

}  // namespace coll
