// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace coll {

// The version of this library. Ranks of one job must agree on it to the letter.
inline constexpr char kLibraryVersion[] = "0.1.0";

}  // namespace coll
