// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_choice.h"

#include <string>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "communicator/note.h"
#include "communicator/reproducible.h"
#include "cuda/packet_fold.h"
#include "select/choose_gpu.h"

namespace coll {
namespace {

// A block keeps sums of narrow floats in float32 until it writes them. So what is folded in one op
// is accumulated there.
bool accumulated_in_one_fold(const Call& call) noexcept {
  return accumulates_wider(call) && call.accumulate == Accumulate::float32;
}

// On the CPU another algorithm sends partial sums as float32, for which there is no kernel here.
void check_one_fold(const Call& call, const Wish& wish) {
  const auto table = algorithms();
  const auto index = static_cast<std::size_t>(call.algorithm);
  if (!wish.one_fold || call.algorithm < 0 || index >= table.size()) return;
  if (table[index]->tree.one_fold) return;
  throw Error(Status::unsupported, std::string(table[index]->name) + " rounds sums of " +
                                       name_of(call.dtype) +
                                       " on their way, which accumulate= and reproducible= on a "
                                       "GPU forbid: choose a direct algorithm, or none");
}

// Arrays that nobody else reaches travel through rings.
Mode within_reach(Mode mode, const Wish& wish, bool reach_arrays) {
  if (reach_arrays || mode == Mode::staged || mode == Mode::inlined) return mode;
  if (wish.mode == kUnchosen) return Mode::staged;
  throw Error(Status::unsupported,
              "ranks that have a GPU each do not reach each other's arrays: the modes staged and "
              "inline are there");
}

}  // namespace

void refuse_unsupported_on_gpu(const Call& call) {
  if (accumulates_wider(call) && !accumulated_in_one_fold(call)) {
    throw Error(Status::unsupported,
                "on GPUs accumulate= is there of float32 for narrow floats, and of nothing else "
                "yet: convert the array");
  }
  if (sums_exactly(call)) {
    throw Error(Status::unsupported,
                "sums that are reproducible for any number of ranks are not there on GPUs yet: "
                "those for one number of ranks are, reproducible=True");
  }
  if (call.algorithm >= kGivenSchedules) {
    throw Error(Status::unsupported, "algorithms of the program do not run on GPUs yet");
  }
}

Choice gpu_choice(const Call& call, int ranks, bool reach_arrays) {
  const std::size_t element = size_of(call.dtype);
  Wish wish = wish_of(call);
  wish.one_fold = wish.one_fold || accumulated_in_one_fold(call);
  check_one_fold(call, wish);
  // Ranks of one launch reach each other's arrays when it begins: packets would only come later.
  Choice choice = choose_gpu(call.kind, ranks, chosen_by_elements(call, ranks) * element,
                             !reach_arrays && element <= cuda::kWordBytes, wish);
  choice.mode = within_reach(choice.mode, wish, reach_arrays);
  check_blocks(call, algorithms()[static_cast<std::size_t>(choice.algorithm)]->passes_on);
  return choice;
}

}  // namespace coll
