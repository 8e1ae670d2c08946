// SPDX-License-Identifier: Apache-2.0
// Reductions that a user brings as a function. Numbers like those of the built-in ones, from
// kUserOps on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/kernels.h"

namespace coll {

inline constexpr int kUserOps = 128, kMostUserOps = 128;

// right[i] := left[i] op right[i], for n elements of a dtype; left is of the lower ranks. Returns
// 0, or anything else where it has failed.
using UserFunction = std::int32_t (*)(const void* left, void* right, std::size_t n,
                                      std::int32_t dtype, void* context);

struct UserOp {
  UserFunction function = nullptr;
  void* context = nullptr;
  bool commutes = false;
  std::string name{};            // the same on all ranks
  std::uint64_t generation = 0;  // of this process; add_user_op() counts: numbers are used again
};

// Throws Error where there is no function, or no number is free.
int add_user_op(UserOp&& op);
// No call may be using it.
void remove_user_op(int number);
// Null where there is none of this number.
const UserOp* find_user_op(int number) noexcept;
// Differs between two operations that had the same number one after the other; 0: there is none.
std::uint64_t user_op_generation(int number) noexcept;

// A FoldKernel: applies fold.user block by block.
void fold_user(const Fold& fold) noexcept;

}  // namespace coll
