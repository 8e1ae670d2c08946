// SPDX-License-Identifier: Apache-2.0
// The whole test framework: TEST, CHECK, thrown and run_ranks; main() is in check.cc, compiled once
// for all programs.
//   x_test [part of a name]    runs the tests whose name contains it; exit status 0: all passed
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*body)();
};
inline std::vector<Test> tests;
inline const char* running = "(no test)";

struct Registration {
  Registration(const char* name, void (*body)()) { tests.push_back({name, body}); }
};

// Builtins, because clang has no std::source_location with the library of g++ 12.
[[noreturn]] void fail(const std::string& what, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE());
[[noreturn]] void fail(const char* what, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE());

// The exception of type E that `f` throws; anything else (nothing included) fails the test.
template <class E, class F>
E thrown(F f, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  try {
    f();
  } catch (const E& error) {
    return error;
  }
  fail("nothing was thrown where an exception was due", file, line);
}

// f(0) ... f(p-1), each in a thread of its own. Rethrows the exception that came first. Ranks that
// are not back within the limit end the program.
void run_ranks(int p, const std::function<void(int)>& f,
               std::chrono::milliseconds limit = std::chrono::seconds(60));

}  // namespace check

using check::run_ranks;
using check::thrown;

#define TEST(name)                                                        \
  static void test_##name();                                              \
  static const check::Registration registered_##name(#name, test_##name); \
  static void test_##name()

#define CHECK(...) ((__VA_ARGS__) ? void() : check::fail(#__VA_ARGS__))
