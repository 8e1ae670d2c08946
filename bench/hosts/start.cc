// SPDX-License-Identifier: Apache-2.0
// One rank of many native processes, which meet, make their first call, and tell when they came to
// where. `python -m bench.hosts.start` starts them. Ranks are dealt to hosts that differ in name
// only, so all talk over TCP or, on "one host", through memory, as between machines.
//
//   coll_start folder FOLDER HOSTS    with RANK and WORLD_SIZE
//   coll_start master PLACE HOSTS     with these and SECRET: rank 0 keeps a store at ADDRESS:PORT
//   coll_start pmi HOSTS              under mpiexec
//
// Prints RANK ENTERED JOINED CALLED: seconds of the monotonic clock, which all processes share.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../limits/probe.h"
#include "../limits/team.h"
#include "collectives.h"
#include "collectives_directory.h"
#include "start_folder.h"

namespace start_bench {
namespace {

using limits::require;

constexpr unsigned kEndS = 120;     // by then whoever waits for a lost peer is ended
constexpr double kTimeoutS = 60;    // of a call
constexpr std::size_t kRoom = 512;  // for the text of a door

using Secret = std::array<unsigned char, COLL_SECRET_BYTES>;

struct Close {
  void operator()(coll_directory* directory) const { coll_directory_close(directory); }
};
using Directory = std::unique_ptr<coll_directory, Close>;

// Where all ranks listen, and what only they know.
struct Job {
  Place place;
  std::vector<std::string> doors;
  Secret secret{};
};

std::string door_of(const coll_listener* listener) {
  std::string text(kRoom, '\0');
  const std::size_t length = coll_listener_text(listener, text.data(), text.size());
  if (length >= text.size()) throw std::runtime_error("the text of a door is too long");
  text.resize(length);
  return text;
}

std::string hex(const Secret& secret) {
  std::string text;
  for (const unsigned char byte : secret) {
    std::array<char, 3> two{};
    std::snprintf(two.data(), two.size(), "%02x", byte);
    text += two.data();
  }
  return text;
}

Secret from_hex(std::string_view text) {
  Secret secret{};
  if (text.size() != 2 * secret.size()) throw std::runtime_error("this is no secret");
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const std::string two(text.substr(2 * i, 2));
    secret[i] = static_cast<unsigned char>(std::strtoul(two.c_str(), nullptr, 16));
  }
  return secret;
}

int number_of(const char* text) {
  const long number = text == nullptr ? -1 : std::strtol(text, nullptr, 10);
  if (number < 0 || number > 1024) throw std::runtime_error("a number from 0 to 1024 is missing");
  return static_cast<int>(number);
}

// Each line: the door, a comma, and the secret of rank 0.
Job met_in_folder(const std::string& folder, const std::string& door) {
  Job job;
  job.place = {number_of(std::getenv("RANK")), number_of(std::getenv("WORLD_SIZE"))};
  Secret drawn{};
  require(coll_make_secret(drawn.data()));
  const std::string mine = door + "," + (job.place.rank == 0 ? hex(drawn) : "");
  const std::vector<std::string> lines = exchange_in_folder(folder, job.place, mine);
  for (const std::string& line : lines) job.doors.push_back(line.substr(0, line.find(',')));
  const std::string& first = lines.at(0);
  job.secret = from_hex(std::string_view(first).substr(first.find(',') + 1));
  return job;
}

std::string value_of(coll_directory* directory, const std::string& key, std::size_t room) {
  std::string value(room, '\0');
  std::size_t bytes = 0;
  require(
      coll_directory_get(directory, key.c_str(), value.data(), value.size(), &bytes, kTimeoutS));
  value.resize(bytes);
  return value;
}

void put(coll_directory* directory, const std::string& key, const std::string& value) {
  require(coll_directory_put(directory, key.c_str(), value.data(), value.size(), kTimeoutS));
}

// Rank 0 gathers the doors and hands all of them out as one text: a store answers one question
// at a time, and p ranks that ask for p doors each would wait for p * p answers.
Job met_in_directory(coll_directory* directory, const std::string& door) {
  Job job;
  job.place = {coll_directory_rank(directory), coll_directory_ranks(directory)};
  const auto ranks = static_cast<std::size_t>(job.place.ranks);
  put(directory, "door" + std::to_string(job.place.rank), door);
  require(coll_directory_fence(directory, kTimeoutS));
  if (job.place.rank == 0) {
    Secret drawn{};
    require(coll_make_secret(drawn.data()));
    std::string all = hex(drawn) + '\n';
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      all += value_of(directory, "door" + std::to_string(rank), kRoom) + '\n';
    }
    put(directory, "all", all);
  }
  require(coll_directory_fence(directory, kTimeoutS));
  std::istringstream lines(value_of(directory, "all", kRoom * (ranks + 1)));
  std::string line;
  std::getline(lines, line);
  job.secret = from_hex(line);
  while (std::getline(lines, line)) job.doors.push_back(line);
  if (job.doors.size() != ranks) throw std::runtime_error("doors are missing");
  return job;
}

