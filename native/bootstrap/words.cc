// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/words.h"

#include <cstdio>

#include "bootstrap/handshake.h"

namespace coll {

std::string job_in_words(const Identity& identity) {
  return "job '" + identity.job + "', attempt " + std::to_string(identity.attempt);
}

std::string ranks_in_words(const std::vector<int>& ranks) {
  std::string words = ranks.size() == 1 ? "rank" : "ranks";
  const char* separator = " ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    words += separator + std::to_string(ranks[i]);
    if (last > i) words += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    separator = ", ";
    i = last + 1;
  }
  return words;
}

std::string process_in_words(pid_t pid) { return "process " + std::to_string(pid); }

std::string seconds_in_words(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

}  // namespace coll
