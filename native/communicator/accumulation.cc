// SPDX-License-Identifier: Apache-2.0
#include "communicator/accumulation.h"

#include "kernels/widening.h"

namespace coll {

void Accumulation::bind(const Call& call, int rank, int ranks) {
  operands_ = results_ = 0;
  input_ = from_ = call.input;
  output_ = to_ = call.output;
  if (!accumulates_wider(call)) return;
  const Sides sides = sides_of(call, rank, ranks);
  narrow_ = call.dtype;
  wide_ = folded_dtype(call);
  // In place, where there are as many results as operands; else behind them.
  const bool apart = sides.in != sides.out;
  const std::size_t behind = apart ? sides.in * size_of(wide_) : 0;
  const std::size_t bytes = behind + (apart ? sides.out : sides.in) * size_of(wide_);
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

void Accumulation::widen_operands() noexcept {
  widen_array(wide_, room_.get(), narrow_, from_, operands_);
}

void Accumulation::round_results() noexcept { round_array(narrow_, to_, wide_, output_, results_); }

}  // namespace coll
