// SPDX-License-Identifier: Apache-2.0
// What a sparse call may wish for, in C: each wish that cannot be met is refused with its reason.
#include <cstdint>
#include <cstring>
#include <string>

#include "check.h"
#include "collectives.h"

namespace {

constexpr std::int32_t kIndices[] = {5, 2};
constexpr float kValues[] = {0.5F, -0.25F};

coll_sparse_call sum_of_two() {
  coll_sparse_call call = {};
  call.size = sizeof call;
  call.kind = COLL_ALLREDUCE;
  call.dtype = COLL_FLOAT32;
  call.op = COLL_SUM;
  call.algorithm = COLL_SPARSE_CHOOSE;
  call.index_dtype = COLL_INT32;
  call.indices = kIndices;
  call.values = kValues;
  call.entries = 2;
  call.length = 9;
  return call;
}

int number_of(std::int32_t kind, const char* name) {
  for (std::int32_t i = 0; i < coll_sparse_algorithm_count(); ++i) {
    coll_sparse_algorithm found;
    CHECK(coll_sparse_algorithm_get(i, &found) == COLL_OK);
    if (found.kind == kind && std::strcmp(found.name, name) == 0) return i;
  }
  check::fail("no such algorithm");
}

// A group of one.
class Alone {
 public:
  Alone() {
    coll_options options = {};
    options.size = sizeof options;
    options.ranks = 1;
    CHECK(coll_local(&options, &comm_) == COLL_OK);
  }
  ~Alone() { coll_close(comm_); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  void refuses(const coll_sparse_call& call, const char* words) {
    coll_sparse* result = nullptr;
    CHECK(coll_sparse_run(comm_, &call, &result) == COLL_INVALID_ARGUMENT);
    CHECK(result == nullptr);
    CHECK(std::string(coll_last_error()).find(words) != std::string::npos);
  }
  void sums(const coll_sparse_call& call) {
    coll_sparse* result = nullptr;
    CHECK(coll_sparse_run(comm_, &call, &result) == COLL_OK);
    coll_sparse_view view;
    CHECK(coll_sparse_look(result, &view) == COLL_OK);
    CHECK(view.dense == 0 && view.entries == 2);
    CHECK(static_cast<const float*>(view.values)[0] == kValues[1]);
    coll_sparse_free(result);
  }

 private:
  coll_comm* comm_ = nullptr;
};

}  // namespace

TEST(codings_that_are_not_there_are_refused) {
  Alone alone;
  coll_sparse_call call = sum_of_two();
  for (const std::int32_t coding : {-1, 4, 77}) {
    call.coding = coding;
    alone.refuses(call, "there is no such coding");
  }
  for (const std::int32_t coding : {COLL_SPARSE_CODING_AUTO, COLL_SPARSE_CODING_RAW,
                                    COLL_SPARSE_CODING_CODED, COLL_SPARSE_CODING_QUICK}) {
    call.coding = coding;
    alone.sums(call);
  }
}

TEST(what_cannot_be_quantised_is_refused) {
  Alone alone;
  coll_sparse_call call = sum_of_two();
  for (const std::int32_t bits : {-4, 1, 3, 16}) {
    call.quantise_bits = bits;
    alone.refuses(call, "2, 4 or 8 bits, not to");
  }
  for (const std::int32_t bits : {2, 4, 8}) {
    call.quantise_bits = bits;
    alone.sums(call);  // alone, it sends nothing, and nothing is rounded
  }
  call.algorithm = number_of(COLL_ALLREDUCE, "ring");
  alone.refuses(call, "dsar_split_allgather quantises values");
  call.algorithm = COLL_SPARSE_AS_DENSE;
  alone.refuses(call, "dsar_split_allgather quantises values");
  call.algorithm = number_of(COLL_ALLREDUCE, "dsar_split_allgather");
  alone.sums(call);
  call.dtype = COLL_INT32;
  alone.refuses(call, "int32 are not quantised");
  call = sum_of_two();
  call.quantise_bits = 4;
  call.kind = COLL_BROADCAST;
  alone.refuses(call, "only allreduce");
}

TEST(what_cannot_be_reproducible_is_refused) {
  Alone alone;
  coll_sparse_call call = sum_of_two();
  for (const std::int32_t wish : {COLL_REPRODUCIBLE, COLL_REPRODUCIBLE_ANY_P}) {
    call.reproducible = wish;
    alone.sums(call);
  }
  call.kind = COLL_BROADCAST;
  alone.refuses(call, "nothing is folded here");
  call = sum_of_two();
  call.reproducible = 3;
  alone.refuses(call, "no way number 3");
}

TEST(what_is_no_operation_of_sparse_vectors_is_refused) {
  Alone alone;
  coll_sparse_call call = sum_of_two();
  for (const std::int32_t op : {COLL_MAX, COLL_MIN, COLL_PROD, COLL_AVG}) {
    call.op = op;
    alone.sums(call);  // alone, it has what it gave
  }
  for (const std::int32_t op : {-1, 77, 128}) {
    call.op = op;
    alone.refuses(call, "is not there for sparse vectors");
  }
  for (const std::int32_t op : {COLL_MINLOC, COLL_BAND}) {
    call.op = op;
    alone.refuses(call, "of float32 is not there");
  }
  call.op = COLL_MAX;
  call.largest = 1;
  alone.refuses(call, "those of a sum");
}

// Before anything is sent, so one rank can be asked alone.
TEST(vectors_that_are_too_long_together_are_refused) {
  coll_options options = {};
  options.size = sizeof options;
  options.ranks = 3;
  coll_comm* comms[3] = {};
  CHECK(coll_local(&options, comms) == COLL_OK);
  coll_sparse_call call = sum_of_two();
  call.kind = COLL_ALLGATHER;
  call.length = (std::uint64_t{1} << 48U) / 3 + 1;
  for (coll_comm* comm : comms) {
    coll_sparse* result = nullptr;
    CHECK(coll_sparse_run(comm, &call, &result) == COLL_INVALID_ARGUMENT);
    CHECK(std::string(coll_last_error()).find("together longer than 2^48") != std::string::npos);
  }
  for (coll_comm* comm : comms) coll_close(comm);
}
