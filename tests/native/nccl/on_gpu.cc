// SPDX-License-Identifier: Apache-2.0
// libnccl.so.2 with arrays in the memory of GPUs and with streams, on the emulated GPU: copies are
// done as late as may be there, so an order that is missing shows. What arrays of the host get is
// what these must get.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "emulated_gpu.h"
#include "ranks.h"

namespace {

using namespace nccl_test;
using coll::testing::emulated;

using Bytes = std::vector<unsigned char>;

cudaStream_t stream_of(int rank) {
  return reinterpret_cast<cudaStream_t>(coll::testing::stream_of(100 + rank));
}

// The library of the emulated GPU, as this library itself calls it; its sentences are not looked
// at.
struct Sentence {
  char text[256];
};
void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  Sentence why{};
  auto* const call =
      emulated<int(int, void*, const void*, std::size_t, void*, Sentence*)>("coll_cuda_copy");
  CHECK(call(0, to, from, bytes, stream, &why) == 0);
}
void copy_later(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  Sentence why{};
  auto* const call = emulated<int(int, void*, const void*, std::size_t, void*, Sentence*)>(
      "coll_cuda_enqueue_copy");
  CHECK(call(0, to, from, bytes, stream, &why) == 0);
}

// Memory of a GPU that begins as bytes of the host.
class OnGpu {
 public:
  OnGpu(const Bytes& bytes, cudaStream_t stream) : bytes_(bytes.size()), stream_(stream) {
    good(ncclMemAlloc(&memory_, std::max<std::size_t>(bytes_, 1)));
    copy(memory_, bytes.data(), bytes_, stream_);
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  ~OnGpu() { ncclMemFree(memory_); }
  unsigned char* data() const { return static_cast<unsigned char*>(memory_); }
  Bytes fetched() const {
    Bytes bytes(bytes_);
    copy(bytes.data(), memory_, bytes_, stream_);
    return bytes;
  }

 private:
  std::size_t bytes_;
  cudaStream_t stream_;
  void* memory_ = nullptr;
};

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A call, by where its arrays are and its stream.
using Call = std::function<ncclResult_t(void* in, void* out, cudaStream_t stream)>;

// The same bytes come out wherever the arrays are.
void check_same(int rank, const Bytes& in, std::size_t out, const Call& call) {
  Bytes host_in = in, host_out(out, 0xee);
  good(call(host_in.data(), host_out.data(), nullptr));
  const cudaStream_t stream = stream_of(rank);
  const OnGpu there(in, stream), result(Bytes(out, 0xee), stream);
  good(call(there.data(), result.data(), stream));
  CHECK(result.fetched() == host_out);
  CHECK(there.fetched() == in);
}

// Numbers of one byte that every dtype has, by their lowest digits.
Bytes numbers(std::size_t n, int rank) {
  Bytes bytes(n);
  for (std::size_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<unsigned char>((i * 5 + static_cast<std::size_t>(rank)) % 23);
  }
  return bytes;
}

constexpr std::size_t kCount = 40;

void check_dtypes(ncclComm_t comm, int rank) {
  for (int d = 0; d < ncclNumTypes; ++d) {
    for (int o = 0; o < ncclNumOps; ++o) {
      check_same(rank, numbers(8 * kCount, rank), 8 * kCount, [&](void* in, void* out, auto on) {
        return ncclAllReduce(in, out, kCount, static_cast<ncclDataType_t>(d),
                             static_cast<ncclRedOp_t>(o), comm, on);
      });
    }
  }
}

void check_collectives(ncclComm_t comm, int rank, int p, std::size_t n) {
  const auto all = n * static_cast<std::size_t>(p);
  const int root = p - 1;
  const Bytes one = numbers(4 * n, rank), parts = numbers(4 * all, rank);
  const auto same = [&](const Bytes& in, std::size_t out, const Call& call) {
    check_same(rank, in, 4 * out, call);
  };
  same(parts, n, [&](void* in, void* out, auto on) {
    return ncclReduceScatter(in, out, n, ncclInt32, ncclSum, comm, on);
  });
  same(parts, n, [&](void* in, void* out, auto on) {  // cut towards zero
    return ncclReduceScatter(in, out, n, ncclInt32, ncclAvg, comm, on);
  });
  same(one, all, [&](void* in, void* out, auto on) {
    return ncclAllGather(in, out, n, ncclInt32, comm, on);
  });
  same(parts, all,
       [&](void* in, void* out, auto on) { return ncclAlltoAll(in, out, n, ncclInt32, comm, on); });
  same(one, n, [&](void* in, void* out, auto on) {
    return ncclReduce(in, rank == root ? out : nullptr, n, ncclFloat32, ncclMax, root, comm, on);
  });
  same(one, n, [&](void* in, void* out, auto on) {
    return ncclBroadcast(rank == root ? in : nullptr, out, n, ncclFloat32, root, comm, on);
  });
  same(one, all, [&](void* in, void* out, auto on) {
    return ncclGather(in, rank == root ? out : nullptr, n, ncclFloat32, root, comm, on);
  });
  same(parts, n, [&](void* in, void* out, auto on) {
    return ncclScatter(rank == root ? in : nullptr, out, n, ncclFloat32, root, comm, on);
  });
  same(one, n, [&](void* in, void* out, auto on) {  // around a ring
    good(ncclGroupStart());
    good(ncclSend(in, n, ncclInt32, (rank + 1) % p, comm, on));
    good(ncclRecv(out, n, ncclInt32, (rank + p - 1) % p, comm, on));
    return ncclGroupEnd();
  });
}

TEST(every_dtype_and_operation_as_on_the_host) {
  with_comm(2, [](ncclComm_t comm, int rank) { check_dtypes(comm, rank); });
}

TEST(every_collective_as_on_the_host) {
  with_comm(3, [](ncclComm_t comm, int rank) {
    for (const std::size_t n : {0, 1, 1000, 1'500'000}) check_collectives(comm, rank, 3, n);
  });
}

TEST(every_collective_over_tcp) {
  const OverTcp apart;
  with_comm(2, [](ncclComm_t comm, int rank) { check_collectives(comm, rank, 2, 1000); });
}

TEST(a_call_comes_after_what_is_on_its_stream) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    const cudaStream_t stream = stream_of(rank);
    const std::vector<float> ready(kCount, static_cast<float>(rank + 1));
    const OnGpu x(Bytes(4 * kCount), stream);
    copy_later(x.data(), ready.data(), 4 * kCount, stream);
    good(ncclAllReduce(x.data(), x.data(), kCount, ncclFloat32, ncclSum, comm, stream));
    CHECK(values_of<float>(x.fetched()) == std::vector<float>(kCount, 3));
    // Arrays of the host, too: from a GPU they come, to one they go.
    std::vector<float> host(kCount);
    copy_later(host.data(), x.data(), 4 * kCount, stream);
    good(ncclAllReduce(host.data(), host.data(), kCount, ncclFloat32, ncclSum, comm, stream));
    CHECK(host == std::vector<float>(kCount, 6));
    copy_later(host.data(), x.data(), 4 * kCount, stream);
    std::vector<float> got(kCount);
    good(ncclGroupStart());
    good(ncclSend(host.data(), kCount, ncclFloat32, 1 - rank, comm, stream));
    good(ncclRecv(got.data(), kCount, ncclFloat32, 1 - rank, comm, stream));
    good(ncclGroupEnd());
    CHECK(got == std::vector<float>(kCount, 3));
  });
}

