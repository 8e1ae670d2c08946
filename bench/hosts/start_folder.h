// SPDX-License-Identifier: Apache-2.0
// How ranks of coll_start tell each other where they listen, in a folder that all reach. The C
// interface leaves that to its user; this is the least a user can write.
#pragma once

#include <string>
#include <vector>

namespace start_bench {

// A launcher's channel: every rank gives a text, all get the texts of all.
struct Place {
  int rank = 0, ranks = 0;
};

// Every rank leaves a file; rank 0 writes one with the lines of all, which the others wait for.
// Throws std::runtime_error where that takes above a minute.
std::vector<std::string> exchange_in_folder(const std::string& folder, const Place& place,
                                            const std::string& text);

}  // namespace start_bench
