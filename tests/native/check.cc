// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "emulated.h"

namespace check {

namespace {

std::string text_of(const std::exception_ptr& failure) {
  if (!failure) return "no rank has failed";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

// What the ranks of one run_ranks tell each other and the watchdog.
struct Ranks {
  explicit Ranks(int p) : done(static_cast<std::size_t>(p), false), left(p) {}

  void finish(int rank, const std::exception_ptr& failure) {
    const std::lock_guard lock(mutex);
    if (failure && !first) {
      first = failure;
      first_rank = rank;
    }
    done[static_cast<std::size_t>(rank)] = true;
    --left;
    all_done.notify_all();
  }
  // Ranks that wait for one another for ever cannot be joined: say who, then end the program.
  void watch(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex);
    if (all_done.wait_for(lock, limit, [this] { return left == 0; })) return;
    std::fprintf(stderr, "HANG %s: after %lld ms not back:", running,
                 static_cast<long long>(limit.count()));
    for (std::size_t rank = 0; rank < done.size(); ++rank) {
      if (!done[rank]) std::fprintf(stderr, " rank %zu", rank);
    }
    std::fprintf(stderr, "; first failure: rank %d, %s\n", first_rank, text_of(first).c_str());
    std::fflush(nullptr);
    std::abort();
  }

  std::mutex mutex;
  std::condition_variable all_done;
  std::vector<bool> done;
  int left;
  std::exception_ptr first;
  int first_rank = -1;
};

int run(std::string_view filter) {
  int passed = 0, failed = 0, lacking = 0;
  for (const Test& test : tests) {
    if (std::string_view(test.name).find(filter) == std::string_view::npos) continue;
    running = test.name;
    std::exception_ptr failure;
    try {
      test.body();
    } catch (...) {
      failure = std::current_exception();
    }
    const char* lack = lack_of(test.name);
    if (lack != nullptr && failure) {
      ++lacking;
      std::printf("LACKING %s: the emulator does not implement %s\n", test.name, lack);
    } else if (lack != nullptr || failure) {
      ++failed;
      std::printf("FAIL %s: %s\n", test.name,
                  failure ? text_of(failure).c_str() : "passes: take it out of emulated.h");
    } else {
      ++passed;
    }
    std::fflush(stdout);
  }
  if (lacking > 0) std::printf("%d lacking, ", lacking);
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

void fail(const std::string& what, const char* file, int line) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

void fail(const char* what, const char* file, int line) { fail(std::string(what), file, line); }

void run_ranks(int p, const std::function<void(int)>& f, std::chrono::milliseconds limit) {
  Ranks ranks(p);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < p; ++rank) {
    threads.emplace_back([&ranks, &f, rank] {
      std::exception_ptr failure;
      try {
        f(rank);
      } catch (...) {
        failure = std::current_exception();
      }
      ranks.finish(rank, failure);
    });
  }
  ranks.watch(limit);
  for (std::thread& thread : threads) thread.join();
  if (ranks.first) std::rethrow_exception(ranks.first);
}

}  // namespace check

int main(int argc, char** argv) { return check::run(argc > 1 ? argv[1] : ""); }
