// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/mesh_directory.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/system_error.h"
#include "bootstrap/channel.h"
#include "bootstrap/mesh_dial.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

// What one rank can put between two fences: a few values of some hundred bytes are.
constexpr std::size_t kMostOfARank = 1 << 16;
constexpr std::size_t kLongestReason = 1 << 10;  // bytes of why a rank gives up
constexpr int kKnocking = 512;  // ranks that the kernel keeps before they are let in

// How often rank 0 tells those who wait for whom.
constexpr double kNewsS = 0.1;

// The first character of a letter: of all; of rank 0; of the others.
constexpr char kValues = 'v', kFailure = 'f', kAwaited = 'a', kGivesUp = 'g';
constexpr char kTrouble = 't';  // as kGivesUp, where it would not take part, whoever came
// As kFailure and kGivesUp, where the time of who says it was up: for all it is a time-out then.
constexpr char kLate = 'l', kOutOfTime = 'o';

MeshLimits limits_of_meeting(double silence_s) {
  constexpr double kForEver = 1e9;
  MeshLimits limits;
  // Rank 0 may be the last to come: only the time of the meeting ends it.
  limits.absent_s = limits.refused_s = kForEver;
  limits.tcp.silence_s = silence_s;
  return limits;
}

TcpListener meeting_door(const Endpoint& at, const TcpOptions& options) {
  if (at.is_every_address() || at.port() == 0) {
    throw Error(Status::invalid_argument,
                "rank 0 cannot listen at " + at.text() +
                    " for the other ranks: give the address of one interface of its host and a "
                    "port (MASTER_ADDR, MASTER_PORT)");
  }
  try {
    return {at, kKnocking, options};
  } catch (const Error& error) {
    throw Error(error.status,
                std::string(error.what()) +
                    "; rank 0 meets the others there: the address must be one of its host's, the "
                    "port one that no other program has (MASTER_ADDR, MASTER_PORT)");
  }
}

}  // namespace

MeshDirectory::MeshDirectory(const Identity& self, const Secret& secret, const Endpoint& at,
                             double seconds, Stop stop, std::string trouble, double silence_s)
    : terms_{self, secret},
      stop_(std::move(stop)),
      trouble_(std::move(trouble)),
      limits_(limits_of_meeting(silence_s)) {
  if (trouble_.size() > kLongestReason) trouble_.resize(kLongestReason);
  if (self.rank == 0) {
    let_all_in(at, seconds);
  } else {
    connect(at, seconds);
  }
}

void MeshDirectory::put(std::string_view key, std::string_view value, const Deadline&) {
  if (put_.size() + key.size() + value.size() + 2 * sizeof(std::uint64_t) > kMostOfARank) {
    throw Error(Status::invalid_argument, "rank " + std::to_string(terms_.self.rank) +
                                              " puts more than " + std::to_string(kMostOfARank) +
                                              " bytes at one time into the store of this job");
  }
  append_text(put_, key);
  append_text(put_, value);
}

std::string MeshDirectory::get(std::string_view key, const Deadline&) {
  const auto found = values_.find(key);
  if (found != values_.end()) return found->second;
  throw Error(Status::bootstrap,
              "no rank put '" + std::string(key) + "' before the last fence of this job's store");
}

void MeshDirectory::fence(const Deadline& deadline) {
  if (!failure_.empty()) throw Error(Status::bootstrap, failure_);
  if (terms_.self.rank == 0) {
    lead(deadline);
  } else {
    follow(deadline);
  }
}

void MeshDirectory::close() noexcept { lines_.clear(); }

Letters MeshDirectory::letters_of(Connection connection, std::size_t longest) const {
  return {std::move(connection), longest, limits_.tcp.silence_s};
}

void MeshDirectory::let_all_in(const Endpoint& at, double seconds) {
  const Deadline deadline(seconds);
  std::vector<bool> here(static_cast<std::size_t>(terms_.self.ranks));
  here[0] = true;
  door_.emplace(
      meeting_door(at, limits_.tcp), terms_, limits_,
      [&](int rank) { return here[static_cast<std::size_t>(rank)] ? 0 : 1; },
      [&](int rank, int, Connection connection) {
        here[static_cast<std::size_t>(rank)] = true;
        lines_.push_back({rank, letters_of(std::move(connection), kMostOfARank + 1)});
      });
  next_news_ = Deadline(kNewsS);
  try {
    std::vector<pollfd> watched;
    while (lines_.size() + 1 < here.size()) {
      door_->step();
      if (const int lack = door_->starved()) {
        throw system_error("letting the other ranks in at " + at.text(), lack);
      }
      expect_alive();
      if (lines_.size() + 1 == here.size()) break;
      if (deadline.passed()) {
        throw Error(Status::timeout, "after " + seconds_in_words(seconds) + " " + awaited());
      }
      tell_now_and_then();
      watched.clear();
      door_->watch(watched);
      for (const Line& line : lines_) watched.push_back(line.letters.watched());
      wait_a_moment(watched.data(), watched.size(), deadline, stop_);
    }
    door_.reset();
    tell("");  // or who was late would be blamed for what comes now
  } catch (const Error& error) {
    fail(error);
  }
}

