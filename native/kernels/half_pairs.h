// SPDX-License-Identifier: Apache-2.0
// The sum, or mean, of two float16 vectors in one pass over them: what two ranks fold most. Same
// bits as the fold block by block: both widen, add and round once.
#pragma once

#include "kernels/instruction_set.h"
#include "kernels/kernels.h"

namespace coll::kernels {

// Whether the CPU adds two of them in one instruction, without a conversion.
bool adds_halves() noexcept;

// False where the fold is another one, or the CPU has no conversion: then nothing was done.
bool half_pair_summed(const Fold& fold, InstructionSet set) noexcept;

}  // namespace coll::kernels
