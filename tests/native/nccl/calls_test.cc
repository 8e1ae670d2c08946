// SPDX-License-Identifier: Apache-2.0
// Every collective of libnccl.so.2, of every dtype and operation, between processes.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "ranks.h"

namespace {

using namespace nccl_test;

// ---- numbers of every dtype: small integers, which all of them have --------------------------

struct Narrow {
  int digits, bias, bytes;
};

// Small whole numbers as floats of few digits, and back.
std::uint32_t narrow_bits(int value, const Narrow& format) {
  if (value == 0) return 0;
  const int exponent = std::ilogb(value);
  const auto fraction = static_cast<std::uint32_t>(std::ldexp(value, format.digits - exponent)) &
                        ((1U << format.digits) - 1);
  return static_cast<std::uint32_t>(exponent + format.bias) << format.digits | fraction;
}

double narrow_value(std::uint32_t bits, const Narrow& format) {
  if (bits == 0) return 0;
  const std::uint32_t fraction = bits & ((1U << format.digits) - 1);
  const int exponent = static_cast<int>(bits >> format.digits) - format.bias;
  return std::ldexp(1 + std::ldexp(fraction, -format.digits), exponent);
}

const Narrow* narrow(ncclDataType_t dtype) {
  static constexpr Narrow half{10, 15, 2}, brain{7, 127, 2}, e4m3{3, 7, 1}, e5m2{2, 15, 1};
  return dtype == ncclFloat16      ? &half
         : dtype == ncclBfloat16   ? &brain
         : dtype == ncclFloat8e4m3 ? &e4m3
         : dtype == ncclFloat8e5m2 ? &e5m2
                                   : nullptr;
}

std::size_t bytes_of(ncclDataType_t dtype) {
  if (const Narrow* format = narrow(dtype)) return static_cast<std::size_t>(format->bytes);
  return dtype <= ncclUint8 ? 1 : dtype <= ncclUint32 || dtype == ncclFloat32 ? 4 : 8;
}

template <class T>
void put(std::byte* at, double value) {
  const T typed = static_cast<T>(value);
  std::memcpy(at, &typed, sizeof typed);
}
template <class T>
double got(const std::byte* at) {
  T typed;
  std::memcpy(&typed, at, sizeof typed);
  return static_cast<double>(typed);
}

// Elements of any dtype, as numbers.
class Array {
 public:
  Array(ncclDataType_t dtype, std::size_t n) : dtype_(dtype), data_(n * bytes_of(dtype)) {}

  std::byte* data(std::size_t i = 0) { return data_.data() + i * bytes_of(dtype_); }

  void set(std::size_t i, int value) {
    if (const Narrow* format = narrow(dtype_)) {
      const std::uint32_t bits = narrow_bits(value, *format);
      std::memcpy(data(i), &bits, bytes_of(dtype_));  // of the lowest bytes
    } else if (dtype_ == ncclFloat32) {
      put<float>(data(i), value);
    } else if (dtype_ == ncclFloat64) {
      put<double>(data(i), value);
    } else {
      const std::int64_t wide = value;
      std::memcpy(data(i), &wide, bytes_of(dtype_));
    }
  }

  double get(std::size_t i) {
    if (const Narrow* format = narrow(dtype_)) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, data(i), bytes_of(dtype_));
      return narrow_value(bits, *format);
    }
    if (dtype_ == ncclFloat32) return got<float>(data(i));
    if (dtype_ == ncclFloat64) return got<double>(data(i));
    std::int64_t wide = 0;
    std::memcpy(&wide, data(i), bytes_of(dtype_));
    return static_cast<double>(wide);
  }

 private:
  ncclDataType_t dtype_;
  std::vector<std::byte> data_;
};

constexpr int kAll = ncclNumTypes;
constexpr std::size_t kCount = 37;

// 1, 2 or 3: products of three ranks are small.
int number(int rank, std::size_t i) { return 1 + (rank + static_cast<int>(i)) % 3; }

double folded(ncclRedOp_t op, int p, std::size_t i, bool whole) {
  double value = number(0, i);
  for (int rank = 1; rank < p; ++rank) {
    const double other = number(rank, i);
    value = op == ncclProd  ? value * other
            : op == ncclMax ? std::max(value, other)
            : op == ncclMin ? std::min(value, other)
                            : value + other;
  }
  if (op != ncclAvg) return value;
  return whole ? std::floor(value / p) : value / p;
}

