// SPDX-License-Identifier: Apache-2.0
// What an ncclComm_t points to: one rank's communicator of the C interface, and what the ABI adds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/secret.h"
#include "nccl/config.h"
#include "nccl/one_sided.h"
#include "nccl/receipts.h"
#include "nccl/result.h"
#include "nccl/settings.h"
#include "nccl/values.h"
#include "nccl/worker.h"

namespace coll::nccl {

// What ncclRedOpCreatePreMulSum() makes.
struct Factor {
  Dtype dtype = Dtype::int8;
  Element value = {};             // where `read_at` is null
  const void* read_at = nullptr;  // memory that is read when a call runs
};

// What the program has made of it. All but `open` take no collectives any more.
enum class Standing : std::uint8_t { open, suspended, revoked, finalized };

// Whose turn it is to call its engine.
enum class Holder : std::uint8_t { nobody, program, mover };

}  // namespace coll::nccl

struct ncclComm {
  ncclComm(int its_rank, int of_ranks, coll::nccl::Config its_config);
  ncclComm(const ncclComm&) = delete;
  ncclComm& operator=(const ncclComm&) = delete;
  ~ncclComm();  // after what its worker does

  static constexpr std::uint64_t kAlive = 0x6d6d6f436c636370ULL;

  std::uint64_t alive = kAlive;  // what an ncclComm_t must point to
  int rank, ranks;
  int device = -1;  // the GPU, -1: none
  coll::nccl::Config config;
  std::atomic<coll_comm*> engine{nullptr};  // null until the ranks have met
  std::atomic<std::int64_t> lost_at{0};     // when one that asked saw first that a rank is lost
  // What ncclCommGetAsyncError() says; after a failure nothing can be done any more.
  std::atomic<ncclResult_t> state{ncclSuccess};
  // What it says once where that is ncclSuccess: the first failure, which nobody has asked for yet,
  // of a call that was left to the worker and ended itself alone.
  std::atomic<ncclResult_t> passing{ncclSuccess};
  std::atomic<coll::nccl::Holder> holder{coll::nccl::Holder::nobody};
  std::atomic<bool> stopping{false};  // it is to give up
  coll::nccl::Standing standing = coll::nccl::Standing::open;
  bool renewed = false;  // revoked, and has an engine that was made since

  std::string job;                          // what these ranks call themselves, which no others do
  std::map<std::string, int> shrunk;        // how often it was, by who was left out
  std::vector<std::string> hosts;           // by rank, where they do not share memory
  std::optional<coll::Secret> secret = {};  // that they have then
  std::string address;                      // at which others reach this rank
  std::int32_t mode = COLL_MODE_AUTO;
  coll::nccl::Algorithms algorithms;

  std::vector<std::optional<coll::nccl::Factor>> factors;  // by operation - ncclNumOps
  std::vector<std::byte> scratch;
  std::string words;  // of groups, kept as it grows
  coll::nccl::OneSided one_sided;
  coll::nccl::Receipts receipts;
  std::optional<ncclUniqueId> growth = {};  // that ncclCommGetUniqueId() has made, not used yet
  std::atomic<int> lent{0};                 // to how many others that are being made of it
  std::atomic<bool> standing_still{false};  // its mover is to end
  coll::nccl::Worker worker, mover;

  // Keeps the sentence, and for good the result.
  ncclResult_t fail(ncclResult_t result, const std::string& text, bool for_good);
  std::string sentence();

 private:
  std::mutex text_mutex_;
  std::string text_;
};

namespace coll::nccl {

// Throws Refusal for what is no communicator.
ncclComm& alive(ncclComm_t comm);
// The same where it is joined, has not failed and is in no call; and `ready`: takes collectives.
ncclComm& settled_down(ncclComm_t comm);
ncclComm& ready(ncclComm_t comm);

// While a thread is in a call of the communicator. Throws Refusal where another one is.
class Entered {
 public:
  explicit Entered(ncclComm& comm);
  ~Entered() { comm_.holder.store(Holder::nobody, std::memory_order_release); }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  ncclComm& comm_;
};

// While another communicator is made of this one, which is not freed before.
class Lent {
 public:
  explicit Lent(ncclComm& comm) : comm_(comm) { comm_.lent.fetch_add(1); }
  ~Lent() { comm_.lent.fetch_sub(1); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  ncclComm& comm_;
};

// What came of a call of the C interface. A failure is kept, for good where it ends the
// communicator.
ncclResult_t settled(ncclComm& comm, coll_status status);

// What ncclCommGetAsyncError() says: also that a rank is lost, while no call is made.
ncclResult_t state_of(ncclComm& comm);

// Frees it. `by_force`: a call in flight ends first, on all ranks.
void destroy(ncclComm* comm, bool by_force);

}  // namespace coll::nccl
