// SPDX-License-Identifier: Apache-2.0
// Memory is left at a door and taken there; from nobody else, and nothing stays open.
#include "bootstrap/handover.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/error.h"
#include "bootstrap/channel.h"
#include "check.h"
#include "child.h"
#include "transport/faults.h"
#include "transport/memory.h"

namespace {

using namespace coll;

const Identity kSelf{.rank = 1, .ranks = 2, .job = "a job/split 3.0", .attempt = 2};
constexpr std::uint64_t kGroup = 0xFEDCBA9876543210;

// What it says about why it cannot; empty: it can.
template <class Work>
std::string complaint(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string name_of(const HandoverDoor& door) {
  const std::string text = door.text();
  return text.substr(text.find(' ') + 1);
}

bool same_file(int a, int b) {
  struct stat one{}, other{};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_ino == other.st_ino;
}

TEST(what_was_left_is_taken) {
  const int before = check::descriptors();
  {
    const Memory memory = Memory::shared(kPage);
    const HandoverDoor door(kSelf), other(kSelf);
    CHECK(door.text() != other.text());
    CHECK(name_of(door).starts_with("collectives/" + std::to_string(::geteuid()) +
                                    "/a job/split 3.0/2/"));
    hand_over(door.text(), memory.fd(), kGroup);
    const Descriptor taken = door.take(::getpid(), kGroup);
    CHECK(taken && same_file(taken.get(), memory.fd()));
    CHECK((::fcntl(taken.get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(complaint([&] { door.take(::getpid(), kGroup); }).ends_with("nothing has come"));
    hand_over(other.text(), memory.fd(), kGroup);  // and nobody takes it
  }
  CHECK(check::descriptors() == before);
}

TEST(another_group_is_not_taken) {
  const Memory memory = Memory::shared(kPage), right = Memory::shared(kPage);
  const HandoverDoor door(kSelf);
  hand_over(door.text(), memory.fd(), kGroup + 1);
  const Opened silent = connect_to(name_of(door)), garbage = connect_to(name_of(door));
  CHECK(send_packet(garbage.fd, "garbage", 7, memory.fd()) == 0);
  hand_over(door.text(), right.fd(), kGroup);
  const Descriptor taken = door.take(::getpid(), kGroup);
  CHECK(same_file(taken.get(), right.fd()));
}

// The other end is this process in all of these: it is expected to be another one.
TEST(another_process_is_none) {
  const Memory memory = Memory::shared(kPage);
  const HandoverDoor door(kSelf);
  const std::string claimed = "1 " + name_of(door);
  CHECK(complaint([&] { hand_over(claimed, memory.fd(), kGroup); })
            .ends_with("process 1 is process " + std::to_string(::getpid()) +
                       " here: it runs in another PID namespace"));
  hand_over(door.text(), memory.fd(), kGroup);
  CHECK(complaint([&] { door.take(1, kGroup); }).find("another PID namespace") !=
        std::string::npos);
  for (const char* door_that_is_none : {"", "7", "x y", "1 nobody listens here"}) {
    CHECK(!complaint([&] { hand_over(door_that_is_none, memory.fd(), kGroup); }).empty());
  }
}

// Needs root, which alone may become somebody else.
TEST(another_user_gets_nothing_and_gives_nothing) {
  if (::geteuid() != 0) return;
  const Memory memory = Memory::shared(kPage);
  const HandoverDoor door(kSelf);
  check::Child stranger([&] {
    CHECK(::seteuid(65534) == 0);
    CHECK(complaint([&] {
            hand_over(door.text(), memory.fd(), kGroup);
          }).ends_with("belongs to user 0, this rank to user 65534"));
  });
  const pid_t pid = stranger.pid();
  CHECK(stranger.wait() == 0);
  CHECK(complaint([&] { door.take(pid, kGroup); }).find("belongs to user 65534") !=
        std::string::npos);
}

TEST(a_system_that_fails_says_why) {
  const Memory memory = Memory::shared(kPage);
  const int before = check::descriptors();
  for (const SystemCall call : {SystemCall::getrandom, SystemCall::socket, SystemCall::bind,
                                SystemCall::listen, SystemCall::connect, SystemCall::getsockopt,
                                SystemCall::sendmsg, SystemCall::accept4, SystemCall::recvmsg}) {
    faults::arm({call, 1, EACCES, true});
    const std::string why = complaint([&] {
      const HandoverDoor door(kSelf);
      hand_over(door.text(), memory.fd(), kGroup);
      door.take(::getpid(), kGroup);
    });
    faults::clear();
    CHECK(!why.empty());
    CHECK(check::descriptors() == before);
  }
}

}  // namespace