TEST(messages_come_after_what_is_on_their_stream_and_before_what_follows) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    const cudaStream_t stream = stream_of(rank), other = stream_of(10 + rank);
    const std::vector<int> sent(kCount, rank), old(kCount, 7);
    const OnGpu from(Bytes(4 * kCount), stream), to(Bytes(4 * kCount), other);
    for (const bool grouped : {false, true}) {
      copy_later(from.data(), sent.data(), 4 * kCount, stream);
      copy_later(to.data(), old.data(), 4 * kCount, other);
      if (grouped) good(ncclGroupStart());
      good(ncclSend(from.data(), kCount, ncclInt32, 1 - rank, comm, stream));
      good(ncclRecv(to.data(), kCount, ncclInt32, 1 - rank, comm, other));
      if (grouped) good(ncclGroupEnd());
      CHECK(values_of<int>(to.fetched()) == std::vector<int>(kCount, 1 - rank));
      copy(from.data(), old.data(), 4 * kCount, stream);
    }
  });
}

TEST(puts_between_the_memory_of_gpus_and_of_the_host) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    const cudaStream_t stream = stream_of(rank);
    const std::vector<int> sent(kCount, rank + 1), old(kCount, 7);
    const OnGpu from(Bytes(4 * kCount), stream), to(Bytes(8 * kCount), stream);
    std::vector<int> on_host(2 * kCount, 7);
    std::vector<ncclWindow_t> windows;
    for (void* const memory : {static_cast<void*>(to.data()), static_cast<void*>(on_host.data())}) {
      ncclWindow_t& window = windows.emplace_back(nullptr);
      good(ncclCommWindowRegister(comm, memory, 8 * kCount, &window, NCCL_WIN_DEFAULT));
    }
    for (ncclWindow_t window : windows) {
      for (int peer : {0, 1}) {
        copy_later(from.data(), sent.data(), 4 * kCount, stream);
        good(ncclPutSignal(from.data(), kCount, ncclInt32, peer, window,
                           static_cast<std::size_t>(rank) * 4 * kCount, 0, 0, 0, comm, stream));
        copy(from.data(), old.data(), 4 * kCount, stream);
      }
    }
    ncclWaitSignalDesc_t all[] = {{2, 0, 0, 0}, {2, 1, 0, 0}};
    good(ncclWaitSignal(2, all, comm, stream));
    std::vector<int> wanted(kCount, 1);
    wanted.resize(2 * kCount, 2);
    CHECK(values_of<int>(to.fetched()) == wanted && on_host == wanted);
    // A signal without data comes after what is on its stream, too.
    std::vector<int> late(kCount);
    copy_later(late.data(), sent.data(), 4 * kCount, stream);
    good(ncclSignal(rank, 0, 0, 0, comm, stream));
    CHECK(late == sent);
  });
}