void MeshDirectory::connect(const Endpoint& at, double seconds) {
  const Deadline deadline(seconds);
  MeshDial dial(0, at, terms_, limits_);
  for (;;) {
    if (std::optional<Connection> made = dial.step(MeshDial::Clock::now())) {
      const std::size_t longest = kMostOfARank * static_cast<std::size_t>(terms_.self.ranks) + 1;
      lines_.push_back({0, letters_of(std::move(*made), longest)});
      return;
    }
    if (deadline.passed()) {
      throw Error(Status::timeout,
                  "rank " + std::to_string(terms_.self.rank) + " of " + job_in_words(terms_.self) +
                      " has not met rank 0 within " + seconds_in_words(seconds) + ": " +
                      dial.standing(),
                  0);
    }
    pollfd watched = dial.watched();
    constexpr double kPauseS = 0.01;  // while the dial rests before its next attempt
    const Deadline pause(kPauseS);
    wait_a_moment(&watched, watched.fd >= 0 ? 1 : 0, watched.fd >= 0 ? deadline : pause, stop_);
  }
}

// Some are here, and wait for the others: who ends meanwhile ends the meeting.
void MeshDirectory::expect_alive() {
  for (Line& line : lines_) {
    const std::string trouble = line.letters.step();
    hear(line);
    if (trouble.empty()) continue;
    const std::string others = awaited();
    throw Error(Status::bootstrap,
                "rank " + std::to_string(line.rank) + " of " + job_in_words(terms_.self) +
                    " has come to meet the others, and " + trouble +
                    (others.empty() ? "" : "; besides, " + others),
                line.rank);
  }
}

// Rank 0: what a rank has said. Whether that are its values; that it gives up is thrown, with the
// ranks for which it has waited first, since they are why.
bool MeshDirectory::hear(Line& line) {
  while (const std::optional<std::string> letter = line.letters.take()) {
    const char kind = letter->empty() ? '\0' : letter->front();
    if (kind == kGivesUp || kind == kOutOfTime) {
      const std::string others = awaited();
      throw Error(kind == kOutOfTime ? Status::timeout : Status::bootstrap,
                  others + (others.empty() ? "" : "; ") + "rank " + std::to_string(line.rank) +
                      " has given up: " + letter->substr(1));
    }
    if (kind == kTrouble) {
      const std::string others = awaited();
      throw Error(Status::bootstrap,
                  "rank " + std::to_string(line.rank) + " cannot take part: " + letter->substr(1) +
                      (others.empty() ? "" : "; besides, " + others),
                  line.rank);
    }
    if (kind != kValues || line.values) {
      throw Error(
          Status::bootstrap,
          "what rank " + std::to_string(line.rank) + " puts into the store of this job is damaged",
          line.rank);
    }
    line.values = letter->substr(1);
    line.letters.step();  // what is behind it
  }
  return line.values.has_value();
}

// The others: whether rank 0 has answered, and not only said for whom it waits.
bool MeshDirectory::hear_rank_0(Line& line, std::string& answer) {
  while (std::optional<std::string> letter = line.letters.take()) {
    if (letter->empty() || letter->front() != kAwaited) {
      answer = std::move(*letter);
      return true;
    }
    awaited_ = letter->substr(1);
    line.letters.step();
  }
  return false;
}

// Rank 0: who keeps the others waiting; nothing where nobody does.
std::string MeshDirectory::awaited() const {
  std::vector<bool> here(static_cast<std::size_t>(terms_.self.ranks));
  here[0] = true;
  std::vector<int> absent, behind;
  for (const Line& line : lines_) {
    here[static_cast<std::size_t>(line.rank)] = true;
    if (!line.values) behind.push_back(line.rank);
  }
  for (std::size_t r = 0; r < here.size(); ++r) {
    if (!here[r]) absent.push_back(static_cast<int>(r));
  }
  if (!absent.empty() && door_) {
    return ranks_in_words(absent) + " of " + job_in_words(terms_.self) + " had not come to " +
           door_->endpoint().text() + door_->troubles();
  }
  std::sort(behind.begin(), behind.end());
  return behind.empty() ? "" : ranks_in_words(behind) + " had not come to the meeting point";
}

