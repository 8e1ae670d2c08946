// SPDX-License-Identifier: Apache-2.0
#include "communicator/accumulation.h"

#include "communicator/reproducible.h"
#include "kernels/widening.h"

namespace coll {

void Accumulation::bind(const Call& call, int rank, int ranks) {
  operands_ = results_ = 0;
  input_ = from_ = call.input;
  output_ = to_ = call.output;
  counts_ = call.counts;
  exact_ = sums_exactly(call);
  if (!accumulates_wider(call) && !exact_) return;
  const Sides sides = sides_of(call, rank, ranks);
  const Travel travel = travel_of(call, ranks);
  narrow_ = call.dtype;
  wide_ = travel.dtype;
  if (exact_) bind_exact(call, ranks, travel.each);
  // In place, where there are as many results as operands; else behind them.
  const bool apart = sides.in != sides.out;
  const std::size_t behind = apart ? sides.in * travel.bytes() : 0;
  const std::size_t bytes = behind + (apart ? sides.out : sides.in) * travel.bytes();
  if (bytes_ < bytes) {
    bytes_ = 0;
    room_.reset();  // before there are two
    room_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    bytes_ = bytes;
  }
  input_ = room_.get();
  output_ = room_.get() + behind;
  operands_ = sides.in;
  results_ = sides.out;
}

void Accumulation::bind_exact(const Call& call, int ranks, std::size_t each) {
  format_ = exact_format(call.dtype, ranks, false);
  divisor_ = call.op == Reduction::avg ? static_cast<std::uint64_t>(ranks) : 1;
  if (call.counts == nullptr) return;
  scaled_.assign(call.counts, call.counts + ranks);
  for (std::size_t& count : scaled_) count *= each;
  counts_ = scaled_.data();
}

void Accumulation::widen_operands() noexcept {
  if (exact_) {
    auto* limbs = reinterpret_cast<std::int64_t*>(room_.get());
    return to_exact(format_, limbs, narrow_, from_, operands_);
  }
  widen_array(wide_, room_.get(), narrow_, from_, operands_);
}

void Accumulation::round_results() noexcept {
  if (exact_) {
    const auto* limbs = static_cast<const std::int64_t*>(output_);
    return round_exact(format_, narrow_, to_, limbs, divisor_, results_);
  }
  round_array(narrow_, to_, wide_, output_, results_);
}

}  // namespace coll
