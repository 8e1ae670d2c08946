// SPDX-License-Identifier: Apache-2.0
#include "nccl/group.h"

#include <algorithm>
#include <cmath>
#include <latch>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "nccl/estimate.h"
#include "nccl/fusion.h"
#include "nccl/mover.h"
#include "nccl/place.h"

namespace coll::nccl {
namespace {

using Entry = std::variant<Operation, Work>;

// What one communicator is to do.
struct Batch {
  ncclComm* comm;
  std::vector<Entry> entries;
};

struct Group {
  std::vector<Batch> batches;
  std::vector<const ncclComm*> parents;  // of communicators that it is to make
  ncclResult_t failure = ncclSuccess;

  Batch& of(ncclComm& comm) {
    const auto found = std::find_if(batches.begin(), batches.end(),
                                    [&](const Batch& batch) { return batch.comm == &comm; });
    if (found != batches.end()) return *found;
    batches.push_back({&comm, {}});
    return batches.back();
  }
};

// Looked at in every call: without a constructor, so without a guard.
constinit thread_local int depth = 0;
thread_local Group group;

ncclResult_t fetch(ncclComm& comm, const Operation& operation, OnHost& host) {
  const bool waits = !is_on_gpu(operation) && operation.stream != nullptr;
  return settled(comm, waits ? wait_for_stream(comm, operation) : host.fetch());
}

ncclResult_t run_messages(ncclComm& comm, const std::vector<Operation>& messages) {
  coll_comm* const engine = comm.engine.load();
  std::vector<coll_request> requests(messages.size());
  std::vector<OnHost> hosts;
  hosts.reserve(messages.size());
  for (const Operation& message : messages) {
    const ncclResult_t result = fetch(comm, message, hosts.emplace_back(message, comm));
    if (result != ncclSuccess) return result;
  }
  // Receives first: what comes meanwhile goes where it belongs.
  for (const Form form : {Form::recv, Form::send}) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Operation& it = hosts[i].operation();
      if (it.form != form) continue;
      const auto dtype = static_cast<std::int32_t>(dtype_of(it));
      const coll_status status =
          form == Form::recv
              ? coll_irecv(engine, it.recv, it.count, dtype, it.root, 0, &requests[i])
              : coll_isend(engine, it.send, it.count, dtype, it.root, 0, &requests[i]);
      if (const ncclResult_t result = settled(comm, status); result != ncclSuccess) return result;
    }
  }
  ncclResult_t first = ncclSuccess;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    coll_message got{};
    const coll_status status = coll_wait(engine, requests[i], &got, 0);
    ncclResult_t result = messages[i].form == Form::recv
                              ? received(comm, messages[i], status, got.count)
                              : settled(comm, status);
    if (result == ncclSuccess) result = settled(comm, hosts[i].put_back());
    if (first == ncclSuccess) first = result;
    if (comm.state.load() != ncclSuccess && comm.state.load() != ncclInProgress) return first;
  }
  return first;
}

ncclResult_t run_operations(ncclComm& comm, const std::vector<Operation>& all) {
  std::vector<Operation> collectives, messages;
  for (const Operation& operation : all) {
    (operation.form == Form::collective ? collectives : messages).push_back(operation);
  }
  for (const auto& together : joined(collectives, comm)) {
    const ncclResult_t result = run_joined(comm, together);
    if (result != ncclSuccess) return result;
  }
  return messages.empty() ? ncclSuccess : run_messages(comm, messages);
}

ncclResult_t run_batch(Batch& batch) {
  ncclComm& comm = *batch.comm;
  std::vector<Operation> operations;
  for (Entry& entry : batch.entries) {
    if (const auto* operation = std::get_if<Operation>(&entry)) {
      operations.push_back(*operation);
      continue;
    }
    if (const ncclResult_t result = std::get<Work>(entry)(comm); result != ncclSuccess) {
      return result;
    }
  }
  return operations.empty() ? ncclSuccess : run_operations(comm, operations);
}

// `among_several`: of one thread, which would wait for ever for one that has failed.
ncclResult_t run_entered(Batch& batch, bool among_several) {
  ncclComm& comm = *batch.comm;
  const Entered entered(comm);  // to the last line: who aborts the communicator frees it then
  ncclResult_t result = ncclSuccess;
  const Outcome outcome = outcome_of([&] { result = run_batch(batch); });
  if (outcome.result != ncclSuccess) result = comm.fail(outcome.result, outcome.text, false);
  coll_comm* const engine = comm.engine.load();
  if (among_several && result != ncclSuccess && engine != nullptr) {
    coll_abort(engine, comm.sentence().c_str());
  }
  keep_moving(comm);
  return result;
}

// Never throws: of a worker.
ncclResult_t run_to_the_end(Batch& batch, bool among_several) noexcept {
  ncclResult_t result = ncclSuccess;
  const Outcome outcome = outcome_of([&] { result = run_entered(batch, among_several); });
  batch.entries.clear();  // who waits for what an entry has not done sees that it will not be
  if (outcome.result == ncclSuccess) return result;
  return batch.comm->fail(outcome.result, outcome.text, false);
}

