// SPDX-License-Identifier: Apache-2.0
#include "nccl/meeting.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "bootstrap/channel.h"
#include "bootstrap/letters.h"
#include "bootstrap/mesh_dial.h"
#include "bootstrap/mesh_door.h"
#include "bootstrap/wire_door.h"
#include "bootstrap/words.h"
#include "nccl/quiet_thread.h"
#include "nccl/result.h"
#include "nccl/settings.h"
#include "transport/system_calls.h"

namespace coll::nccl {
namespace {

constexpr int kMostRanks = 1024;
constexpr int kServer = kMostRanks;  // behind all ranks: it need not be one
constexpr std::size_t kMostWords = 1 << 12;
// The first character of a letter.
constexpr char kWords = 'w', kJoined = 'j', kFailure = 'f';
constexpr std::size_t kLongestWhy = 2000;  // bytes of the sentence of a failure

MeshTerms terms_of(int member, const Secret& secret) {
  return {{.rank = member, .ranks = kMostRanks + 1, .job = "nccl", .attempt = 0}, secret};
}

// 0: it is none.
int number_in(std::string_view digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// One meeting, seen from the process that made the id.
class Meeting {
 public:
  Meeting(TcpListener&& listener, const Secret& secret)
      : terms_(terms_of(kServer, secret)),
        door_(
            std::move(listener), terms_, limits_, [this](int rank) { return room_for(rank); },
            [this](int rank, int, Connection connection) {
              lines_.push_back({rank, Letters(std::move(connection), kMostWords)});
              if (!end_.empty()) lines_.back().letters.post(end_);
            }) {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // Until all have what the others said and have joined them, or the meeting has failed and all
  // have been told.
  void serve() {
    try {
      while (!complete()) turn();
      tell_all(answer());
      joining_ = true;
      while (!all_joined()) turn();
    } catch (const Error& error) {
      break_off(kFailure + std::string(error.what()));
    }
  }

 private:
  struct Line {
    int rank;
    Letters letters;
    std::optional<std::string> words = {};
    bool joined = false;
    bool gone = false;
  };

  // Asked once for each who comes: two that come as one rank cannot both be right. Who comes when
  // all have met is just refused.
  int room_for(int rank) {
    if (!end_.empty()) return 1;
    if (!joining_ && !came_.insert(rank).second) twice_ = rank;
    return is_here(rank) ? 0 : 1;
  }

  bool is_here(int rank) const {
    return std::any_of(lines_.begin(), lines_.end(),
                       [rank](const Line& line) { return line.rank == rank; });
  }

  bool complete() const {
    return ranks_ > 0 && static_cast<int>(lines_.size()) == ranks_ &&
           std::all_of(lines_.begin(), lines_.end(),
                       [](const Line& line) { return line.words.has_value(); });
  }

  bool all_joined() const {
    return std::all_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.joined; });
  }

  void turn() {
    door_.step();
    if (twice_ >= 0) {
      throw Error(Status::bootstrap,
                  "two processes have come as rank " + std::to_string(twice_) +
                      " with one unique id: give each rank its own number",
                  twice_);
    }
    for (Line& line : lines_) {
      const std::string trouble = line.letters.step();
      while (const std::optional<std::string> letter = line.letters.take()) {
        hear(line, *letter);
        line.letters.step();
      }
      if (trouble.empty()) continue;
      throw Error(Status::bootstrap,
                  "rank " + std::to_string(line.rank) +
                      (joining_ ? " has met the others, and before all had joined "
                                : " came to meet the others, and ") +
                      trouble,
                  line.rank);
    }
    if (joining_ ? !all_joined() : !complete()) wait();
  }

  void hear(Line& line, const std::string& letter) {
    if (joining_) {
      hear_of_joining(line, letter);
    } else {
      hear_words(line, letter);
    }
  }

  // "j"; or "f" and why the rank cannot join.
  static void hear_of_joining(Line& line, const std::string& letter) {
    line.joined = letter.size() == 1 && letter.front() == kJoined;
    if (line.joined) return;
    throw Error(Status::bootstrap,
                "rank " + std::to_string(line.rank) +
                    " could not join the others: " + letter.substr(letter.empty() ? 0 : 1),
                line.rank);
  }

  // "w", the number of ranks, a blank, the words.
  void hear_words(Line& line, const std::string& letter) {
    const std::size_t blank = letter.find(' ');
    if (letter.empty() || letter.front() != kWords || blank == std::string::npos || line.words) {
      throw Error(Status::bootstrap,
                  "what rank " + std::to_string(line.rank) + " says at the meeting is damaged");
    }
    const int ranks = number_in(std::string_view(letter).substr(1, blank - 1));
    if (ranks_ == 0) ranks_ = ranks;
    if (ranks != ranks_) {
      throw Error(Status::bootstrap, "rank " + std::to_string(line.rank) + " was started for " +
                                         std::to_string(ranks) + " ranks, another one for " +
                                         std::to_string(ranks_) + ", with one unique id");
    }
    if (line.rank >= ranks_) {
      throw Error(Status::bootstrap, "rank " + std::to_string(line.rank) + " is none of " +
                                         std::to_string(ranks_) + " ranks");
    }
    line.words = letter.substr(blank + 1);
  }

  std::string answer() const {
    std::vector<std::string_view> words(static_cast<std::size_t>(ranks_));
    for (const Line& line : lines_) words[static_cast<std::size_t>(line.rank)] = *line.words;
    std::string all(1, kWords);
    for (const std::string_view of_rank : words) append_text(all, of_rank);
    return all;
  }

  // All who are here are told at once, and who comes a little later: it would find no door, and try
  // in vain.
  void break_off(const std::string& letter) {
    end_ = letter;
    tell_all(letter);
    const Deadline farewell(limits_.refused_s);
    while (!farewell.passed()) {
      std::erase_if(lines_, [](const Line& line) { return line.gone || line.letters.all_sent(); });
      wait();
      door_.step();
      for (Line& line : lines_) line.gone |= !line.letters.step().empty();
    }
  }

  void tell_all(const std::string& letter) {
    for (Line& line : lines_) {
      line.letters.post(letter);
      line.gone |= !line.letters.step().empty();
    }
  }

  void wait() {
    constexpr int kSlice = 500;  // ms: strangers at the door have their time
    watched_.clear();
    door_.watch(watched_);
    for (const Line& line : lines_) {
      if (!line.gone) watched_.push_back(line.letters.watched());
    }
    sys::poll(watched_.data(), watched_.size(), kSlice);
  }

  MeshTerms terms_;
  MeshLimits limits_;
  std::vector<Line> lines_;
  MeshDoor door_;
  std::vector<pollfd> watched_;
  int ranks_ = 0;
  std::set<int> came_;
  int twice_ = -1;        // a rank that came a second time
  bool joining_ = false;  // all have met
  std::string end_;       // what all are told where the meeting has failed
};

Letters connected(const MeetingPlace& place, const MeshTerms& terms, const Deadline& deadline,
                  double seconds, const Stop& stop) {
  MeshLimits limits;
  limits.absent_s = seconds;
  MeshDial dial(kServer, place.at, terms, limits);
  for (;;) {
    if (std::optional<Connection> made = dial.step(MeshDial::Clock::now())) {
      return {std::move(*made), kMostWords * kMostRanks};
    }
    if (deadline.passed()) throw Error(Status::timeout, dial.standing());
    pollfd watched = dial.watched();
    const Deadline pause(0.01);  // while the dial rests before its next attempt
    wait_a_moment(&watched, watched.fd >= 0 ? 1 : 0, watched.fd >= 0 ? deadline : pause, stop);
  }
}

// The line is closed when all have been told. Who leaves before, and ends, may take the meeting's
// thread with it.
void await_end(Letters& letters, const Deadline& deadline, const Stop& stop) {
  while (letters.step().empty() && !deadline.passed()) {
    pollfd watched = letters.watched();
    wait_a_moment(&watched, 1, deadline, stop);
  }
}

std::string answer_to(Letters& letters, const std::string& letter, const Deadline& deadline,
                      const Stop& stop) {
  letters.post(letter);
  for (;;) {
    const std::string trouble = letters.step();
    if (std::optional<std::string> got = letters.take()) {
      const bool failed = got->empty() || got->front() == kFailure;
      if (trouble.empty() && failed) await_end(letters, deadline, stop);
      return std::move(*got);
    }
    if (!trouble.empty()) {
      throw Error(Status::peer_lost, "the process that made the unique id is lost: " + trouble);
    }
    if (deadline.passed()) throw Error(Status::timeout, "other ranks have not come");
    pollfd watched = letters.watched();
    wait_a_moment(&watched, 1, deadline, stop);
  }
}

std::vector<std::string> words_in(std::string_view answer, int ranks) {
  if (answer.empty() || answer.front() == kFailure) {
    throw Error(Status::bootstrap, std::string(answer.substr(answer.empty() ? 0 : 1)));
  }
  answer.remove_prefix(1);
  std::vector<std::string> words;
  while (const std::optional<std::string_view> text = cut_text(answer)) words.emplace_back(*text);
  if (words.size() != static_cast<std::size_t>(ranks)) {
    throw Error(Status::bootstrap, "what the ranks have said is damaged on its way");
  }
  return words;
}

}  // namespace

MeetingPlace open_meeting() {
  const Endpoint at = wire_address(interfaces(), std::nullopt);
  TcpListener listener(at, kMostRanks);
  MeetingPlace place{listener.endpoint(), Secret::make()};
  quiet_thread([listener = std::move(listener), secret = place.secret]() mutable {
    // What goes wrong is told to the ranks; without memory for that they see it end.
    outcome_of([&] { Meeting(std::move(listener), secret).serve(); });
  }).detach();
  return place;
}

Met meet(const MeetingPlace& place, int rank, int ranks, const std::string& words, double seconds,
         const Stop& stop) {
  if (ranks > kMostRanks) {
    throw Error(Status::unsupported, "a communicator has at most " + std::to_string(kMostRanks) +
                                         " ranks, not " + std::to_string(ranks));
  }
  const Deadline deadline(seconds);
  const MeshTerms terms = terms_of(rank, place.secret);
  try {
    Letters letters = connected(place, terms, deadline, seconds, stop);
    const std::string letter = kWords + std::to_string(ranks) + ' ' + words;
    std::vector<std::string> said = words_in(answer_to(letters, letter, deadline, stop), ranks);
    return {std::move(letters), std::move(said), Deadline(seconds), stop};
  } catch (const Error& error) {
    const std::string late =
        error.status == Status::timeout ? ", within " + seconds_in_words(seconds) : "";
    throw Error(error.status,
                "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                    " has not met the others at " + place.at.text() +
                    ", where the process listens that called ncclGetUniqueId()" + late + ": " +
                    error.what(),
                error.rank == kServer ? -1 : error.rank);
  }
}

std::optional<Error> Met::told() {
  const std::string trouble = letters_.step();
  if (const std::optional<std::string> letter = letters_.take()) {
    return Error(Status::peer_lost, letter->substr(letter->empty() ? 0 : 1));
  }
  if (!trouble.empty() && !joined_) {
    return Error(Status::peer_lost, "the process that made the unique id is lost: " + trouble);
  }
  if (deadline_.passed()) return Error(Status::timeout, "other ranks have met, and not joined");
  ended_ = !trouble.empty();
  return std::nullopt;
}

void Met::look() {
  if (!failure_) failure_ = told();
  if (failure_) throw Error(*failure_);
}

void Met::joined() {
  letters_.post(std::string(1, kJoined));
  joined_ = true;
  for (look(); !ended_; look()) {
    pollfd watched = letters_.watched();
    wait_a_moment(&watched, 1, deadline_, stop_);
  }
}

void Met::give_up(const std::string& why) noexcept {
  constexpr double kFarewell = 1;  // seconds
  outcome_of([&] {
    const Deadline farewell(kFarewell);
    if (!failure_) letters_.post(kFailure + why.substr(0, kLongestWhy));
    await_end(letters_, farewell, stop_);
  });
}

}  // namespace coll::nccl
