// SPDX-License-Identifier: Apache-2.0
// Which host a process is on. Children enter namespaces of their own and tell by a pipe.
#include "topology/host.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "check.h"
#include "child.h"

namespace {

using namespace coll;

constexpr char kRefused[] = "refused";

// What text_of(this_host()) is in a child with new namespaces of these kinds and that name; the
// own ones and name where they are 0 and empty. kRefused where the kernel does not let us.
std::string text_inside(int kinds, const std::string& name) {
  int ends[2];
  if (::pipe(ends) != 0) check::fail("pipe");
  check::Child child([&] {
    std::string text = kRefused;
    // Who is not root may do it in a user namespace.
    if (kinds == 0 || ::unshare(kinds) == 0 || ::unshare(kinds | CLONE_NEWUSER) == 0) {
      CHECK(name.empty() || ::sethostname(name.data(), name.size()) == 0);
      text = text_of(this_host());
    }
    CHECK(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  });
  ::close(ends[1]);
  char text[512];
  const ssize_t n = ::read(ends[0], text, sizeof text);
  ::close(ends[0]);
  CHECK(child.wait() == 0 && n > 0);
  return {text, static_cast<std::size_t>(n)};
}

}  // namespace

TEST(it_is_what_the_system_says) {
  const HostId host = this_host();
  std::string boot_id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot_id);
  struct stat network{};
  utsname names{};
  CHECK(::stat("/proc/self/ns/net", &network) == 0 && ::uname(&names) == 0);
  CHECK(host.boot_id == boot_id && host.boot_id.size() == 36);
  CHECK(host.network == network.st_ino && host.network != 0);
  CHECK(host.name == names.nodename);
}

TEST(all_three_parts_count) {
  const HostId host{"boot", 7, "a"};
  CHECK(host == (HostId{"boot", 7, "a"}));
  CHECK(host != (HostId{"root", 7, "a"}));
  CHECK(host != (HostId{"boot", 8, "a"}));
  CHECK(host != (HostId{"boot", 7, "b"}));
  CHECK(host < (HostId{"boot", 8, "a"}));
  CHECK(text_of(host) == "a (network 7, boot boot)");
}

TEST(two_processes_of_a_host_agree) { CHECK(text_inside(0, "") == text_of(this_host())); }

TEST(another_network_or_name_is_another_host) {
  const std::string own = text_of(this_host());
  const std::string network = text_inside(CLONE_NEWNET, "");
  const std::string name = text_inside(CLONE_NEWUTS, "elsewhere");
  CHECK(network != own && name != own);
  if (name != kRefused) CHECK(name.rfind("elsewhere (network ", 0) == 0);
  if (network != kRefused) CHECK(network.rfind(this_host().name + " (network ", 0) == 0);
}