// The worker of a communicator that does not block does it; ncclCommGetAsyncError() tells the end.
void leave_to_worker(Batch batch) {
  ncclComm& comm = *batch.comm;
  comm.state = ncclInProgress;
  comm.worker.post([own = std::make_shared<Batch>(std::move(batch))] {
    ncclComm& its = *own->comm;
    const ncclResult_t result = run_to_the_end(*own, false);
    ncclResult_t still = ncclInProgress, none = ncclSuccess;
    if (its.state.load() == still) its.passing.compare_exchange_strong(none, result);
    its.state.compare_exchange_strong(still, ncclSuccess);  // unless a failure was kept for good
  });
}

ncclResult_t run_all(std::vector<Batch> batches) {
  bool in_progress = false;
  std::vector<Batch*> blocking;
  for (Batch& batch : batches) {
    if (batch.comm->config.blocking) {
      blocking.push_back(&batch);
      continue;
    }
    in_progress = true;
    leave_to_worker(std::move(batch));
  }
  std::vector<ncclResult_t> results(blocking.size(), ncclSuccess);
  // Not on their workers: a communicator may be aborted, and be gone, when it has done its part.
  std::latch all_done(static_cast<std::ptrdiff_t>(blocking.size()));
  const auto run_one = [&](std::size_t i) {
    results[i] = run_to_the_end(*blocking[i], blocking.size() > 1);
    all_done.count_down();
  };
  for (std::size_t i = 1; i < blocking.size(); ++i) {
    blocking[i]->comm->worker.post([&run_one, i] { run_one(i); });
  }
  if (!blocking.empty()) run_one(0);
  all_done.wait();
  for (const ncclResult_t result : results) {
    if (result != ncclSuccess) return result;
  }
  return in_progress ? ncclInProgress : ncclSuccess;
}

ncclResult_t submit_entry(ncclComm& comm, Entry entry) {
  if (depth > 0) {
    group.of(comm).entries.push_back(std::move(entry));
    return ncclSuccess;
  }
  std::vector<Batch> alone(1);
  alone.front().comm = &comm;
  alone.front().entries.push_back(std::move(entry));
  return run_all(std::move(alone));
}

// The group that ends here; none where another one goes on around it.
std::optional<Group> closed_group() {
  if (depth == 0) {
    throw Refusal(ncclInvalidUsage, "ncclGroupEnd() without an ncclGroupStart() before it");
  }
  if (--depth > 0) return std::nullopt;
  return std::exchange(group, Group());
}

double predicted_seconds(const Batch& batch) {
  std::vector<Operation> operations;
  for (const Entry& entry : batch.entries) {
    const auto* operation = std::get_if<Operation>(&entry);
    if (operation == nullptr) return std::numeric_limits<double>::quiet_NaN();
    operations.push_back(*operation);
  }
  return predicted_seconds(*batch.comm, operations);
}

}  // namespace

ncclResult_t submit(ncclComm& comm, const Operation& operation) {
  if (depth == 0 && comm.config.blocking) [[likely]] {
    const Entered entered(comm);
    return run(comm, operation);
  }
  return submit_entry(comm, operation);
}

ncclResult_t submit(ncclComm& comm, Work work) { return submit_entry(comm, std::move(work)); }

ncclResult_t submit_new(std::unique_ptr<ncclComm> born, ncclComm_t* place,
                        std::function<void(ncclComm&)> connect) {
  const ncclResult_t result = submit(*born, [connect = std::move(connect)](ncclComm& child) {
    const Outcome outcome = outcome_of([&] { connect(child); });
    if (outcome.result == ncclSuccess) return ncclSuccess;
    return child.fail(outcome.result, outcome.text, true);
  });
  if (result == ncclSuccess || result == ncclInProgress) *place = born.release();
  return result;
}

ncclResult_t noted(ncclResult_t result) noexcept {
  if (depth == 0 || result == ncclSuccess || result == ncclInProgress) return result;
  if (group.failure == ncclSuccess) group.failure = result;
  return result;
}

bool is_in_group(const ncclComm& comm) {
  const auto uses = [&comm](const Batch& batch) { return batch.comm == &comm; };
  const auto& parents = group.parents;
  return std::any_of(group.batches.begin(), group.batches.end(), uses) ||
         std::find(parents.begin(), parents.end(), &comm) != parents.end();
}

void need_in_group(const ncclComm& parent) {
  if (depth > 0) group.parents.push_back(&parent);
}

void start_group() { ++depth; }

ncclResult_t end_group() {
  const std::optional<Group> own = closed_group();
  if (!own) return ncclSuccess;
  return own->failure == ncclSuccess ? run_all(own->batches) : own->failure;
}

ncclResult_t simulate_group(double& seconds) {
  seconds = std::numeric_limits<double>::quiet_NaN();
  const std::optional<Group> own = closed_group();
  if (!own) return ncclSuccess;
  if (own->failure != ncclSuccess) return own->failure;
  // Communicators run at the same time, each in its thread.
  double longest = 0;
  for (const Batch& batch : own->batches) {
    const double its = predicted_seconds(batch);
    if (std::isnan(its)) return ncclSuccess;
    longest = std::max(longest, its);
  }
  seconds = longest;
  return ncclSuccess;
}

}  // namespace coll::nccl