bool is_whole(int dtype) { return dtype <= ncclUint64; }

// Whether a result is right, to the precision of its dtype.
bool close(double value, double wanted, int dtype) {
  const double places = is_whole(dtype) ? 0 : dtype == ncclFloat8e5m2 ? 0.13 : 0.07;
  return std::abs(value - wanted) <= places * wanted;
}

void check_allreduce(ncclComm_t comm, int rank, int p, ncclDataType_t dtype, ncclRedOp_t op) {
  Array in(dtype, kCount), out(dtype, kCount);
  for (std::size_t i = 0; i < kCount; ++i) in.set(i, number(rank, i));
  good(ncclAllReduce(in.data(), out.data(), kCount, dtype, op, comm, nullptr));
  for (std::size_t i = 0; i < kCount; ++i) {
    CHECK(close(out.get(i), folded(op, p, i, is_whole(dtype)), dtype));
  }
}

void check_factor(ncclComm_t comm, int rank, int p, ncclDataType_t dtype, bool now) {
  Array in(dtype, kCount), factor(dtype, 1);
  factor.set(0, rank + 1);
  ncclRedOp_t op = ncclSum;
  good(ncclRedOpCreatePreMulSum(&op, factor.data(), dtype,
                                now ? ncclScalarHostImmediate : ncclScalarDevice, comm));
  CHECK(op >= ncclNumOps);
  if (now) factor.set(0, 0);  // it was read
  for (std::size_t i = 0; i < kCount; ++i) in.set(i, 1);
  good(ncclAllReduce(in.data(), in.data(), kCount, dtype, op, comm, nullptr));
  for (std::size_t i = 0; i < kCount; ++i) CHECK(2 * in.get(i) == p * (p + 1));
  good(ncclRedOpDestroy(op, comm));
  bad(ncclAllReduce(in.data(), in.data(), 1, dtype, op, comm, nullptr), ncclInvalidArgument,
      "operation");
}

void check_dtypes(int p) {
  with_comm(p, [p](ncclComm_t comm, int rank) {
    for (int d = 0; d < kAll; ++d) {
      const auto dtype = static_cast<ncclDataType_t>(d);
      for (int op = 0; op < ncclNumOps; ++op) {
        check_allreduce(comm, rank, p, dtype, static_cast<ncclRedOp_t>(op));
      }
      check_factor(comm, rank, p, dtype, d % 2 == 0);
    }
  });
}

TEST(all_dtypes_and_operations_between_two) { check_dtypes(2); }
TEST(all_dtypes_and_operations_between_three) { check_dtypes(3); }

// ---- the other collectives ------------------------------------------------------------------

using Ints = std::vector<std::int32_t>;

void check_to_all(ncclComm_t comm, int rank, int p) {
  const auto n = static_cast<std::size_t>(p);
  Ints mine(4 * n), all(4 * n, -1);
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = 100 * rank + static_cast<int>(i);
  good(ncclAllGather(mine.data(), all.data(), 4, ncclInt32, comm, nullptr));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i] == 100 * static_cast<int>(i / 4) + static_cast<int>(i % 4));
  }
  good(ncclAlltoAll(mine.data(), all.data(), 4, ncclInt32, comm, nullptr));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i] == 100 * static_cast<int>(i / 4) + 4 * rank + static_cast<int>(i % 4));
  }
  good(ncclReduceScatter(mine.data(), all.data(), 4, ncclInt32, ncclSum, comm, nullptr));
  for (int i = 0; i < 4; ++i) {
    CHECK(all[static_cast<std::size_t>(i)] == 50 * p * (p - 1) + p * (4 * rank + i));
  }
}

void check_in_place(ncclComm_t comm, int rank, int p) {
  const auto n = static_cast<std::size_t>(p), own = static_cast<std::size_t>(rank);
  Ints all(2 * n, rank);
  good(ncclAllGather(&all[2 * own], all.data(), 2, ncclInt32, comm, nullptr));
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == static_cast<int>(i / 2));
  good(ncclReduceScatter(all.data(), &all[2 * own], 2, ncclInt32, ncclSum, comm, nullptr));
  CHECK(all[2 * own] == p * rank && all[2 * own + 1] == p * rank);
}