void MeshDirectory::tell_now_and_then() {
  if (!next_news_.passed()) return;
  next_news_ = Deadline(kNewsS);
  tell(awaited());
}

void MeshDirectory::tell(const std::string& news) {
  for (Line& line : lines_) {
    // Nothing is heaped up for a rank that does not read.
    if (line.news == news || !line.letters.all_sent()) continue;
    line.news = news;
    line.letters.post(kAwaited + news);
    line.letters.step();
  }
}

// Turns of the lines that are not `finished`, until all are.
void MeshDirectory::turns(const Deadline& deadline, const Finished& finished, const Late& late) {
  std::vector<pollfd> watched;
  for (;;) {
    watched.clear();
    std::vector<int> waiting;
    for (Line& line : lines_) {
      const std::string trouble = line.letters.step();
      if (finished(line)) continue;
      if (!trouble.empty()) {
        throw Error(Status::bootstrap,
                    "rank " + std::to_string(line.rank) + " of " + job_in_words(terms_.self) +
                        " was lost while the ranks met: " + trouble,
                    line.rank);
      }
      waiting.push_back(line.rank);
      watched.push_back(line.letters.watched());
    }
    if (waiting.empty()) return;
    if (deadline.passed()) throw Error(Status::timeout, late(waiting));
    if (terms_.self.rank == 0) tell_now_and_then();
    wait_a_moment(watched.data(), watched.size(), deadline, stop_);
  }
}

void MeshDirectory::lead(const Deadline& deadline) {
  next_news_ = Deadline(kNewsS);
  try {
    turns(
        deadline, [this](Line& line) { return hear(line); },
        [](const std::vector<int>& late) {
          return ranks_in_words(late) + " did not come to the meeting point in time";
        });
    std::string all = std::exchange(put_, {});
    for (const Line& line : lines_) all += *line.values;
    read(all, 0);
    for (Line& line : lines_) {
      line.letters.post(kValues + all);
      line.news.clear();
    }
    hand_out(deadline);
    for (Line& line : lines_) line.values.reset();
  } catch (const Error& error) {
    fail(error);
  }
}

void MeshDirectory::hand_out(const Deadline& deadline) {
  turns(
      deadline, [](const Line& line) { return line.letters.all_sent(); },
      [](const std::vector<int>& late) {
        return ranks_in_words(late) + " did not read what the others have put in time";
      });
}

void MeshDirectory::follow(const Deadline& deadline) {
  Line& line = lines_.front();
  line.letters.post(kValues + std::exchange(put_, {}));
  std::string answer;
  try {
    turns(
        deadline, [&](Line& rank_0) { return hear_rank_0(rank_0, answer); },
        [&](const std::vector<int>&) {
          return "rank 0 did not answer in time: " +
                 (awaited_.empty() ? "a rank has not come as far as this one" : awaited_);
        });
    const char kind = answer.empty() ? '\0' : answer.front();
    if (kind == kFailure || kind == kLate) {
      throw Error(kind == kLate ? Status::timeout : Status::bootstrap,
                  "rank 0 has given up: " + answer.substr(1), 0);
    }
    if (kind != kValues) {
      throw Error(Status::bootstrap, "what rank 0 says of the values is damaged", 0);
    }
    read(std::string_view(answer).substr(1), 0);
    awaited_.clear();
  } catch (const Error& error) {
    fail(error);
  }
}

void MeshDirectory::read(std::string_view values, int from) {
  while (!values.empty()) {
    const std::optional<std::string_view> key = cut_text(values);
    const std::optional<std::string_view> value = key ? cut_text(values) : std::nullopt;
    if (!value) {
      throw Error(Status::bootstrap,
                  "the values that rank " + std::to_string(from) + " hands on are damaged", from);
    }
    values_.insert_or_assign(std::string(*key), std::string(*value));
  }
}

std::string MeshDirectory::farewell_for(const Error& error) const {
  const std::string why = error.what();
  const bool late = error.status == Status::timeout;
  if (terms_.self.rank == 0) {
    if (!trouble_.empty()) return kFailure + ("it cannot take part: " + trouble_ + "; " + why);
    return (late ? kLate : kFailure) + why;
  }
  if (!trouble_.empty()) return kTrouble + trouble_;
  if (late) return kOutOfTime + std::string("its time was up");
  return kGivesUp + why.substr(0, kLongestReason);
}

// Rank 0 tells the others why, as far as they listen, and they tell rank 0; then nobody can go on.
void MeshDirectory::fail(const Error& error) {
  failure_ = error.what();
  const std::string farewell = farewell_for(error);
  for (Line& line : lines_) {
    line.letters.post(farewell);
    line.letters.step();
  }
  lines_.clear();
  door_.reset();
  throw Error(error);
}

}  // namespace coll