TEST(factors_in_the_memory_of_a_gpu) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    const cudaStream_t stream = stream_of(rank);
    const OnGpu x(bytes_of(std::vector<float>(kCount, 2)), stream), factor(Bytes(4), stream);
    const float wanted = static_cast<float>(rank + 1);
    ncclRedOp_t op = ncclSum;
    good(ncclRedOpCreatePreMulSum(&op, factor.data(), ncclFloat32, ncclScalarDevice, comm));
    copy_later(factor.data(), &wanted, 4, stream);  // it is read when the call runs
    good(ncclAllReduce(x.data(), x.data(), kCount, ncclFloat32, op, comm, stream));
    CHECK(values_of<float>(x.fetched()) == std::vector<float>(kCount, 6));
    std::vector<float> host(kCount, 1);  // with arrays of the host, in a group
    good(ncclGroupStart());
    good(ncclAllReduce(host.data(), host.data(), kCount, ncclFloat32, op, comm, stream));
    good(ncclAllReduce(x.data(), x.data(), kCount, ncclFloat32, op, comm, stream));
    good(ncclGroupEnd());
    CHECK(host == std::vector<float>(kCount, 3));
    CHECK(values_of<float>(x.fetched()) == std::vector<float>(kCount, 18));
    good(ncclRedOpDestroy(op, comm));
  });
}

TEST(in_place_as_programs_for_nccl_write_it) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    const cudaStream_t stream = stream_of(rank);
    const auto own = static_cast<std::size_t>(rank);
    const OnGpu x(bytes_of(std::vector<int>(4, rank + 1)), stream);
    good(ncclAllGather(x.data() + 8 * own, x.data(), 2, ncclInt32, comm, stream));
    CHECK(values_of<int>(x.fetched()) == (std::vector<int>{1, 1, 2, 2}));
    good(ncclReduceScatter(x.data(), x.data() + 8 * own, 2, ncclInt32, ncclSum, comm, stream));
    CHECK(values_of<int>(x.fetched())[2 * own] == 2 * (rank + 1));
    good(ncclBcast(x.data(), 4, ncclInt32, 1, comm, stream));
    CHECK(values_of<int>(x.fetched())[3] == 4);
  });
}

TEST(what_is_wrong_is_told_to_all) {
  with_comm(2, [](ncclComm_t comm, int rank) {
    const cudaStream_t stream = stream_of(rank);
    const OnGpu x(Bytes(8 * kCount), stream);
    Bytes host(8 * kCount);
    // What the call takes of the GPU's memory it has then: none may be taken in a capture of its
    // own.
    good(ncclAllReduce(x.data(), x.data(), 2, ncclInt32, ncclSum, comm, stream));
    CHECK(values_of<int>(x.fetched())[0] == 0);
    bad(ncclAllReduce(host.data(), x.data(), 2, ncclInt32, ncclSum, comm, stream), ncclInvalidUsage,
        "sendbuff is memory of the host and recvbuff of GPU 0");
    emulated<void(void*)>("emulated_begin_capture")(stream);
    bad(ncclAllReduce(x.data(), x.data(), 2, ncclInt32, ncclSum, comm, stream), ncclInvalidUsage,
        "captured");
    emulated<std::uint64_t(void*)>("emulated_end_capture")(stream);
    const std::size_t n = rank == 0 ? 2 : 3;
    bad(ncclAllReduce(x.data(), x.data(), n, ncclInt32, ncclSum, comm, stream), ncclInvalidUsage,
        "allreduce of 3 int32");
  });
  with_comm(2, [](ncclComm_t comm, int rank) {
    const OnGpu x(Bytes(8), nullptr);
    Bytes host(8);
    void* const data = rank == 0 ? x.data() : host.data();
    bad(ncclAllReduce(data, data, 2, ncclInt32, ncclSum, comm, nullptr), ncclInvalidUsage, "GPU");
  });
  // An average of integers and a sum with a factor go another way than a sum.
  for (const bool averages : {true, false}) {
    with_comm(2, [averages](ncclComm_t comm, int rank) {
      const OnGpu x(Bytes(8), nullptr);
      int factor = 2;
      ncclRedOp_t op = ncclSum;
      if (rank == 0 && averages) op = ncclAvg;
      if (rank == 0 && !averages) {
        good(ncclRedOpCreatePreMulSum(&op, &factor, ncclInt32, ncclScalarHostImmediate, comm));
      }
      bad(ncclAllReduce(x.data(), x.data(), 2, ncclInt32, op, comm, nullptr), ncclInvalidUsage,
          "do not make the same call");
    });
  }
}