void check_rooted(ncclComm_t comm, int rank, int p, int root) {
  const auto n = static_cast<std::size_t>(p);
  Ints one = {rank, 10 * rank}, all(2 * n, -1);
  int* const at_root = rank == root ? all.data() : nullptr;
  good(ncclReduce(one.data(), at_root, 2, ncclInt32, ncclSum, root, comm, nullptr));
  CHECK(rank != root || (all[0] == p * (p - 1) / 2 && all[1] == 5 * p * (p - 1)));
  good(ncclGather(one.data(), at_root, 2, ncclInt32, root, comm, nullptr));
  CHECK(rank != root || (all[2 * n - 2] == p - 1 && all[2 * n - 1] == 10 * (p - 1)));
  Ints part(2, -1);
  good(ncclScatter(at_root, part.data(), 2, ncclInt32, root, comm, nullptr));
  CHECK(part[0] == rank && part[1] == 10 * rank);
  Ints sent = {root + 7}, same(1, -1);
  good(ncclBroadcast(rank == root ? sent.data() : nullptr, same.data(), 1, ncclInt32, root, comm,
                     nullptr));
  CHECK(same[0] == root + 7);
  same[0] = rank;
  good(ncclBcast(same.data(), 1, ncclInt32, root, comm, nullptr));
  CHECK(same[0] == root);
}

void check_all_collectives(int p) {
  with_comm(p, [p](ncclComm_t comm, int rank) {
    check_to_all(comm, rank, p);
    check_in_place(comm, rank, p);
    check_rooted(comm, rank, p, 0);
    check_rooted(comm, rank, p, p - 1);
    good(ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, comm, nullptr));
    std::int64_t average = -7 * (rank + 1);
    good(ncclAllReduce(&average, &average, 1, ncclInt64, ncclAvg, comm, nullptr));
    CHECK(average == -7 * (p + 1) / 2);
  });
}

TEST(collectives_between_two) { check_all_collectives(2); }
TEST(collectives_between_three) { check_all_collectives(3); }

TEST(collectives_over_tcp) {
  const OverTcp apart;
  check_all_collectives(2);
}

TEST(collectives_by_ring_and_without_peer_access) {
  ::setenv("NCCL_ALGO", "Ring", 1);
  ::setenv("NCCL_P2P_DISABLE", "1", 1);
  check_all_collectives(3);
  ::unsetenv("NCCL_ALGO");
  ::unsetenv("NCCL_P2P_DISABLE");
}

TEST(a_rank_alone) {
  with_comm(1, [](ncclComm_t comm, int rank) { check_to_all(comm, rank, 1); });
}

TEST(wrong_arguments_are_refused_by_name) {
  with_comm(1, [](ncclComm_t comm, int) {
    float x = 1;
    const auto call = [&](ncclDataType_t dtype, ncclRedOp_t op, ncclComm_t with) {
      return ncclAllReduce(&x, &x, 1, dtype, op, with, nullptr);
    };
    bad(call(ncclFloat32, ncclSum, nullptr), ncclInvalidArgument, "communicator");
    bad(call(ncclNumTypes, ncclSum, comm), ncclInvalidArgument, "datatype 12");
    bad(ncclAllReduce(&x, &x, 1, static_cast<ncclDataType_t>(99), ncclSum, comm, nullptr),
        ncclInvalidArgument, "datatype 99");
    bad(ncclSend(&x, 1, static_cast<ncclDataType_t>(-1), 0, comm, nullptr), ncclInvalidArgument,
        "datatype -1");
    bad(call(ncclFloat32, static_cast<ncclRedOp_t>(9), comm), ncclInvalidArgument, "operation 9");
    bad(ncclBroadcast(&x, &x, 1, ncclFloat32, 1, comm, nullptr), ncclInvalidArgument, "root 1");
    bad(ncclSend(&x, 1, ncclFloat32, -1, comm, nullptr), ncclInvalidArgument, "peer -1");
    bad(ncclAllReduce(nullptr, &x, 1, ncclFloat32, ncclSum, comm, nullptr), ncclInvalidArgument,
        "sendbuff");
    bad(ncclAllReduce(&x, nullptr, 1, ncclFloat32, ncclSum, comm, nullptr), ncclInvalidArgument,
        "recvbuff");
    int some = 0;
    auto* const stream = reinterpret_cast<cudaStream_t>(&some);
    bad(ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm, stream), ncclInvalidUsage, "stream");
    good(call(ncclFloat32, ncclSum, comm));
  });
}

}  // namespace
