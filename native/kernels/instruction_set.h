// SPDX-License-Identifier: Apache-2.0
// The instruction sets for which every kernel is compiled, and the one that this CPU runs best.
//
// Each kernel is one always-inlined body, compiled into one function per set by the target
// attribute. Compiler-made clones (target_clones) would resolve before main, where the thread
// sanitizer crashes, and do not combine with templates; flags per file would leave AVX copies of
// inline functions for the linker to choose for all. The sets differ in width only: products are
// not contracted (cmake/CollOptions.cmake), so the bits are the same everywhere.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/kernels.h"

namespace coll {

// avx2 brings f16c, the conversions of float16: no CPU has the one without the other.
enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };
inline constexpr std::array kInstructionSets = {InstructionSet::baseline, InstructionSet::avx2,
                                                InstructionSet::avx512};

// Whether this CPU (and its operating system) runs them. baseline: always.
bool supported(InstructionSet set) noexcept;

// The widest that is supported; found once.
InstructionSet best_instruction_set() noexcept;

// fold_kernel for a given set, which must be supported. Elsewhere than on x86-64 all are baseline.
FoldKernel fold_kernel_for(InstructionSet set, Dtype dtype, Reduction op) noexcept;

}  // namespace coll
