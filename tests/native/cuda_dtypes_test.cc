// SPDX-License-Identifier: Apache-2.0
// Every dtype and operation by the kernel, as threads, held to the bits of the CPU's folds: sixteen
// bytes at a time, element by element where operands lie unlike, and in packets.
#include <cstring>
#include <random>
#include <string>

#include "cuda_job.h"
#include "gpu/every_kernel.h"
#include "kernels/kernels.h"

namespace {

using namespace coll;
using namespace coll::testing;

constexpr cuda::Room kRoom{
    .channels = 2, .ring_bytes = 4096, .packet_ring_bytes = 32768, .least_bytes = 64};
constexpr int kThreads = 2;

// Numbers whose sums round; all bits of what is no float.
void draw(Dtype dtype, std::byte* at, std::mt19937& random) {
  const auto number = [&] {
    return static_cast<float>(static_cast<int>(random() % 4001) - 2000) / 512;
  };
  const auto put = [at](auto value, std::size_t place = 0) {
    std::memcpy(at + place * sizeof(value), &value, sizeof(value));
  };
  switch (dtype) {
    case Dtype::float32:
      return put(number());
    case Dtype::float64:
      return put(static_cast<double>(number()) / 3);
    case Dtype::complex64:
      put(number());
      return put(number(), 1);
    case Dtype::complex128:
      put(static_cast<double>(number()) / 3);
      return put(static_cast<double>(number()) / 7, 1);
    case Dtype::float16:
      return put(kernels::Float16::round(number()));
    case Dtype::bfloat16:
      return put(kernels::round_to_bfloat16(number()));
    case Dtype::float8_e4m3fn:
      return put(kernels::Float8E4m3fn::round(number()));
    case Dtype::float8_e5m2:
      return put(kernels::Float8E5m2::round(number()));
    default:
      for (std::size_t i = 0; i < size_of(dtype); ++i) at[i] = static_cast<std::byte>(random());
  }
}

struct Case {
  Dtype dtype;
  Reduction op;
  std::size_t n;
  bool apart;  // buffers that lie unlike to sixteen bytes
};

// Buffers of all ranks, and what the CPU makes of them.
class Operands {
 public:
  Operands(const Case& wanted, int p) : bytes_(wanted.n * size_of(wanted.dtype)) {
    std::mt19937 random(static_cast<unsigned>(wanted.n) + static_cast<unsigned>(wanted.dtype) * 64);
    for (int rank = 0; rank < p; ++rank) {
      const std::size_t skip = wanted.apart ? static_cast<std::size_t>(rank % 3) : 1;
      starts_.push_back(skip * size_of(wanted.dtype));
      inputs_.emplace_back(bytes_ + 48);
      outputs_.emplace_back(bytes_ + 48);
      for (std::size_t i = 0; i < wanted.n; ++i) {
        draw(wanted.dtype, input(rank) + i * size_of(wanted.dtype), random);
      }
    }
  }

  std::byte* input(int rank) { return inputs_[at(rank)].data() + starts_[at(rank)]; }
  std::byte* output(int rank) { return outputs_[at(rank)].data() + starts_[at(rank)]; }
  std::size_t bytes() const { return bytes_; }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  std::size_t bytes_;
  std::vector<std::size_t> starts_;
  std::vector<std::vector<std::byte>> inputs_, outputs_;
};

std::vector<std::byte> folded(const Case& wanted, Operands& operands, int p) {
  std::vector<std::byte> result(operands.bytes());
  std::vector<const void*> sources;
  for (int rank = 0; rank < p; ++rank) sources.push_back(operands.input(rank));
  void* destination = result.data();
  fold_kernel(wanted.dtype, wanted.op)({.sources = sources.data(),
                                        .destinations = &destination,
                                        .n = wanted.n,
                                        .k = static_cast<std::uint32_t>(p),
                                        .m = 1,
                                        .balanced = true,
                                        .streaming = 0,
                                        .divisor = wanted.op == Reduction::avg ? p * 1.0 : 1.0});
  return result;
}

// Whether there is a kernel of this dtype and operation; it has been run then.
bool launched(EmulatedCall& call, const Case& wanted) {
  const EmulatedKernel kernel = emulated_kernel(static_cast<std::int32_t>(wanted.dtype),
                                                static_cast<std::int32_t>(wanted.op));
  if (kernel.run == nullptr) return false;
  call.launch().units = kernel.units;
  CHECK(kernel.run(call.launch(), kThreads, call.shared_bytes()));
  return true;
}

bool agrees(const Case& wanted, const Plan& plan) {
  const int p = plan.layout.p;
  EmulatedDevice device(p, kRoom);
  EmulatedCall call(plan, wanted.n, nullptr, size_of(wanted.dtype), device);
  Operands operands(wanted, p);
  for (int rank = 0; rank < p; ++rank) {
    call.place(rank, Place::input, operands.input(rank));
    call.place(rank, Place::output, operands.output(rank));
  }
  if (wanted.op == Reduction::avg) call.launch().divisor = p;
  if (!launched(call, wanted)) return false;
  const auto expected = folded(wanted, operands, p);
  for (int rank = 0; rank < p; ++rank) {
    if (std::memcmp(operands.output(rank), expected.data(), expected.size()) == 0) continue;
    check::fail("dtype " + std::to_string(static_cast<int>(wanted.dtype)) + ", operation " +
                std::to_string(static_cast<int>(wanted.op)) + ", " + std::to_string(wanted.n) +
                (wanted.apart ? " apart" : "") + ", rank " + std::to_string(rank));
  }
  return true;
}

void run(int p) {
  const Plan bulk = lower(make_schedule(allreduce_direct_two_shot, p), {.mode = Mode::push});
  const Plan small = lower(make_schedule(allreduce_direct_one_shot, p), {.mode = Mode::inlined});
  int kernels = 0;
  for (int dtype = 0; dtype < kDtypes; ++dtype) {
    for (int op = 0; op < kReductions; ++op) {
      Case wanted{static_cast<Dtype>(dtype), static_cast<Reduction>(op), 203, false};
      if (fold_kernel(wanted.dtype, wanted.op) == nullptr || !agrees(wanted, bulk)) continue;
      ++kernels;
      wanted.apart = true;
      wanted.n = 41;
      agrees(wanted, bulk);
      if (size_of(wanted.dtype) <= 8) agrees(wanted, small);
    }
  }
  CHECK(kernels == 6 * 5 + 8 * 7 + 10 + 2 * 3);
}

TEST(two_ranks_have_the_bits_of_the_cpu) { run(2); }
TEST(three_ranks_have_the_bits_of_the_cpu) { run(3); }
TEST(seven_ranks_have_the_bits_of_the_cpu) { run(7); }

// Folds that are too long for all partial sums but one.
TEST(many_sources_are_summed_as_the_cpu_sums_them) {
  for (const int p : {12, 17, 31, 32}) {
    const Plan plan = lower(make_schedule(reduce_direct, p), {.mode = Mode::pull});
    EmulatedDevice device(p, {.channels = 1, .ring_bytes = 64, .packet_ring_bytes = 64});
    const Case wanted{Dtype::float32, Reduction::sum, 77, false};
    EmulatedCall call(plan, wanted.n, nullptr, 4, device);
    Operands operands(wanted, p);
    for (int rank = 0; rank < p; ++rank) {
      call.place(rank, Place::input, operands.input(rank));
      call.place(rank, Place::output, operands.output(rank));
    }
    CHECK(launched(call, wanted));
    const auto expected = folded(wanted, operands, p);
    CHECK(std::memcmp(operands.output(0), expected.data(), expected.size()) == 0);
  }
}

}  // namespace