TEST(memory_is_of_the_gpu_and_given_back) {
  with_comm(1, [](ncclComm_t comm, int) {
    const std::size_t before = emulated<std::size_t()>("emulated_taken")();
    void *x = nullptr, *receipt = nullptr;
    good(ncclMemAlloc(&x, 1000));
    CHECK(emulated<std::size_t()>("emulated_taken")() >= before + 1000);
    good(ncclCommRegister(comm, x, 1000, &receipt));
    good(ncclCommDeregister(comm, receipt));
    good(ncclMemFree(x));
    good(ncclMemFree(nullptr));
    CHECK(emulated<std::size_t()>("emulated_taken")() == before);
  });
}

TEST(communicators_that_do_not_block) {
  in_processes(2, [](int rank, Board& board) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    ncclResult_t state = ncclCommInitRankConfig(&comm, 2, id_of(board, rank), rank, &config);
    const auto settle = [&] {
      for (int i = 0; i < 20'000 && state == ncclInProgress; ++i) {
        check::nap(1);
        good(ncclCommGetAsyncError(comm, &state));
      }
      CHECK(state == ncclSuccess);
    };
    settle();
    const OnGpu x(bytes_of(std::vector<float>(kCount, static_cast<float>(rank))), stream_of(rank));
    state = ncclAllReduce(x.data(), x.data(), kCount, ncclFloat32, ncclSum, comm, stream_of(rank));
    settle();
    CHECK(values_of<float>(x.fetched()) == std::vector<float>(kCount, 1));
    good(ncclCommDestroy(comm));
  });
}

// Ranks of one thread, each with the GPU that `devices` names.
void check_one_thread(const std::vector<int>& devices) {
  const std::size_t p = devices.size();
  std::vector<ncclComm_t> comms(p);
  good(ncclCommInitAll(comms.data(), static_cast<int>(p), devices.data()));
  std::vector<void*> arrays(p);
  for (std::size_t i = 0; i < p; ++i) {
    Sentence why{};
    CHECK(emulated<int(int, std::size_t, void**, Sentence*)>("coll_cuda_allocate")(
              devices[i], 4 * kCount, &arrays[i], &why) == 0);
    const std::vector<float> values(kCount, static_cast<float>(i));
    copy(arrays[i], values.data(), 4 * kCount, stream_of(static_cast<int>(i)));
  }
  float wanted = 0;
  for (std::size_t i = 0; i < p; ++i) wanted += static_cast<float>(i);
  for (int again = 0; again < 3; ++again, wanted *= static_cast<float>(p)) {
    good(ncclGroupStart());
    for (std::size_t i = 0; i < p; ++i) {
      good(ncclAllReduce(arrays[i], arrays[i], kCount, ncclFloat32, ncclSum, comms[i],
                         stream_of(static_cast<int>(i))));
    }
    good(ncclGroupEnd());
    for (std::size_t i = 0; i < p; ++i) {
      std::vector<float> values(kCount);
      copy(values.data(), arrays[i], 4 * kCount, stream_of(static_cast<int>(i)));
      CHECK(values == std::vector<float>(kCount, wanted));
    }
  }
  for (void* array : arrays) good(ncclMemFree(array));
  for (ncclComm_t comm : comms) good(ncclCommDestroy(comm));
}

TEST(ranks_of_one_thread_on_one_gpu) { check_one_thread({0, 0, 0}); }
TEST(ranks_of_one_thread_on_several_gpus) { check_one_thread({0, 1, 2}); }

}  // namespace
