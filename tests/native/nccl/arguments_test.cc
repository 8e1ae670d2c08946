// SPDX-License-Identifier: Apache-2.0
// What libnccl.so.2 refuses at once, and by which words.
#include <cstdint>
#include <thread>

#include "ranks.h"

namespace {

using namespace nccl_test;

void alone(const std::function<void(ncclComm_t)>& body) {
  with_comm(1, [&body](ncclComm_t comm, int) { body(comm); });
}

void refused(ncclResult_t result, const std::string& words, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) {
  bad(result, ncclInvalidArgument, words, file, line);
}

TEST(of_making_communicators) {
  in_processes(1, [](int, Board&) {
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    good(ncclGetUniqueId(&id));
    refused(ncclGetUniqueId(nullptr), "uniqueId");
    refused(ncclCommInitAll(nullptr, 1, nullptr), "comm");
    refused(ncclCommInitAll(&comm, 0, nullptr), "0 communicators");
    refused(ncclCommInitRankScalable(&comm, 1, 0, 2, &id, nullptr), "2 unique ids");
    refused(ncclCommInitRankScalable(&comm, 1, 0, 1, nullptr, nullptr), "commIds");
    bad(ncclCommInitRank(&comm, 1025, id, 0), ncclInvalidUsage, "at most 1024 ranks");
  });
}

TEST(of_dividing_them) {
  alone([](ncclComm_t comm) {
    ncclComm_t part = nullptr;
    int out[2] = {3, 0};
    refused(ncclCommSplit(comm, -5, 0, &part, nullptr), "color is -5");
    refused(ncclCommSplit(comm, 0, 0, nullptr, nullptr), "newcomm");
    refused(ncclCommShrink(comm, out, 1, &part, nullptr, 7), "shrinkFlags are 7");
    refused(ncclCommShrink(comm, out, 1, &part, nullptr, NCCL_SHRINK_DEFAULT), "no rank of 1");
    refused(ncclCommShrink(comm, nullptr, 1, &part, nullptr, NCCL_SHRINK_DEFAULT), "nobody");
    refused(ncclCommShrink(comm, &out[1], 1, &part, nullptr, NCCL_SHRINK_DEFAULT), "rank 0 is in");
    CHECK(part == nullptr);
  });
}

TEST(of_operations) {
  alone([](ncclComm_t comm) {
    float factor = 2;
    ncclRedOp_t op = ncclSum;
    const auto made = [&](ncclRedOp_t* place, ncclDataType_t dtype, ncclScalarResidence_t where) {
      return ncclRedOpCreatePreMulSum(place, &factor, dtype, where, comm);
    };
    refused(made(nullptr, ncclFloat32, ncclScalarDevice), "op or scalar");
    refused(made(&op, ncclNumTypes, ncclScalarDevice), "datatype or residence");
    refused(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat32,
                                     static_cast<ncclScalarResidence_t>(7), comm),
            "datatype or residence");
    good(made(&op, ncclFloat32, ncclScalarHostImmediate));
    double x = 1;
    refused(ncclAllReduce(&x, &x, 1, ncclFloat64, op, comm, nullptr), "another dtype");
    refused(ncclRedOpDestroy(ncclSum, comm), "operation 0 was not made");
    refused(ncclRedOpDestroy(static_cast<ncclRedOp_t>(-1), comm), "operation -1");
    good(ncclRedOpDestroy(op, comm));
    refused(ncclRedOpDestroy(op, comm), "destroyed before");
    refused(ncclAllReduce(&x, &x, SIZE_MAX / 2, ncclFloat64, ncclSum, comm, nullptr),
            "more than any memory");
  });
}

TEST(of_questions_and_memory) {
  alone([](ncclComm_t comm) {
    int rank = 0;
    void* handle = nullptr;
    refused(ncclCommCount(comm, nullptr), "no place");
    refused(ncclCommUserRank(nullptr, &rank), "null pointer");
    refused(ncclCommGetAsyncError(comm, nullptr), "asyncError");
    refused(ncclCommRegister(comm, nullptr, 1, &handle), "buff or handle");
    bad(ncclMemAlloc(&handle, SIZE_MAX - 5), ncclSystemError, "no memory");
  });
}

TEST(of_two_threads_at_once_and_of_groups) {
  in_processes(2, [](int rank, Board& board) {
    ncclComm_t comm = nullptr, other = nullptr;
    const ncclUniqueId id = id_of(board, rank);
    good(ncclCommInitRank(&comm, 2, id, rank));
    int x = 1, y = 1;
    if (rank == 0) {
      std::thread first([&] { good(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr)); });
      check::nap(50);
      bad(ncclAllReduce(&y, &y, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidUsage,
          "two threads");
      board.step = 1;
      first.join();
    } else {
      wait_for(board.step, 1);
      good(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr));
    }
    CHECK(x == 2 && y == 1);
    good(ncclGroupStart());
    ncclUniqueId next;
    good(ncclGetUniqueId(&next));
    good(ncclCommInitRank(&other, 1, next, 0));
    bad(ncclAllReduce(&y, &y, 1, ncclInt32, ncclSum, other, nullptr), ncclInvalidUsage,
        "not made yet");
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    good(ncclCommDestroy(other));
    good(ncclCommDestroy(comm));
  });
}

TEST(of_ranks_with_different_algorithms) {
  in_processes(2, [](int rank, Board& board) {
    ncclComm_t comm = nullptr;
    ::setenv("NCCL_ALGO", rank == 0 ? "Ring" : "Tree", 1);
    bad(ncclCommInitRank(&comm, 2, id_of(board, rank), rank), ncclInvalidUsage,
        "'Ring' on rank 0 and 'Tree' on rank 1");
    board.step.fetch_add(1);
    wait_for(board.step, 2);
  });
}

}  // namespace
