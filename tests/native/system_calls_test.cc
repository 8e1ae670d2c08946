// SPDX-License-Identifier: Apache-2.0
#include "transport/system_calls.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/system_error.h"
#include "check.h"
#include "child.h"
#include "transport/descriptor.h"
#include "transport/faults.h"
#include "transport/memory.h"

namespace {

using namespace coll;
using Clock = std::chrono::steady_clock;

// Ends the plan of failures with the test.
struct Quiet {
  ~Quiet() { faults::clear(); }
};

bool opens() { return static_cast<bool>(Descriptor(sys::open("/dev/null", O_RDONLY | O_CLOEXEC))); }

bool says(const Error& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

TEST(nth_call_fails_once) {
  const Quiet quiet;
  faults::arm({SystemCall::open, 2, EMFILE, false});
  CHECK(opens());
  CHECK(!opens());
  CHECK(errno == EMFILE);
  CHECK(opens());
  CHECK(faults::fired() == 1);
}

TEST(calls_fail_from_the_nth_on) {
  const Quiet quiet;
  faults::arm({SystemCall::open, 2, EIO, true});
  CHECK(opens());
  for (int i = 0; i < 5; ++i) CHECK(!opens());
  faults::clear();
  CHECK(opens());
  CHECK(faults::fired() == 5);
}

TEST(other_calls_are_not_counted_unless_any) {
  const Quiet quiet;
  faults::arm({SystemCall::mmap, 1, ENOMEM, false});
  CHECK(opens());
  CHECK(sys::mmap(kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1) == MAP_FAILED);
  faults::arm({SystemCall::any, 2, EIO, false});
  const int fd = sys::open("/dev/null", O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  char byte = 0;
  CHECK(sys::read(fd, &byte, 1) == -1);
  CHECK(sys::read(fd, &byte, 1) == 0);
  CHECK(sys::close(fd) == 0);
}

TEST(interrupted_calls_are_made_again_but_poll_and_close) {
  const Quiet quiet;
  faults::arm({SystemCall::open, 1, EINTR, false});
  CHECK(opens());
  CHECK(faults::fired() == 1);
  faults::arm({SystemCall::poll, 1, EINTR, false});
  CHECK(sys::poll(nullptr, 0, 0) == -1);
  CHECK(errno == EINTR);
  const int before = check::descriptors();
  const int fd = sys::open("/dev/null", O_RDONLY | O_CLOEXEC);
  faults::arm({SystemCall::close, 1, EINTR, false});
  CHECK(sys::close(fd) == -1);
  CHECK(check::descriptors() == before);
}

TEST(an_endless_interruption_is_refused) {
  CHECK(thrown<Error>([] { faults::arm({SystemCall::open, 1, EINTR, true}); }).status ==
        Status::invalid_argument);
}

TEST(random_interruptions_follow_the_seed) {
  const Quiet quiet;
  const auto pattern = [](std::uint64_t seed) {
    faults::interrupt_at_random(seed);
    std::string hits;
    for (int i = 0; i < 64; ++i) hits += sys::poll(nullptr, 0, 0) == 0 ? '.' : 'x';
    return hits;
  };
  CHECK(pattern(1) == pattern(1));
  CHECK(pattern(1) != pattern(2));
  CHECK(pattern(1).find('x') != std::string::npos);
  CHECK(pattern(1).find('.') != std::string::npos);
  faults::interrupt_at_random(3);
  for (int i = 0; i < 64; ++i) CHECK(opens());
  CHECK(faults::fired() > 0);
}

// What goes in comes out, in pieces: some calls would block, some move a part.
TEST(a_disturbed_socket_loses_nothing) {
  const Quiet quiet;
  int ends[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Descriptor from(ends[0]), to(ends[1]);
  std::string said(20'000, '?'), heard(said.size(), ' ');
  for (std::size_t i = 0; i < said.size(); ++i) said[i] = static_cast<char>('a' + i % 23);
  std::size_t out = 0, in = 0;
  int blocked = 0, cut = 0;
  const auto move = [&](char* at, std::size_t most, bool receive) {
    iovec parts[] = {{at, most / 2}, {at + most / 2, most - most / 2}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t n = receive ? sys::recvmsg(to.get(), &message, MSG_DONTWAIT)
                              : sys::sendmsg(from.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) CHECK(errno == EAGAIN);
    if (n < 0) ++blocked;
    if (n > 0 && static_cast<std::size_t>(n) < most) ++cut;
    return n < 0 ? 0 : static_cast<std::size_t>(n);
  };
  faults::disturb_at_random(1);
  for (int i = 0; i < 100'000 && in < said.size(); ++i) {
    if (out < said.size()) {
      out += move(said.data() + out, std::min<std::size_t>(500, said.size() - out), false);
    }
    if (in < out) in += move(heard.data() + in, out - in, true);
  }
  CHECK(heard == said);
  CHECK(blocked > 5 && cut > 5 && faults::fired() > 0);
}

TEST(a_fault_in_words) {
  const Quiet quiet;
  faults::arm_from("open:3:ENFILE:always");
  CHECK(opens() && opens());
  CHECK(!opens() && !opens());
  CHECK(errno == ENFILE);
  for (const char* bad :
       {"", "open", "open:1", "open:0:EIO", "open:-1:EIO", "open:1x:EIO", "open::EIO",
        "open:1:EWHAT", "open:1:", "open:1:EIO:sometimes", "open:1:EIO:always:", "nothing:1:EIO",
        "open:99999999999999999999:EIO", "open:1:EINTR:always"}) {
    const Error error = thrown<Error>([&] { faults::arm_from(bad); });
    CHECK(error.status == Status::invalid_argument);
    CHECK(says(error, "COLLECTIVES_FAULT is '" + std::string(bad) + "'"));
  }
}

TEST(names_of_calls_and_errors) {
  for (int c = 0; c <= static_cast<int>(SystemCall::any); ++c) {
    const CallTraits& traits = traits_of(static_cast<SystemCall>(c));
    CHECK(!traits.name.empty());
    CHECK(traits.interruptible || !traits.retried);
  }
  CHECK(traits_of(SystemCall::mmap).name == "mmap");
  CHECK(traits_of(SystemCall::futex_wake).name == "futex_wake");
  CHECK(errno_from_name("ENOMEM") == ENOMEM);
  CHECK(errno_name(ENOMEM) == "ENOMEM");
  CHECK(errno_from_name("EWHAT") == 0);
  CHECK(errno_name(4711) == "errno 4711");
}

TEST(system_errors_say_what_to_do) {
  CHECK(system_error("mmap", ENOMEM).status == Status::out_of_memory);
  const Error files = system_error("accepting a rank", EMFILE);
  CHECK(files.status == Status::system);
  CHECK(says(files, "accepting a rank failed: "));
  CHECK(says(files, "(EMFILE)"));
  CHECK(says(files, "ulimit -n"));
}

TEST(futex_wait_ends_by_itself) {
  const std::atomic<std::uint32_t> word{7};
  const auto start = Clock::now();
  CHECK(!futex_wait(&word, 7, 20'000));
  CHECK(Clock::now() - start >= std::chrono::milliseconds(19));
  // Neither another value nor a time-out of nothing waits.
  const auto again = Clock::now();
  CHECK(!futex_wait(&word, 8, 10'000'000));
  CHECK(!futex_wait(&word, 7, 0));
  CHECK(Clock::now() - again < std::chrono::seconds(5));
}

TEST(futex_wakes_another_process) {
  const Memory memory = Memory::shared(kPage);
  // The child maps the memfd itself: it inherits neither the parent's mapping nor its descriptor.
  const Descriptor inherited(::dup(memory.fd()));
  CHECK(inherited);
  check::Child child([fd = inherited.get()] {
    CHECK(fd >= 0);
    const Memory mine = Memory::map(Descriptor(::dup(fd)));
    auto& words = *static_cast<std::atomic<std::uint32_t>(*)[2]>(mine.data());
    words[1].store(1);
    while (words[0].load() == 0) futex_wait(&words[0], 0, 10'000'000);
  });
  auto& words = *static_cast<std::atomic<std::uint32_t>(*)[2]>(memory.data());
  while (words[1].load() == 0) sys::yield();
  check::nap(20);
  words[0].store(1);
  futex_wake_all(&words[0]);
  // Well under the 10 s after which the child would have woken by itself.
  CHECK(child.wait(std::chrono::seconds(5)) == 0);
}

TEST(futex_wait_tells_of_a_signal) {
  check::Child child([] {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, nullptr);
    // Again and again: one signal alone could come before the wait begins.
    const itimerval timer{{0, 5000}, {0, 5000}};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
    const std::atomic<std::uint32_t> word{0};
    CHECK(futex_wait(&word, 0, 10'000'000));
  });
  CHECK(child.wait(std::chrono::seconds(5)) == 0);
}

TEST(a_fence_on_all_cores_or_word_that_there_is_none) {
  const Quiet quiet;
  if (all_cores_fence_register()) CHECK(all_cores_fence());
  faults::arm({SystemCall::membarrier, 1, ENOSYS, true});
  CHECK(!all_cores_fence_register());
  CHECK(!all_cores_fence());
}

TEST(a_failing_futex_is_a_short_wait) {
  const Quiet quiet;
  const std::atomic<std::uint32_t> word{0};
  faults::arm({SystemCall::futex_wait, 1, ENOSYS, true});
  CHECK(!futex_wait(&word, 0, 10'000'000));
  faults::arm({SystemCall::futex_wait, 1, EINTR, false});
  CHECK(futex_wait(&word, 0, 10'000'000));
}

}  // namespace
