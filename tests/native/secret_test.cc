// SPDX-License-Identifier: Apache-2.0
// The secret: as text, in a file, gone from memory when its life ends.
#include "bootstrap/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "bytes_of_test.h"
#include "check.h"
#include "child.h"
#include "transport/faults.h"

using namespace coll;

namespace {

// A folder of its own for each test.
class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "secret_test_XXXXXX";
    CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name) const { return path_ / name; }
  std::string file(const std::string& content, mode_t mode = 0600) const {
    const std::string name = path("file");
    std::ofstream(name, std::ios::binary | std::ios::trunc) << content;
    CHECK(::chmod(name.c_str(), mode) == 0);
    return name;
  }

 private:
  std::filesystem::path path_;
};

const std::string kDigits = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff";

// The line that makes a file is printed where nothing is, and never where it would overwrite.
Error refused(const std::string& path, const std::string& words, bool nothing_there = false) {
  const Error error = thrown<Error>([&] { Secret::from_file(path); });
  const std::string text = error.what();
  CHECK(text.find(words) != std::string::npos);
  CHECK(text.find("COLLECTIVES_SECRET_FILE") != std::string::npos);
  CHECK((text.find(command_for_secret_file(path)) != std::string::npos) == nothing_there);
  CHECK((text.find("/dev/urandom") != std::string::npos) == nothing_there);
  return error;
}

// Fails the next call of that name for as long as it lives.
struct Failing {
  Failing(SystemCall call, int error) { faults::arm({.call = call, .error = error}); }
  ~Failing() { faults::clear(); }
};

}  // namespace

TEST(hex_text_there_and_back) {
  const Secret secret = Secret::from_hex(kDigits);
  CHECK(secret.hex() == kDigits);
  CHECK(secret.bytes()[1] == 1 && secret.bytes()[31] == 0xff);
  CHECK(Secret::from_hex("ABCDEFabcdef" + kDigits.substr(12)).hex() ==
        "abcdefabcdef" + kDigits.substr(12));
}

TEST(other_text_is_refused_and_not_quoted) {
  for (const std::string& text : {std::string(), kDigits.substr(1), kDigits + "0"}) {
    const Error error = thrown<Error>([&] { Secret::from_hex(text); });
    CHECK(error.status == Status::invalid_argument);
    CHECK(std::string(error.what()).find(std::to_string(text.size())) != std::string::npos);
  }
  // The neighbours of the digits in ASCII, at both halves of a byte.
  for (const char wrong : {'/', ':', '@', 'G', '`', 'g', '\0', '\x80'}) {
    for (const std::size_t at : {0U, 1U, 62U, 63U}) {
      std::string text = kDigits;
      text[at] = wrong;
      const std::string words = thrown<Error>([&] { Secret::from_hex(text); }).what();
      CHECK(words.find("character " + std::to_string(at + 1)) != std::string::npos);
      CHECK(words.find(text.substr(2, 60)) == std::string::npos);
    }
  }
}