coll_comm* joined(const Job& job, int hosts, coll_listener* listener) {
  const int ranks = job.place.ranks;
  std::vector<std::string> names;
  std::vector<const char*> doors, named;
  for (int rank = 0; rank < ranks; ++rank) {
    names.push_back("host" + std::to_string(rank * hosts / ranks));
  }
  for (const std::string& name : names) named.push_back(name.c_str());
  for (const std::string& door : job.doors) doors.push_back(door.c_str());
  coll_wire_options options{};
  options.size = sizeof(options);
  options.rank = job.place.rank;
  options.ranks = ranks;
  options.timeout = kTimeoutS;
  options.secret = job.secret.data();
  options.doors = doors.data();
  options.hosts = named.data();
  coll_comm* comm = nullptr;
  require(coll_init_wire(&options, listener, &comm));
  return comm;
}

Directory opened(coll_directory_options& options) {
  options.size = sizeof(options);
  options.timeout = kTimeoutS;
  coll_directory* made = nullptr;
  require(coll_directory_open(&options, &made));
  return Directory(made);
}

Directory opened_by_pmi() {
  coll_directory_options options{};
  options.pmi = 1;
  return opened(options);
}

Directory opened_at(const char* place) {
  const char* text = std::getenv("SECRET");
  const Secret secret = from_hex(text == nullptr ? "" : text);
  coll_directory_options options{};
  options.at = place;
  options.secret = secret.data();
  options.rank = number_of(std::getenv("RANK"));
  options.ranks = number_of(std::getenv("WORLD_SIZE"));
  return opened(options);
}

double now_s() { return limits::now_ns() / 1e9; }

}  // namespace

void run(int argc, char** argv) {
  const double entered = now_s();
  ::alarm(kEndS);
  const std::string_view way = argc > 1 ? argv[1] : "";
  const bool folder = way == "folder" && argc == 4, master = way == "master" && argc == 4;
  if (!folder && !master && !(way == "pmi" && argc == 3)) {
    throw std::runtime_error(
        "usage: coll_start folder FOLDER HOSTS, master PLACE HOSTS, pmi HOSTS");
  }
  const Directory directory = folder ? nullptr : master ? opened_at(argv[2]) : opened_by_pmi();
  coll_listener* listener = nullptr;
  require(coll_listener_open("127.0.0.1", &listener));
  const std::string door = door_of(listener);
  const Job job = folder ? met_in_folder(argv[2], door) : met_in_directory(directory.get(), door);
  coll_comm* comm = joined(job, number_of(argv[argc - 1]), listener);
  const double met = now_s();
  const auto one = static_cast<float>(job.place.rank);
  float sum = 0;
  require(coll_allreduce(comm, &one, &sum, 1, COLL_FLOAT32, COLL_SUM));
  const double called = now_s();
  const int ranks = job.place.ranks;
  const int expected = ranks * (ranks - 1) / 2;
  if (sum != static_cast<float>(expected)) throw std::runtime_error("a wrong sum");
  std::printf("%d %.6f %.6f %.6f\n", job.place.rank, entered, met, called);
  std::fflush(stdout);
  coll_close(comm);
}

}  // namespace start_bench

int main(int argc, char** argv) {
  try {
    start_bench::run(argc, argv);
  } catch (const std::exception& error) {
    const char* rank = std::getenv(argc == 3 ? "PMI_RANK" : "RANK");
    std::fprintf(stderr, "coll_start: rank %s: %s\n", rank == nullptr ? "?" : rank, error.what());
    return 1;
  }
}
