// SPDX-License-Identifier: Apache-2.0
// A message against a collective: each rank waits for the other, and both are told.
#include "ranks.h"

namespace {

using namespace nccl_test;

void check_message_beside_collective(bool sends) {
  with_comm(2, [sends](ncclComm_t comm, int rank) {
    std::vector<float> x(200'000);
    const std::string words = sends ? "send to rank 1" : "recv from rank 1";
    const ncclResult_t result =
        rank == 1 ? ncclAllReduce(x.data(), x.data(), 8, ncclFloat32, ncclSum, comm, nullptr)
        : sends   ? ncclSend(x.data(), x.size(), ncclFloat32, 1, comm, nullptr)
                  : ncclRecv(x.data(), 8, ncclFloat32, 1, comm, nullptr);
    bad(result, ncclInvalidUsage, words);
    bad(result, ncclInvalidUsage, "rank 1 in allreduce #1");
  });
}

TEST(a_message_beside_a_collective_is_an_error) {
  check_message_beside_collective(false);
  check_message_beside_collective(true);
}

}  // namespace