TEST(made_secrets_differ) {
  std::vector<std::string> all;
  for (int i = 0; i < 100; ++i) all.push_back(Secret::make().hex());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST(no_secret_without_randomness) {
  const Failing failing(SystemCall::getrandom, EIO);
  CHECK(thrown<Error>([] { Secret::make(); }).status == Status::system);
}

TEST(a_secret_is_wiped_when_its_life_ends) {
  alignas(Secret) unsigned char room[sizeof(Secret)];
  const Secret* secret = new (room) Secret(Secret::from_hex(kDigits));
  CHECK(std::count(room, room + sizeof room, 0) == 1);
  secret->~Secret();
  const volatile unsigned char* const seen = room;
  for (std::size_t i = 0; i < sizeof room; ++i) CHECK(seen[i] == 0);
}

TEST(a_file_is_read_with_and_without_a_line_end) {
  const Folder folder;
  CHECK(Secret::from_file(folder.file(kDigits)).hex() == kDigits);
  CHECK(Secret::from_file(folder.file(kDigits + "\n")).hex() == kDigits);
  const std::string narrower = folder.file(kDigits, 0400);
  CHECK(Secret::from_file(narrower).hex() == kDigits);
  // Secrets are often mounted behind a link; what it leads to counts.
  CHECK(::symlink(narrower.c_str(), folder.path("link").c_str()) == 0);
  CHECK(Secret::from_file(folder.path("link")).hex() == kDigits);
}

TEST(the_command_of_the_sentence_makes_such_a_file) {
  const Folder folder;
  std::vector<std::string> made;
  for (const char* name : {"plain", "two words", "it's", "$HOME;`x`"}) {
    const std::string path = folder.path(name);
    CHECK(refused(path, "No such file", true).status == Status::system);
    check::Child shell([&] {
      ::execl("/bin/sh", "sh", "-c", command_for_secret_file(path).c_str(), nullptr);
      ::_exit(127);
    });
    CHECK(shell.wait() == 0);
    made.push_back(Secret::from_file(path).hex());
  }
  CHECK(std::set<std::string>(made.begin(), made.end()).size() == 4);
}

TEST(a_file_with_other_content_is_refused) {
  const Folder folder;
  for (const std::string& content :
       {std::string(), std::string("\n"), kDigits.substr(1), kDigits.substr(1) + "\n",
        " " + kDigits.substr(1), kDigits.substr(1) + "g"}) {
    const Error error = refused(folder.file(content), "holds no secret");
    CHECK(error.status == Status::invalid_argument);
    CHECK(std::string(error.what()).find("copy the file again") != std::string::npos);
  }
  for (const std::string& content : {kDigits + "0", kDigits + "\n\n", kDigits + "\r\n",
                                     kDigits + " ", kDigits + "\n" + std::string(100'000, 'a')}) {
    refused(folder.file(content), "more than 64 hex digits and a line end; copy the file again");
  }
}

TEST(a_file_that_others_may_touch_is_refused) {
  const Folder folder;
  for (const mode_t bit : {0001U, 0002U, 0004U, 0010U, 0020U, 0040U, 0100U, 01000U}) {
    refused(folder.file(kDigits, 0600 | bit), "where at most 0600 is allowed");
  }
  refused(folder.file(kDigits, 0644),
          "has mode 0644 where at most 0600 is allowed; others may know");
}

TEST(a_file_of_another_user_is_refused) {
  if (::geteuid() != 0) return;  // only root can give a file away
  const Folder folder;
  const std::string path = folder.file(kDigits);
  CHECK(::chown(path.c_str(), 65534, 65534) == 0);
  refused(path, "belongs to user 65534");
}

TEST(what_is_no_regular_file_is_refused_and_not_waited_for) {
  const Folder folder;
  const std::string pipe = folder.path("pipe"), link = folder.path("link");
  CHECK(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, std::string("/dev/zero"), std::string("/dev/null")}) {
    refused(path, "is not a regular file; give the path of a regular file");
  }
  refused(folder.path(""), "is a folder; give the path of a regular file");
  CHECK(::symlink(folder.path("nowhere").c_str(), link.c_str()) == 0);
  refused(link, "No such file or directory (ENOENT); give the path of a regular file");
  refused(folder.file(kDigits) + "/file", "(ENOTDIR); give the path of a regular file");
}

TEST(a_file_in_a_folder_that_is_not_there_needs_the_folder_first) {
  const Folder folder;
  refused(folder.path("a/b"), "there is no folder '" + folder.path("a") + "': make it first");
}

TEST(failing_calls_become_sentences) {
  const Folder folder;
  const std::string path = folder.file(kDigits);
  for (const SystemCall call : {SystemCall::open, SystemCall::fstat, SystemCall::read}) {
    const Failing failing(call, EIO);
    CHECK(refused(path, "failed: Input/output error").status == Status::system);
  }
  const Failing failing(SystemCall::open, EACCES);
  refused(path, "Permission denied (EACCES); give the path of a regular file");
  refused("", "(ENOENT); give the path of a regular file");
}
