// SPDX-License-Identifier: Apache-2.0
// Sums at indices that stay the same, behind the C interface.
#include <memory>
#include <type_traits>
#include <utility>

#include "abi/handle.h"
#include "collectives_sparse.h"
#include "communicator/plan_making.h"
#include "communicator/plan_reduce.h"

struct coll_sparse_plan {
  coll::IndexPlan plan;
  std::uint64_t number;
  coll::PlanWay way;
  std::uint64_t bytes = 0, messages = 0;
  std::int32_t rounds = 0;
};

namespace coll {
namespace {

PlanWish wish_of(const coll_sparse_indices& indices) {
  if (indices.size != sizeof indices) {
    throw Error(Status::invalid_argument,
                "coll_sparse_indices of another size: set `size` to sizeof(coll_sparse_indices)");
  }
  if (!(indices.timeout >= 0) || indices.layers < 0) {
    throw Error(Status::invalid_argument, "sparse_plan: a negative time-out or number of layers");
  }
  PlanWish wish{.length = indices.length,
                .index_dtype = static_cast<Dtype>(indices.index_dtype),
                .given = indices.given,
                .given_count = indices.given_count,
                .asked = indices.asked,
                .asked_count = indices.asked_count,
                .timeout = indices.timeout};
  if (indices.degrees != nullptr) {
    wish.degrees.assign(indices.degrees, indices.degrees + indices.layers);
  }
  return wish;
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_sparse_plan_make(coll_comm* comm, const coll_sparse_indices* indices,
                                  coll_sparse_plan** plan) {
  return guarded([&] {
    coll::required(plan, "plan") = nullptr;
    const coll::PlanWish wish = coll::wish_of(coll::required(indices, "indices"));
    return coll::on_either(comm, [&]<class C>(C& communicator) {
      constexpr bool memory = std::is_same_v<C, coll::Communicator>;
      auto steps = std::make_unique<coll::StepsOn<coll::PlanMaking, C>>(
          communicator, memory ? coll::Between::cores : coll::Between::machines, wish);
      coll::PlanMaking* own = steps.get();
      return coll::take_steps(*comm, std::move(steps), [own, plan] {
        *plan = new coll_sparse_plan{own->take(), own->number(), own->way()};
      });
    });
  });
}

coll_status coll_sparse_plan_reduce(coll_comm* comm, coll_sparse_plan* plan, const void* values,
                                    void* sums, int32_t dtype, int32_t op, double timeout) {
  return guarded([&] {
    coll_sparse_plan& its = coll::required(plan, "plan");
    if (!(timeout >= 0)) {
      throw coll::Error(Status::invalid_argument, "plan.reduce: a negative time-out");
    }
    const coll::PlanCall call{.plan = &its.plan,
                              .number = its.number,
                              .values = values,
                              .sums = sums,
                              .dtype = static_cast<coll::Dtype>(dtype),
                              .op = static_cast<coll::Reduction>(op),
                              .timeout = timeout};
    return coll::on_either(comm, [&]<class C>(C& communicator) {
      auto steps = std::make_unique<coll::StepsOn<coll::PlanReduce, C>>(communicator, call);
      coll::PlanReduce* own = steps.get();
      return coll::take_steps(*comm, std::move(steps), [own, plan] {
        plan->bytes = own->bytes();
        plan->messages = own->messages();
        plan->rounds = static_cast<std::int32_t>(plan->plan.rounds().size());
      });
    });
  });
}

coll_status coll_sparse_plan_sent(const coll_sparse_plan* plan, uint64_t* bytes, uint64_t* messages,
                                  int32_t* rounds) {
  return guarded([&] {
    const coll_sparse_plan& its = coll::required(plan, "plan");
    coll::required(bytes, "bytes") = its.bytes;
    coll::required(messages, "messages") = its.messages;
    coll::required(rounds, "rounds") = its.rounds;
    return Status::ok;
  });
}

coll_status coll_sparse_plan_how(const coll_sparse_plan* plan, int32_t* way) {
  return guarded([&] {
    coll::required(way, "way") = static_cast<std::int32_t>(coll::required(plan, "plan").way);
    return Status::ok;
  });
}

void coll_sparse_plan_free(coll_sparse_plan* plan) { delete plan; }

}  // extern "C"
