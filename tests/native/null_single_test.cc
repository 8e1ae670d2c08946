// SPDX-License-Identifier: Apache-2.0
// One null pointer among arguments that are there: it is refused as well.
#include <cstdint>

#include "check.h"
#include "collectives.h"

namespace {

constexpr int kMissing = COLL_INVALID_ARGUMENT;

}  // namespace

// All but one argument are there: the one that is missing is seen, too.
TEST(a_single_null_pointer_is_refused) {
  const std::int32_t words[] = {1, 2, 3};
  coll_proof proof;
  double value = 0;
  std::int32_t number = 0;
  std::size_t length = 0;
  CHECK(coll_prove_encoded(words, 3, 0, -1, COLL_CHECK_ALL, nullptr) == kMissing);
  CHECK(coll_prove_encoded(nullptr, 8, 0, -1, COLL_CHECK_ALL, &proof) == kMissing);
  CHECK(coll_prove_encoded(nullptr, 0, 0, -1, COLL_CHECK_ALL, &proof) == kMissing);
  CHECK(coll_formula(nullptr, 3, &value) == kMissing);
  CHECK(coll_formula("p", 3, nullptr) == kMissing);
  CHECK(coll_choose(0, 2, 8, &number, nullptr) == kMissing);
  CHECK(coll_choose(0, 2, 8, nullptr, &number) == kMissing);
  CHECK(coll_choose(77, 2, 8, &number, &number) == kMissing);
  CHECK(coll_schedule(0, 2, 0, nullptr, &length) == kMissing);
  CHECK(coll_op_create(nullptr, nullptr, 1, nullptr, &number) == kMissing);
}

TEST(the_builder_refuses_null_pointers) {
  coll_builder* builder = nullptr;
  CHECK(coll_builder_new(COLL_ALLREDUCE, 2, 0, 2, &builder) == COLL_OK);
  CHECK(coll_builder_rank(builder, 0) == COLL_OK);
  const std::int32_t pair[] = {0, 1}, peer[] = {1};
  CHECK(coll_builder_send(builder, 0, nullptr, 1, pair, 1) == kMissing);
  CHECK(coll_builder_send(builder, 0, peer, 1, nullptr, 1) == kMissing);
  CHECK(coll_builder_recv(builder, 0, 1, nullptr, 1) == kMissing);
  CHECK(coll_builder_recv_reduce(builder, 0, nullptr, 1, 0, pair, 1) == kMissing);
  CHECK(coll_builder_recv_reduce(builder, 0, peer, 1, 0, nullptr, 1) == kMissing);
  CHECK(coll_builder_copy(builder, 0, 0, 1, nullptr, 1) == kMissing);
  CHECK(coll_builder_finish(builder, nullptr, nullptr) == kMissing);
  coll_builder_free(builder);
}
