// SPDX-License-Identifier: Apache-2.0
// Who a process is, as its environment says. Everything is read in children: COLLECTIVES_FAULT is
// read once in the life of a process.
#include "bootstrap/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/error.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/words.h"
#include "check.h"
#include "child.h"

namespace {

using namespace coll;

// Reads the environment with these COLLECTIVES_ variables and no others, in a process of its own.
std::string outcome_of(const std::map<std::string, std::string>& variables) {
  int ends[2];
  if (::pipe(ends) != 0) check::fail("pipe");
  check::Child child([&] {
    for (const Variable& variable : environment_variables()) ::unsetenv(variable.name);
    for (const auto& [name, value] : variables) {
      ::setenv(("COLLECTIVES_" + name).c_str(), value.c_str(), 1);
    }
    std::string text;
    try {
      const Environment read = read_environment();
      text = std::to_string(read.identity.rank) + "/" + std::to_string(read.identity.ranks) + " " +
             job_in_words(read.identity) + ", " + seconds_in_words(read.timeout_s);
    } catch (const Error& error) {
      text =
          (error.status == Status::invalid_argument ? "refused: " : "") + std::string(error.what());
    }
    CHECK(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  });
  CHECK(child.wait() == 0);
  char text[1024];
  const ssize_t n = ::read(ends[0], text, sizeof text);
  ::close(ends[0]);
  ::close(ends[1]);
  return std::string(text, n > 0 ? static_cast<std::size_t>(n) : 0);
}

TEST(environment_of_a_rank) {
  CHECK(outcome_of({}) == "0/1 job 'default', attempt 0, 300 s");
  CHECK(outcome_of({{"RANK", "3"}, {"SIZE", "4"}}) == "3/4 job 'default', attempt 0, 300 s");
  CHECK(outcome_of(
            {{"RANK", "0"}, {"SIZE", "2"}, {"JOB", "x y"}, {"ATTEMPT", "7"}, {"TIMEOUT", "1.5"}}) ==
        "0/2 job 'x y', attempt 7, 1.5 s");
}

TEST(environment_that_is_malformed) {
  const auto refused = [](const std::map<std::string, std::string>& variables,
                          const std::string& part) {
    const std::string text = outcome_of(variables);
    return text.rfind("refused: ", 0) == 0 && text.find(part) != std::string::npos;
  };
  CHECK(refused({{"RANK", "1"}}, "COLLECTIVES_RANK is '1', but COLLECTIVES_SIZE is not set"));
  CHECK(refused({{"SIZE", "2"}}, "COLLECTIVES_SIZE is '2', but COLLECTIVES_RANK is not set"));
  CHECK(refused({{"RANK", "2"}, {"SIZE", "2"}}, "COLLECTIVES_RANK is '2'; it must be less than"));
  for (const char* bad : {"", "x", "1x", " 1", "+1", "-1", "1.0", "0x1", "99999999999"}) {
    const std::string value = std::string("is '") + bad + "'";
    CHECK(refused({{"RANK", bad}, {"SIZE", "2"}}, "COLLECTIVES_RANK " + value));
    CHECK(refused({{"RANK", "0"}, {"SIZE", bad}}, "COLLECTIVES_SIZE " + value));
    CHECK(refused({{"ATTEMPT", bad}}, "COLLECTIVES_ATTEMPT " + value));
  }
  CHECK(refused({{"RANK", "0"}, {"SIZE", "0"}}, "COLLECTIVES_SIZE is '0'"));
  for (const char* bad : {"", "0", "-1", "nan", "inf", "1e10", "1s", " 1"}) {
    CHECK(refused({{"TIMEOUT", bad}}, std::string("COLLECTIVES_TIMEOUT is '") + bad + "'"));
  }
  CHECK(refused({{"JOB", ""}}, "COLLECTIVES_JOB is ''"));
  CHECK(refused({{"STREAMS", "0"}}, "COLLECTIVES_STREAMS is '0'"));
  CHECK(refused({{"SEND_BUFFER", "x"}}, "COLLECTIVES_SEND_BUFFER is 'x'"));
  CHECK(refused({{"FAULT", "mmap"}}, "COLLECTIVES_FAULT is 'mmap'"));
}

TEST(the_send_buffer_is_bytes) {
  constexpr char kName[] = "COLLECTIVES_SEND_BUFFER";
  ::unsetenv(kName);
  CHECK(send_buffer_bytes() == 512 << 10);
  ::setenv(kName, "0", 1);
  CHECK(send_buffer_bytes() == 0);
  ::setenv(kName, "64K", 1);
  const Error error = thrown<Error>([] { send_buffer_bytes(); });
  ::unsetenv(kName);
  CHECK(error.status == Status::invalid_argument);
  CHECK(std::string(error.what()).find("COLLECTIVES_SEND_BUFFER is '64K'") != std::string::npos);
}

TEST(streams_are_counted) {
  constexpr char kName[] = "COLLECTIVES_STREAMS";
  ::unsetenv(kName);
  CHECK(streams_of_pair() == 1);
  ::setenv(kName, "16", 1);
  CHECK(streams_of_pair() == 16);
  for (const std::string bad : {"0", "17", "4.5", ""}) {
    ::setenv(kName, bad.c_str(), 1);
    const Error error = thrown<Error>([] { streams_of_pair(); });
    CHECK(error.status == Status::invalid_argument);
    CHECK(error.what() ==
          std::string(kName) + " is '" + bad + "'; it must be a whole number from 1 to 16");
  }
  ::setenv(kName, std::string(5000, '9').c_str(), 1);
  CHECK(thrown<Error>([] { streams_of_pair(); }).what() ==
        std::string(kName) + " is '" + std::string(80, '9') +
            "'...; it must be a whole number from 1 to 16");
  ::unsetenv(kName);
}

TEST(a_fault_from_the_environment_strikes) {
  check::Child child([] {
    ::setenv("COLLECTIVES_FAULT", "mmap:1:ENOMEM", 1);
    CHECK(thrown<Error>([] { rendezvous({}, {}, 1); }).status == Status::out_of_memory);
    rendezvous({}, {}, 1);  // once, and armed once
  });
  CHECK(child.wait() == 0);
}

}  // namespace
