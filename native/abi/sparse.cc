// SPDX-License-Identifier: Apache-2.0
// Collectives of sparse vectors, behind the C interface.
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "abi/handle.h"
#include "collectives_sparse.h"
#include "communicator/sparse_call.h"

static_assert(COLL_SPARSE_AS_DENSE == coll::kSparseDense);
static_assert(COLL_SPARSE_AT_ONCE == coll::kSparseAtOnce);

struct coll_sparse {
  coll::SparseResult result;
};

namespace coll {
namespace {

SparseWish wish_of(const coll_sparse_call& call) {
  if (call.size != sizeof call) {
    throw Error(Status::invalid_argument,
                "a coll_sparse_call of another size: set `size` to sizeof(coll_sparse_call)");
  }
  if (call.output < COLL_SPARSE_AUTO || call.output > COLL_SPARSE_DENSE) {
    throw Error(Status::invalid_argument, "there is no such output");
  }
  if (!(call.dense_above >= 0) || call.dense_above > 1) {
    throw Error(Status::invalid_argument, "dense_above is a share, 0 to 1");
  }
  return {.kind = static_cast<Kind>(call.kind),
          .dtype = static_cast<Dtype>(call.dtype),
          .op = static_cast<Reduction>(call.op),
          .length = call.length,
          .pairs = {.indices = call.indices,
                    .index_dtype = static_cast<Dtype>(call.index_dtype),
                    .values = call.values,
                    .n = call.entries},
          .root = call.root,
          .algorithm = call.algorithm,
          .output = static_cast<SparseOutput>(call.output),
          .dense_above =
              call.dense_above > 0 ? call.dense_above : std::numeric_limits<double>::quiet_NaN(),
          .coding = static_cast<Coding>(call.coding),
          .quantise_bits = call.quantise_bits,
          .seed = call.seed,
          .reproducible = static_cast<Reproducible>(call.reproducible),
          .largest = call.largest,
          .timeout = call.timeout,
          .of_timeout = call.of_timeout,
          .agreed = call.agreed != nullptr ? call.agreed : ""};
}

template <class C>
Status run_on(coll_comm& comm, C& communicator, const SparseWish& wish, coll_sparse** result) {
  // Memory takes indices faster than they are coded, a network does not.
  constexpr bool memory = std::is_same_v<C, Communicator>;
  const SparseCosts& costs = memory ? kSharedMemory : kNetwork;
  constexpr Coding usual = memory ? Coding::raw : Coding::coded;
  auto steps = std::make_unique<StepsOn<SparseCall, C>>(communicator, costs, usual, wish,
                                                        comm.opening_rooms);
  SparseCall* own = steps.get();
  return take_steps(comm, std::move(steps),
                    [own, result] { *result = new coll_sparse{own->take()}; });
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;

extern "C" {

int32_t coll_sparse_algorithm_count(void) {
  return static_cast<int32_t>(coll::sparse_algorithms().size());
}

coll_status coll_sparse_algorithm_get(int32_t index, coll_sparse_algorithm* out) {
  return guarded([&] {
    coll_sparse_algorithm& to = coll::required(out, "algorithm");
    const auto table = coll::sparse_algorithms();
    if (index < 0 || static_cast<std::size_t>(index) >= table.size()) {
      throw coll::Error(Status::invalid_argument,
                        "there is no sparse algorithm number " + std::to_string(index));
    }
    const coll::SparseAlgorithm& a = table[static_cast<std::size_t>(index)];
    to = {static_cast<int32_t>(a.kind), a.name, a.paper, a.summary,
          coll::find_algorithm(a.schedule_kind, a.schedule)};
    return Status::ok;
  });
}

coll_status coll_sparse_run(coll_comm* comm, const coll_sparse_call* call, coll_sparse** result) {
  return guarded([&] {
    coll::required(result, "result") = nullptr;
    const coll::SparseWish wish = coll::wish_of(coll::required(call, "call"));
    return coll::on_either(
        comm, [&](auto& communicator) { return coll::run_on(*comm, communicator, wish, result); });
  });
}

void coll_sparse_free(coll_sparse* result) { delete result; }

coll_status coll_sparse_look(const coll_sparse* result, coll_sparse_view* out) {
  return guarded([&] {
    const coll::SparseResult& r = coll::required(result, "result").result;
    const bool dense = r.stream.form == coll::Form::dense;
    coll::required(out, "view") = {.dense = dense ? 1 : 0,
                                   .index_bytes = static_cast<int32_t>(r.terms.index_bytes),
                                   .entries = r.stream.entries,
                                   .length = r.stream.length,
                                   .indices = r.stream.indices,
                                   .values = r.stream.values,
                                   .algorithm = r.algorithm,
                                   .rounds = r.rounds,
                                   .bytes = r.bytes,
                                   .messages = r.messages};
    return Status::ok;
  });
}

}  // extern "C"
