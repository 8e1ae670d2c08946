// SPDX-License-Identifier: Apache-2.0
// Claims as formulas in text: what the documentation prints is what the prover evaluates.
#pragma once

#include <string_view>

namespace coll {

// Value of a formula for p ranks. Names: p, L = ceil(log2 p), K = floor(log2 p), P = 2^K;
// lg(x) = ceil(log2 x), 0 up to 1.
// Operators: + - * / ( ) and the comparison >, which is 1 or 0. Throws Error on anything else.
double evaluate(std::string_view formula, int p);

}  // namespace coll
