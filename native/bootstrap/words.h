// SPDX-License-Identifier: Apache-2.0
// Parts of the sentences that the rendezvous says.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace coll {

struct Identity;

// "job 'default', attempt 0".
std::string job_in_words(const Identity& identity);
// {3} as "rank 3", {1, 2, 3, 7} as "ranks 1-3, 7"; ascending.
std::string ranks_in_words(const std::vector<int>& ranks);
// "process 4711".
std::string process_in_words(pid_t pid);
// "1.5 s".
std::string seconds_in_words(double seconds);

}  // namespace coll
