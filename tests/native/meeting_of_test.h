// SPDX-License-Identifier: Apache-2.0
// Ranks, each in a thread, that meet where rank 0 is.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/mesh_directory.h"
#include "mesh_of_test.h"

namespace coll::testing {

// A port that is free now, below those that the system gives to whoever asks: nobody gets it before
// the test does, nor does another program of these tests, whose number may be the next.
inline Endpoint free_place() {
  static int next = 0;
  for (;; ++next) {
    const int port = 10'000 + (static_cast<int>(::getpid()) * 131 + next) % 20'000;
    const Endpoint at = Endpoint::parse("127.0.0.1:" + std::to_string(port));
    try {
      TcpListener listener(at, 1);
      ++next;
      return at;
    } catch (const Error&) {
      continue;
    }
  }
}

inline std::unique_ptr<MeshDirectory> came(const Endpoint& at, int rank, int ranks,
                                           double seconds = 10,
                                           const Secret& secret = secret_of_job()) {
  return std::make_unique<MeshDirectory>(rank_of_job(rank, ranks), secret, at, seconds, Stop());
}

inline std::string key_of(int rank, int round) {
  return "key" + std::to_string(round) + "." + std::to_string(rank);
}

// What a rank puts: bytes of every kind, more of them than one read takes.
inline std::string value_of(int rank) {
  return std::string(static_cast<std::size_t>(rank) * 5000, '\0') + "v" + std::to_string(rank);
}

// Runs work(rank) for each, each in a thread; the sentences of what they throw, by rank.
template <class Work>
std::vector<std::string> all_of(int ranks, Work work) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(rank);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Waits, but not for ever: what is waited for may have failed.
template <class Condition>
void wait_until(Condition met) {
  for (const Deadline end(30); !met() && !end.passed();) ::usleep(1000);
}

template <class F>
bool says_error(F f, const std::string& words) {
  return says(thrown<Error>(f).what(), words);
}

inline void expect(const std::string& text, const std::string& words) {
  if (text.find(words) == std::string::npos) check::fail("'" + text + "' lacks '" + words + "'");
}

}  // namespace coll::testing
