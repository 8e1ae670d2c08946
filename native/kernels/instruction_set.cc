// SPDX-License-Identifier: Apache-2.0
#include "kernels/instruction_set.h"

namespace coll {

#if defined(__x86_64__)

bool supported(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::avx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("f16c") != 0;
    case InstructionSet::avx512:
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
             __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
    case InstructionSet::baseline:
      break;
  }
  return true;
}

#else

bool supported(InstructionSet set) noexcept { return set == InstructionSet::baseline; }

#endif

InstructionSet best_instruction_set() noexcept {
  static const InstructionSet best = [] {
    if (supported(InstructionSet::avx512)) return InstructionSet::avx512;
    if (supported(InstructionSet::avx2)) return InstructionSet::avx2;
    return InstructionSet::baseline;
  }();
  return best;
}

}  // namespace coll
